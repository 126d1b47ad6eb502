"""What a sweep tries when it is given no ``--over``: parameters and values, and why, as the methods say.

They say it by what our experiments showed: ``python jobs/papers/run.py open-questions`` and ``... gallery``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dpmask.errors import JobError
from dpmask.job.model import Job
from dpmask.job.movable import PlacedMovable, movable_of
from dpmask.masking.movable import Movable

MOST_AXES = 2
_ONE_AXIS = (0.5, 1, 2, 4)
_TWO_AXES = (0.5, 1, 2)


class TriedParameter(NamedTuple):
    """A parameter that a sweep tries by itself, as ``--over`` would have it, and the reason."""

    over: str
    why: str


def tried(job: Job) -> list[TriedParameter]:
    """The parameters of a job that a sweep without ``--over`` tries, at most two, the first steps first."""
    found = [one for number in last_steps(job) for one in movable_of(job, number) if one.parameter.range.trial][
        :MOST_AXES
    ]
    if not found:
        raise JobError(
            "A sweep without --over tries parameters that set the risk, and no step of this job has one. "
            "Name what to try, such as --over mask[0].k=3,5,10."
        )
    times = _ONE_AXIS if len(found) == 1 else _TWO_AXES
    return [_tried(one, times) for one in found]


def _tried(one: PlacedMovable, times: Sequence[float]) -> TriedParameter:
    trial = one.parameter.range.trial
    assert trial is not None
    values = (
        sorted({*trial.values, one.parameter.value}) if trial.values else _multiples(one.parameter, times, trial.least)
    )
    return TriedParameter(f"{one.name}={', '.join(map(str, values))}", trial.why)


def last_steps(job: Job) -> Iterator[int]:
    """Steps whose columns no later step masks again: it is the last one that sets what is released."""
    masks = [set(method.masks) for method in job.methods]
    for number, own in enumerate(masks):
        if not any(own <= later for later in masks[number + 1 :]):
            yield number


def _multiples(one: Movable, times: Sequence[float], least: float) -> list[float]:
    """Around the job's own value: whole numbers stay whole."""
    low, high = max(one.range.low, least), one.range.high
    found = [min(max(one.value * factor, low), high) for factor in times]
    return sorted({round(value) if one.range.whole else float(f"{value:.6g}") for value in found})
