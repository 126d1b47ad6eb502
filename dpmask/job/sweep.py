"""A job at several parameters: what each point risks and loses, which of them nobody beats, and which one to take.

Every point is masked and measured like a run, and judged by the policy, but nothing is published. Its result is kept in
the private folder under the digest of job, input and key, so a sweep that was stopped continues there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from dpmask.engine.progress import Watcher
from dpmask.errors import InputError, JobError, StorageError
from dpmask.job.events import Recorder
from dpmask.job.job_text import JobText, KeyPath, parse_setting
from dpmask.job.model import Job, understood
from dpmask.job.prepare import Prepared, check_access, folders, prepare
from dpmask.job.stages import JobRun, mask_and_measure
from dpmask.job.sweep_axes import tried
from dpmask.lake.locks import locked
from dpmask.lake.storage import Place
from dpmask.release.gate import GATE, GateRisk
from dpmask.release.policy import Rule, judge
from dpmask.report.sweep_map import Sweep, SweepPoint, map_page, typed_line

_KEPT = "sweep"


class Axis(NamedTuple):
    """One parameter, or several that always agree, and the values it takes."""

    name: str
    paths: list[KeyPath]
    values: list[Any]


class Goal(NamedTuple):
    """A result that a sweep compares points by, such as distance_linkage.rate: the smaller the better."""

    measure: str
    field: str

    @property
    def name(self) -> str:
        """As a policy writes it."""
        return f"{self.measure}.{self.field}"


def parse_axis(text: str) -> Axis:
    """An axis as it is typed: ``mask[0].k=3,5,10``, or ``mask[0].guide.clusters+measure[0].clusters=4,6``."""
    return Axis(*parse_setting(text, "--over", "PATH=VALUE,VALUE,... such as mask[0].k=3,5,10", several=True))


def sweep(
    url: str,
    over: Sequence[str] = (),
    *,
    settings: Sequence[str] = (),
    risk: str | None = None,
    loss: str | None = None,
    report: str | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Sweep:
    """All points of a sweep, which a page shows as a map, too.

    Parameters
    ----------
    url
        The job file.
    over
        Parameters and their values, such as ``mask[0].k=3,5,10``; all combinations are taken. Parameters that must
        agree are joined by ``+``. Without any, the parameters that set the risk of the job's methods are tried, at
        values that our experiments suggest; ``why`` of the sweep has the reasons.
    settings
        Changes to the job file, such as ``source=lake/2026-11/``.
    risk, loss
        What to compare points by, as a policy would name it; by default the first measured rate, and loss.
    report
        Where to draw the map; ``sweep/map.html`` in the private folder by default.
    progress
        Called with a line of text for each point and stage.

    Returns
    -------
    Sweep
        The points, the frontier among them and the recommended one; a chart in notebooks.
    """
    text = JobText(url, settings)
    chosen = [] if over else tried(understood(text))
    for one in chosen:
        progress(f"no --over: trying {one.over} ({one.why})")
    axes = [parse_axis(one) for one in over or [one.over for one in chosen]]
    jobs = [_at(text, axes, values) for values in product(*(axis.values for axis in axes))]
    goals = goals_of(jobs[0][1], risk, loss)
    check_access(jobs[0][1])
    points = []
    for number, (values, job) in enumerate(jobs, start=1):
        progress(f"{number} of {len(jobs)}: {typed_line(values)}")
        points.append(measured_point(job, values, goals, progress))
    place = Place(report) if report is not None else folders(jobs[0][1])[1] / _KEPT / "map.html"
    swept = Sweep(
        name=jobs[0][1].file.name,
        risk=goals[0].name,
        loss=goals[1].name,
        points=tuple(points),
        report=place.full_url,
        rules=tuple(rule.text for rule in jobs[0][1].rules),
        why={axis.name: one.why for axis, one in zip(axes, chosen, strict=False)},
    )
    place.write(map_page(swept).encode())
    return swept


def _at(text: JobText, axes: Sequence[Axis], values: Sequence[Any]) -> tuple[dict[str, Any], Job]:
    """The job with these values in place of its own."""
    changed = text
    for axis, value in zip(axes, values, strict=True):
        for path in axis.paths:
            changed = changed.changed(path, value)
    return {axis.name: value for axis, value in zip(axes, values, strict=True)}, understood(changed)


def goals_of(job: Job, risk: str | None = None, loss: str | None = None) -> tuple[Goal, Goal]:
    """What to compare by: as asked for, else the first measure of each kind, else a method's own loss."""
    judged = {measure.name: measure.judged for measure in job.measures}
    judged |= {name: method.judged for name, method in zip(job.names, job.methods, strict=True) if method.judged}
    judged[GATE] = GateRisk.judged
    risks = [Goal(m.name, "rate") for m in job.measures if "rate" in m.judged]
    risks.append(Goal(GATE, "linkage"))
    losses = [
        Goal(m.name, "value") for m in job.measures if "value" in m.judged and not m.definition.result.larger_is_better
    ]
    losses += [Goal(name, "loss") for name, fields in judged.items() if "loss" in fields]
    return _goal("risk", risk, risks, judged), _goal("loss", loss, losses, judged)


def _goal(kind: str, asked: str | None, found: Sequence[Goal], judged: Mapping[str, Sequence[str]]) -> Goal:
    if asked is not None:
        measure, _, field = asked.rpartition(".")
        if field not in judged.get(measure, ()):
            known = ", ".join(f"{name}.{field}" for name, fields in judged.items() for field in fields)
            raise JobError(f"--{kind} {asked}: the job does not measure it. Known: {known or 'nothing'}.")
        return Goal(measure, field)
    if not found:
        example = {"risk": "{measure: distance_linkage, columns: [...]}", "loss": "{measure: il1s, columns: [...]}"}
        raise JobError(f"A sweep needs a measure of {kind} in the job, such as {example[kind]}.")
    return found[0]


def measured_point(
    job: Job, parameters: Mapping[str, Any], goals: tuple[Goal, Goal], progress: Callable[[str], None]
) -> SweepPoint:
    """What one point came to: as it was kept, or measured now."""
    prepared = prepare(job, overwrite=True, trial=True)
    kept = prepared.private / _KEPT / f"{prepared.run}.json"
    try:
        found = json.loads(kept.read())
        if found["versions"] == prepared.versions:
            point = _from_kept(found, parameters, goals)
            progress("  measured before")
            return point
    except (InputError, ValueError, KeyError, TypeError):
        pass
    found = _measured(prepared, progress)
    kept.write(json.dumps(found).encode())
    return _from_kept(found, parameters, goals)


def _from_kept(found: Mapping[str, Any], parameters: Mapping[str, Any], goals: tuple[Goal, Goal]) -> SweepPoint:
    risk, loss = (found["values"][goal.name] for goal in goals)
    return SweepPoint(
        parameters=parameters,
        run=found["run"],
        values=found["values"],
        broken=tuple(found["broken"]),
        risk=risk,
        loss=loss,
        about=found["about"],
    )


class _Stages(Watcher):
    """Shows the stages of a point."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self.progress = progress

    def stage(self, name: str) -> None:
        self.progress(f"  {name}")


def _measured(prepared: Prepared, progress: Callable[[str], None]) -> dict[str, Any]:
    """Mask, measure and judge, in a folder of its own: a release of the same job is not touched. No file is kept."""
    own = prepared.private / _KEPT / prepared.run
    with locked(
        own, StorageError(f"{own.url}: another sweep measures this very point. Wait for it, then run it again.")
    ):
        done = mask_and_measure(JobRun(prepared.job, Recorder(_Stages(progress))), prepared, own)
    own.clear()
    values = {
        f"{name}.{field}": judge(Rule("", name, field, "<=", 0.0), result).judged
        for name, result in done.decision.judged.items()
        for field in result.judged
        if getattr(result, field) is not None
    }
    broken = [one.rule.text for one in done.decision.verdicts if not one.held]
    return {
        "run": prepared.run,
        "versions": prepared.versions,
        "values": values,
        "broken": broken,
        "about": {name: one.described() for name, one in done.decision.judged.items()},
    }
