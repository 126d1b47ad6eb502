"""What a run measures on the masked table, what its policy makes of it, and why a release is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpmask.errors import PolicyRefusal
from dpmask.job.advice import larger_groups
from dpmask.job.attacks import attack_requests, taken, undoing
from dpmask.job.gate import GateMeasures, attacked_columns, gate_measures
from dpmask.job.measures import consistency_requests, named_columns, takers
from dpmask.job.model import Job
from dpmask.job.series import CheckedSeries
from dpmask.masking.claims import standing_claims, suppressed_columns
from dpmask.measures.measure import MeasureRequest
from dpmask.release.gate import GATE, GateRisk, refused
from dpmask.release.policy import Verdict, judge
from dpmask.results import Loss, Result
from dpmask.table.joined_intervals import joined_intervals, with_intervals
from dpmask.table.label_sets import through_steps
from dpmask.table.table import Table

_ADVICE = {
    True: "Mask less strongly, or by another method; or state another limit.",
    False: "Mask more strongly, generalise or drop a column; or, if that risk is yours to take, state another limit.",
}
"""What to change where a rule about a loss, or about a risk, is broken."""


@dataclass(frozen=True)
class Decision:
    """Everything that was measured, and whether each rule holds."""

    job: Job
    requests: Sequence[MeasureRequest]
    """The job's own measures, then the attacks of its methods and of the gate."""
    results: Mapping[str, Any]
    figures: Mapping[str, Any]
    """Those of the methods, by the names of their steps."""
    gate: GateRisk
    rows: int
    """Records of the masked table."""
    untried: Sequence[str]
    """Attacks that could not be made, as warnings."""

    @property
    def judged(self) -> dict[str, Any]:
        """All results by name: what a policy may refer to."""
        return {**self.figures, **self.results, GATE: self.gate}

    @property
    def verdicts(self) -> list[Verdict]:
        """Whether each rule holds."""
        return [judge(rule, self.judged[rule.measure]) for rule in self.job.rules]

    @property
    def measured(self) -> list[tuple[MeasureRequest, Any]]:
        """Each measure and its result, the gate last."""
        found = [(one, self.results[one.name]) for one in self.requests if one.name in self.results]
        return [*found, (MeasureRequest(GATE, GATE, {}), self.gate)]

    def columns(self, name: str, field: str) -> list[str]:
        """The columns that a rule about a field of a measure, a method or the gate is about."""
        if name == GATE:
            return list(self.gate.quasi if field == "smallest" else self.gate.columns)
        job = self.job
        if name in self.figures:
            return list(job.methods[job.names.index(name)].masks)
        asked = next(one for one in self.requests if one.name == name)
        named = named_columns(list(asked.parameters.values()))
        return list(dict.fromkeys(one for one in named if one in job.released))

    def refusal(self) -> PolicyRefusal:
        """Why the release is refused, in lines that name what was found and what to change."""
        broken = [one for one in self.verdicts if not one.held]
        return refused(broken, {one.rule.text: self._reasons(one) for one in broken})

    def _reasons(self, broken: Verdict) -> list[str]:
        name, field = broken.rule.measure, broken.rule.field
        result, columns = self.judged[name], self.columns(name, field)
        lines = [f"It is about {', '.join(columns)}."] if columns and name != GATE else []
        lines.append(result.explain())
        if (name, field) == (GATE, "linkage"):
            lines += self.gate.leading_columns()
            lines += larger_groups(self.job, self.rows, broken.judged, broken.rule.limit)
        if (name, field) == (GATE, "attacks"):
            lines[-1:] = [found.explain() for one, found in self.measured if one.name == self.gate.undone] or lines[-1:]
        if (name, field) == (GATE, "differencing"):
            lines[-1:] = [found.explain() for one, found in self.measured if one.measure == field] or lines[-1:]
        return [*lines, _ADVICE[result.public or isinstance(result, Loss)]]


def measure_and_judge(
    job: Job,
    original: Table,
    masked: Table,
    fitted: Sequence[Any],
    series: CheckedSeries | None = None,
    *,
    at_once: int = 1,
) -> Decision:
    """Take the job's measures, the attacks of its methods and those of the gate, ``at_once`` so many of them."""
    earlier = None if series is None else series.measured(job, original, masked)
    masked = with_intervals(masked, joined_intervals(job.methods))
    steps = zip(job.names, job.methods, strict=True)
    at_risk = attacked_columns(job, original, masked.masked_schema)
    attacks = attack_requests(original.masked_schema, masked.masked_schema, steps, job.measures, at_risk)
    account = consistency_requests(original.masked_schema, masked.masked_schema, job.methods, job.measures)
    asked = [*job.measures, *attacks, *account]
    gate: GateMeasures = gate_measures(job, original, masked.masked_schema, asked)
    requests = [*asked, *gate.beside(asked)]
    suppressed = suppressed_columns(standing_claims(fitted, masked.masked_schema.names))
    take = takers(original, masked, requests, through_steps(fitted), suppressed)
    results, untried = taken(take, attacks, at_once=at_once)
    attacking = undoing(job.methods)
    differencing = None
    if earlier is not None:
        request, differencing = earlier
        requests.append(request)
        results[request.name] = differencing
    tried = [one.name for one in asked if one.measure in attacking and one.name in results]
    return Decision(
        job=job,
        requests=requests,
        results=results,
        figures={name: step.figures for name, step in zip(job.names, fitted, strict=True) if step.method.judged},
        gate=gate.risk(
            masked.rows, results, tried, [one.name for one in attacks if one.name not in results], differencing
        ),
        rows=masked.rows,
        untried=untried,
    )


def measured_losses(job: Job, original: Table, masked: Table, fitted: Sequence[Any]) -> dict[str, Result]:
    """The job's own losses alone."""
    masked = with_intervals(masked, joined_intervals(job.methods))
    asked = [one for one in job.measures if issubclass(one.definition.result, Loss)]
    suppressed = suppressed_columns(standing_claims(fitted, masked.masked_schema.names))
    return taken(takers(original, masked, asked, through_steps(fitted), suppressed), ())[0]
