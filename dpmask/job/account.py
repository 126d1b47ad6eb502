"""What a run did, as plain values: the manifest, the statement and the report are all made from this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dpmask import __version__
from dpmask.engine.cluster.same_workers import computing_libraries
from dpmask.job.decision import Decision
from dpmask.job.layout import released_type
from dpmask.job.model import Job
from dpmask.job.outcome import About, MeasureOutcome, RuleOutcome, StepOutcome
from dpmask.job.prepare import Prepared
from dpmask.masking.claims import standing_claims
from dpmask.measures.measure import MeasureRequest
from dpmask.report.public_numbers import public_loss
from dpmask.results import Loss, Plain, Result

_PRIVATE = {"steps", "measures", "policy", "public_measures"}
"""Of these only parts are public."""
_REUSED = " What this step learnt from data it learnt from an earlier table; what it promises was counted in this one."
_OF_ANOTHER = (
    "The step was fitted on an earlier table: numbers of what the fit came to, such as shares, are of that one."
)
_NOT_SHOWN = "Not shown: one record weighs too much in it."


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
    trial: bool
    key: dict[str, Plain]
    rows: int
    order: str
    partition_by: list[str]
    """Columns whose values are in folders' names, if any."""
    table: str | None
    schema: list[ReleasedColumn]
    dropped: list[str]
    accepted: dict[str, str]
    claims: list[dict[str, Any]]
    steps: list[StepOutcome]
    measures: list[MeasureOutcome]
    policy: list[RuleOutcome]
    metadata: dict[str, Any] | None
    """What the job says of the release, for catalogues."""
    public_measures: list[MeasureOutcome]
    """The measures that the release may show, rounded to what its number of records supports."""

    def public(self) -> dict[str, Any]:
        """The account without what would help an intruder: no risk, no weakness, no value a rule was judged by."""
        changed = {
            "schema": [column._asdict() for column in self.schema],
            "steps": [_public_step(step) for step in self.steps],
            "information_loss": [
                one.model_dump(include={"name", "measure", "values", "explanation"}) for one in self.public_measures
            ],
            "policy": [one.model_dump(include={"rule", "held", "columns"}) for one in self.policy],
        }
        unset = {name for name in ("partition_by", "table", "metadata") if not getattr(self, name)}
        return {name: value for name, value in vars(self).items() if name not in _PRIVATE | unset} | changed


def account(
    prepared: Prepared,
    fitted: Sequence[Any],
    rows: int,
    decision: Decision,
    leverages: Mapping[str, float],
    consistency: Sequence[Result | None] = (),
) -> Account:
    """The account of a run from its fitted steps, its results, and the weight of the farthest record in each column."""
    job, schema = prepared.job, prepared.lake.schema
    for step in fitted:
        schema = step.masked_schema(schema)
    masked = {column for step in fitted for column in step.changes}
    return Account(
        name=job.file.name,
        run=prepared.run,
        dpmask=__version__,
        libraries=computing_libraries(),
        trial=prepared.key.trial,
        key={"fingerprint": prepared.key.fingerprint, "salt": prepared.key.salt},
        rows=rows,
        order=job.file.order,
        partition_by=job.file.partition_by,
        table=job.file.table,
        schema=[
            ReleasedColumn(name, str(released_type(job, name, schema.field(name).type)), job.role(name), name in masked)
            for name in prepared.columns
        ],
        dropped=job.dropped,
        accepted=job.file.accept,
        claims=standing_claims(fitted, prepared.columns),
        steps=[
            step_outcome(one["method"], step, name, done)
            for one, step, name, done in zip(
                job.file.mask, fitted, job.names, consistency or [None] * len(fitted), strict=True
            )
        ],
        measures=[
            measure_outcome(one.name, one.measure, result, may_publish(job, result))
            for one, result in decision.measured
        ],
        policy=[
            RuleOutcome(
                rule=one.rule.text,
                judged=one.judged,
                held=one.held,
                columns=decision.columns(one.rule.measure, one.rule.field),
            )
            for one in decision.verdicts
        ],
        metadata=job.file.metadata.given() if job.file.metadata else None,
        public_measures=[
            _public_outcome(one, result, public_loss(result, rows, _leverage(decision, one, leverages)))
            for one, result in decision.measured
            if may_publish(job, result)
        ],
    )


def may_publish(job: Job, result: Any) -> bool:
    """Whether a release may show a result; one that gives moments of the originals only if the job says so."""
    return bool(result.public) and (job.file.publish.moments or not result.moments_of_originals)


def _leverage(decision: Decision, one: MeasureRequest, leverages: Mapping[str, float]) -> float:
    """The largest leverage in the columns of a measure."""
    columns = decision.columns(one.name, "") or leverages
    return max((leverages.get(column, 0.0) for column in columns), default=0.0)


def _public_outcome(one: MeasureRequest, exact: Loss, shown: Loss | None) -> MeasureOutcome:
    """What a release shows of a loss, or that it does not."""
    if shown is not None:
        return measure_outcome(one.name, one.measure, shown, True)
    outcome = measure_outcome(one.name, one.measure, exact, True)
    return outcome.model_copy(update={"judged": {}, "values": {}, "exhibits": {}, "explanation": _NOT_SHOWN})


def measure_outcome(name: str, measure: str, result: Any, public: bool | None = None) -> MeasureOutcome:
    """A measure's result as plain values, under the name that the job or its user gives it."""
    return MeasureOutcome(
        name=name,
        measure=measure,
        public=result.public if public is None else public,
        judged={field: getattr(result, field) for field in result.judged},
        values=result.to_dict(),
        explanation=result.explain(),
        about=About(**result.described()),
        first=result.first,
        automatic=result.automatic,
        lost=isinstance(result, Loss),
        larger_is_better=result.larger_is_better,
        shares=list(result.shares),
        headlines=list(result.leading()),
        exhibits=dict(result.exhibits),
    )


def step_outcome(method: str, step: Any, name: str, consistency: Result | None = None) -> StepOutcome:
    """What a fitted step did as plain values, under the name that the policy calls it."""
    parameters = {
        name: list(value) if isinstance(value, tuple) else value for name, value in step.method.parameters().items()
    }
    figures = None if step.reused else step.figures
    return StepOutcome(
        method=method,
        name=name,
        parameters=parameters,
        withheld=list(step.method.withheld),
        statement=step.statement() + (_REUSED if step.reused else ""),
        solution=step.solution(),
        weaknesses=[*([_OF_ANOTHER] if step.reused else []), *step.weaknesses()],
        figures=figures.to_dict() if figures else None,
        about=About.model_validate(figures.described()) if figures else None,
        exhibits=dict(figures.exhibits) if figures else {},
        for_analysts=step.for_analysts(),
        consistency=consistency.to_dict() if consistency else None,
        consistency_exhibits=dict(consistency.exhibits) if consistency else {},
        solution_exhibits=dict(step.solution_exhibits),
    )


def _public_step(step: StepOutcome) -> dict[str, Any]:
    parameters = {name: value for name, value in step.parameters.items() if name not in step.withheld}
    public = {"method": step.method, "parameters": parameters, "statement": step.statement}
    public |= {"for_analysts": step.for_analysts} if step.for_analysts else {}
    return public | ({"solution": step.solution} if step.solution else {})
