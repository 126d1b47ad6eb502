"""A job at several parameters: what each point risks and loses, which of them nobody beats, and which one to take.

Every point is masked and measured like a run, and judged by the policy, but nothing is published. Its result is kept in
the private folder under the digest of job, input and key, so a sweep that was stopped goes on where it was.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import yaml

from dpmask.engine.progress import Watcher
from dpmask.errors import InputError, JobError
from dpmask.job.events import Recorder
from dpmask.job.job_text import JobText, KeyPath
from dpmask.job.model import Job, understood
from dpmask.job.prepare import Prepared, folders, prepare
from dpmask.job.stages import JobRun, mask_and_measure
from dpmask.lake.storage import Place
from dpmask.release.policy import Rule, judge
from dpmask.report.page import map_page

_OVER = re.compile(r"\s*([^=]+?)\s*=\s*(.+)\s*", re.DOTALL)
_KEPT = "sweep"
_POINT = ("run", "values", "holds", "broken", "about")
_PART = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


class Axis(NamedTuple):
    """One parameter and the values it takes."""

    name: str
    path: KeyPath
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
    """An axis as it is typed: ``mask[0].k=3,5,10``; values are YAML."""
    match = _OVER.fullmatch(text)
    problem = f"--over {text}: must be PATH=VALUE,VALUE,... such as mask[0].k=3,5,10."
    if not match:
        raise JobError(problem)
    try:
        values = yaml.safe_load(f"[{match[2]}]")
    except yaml.YAMLError:
        raise JobError(problem) from None
    path = tuple(int(index) if index else name for name, index in _PART.findall(match[1]))
    return Axis(match[1], path, values)


def sweep(
    url: str,
    over: Sequence[str],
    *,
    risk: str | None = None,
    loss: str | None = None,
    report: str | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """All points of a sweep, the frontier among them, and the recommended one; also drawn as a map."""
    text = JobText(url)
    axes = [parse_axis(one) for one in over]
    jobs = [_at(text, axes, values) for values in product(*(axis.values for axis in axes))]
    goals = _goals(jobs[0][1], risk, loss)
    points: list[dict[str, Any]] = []
    for number, (values, job) in enumerate(jobs, start=1):
        progress(f"{number} of {len(jobs)}: {_line(values)}")
        points.append({"parameters": values, "typed": _typed(values), **_point(job, goals, progress)})
    for point in points:
        point["frontier"] = not any(_beats(other, point) for other in points)
    best = _best(points)
    swept = {
        "name": jobs[0][1].file.name,
        "risk": goals[0].name,
        "loss": goals[1].name,
        "points": points,
        "recommended": best,
        "recommendation": _recommendation(points, best, goals),
    }
    place = Place(report) if report is not None else folders(jobs[0][1])[1] / _KEPT / "map.html"
    place.write(map_page({**swept, "about": points[0]["about"]}).encode())
    for point in points:
        del point["about"]  # the same for all, and for the page only
    return {**swept, "report": place.full_url}


def _at(text: JobText, axes: Sequence[Axis], values: Sequence[Any]) -> tuple[dict[str, Any], Job]:
    """The job with these values in place of its own."""
    changed = text
    for axis, value in zip(axes, values, strict=True):
        changed = changed.changed(axis.path, value)
    return {axis.name: value for axis, value in zip(axes, values, strict=True)}, understood(changed)


def _goals(job: Job, risk: str | None, loss: str | None) -> tuple[Goal, Goal]:
    """What to compare by: as asked for, else the first measure of each kind, else a method's own loss."""
    judged = {measure.name: measure.judged for measure in job.measures}
    judged |= {name: method.judged for name, method in zip(job.names, job.methods, strict=True) if method.judged}
    risks = [Goal(m.name, "rate") for m in job.measures if "rate" in m.judged]
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


def _point(job: Job, goals: Sequence[Goal], progress: Callable[[str], None]) -> dict[str, Any]:
    """What one point came to: as it was kept, or measured now."""
    prepared = prepare(job, overwrite=True)
    kept = prepared.private / _KEPT / f"{prepared.run}.json"
    try:
        found = json.loads(kept.read())
        if found["versions"] == prepared.versions and {goal.name for goal in goals} <= set(found["values"]):
            point = {key: found[key] for key in _POINT} | _axes(found, goals)
            progress("  measured before")
            return point
    except (InputError, ValueError, KeyError, TypeError):
        pass
    found = _measured(prepared, progress)
    kept.write(json.dumps(found).encode())
    return {key: found[key] for key in _POINT} | _axes(found, goals)


def _axes(found: Mapping[str, Any], goals: Sequence[Goal]) -> dict[str, float]:
    return {"risk": found["values"][goals[0].name], "loss": found["values"][goals[1].name]}


class _Stages(Watcher):
    """Shows the stages of a point."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self.progress = progress

    def stage(self, name: str) -> None:
        self.progress(f"  {name}")


def _measured(prepared: Prepared, progress: Callable[[str], None]) -> dict[str, Any]:
    """Mask, measure and judge, in a folder of its own: a release of the same job is not touched. No file is kept."""
    own = prepared.private / _KEPT / prepared.run
    with own.locked():
        done = mask_and_measure(JobRun(prepared.job, Recorder(_Stages(progress))), prepared, own)
    own.clear()
    values = {
        f"{name}.{field}": judge(Rule("", name, field, "<=", 0.0), result).judged
        for name, result in done.judged.items()
        for field in result.judged
        if getattr(result, field) is not None
    }
    broken = [one.rule.text for one in done.verdicts if not one.held]
    return {
        "run": prepared.run,
        "versions": prepared.versions,
        "values": values,
        "holds": not broken,
        "broken": broken,
        "about": {name: one.described() for name, one in done.judged.items()},
    }


def _beats(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether a point risks and loses no more than another, and one of them less."""
    no_worse = one["risk"] <= other["risk"] and one["loss"] <= other["loss"]
    return bool(no_worse and (one["risk"], one["loss"]) != (other["risk"], other["loss"]))


def _best(points: Sequence[Mapping[str, Any]]) -> int | None:
    """The point with least loss that satisfies the policy; of several, the one with least risk, then the first."""
    allowed = [number for number, point in enumerate(points) if point["holds"]]
    return min(allowed, key=lambda number: (points[number]["loss"], points[number]["risk"]), default=None)


def _typed(values: Mapping[str, Any]) -> dict[str, str]:
    """Values as one would type them: lists and whole steps in YAML, on one line."""
    form: Any = {"default_flow_style": True, "sort_keys": False, "allow_unicode": True, "width": math.inf}
    return {
        name: yaml.safe_dump(value, **form).strip() if isinstance(value, dict | list) else str(value)
        for name, value in values.items()
    }


def _line(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in _typed(values).items())


def _recommendation(points: Sequence[Mapping[str, Any]], best: int | None, goals: Sequence[Goal]) -> str:
    risk, loss = goals
    if best is None:
        least = min(points, key=lambda point: point["risk"])
        return (
            f"No point satisfies the policy. The least {risk.name} is {least['risk']:.4g}, at "
            f"{_line(least['parameters'])}, where it breaks: {'; '.join(least['broken'])}. Mask more strongly, or take "
            "another method."
        )
    point = points[best]
    passed = sum(one["holds"] for one in points)
    return (
        f"Take {_line(point['parameters'])}: of the {passed} of {len(points)} points that satisfy the policy it loses "
        f"least, {loss.name} {point['loss']:.4g}, at {risk.name} {point['risk']:.4g} (by its upper 95 % limit where it "
        "was sampled)."
    )
