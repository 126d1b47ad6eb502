"""One setting of a job on the sample: masked, measured and judged by the gate, with what a page draws of it.

Risks are taken with k as it is, losses and pictures with k in proportion to the sample (explore/proportion.py). Fewer
records to hide among make linkage easier than on everything: as a rule, the risk of a sample is not the smaller one.
"""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dpmask.engine.draws import Subkey
from dpmask.engine.limits import limits
from dpmask.engine.remembered import Memory, remembering
from dpmask.errors import DpmaskError
from dpmask.explore.cluster_view import ClusterView, cluster_view
from dpmask.explore.masked_sample import MaskedSample, masked_sample
from dpmask.job.decision import Decision, measure_and_judge, measured_losses
from dpmask.job.fit import draws_of
from dpmask.job.measures import taken_once
from dpmask.job.model import Job
from dpmask.job.plain_columns import telling_columns
from dpmask.job.prepare import Prepared, prepare
from dpmask.job.sweep import Goal
from dpmask.kernels.wilson import wilson
from dpmask.masking.method import FittedMethod
from dpmask.release.policy import judge
from dpmask.report.comparison import compare
from dpmask.report.distributions import DrawnColumn, drawn_columns
from dpmask.results import Interval, Loss
from dpmask.table.grouping import group_sizes
from dpmask.table.keyed_sample import PARTS, part_of
from dpmask.table.label_sets import through_steps
from dpmask.table.lake import Lake
from dpmask.table.table import Table

FEWER = {"assigned_records": 500, "compared_by_few": 200, "refitted_records": 2_000, "refit_starts": 2}
"""Records that the expensive attacks take of a sample, so that a move stays quick (dpmask/engine/limits.py)."""
_AT_ONCE = 2
"""Attacks that are tried beside each other."""
_STUDENT = 2.7764451051977987
"""The 97.5 % point of Student's t with one degree of freedom less than there are parts."""


class Estimate(NamedTuple):
    """A number found on the sample, with the 95 % interval of what it may be on everything, where there is one."""

    name: str
    value: float
    interval: Interval | None


class Line(NamedTuple):
    """A line of the gate's verdict: a rule, what it was judged by, and whether it holds."""

    rule: str
    judged: float | None
    held: bool
    about: str


@dataclass(frozen=True)
class Sample:
    """The source, open, and a keyed sample of it in memory."""

    lake: Lake
    table: Table
    draws: Subkey | None = None
    """The key of draws for any setting: what a move does not change stays as it is. None: those of a run."""
    memory: Memory = dataclasses.field(default_factory=dict, repr=False)
    """What a move does not change, such as what an attack learns from the originals."""

    @property
    def whole(self) -> bool:
        """Whether the sample is all of it."""
        return self.table.rows == self.lake.rows

    @property
    def share(self) -> float:
        """How much of it the sample is."""
        return self.table.rows / self.lake.rows


@dataclass(frozen=True, repr=False)
class Evaluated:
    """What a setting came to on the sample. Its repr shows nothing of it."""

    verdict: tuple[Line, ...]
    risk: Estimate
    loss: Estimate
    values: Mapping[str, Estimate]
    """Every number that a policy may name."""
    sizes: Mapping[int, int]
    """How many groups of the quasi-identifiers have so many records."""
    columns: tuple[DrawnColumn, ...]
    trees: Mapping[str, Mapping[str, Any]]
    """The trees that steps made, by step and column."""
    clusters: ClusterView | None
    warnings: tuple[str, ...]
    scaled: Mapping[str, tuple[int, int]]
    """Numbers of records that losses and pictures have in proportion to the sample: as set, and as taken."""
    seconds: float

    @property
    def held(self) -> bool:
        """Whether the gate would let the sample pass."""
        return all(line.held for line in self.verdict)


class ScaledJobs(NamedTuple):
    """A job, and the same as it is taken on a sample: for risks, and for losses and pictures."""

    job: Job
    for_risk: Job
    for_loss: Job
    scaled: Mapping[str, tuple[int, int]]
    """Numbers of records that are in proportion: as the job has them, and on the sample."""


class _Pictures(NamedTuple):
    """What is lost by a job, and what a page draws of that."""

    masked: MaskedSample
    losses: Mapping[str, Any]
    interval: Interval | None
    columns: tuple[DrawnColumn, ...]
    clusters: ClusterView | None


def evaluated(jobs: ScaledJobs, sample: Sample, goals: tuple[Goal, Goal]) -> Evaluated:
    """Mask the sample by a job, measure it and judge it. Risks and losses are found beside each other."""
    start, job = time.perf_counter(), jobs.job
    prepared = prepare(job, overwrite=True, trial=True, keep=False, lake=sample.lake)
    fewer = limits() if sample.whole else limits(**FEWER)
    with warnings.catch_warnings(), ThreadPoolExecutor(1) as pool, remembering(sample.memory), fewer:
        warnings.simplefilter("ignore")  # the page has them; fits, which ignore them too, run beside each other here
        same = _masked(job, prepared, sample) if jobs.for_risk.steps == jobs.for_loss.steps else None
        later = pool.submit(copy_context().run, _pictures, jobs, prepared, sample, goals[1], same)
        decision = _risks(jobs, prepared, sample, same)
        shown = later.result()
    figures = {name: one.figures for name, one in zip(job.names, shown.masked.fitted, strict=True)}
    results = {**decision.judged, **shown.losses}
    widened = {name: _Sampled(one, sample.whole, figures.get(name)) for name, one in results.items()}
    values = {
        f"{name}.{field}": _estimate(name, field, one)
        for name, one in widened.items()
        for field in one.judged
        if getattr(one, field) is not None
    }
    risk, loss = (values[goal.name] for goal in goals)
    quasi = list(decision.gate.quasi)
    return Evaluated(
        verdict=(*_closed(prepared, sample), *_lines(job, decision, widened)),
        risk=risk,
        loss=loss._replace(interval=loss.interval or shown.interval),
        values=values,
        sizes=group_sizes(shown.masked.table, quasi, "explore: groups").groups if quasi else {},
        columns=shown.columns,
        trees=_trees(job, shown.masked.fitted),
        clusters=shown.clusters,
        warnings=(*(text for one in shown.masked.fitted for text in one.warnings()), *decision.untried),
        scaled=jobs.scaled,
        seconds=time.perf_counter() - start,
    )


def _masked(job: Job, prepared: Prepared, sample: Sample) -> MaskedSample:
    if sample.draws is not None:
        return masked_sample(job, sample.table, sample.draws)
    own: Prepared = prepared._replace(job=job, lake=sample.table)  # type: ignore[arg-type]  # a table is enough from here
    return masked_sample(job, sample.table, draws_of(own))


def _risks(jobs: ScaledJobs, prepared: Prepared, sample: Sample, same: MaskedSample | None) -> Decision:
    """Everything but the job's own losses, with k as it is."""
    masked = same or _masked(jobs.for_risk, prepared, sample)
    risks = [one for one in jobs.job.measures if not issubclass(one.definition.result, Loss)]
    job = jobs.for_risk._replace(measures=tuple(risks))
    return measure_and_judge(job, sample.table, masked.table, masked.fitted, at_once=_AT_ONCE)


def _pictures(jobs: ScaledJobs, prepared: Prepared, sample: Sample, goal: Goal, same: MaskedSample | None) -> _Pictures:
    """The job's own losses, and what is drawn, with k in proportion."""
    masked = same or _masked(jobs.for_loss, prepared, sample)
    losses = measured_losses(masked.job, sample.table, masked.table, masked.fitted)
    released = [name for name in prepared.columns if name in sample.table.schema.names]
    changed = [name for name in released if name in masked.table.changed]
    sampled = goal.measure in losses and not sample.whole
    value = float(getattr(losses[goal.measure], goal.field)) if sampled else 0.0
    return _Pictures(
        masked,
        losses,
        _between_parts(jobs.job, goal, sample.table, masked.table, value) if sampled else None,
        tuple(drawn_columns(compare(sample.table, masked.table, changed, (), through_steps(masked.fitted)).columns)),
        cluster_view(sample.table, masked.table, masked.fitted),
    )


def _trees(job: Job, fitted: Sequence[FittedMethod]) -> dict[str, Mapping[str, Any]]:
    """The trees that the figures of each step show, by the name of the step."""
    found = {}
    for name, one in zip(job.names, fitted, strict=True):
        shown = one.figures.exhibits if one.figures is not None else {}
        trees = [getattr(one.figures, field) for field, how in shown.items() if how.kind == "trees"]
        found[name] = {column: tree for some in trees for column, tree in some.items()}
    return {name: trees for name, trees in found.items() if trees}


class _Sampled:
    """A result whose shares were found on a sample of the records: their intervals say so, and the policy sees it.

    What a method lost is that of its ``figures`` in proportion.
    """

    def __init__(self, result: Any, whole: bool, figures: Any = None) -> None:
        self._result = result
        if figures is not None and "loss" in result.judged:
            self.loss = figures.loss
        found = dict(result.intervals)
        for field in () if whole else result.shares:
            rate = getattr(result, field, None)
            if rate is not None and result.attacked:
                low, high = wilson(min(max(rate, 0.0), 1.0), result.attacked)
                known = found.get(field, (rate, rate))
                found[field] = min(low, known[0]), max(high, known[1])
        self.intervals = found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._result, name)


def _estimate(name: str, field: str, result: Any) -> Estimate:
    value, interval = float(getattr(result, field)), result.intervals.get(field)
    exact = interval is None or interval[0] == interval[1]
    return Estimate(f"{name}.{field}", value, None if exact else interval)


def _between_parts(job: Job, goal: Goal, before: Table, after: Table, value: float) -> Interval | None:
    """The interval of a loss, from how far its values on disjoint parts of the sample lie apart; None without one."""
    request = next((one for one in job.measures if one.name == goal.measure), None)
    if request is None or before.rows != after.rows:
        return None
    parts = [(part_of(before, at), part_of(after, at)) for at in range(PARTS)]
    try:
        found = [float(getattr(taken_once(request, *part), goal.field)) for part in parts]
    except DpmaskError:  # a part has too few records
        return None
    half = _STUDENT * float(np.std(found, ddof=1)) / PARTS**0.5
    return max(value - half, min(value, 0.0)), value + half


def _closed(prepared: Prepared, sample: Sample) -> list[Line]:
    """What the gate refuses before it masks; of plain columns that identify people only where all records are seen."""
    found = prepared.findings()
    if sample.whole:
        found |= telling_columns(prepared.job, sample.table)
    return [Line(f"{name} is protected or accepted", None, False, problem) for name, problem in found.items()]


def _lines(job: Job, decision: Decision, results: Mapping[str, Any]) -> list[Line]:
    lines, asked = [], replace(decision, job=job, requests=[*decision.requests, *job.measures])
    stated = {" ".join(rule.split()) for rule in job.file.policy}
    for rule in job.rules:
        verdict = judge(rule, results[rule.measure])
        columns = ", ".join(asked.columns(rule.measure, rule.field))
        default = "" if rule.text in stated else "a default of the gate; "
        lines.append(Line(rule.text, verdict.judged, verdict.held, f"{default}about {columns}"))
    return lines
