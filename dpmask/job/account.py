"""What a run did, as plain values: the manifest, the statement and the report are all made from this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any, NamedTuple

from dpmask import __version__
from dpmask.engine.cluster.connect import COMPUTING
from dpmask.job.outcome import About, MeasureOutcome, RuleOutcome, StepOutcome
from dpmask.job.prepare import Prepared
from dpmask.release.claims import standing_claims
from dpmask.release.policy import Verdict
from dpmask.results import Plain

_PRIVATE = {"steps", "measures", "policy"}
"""Of these only parts are public."""


class ReleasedColumn(NamedTuple):
    """A column of the release."""

    name: str
    type: str
    role: str
    masked: bool


@dataclass(frozen=True)
class Account:
    """Everything of a run that people or programs may want to read; ``public`` is what they may see."""

    name: str
    run: str
    dpmask: str
    libraries: dict[str, str]
    key: dict[str, Plain]
    rows: int
    order: str
    schema: list[ReleasedColumn]
    dropped: list[str]
    claims: list[dict[str, Any]]
    steps: list[StepOutcome]
    measures: list[MeasureOutcome]
    policy: list[RuleOutcome]

    def public(self) -> dict[str, Any]:
        """The account without what would help an intruder: no risk, no weakness, no value a rule was judged by."""
        changed = {
            "schema": [column._asdict() for column in self.schema],
            "steps": [_public_step(step) for step in self.steps],
            "information_loss": [
                one.model_dump(include={"name", "measure", "values", "explanation"}) for one in self.public_measures
            ],
            "policy": [one.model_dump(include={"rule", "held"}) for one in self.policy],
        }
        return {name: value for name, value in vars(self).items() if name not in _PRIVATE} | changed

    @property
    def public_measures(self) -> list[MeasureOutcome]:
        """The measures that the release may show."""
        return [one for one in self.measures if one.public]


def account(
    prepared: Prepared, fitted: Sequence[Any], rows: int, results: Mapping[str, Any], verdicts: Sequence[Verdict]
) -> Account:
    """The account of a run from its fitted steps and its results."""
    job, schema = prepared.job, prepared.lake.schema
    for step in fitted:
        schema = step.masked_schema(schema)
    masked = {column for step in fitted for column in step.changes}
    return Account(
        name=job.file.name,
        run=prepared.run,
        dpmask=__version__,
        libraries={name: version(name) for name in COMPUTING},
        key={"fingerprint": prepared.key.fingerprint, "experiment": prepared.key.experiment},
        rows=rows,
        order=job.file.order,
        schema=[
            ReleasedColumn(name, str(schema.field(name).type), job.role(name), name in masked)
            for name in prepared.columns
        ],
        dropped=job.file.columns.identifier,
        claims=standing_claims(fitted),
        steps=[
            step_outcome(one["method"], step, name)
            for one, step, name in zip(job.file.mask, fitted, job.names, strict=True)
        ],
        measures=[measure_outcome(one.name, one.measure, results[one.name]) for one in job.measures],
        policy=[RuleOutcome(rule=one.rule.text, judged=one.judged, held=one.held) for one in verdicts],
    )


def measure_outcome(name: str, measure: str, result: Any) -> MeasureOutcome:
    """A measure's result as plain values, under the name that the job or its user gives it."""
    return MeasureOutcome(
        name=name,
        measure=measure,
        public=result.public,
        judged={field: getattr(result, field) for field in result.judged},
        values=result.to_dict(),
        explanation=result.explain(),
        about=About(**result.described()),
        shares=list(result.shares),
        exhibits=dict(result.exhibits),
    )


def step_outcome(method: str, step: Any, name: str) -> StepOutcome:
    """What a fitted step did as plain values, under the name that the policy calls it."""
    parameters = {
        name: list(value) if isinstance(value, tuple) else value for name, value in asdict(step.method).items()
    }
    return StepOutcome(
        method=method,
        name=name,
        parameters=parameters,
        withheld=list(step.method.withheld),
        statement=step.statement(),
        solution=step.solution(),
        weaknesses=step.weaknesses(),
        figures=step.figures.to_dict() if step.figures else None,
        about=About.model_validate(step.figures.described()) if step.figures else None,
        exhibits=dict(step.figures.exhibits) if step.figures else {},
        solution_exhibits=dict(step.solution_exhibits),
    )


def _public_step(step: StepOutcome) -> dict[str, Any]:
    parameters = {name: value for name, value in step.parameters.items() if name not in step.withheld}
    public = {"method": step.method, "parameters": parameters, "statement": step.statement}
    return public | ({"solution": step.solution} if step.solution else {})
