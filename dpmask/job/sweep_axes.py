"""What a sweep tries when it is given no ``--over``: parameters and values by what our experiments showed, and why.

The experiments are those of jobs/papers: ``python jobs/papers/run.py open-questions`` and ``... gallery``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dpmask.errors import JobError
from dpmask.job.job_text import KeyPath, key_path
from dpmask.job.model import Job

MOST_AXES = 2
_ONE_AXIS = (0.5, 1, 2, 4)
_TWO_AXES = (0.5, 1, 2)


class TriedParameter(NamedTuple):
    """A parameter that a sweep tries by itself, as ``--over`` would have it, and the reason."""

    over: str
    why: str


class _GoverningParameter(NamedTuple):
    """A parameter that governs a step: where it is, the job's value, or the values to try."""

    paths: Sequence[KeyPath]
    why: str
    value: float | None = None
    values: Sequence[Any] = ()
    least: float = 0
    most: float = float("inf")


_K = "k sets the risk; at the same linkage other fuzziness (m1, m2) loses about as much or more, so it stays"
_GROUPS = "k sets the risk: larger groups link less and lose more"
_MODELS = "few models: each further one brings released values nearer to the originals, which the score does not show"
_GUIDE = "guides of about six clusters keep most when the recipient's algorithm is unknown"
_SCALE = "the scale sets risk and loss; correlated columns need more than the score suggests"
_WINDOW = "wide windows are on the frontier of risk and loss on all tables of the gallery"
_VARIANT = "C keeps the regression exactly and loses least; any of them is linked unless the independents are masked"


def tried(job: Job) -> list[TriedParameter]:
    """The parameters of a job that a sweep without ``--over`` tries, at most two, the first steps first."""
    found = [one for number in _steps(job) for one in _of_step(job, number, job.file.mask[number])][:MOST_AXES]
    if not found:
        raise JobError(
            "A sweep without --over tries parameters that set the risk, and no step of this job has one. "
            "Name what to try, such as --over mask[0].k=3,5,10."
        )
    times = _ONE_AXIS if len(found) == 1 else _TWO_AXES
    return [TriedParameter(f"{_name(one.paths)}={', '.join(map(str, _values(one, times)))}", one.why) for one in found]


def _steps(job: Job) -> Iterator[int]:
    """Steps whose columns no later step masks again: it is the last one that sets what is released."""
    masks = [set(method.masks) for method in job.methods]
    for number, own in enumerate(masks):
        if not any(own <= later for later in masks[number + 1 :]):
            yield number


def _of_step(job: Job, number: int, step: Mapping[str, Any]) -> Iterator[_GoverningParameter]:
    path: KeyPath = ("mask", number)
    match step["method"]:
        case "fuzzy_microaggregation" | "microaggregation" as method:
            name = "k" if "k" in step else "clusters"
            if name in step:
                why = _K if method == "fuzzy_microaggregation" else _GROUPS
                yield _GoverningParameter([(*path, name)], why, value=step[name], least=2)
        case "refinement":
            yield from _of_refinement(job, step, path)
        case "regression_synthesis":
            yield _GoverningParameter([(*path, "clusters")], _MODELS, values=sorted({2, 3, 5, 8, step["clusters"]}))
        case "noise":
            if isinstance(step.get("scale"), int | float):
                yield _GoverningParameter([(*path, "scale")], _SCALE, value=step["scale"])
        case "swapping":
            if "window" in step:
                yield _GoverningParameter([(*path, "window")], _WINDOW, value=step["window"], most=1)
        case "ipso":
            yield _GoverningParameter([(*path, "variant")], _VARIANT, values=["A", "B", "C"])


def _of_refinement(job: Job, step: Mapping[str, Any], path: KeyPath) -> Iterator[_GoverningParameter]:
    """The k of the requirement with most columns, and the number of clusters that guide."""
    requirements = enumerate(step.get("requirements", ()))
    asked = [(len(one["columns"]), -at) for at, one in requirements if isinstance(one, Mapping) and "k" in one]
    if asked:
        at = -max(asked)[1]
        place: KeyPath = (*path, "requirements", at, "k")
        yield _GoverningParameter([place], _GROUPS, value=step["requirements"][at]["k"], least=2)
    guide = step.get("guide")
    if isinstance(guide, Mapping) and "clusters" in guide:
        same: list[KeyPath] = [
            ("measure", at, "clusters")
            for at, one in enumerate(job.file.measure)
            if one.get("measure") == "partition_agreement" and one.get("clusters") == guide["clusters"]
        ]
        values = sorted({4, 6, 8, guide["clusters"]})
        yield _GoverningParameter([(*path, "guide", "clusters"), *same], _GUIDE, values=values)


def _values(one: _GoverningParameter, times: Sequence[float]) -> list[Any]:
    """Around the job's own value, as it is written there: whole numbers stay whole."""
    if one.value is None:
        return list(one.values)
    whole = isinstance(one.value, int) and one.least > 0
    found = [min(max(one.value * factor, one.least), one.most) for factor in times]
    return sorted({round(value) if whole else float(f"{value:.6g}") for value in found})


def _name(paths: Sequence[KeyPath]) -> str:
    return "+".join(map(key_path, paths))
