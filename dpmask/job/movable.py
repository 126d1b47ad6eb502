"""The parameters of a job's steps that may be moved, each with all places of the job file that move with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dpmask.job.job_text import KeyPath, key_path
from dpmask.job.model import Job
from dpmask.masking.movable import Movable
from dpmask.measures import find_measure


class PlacedMovable(NamedTuple):
    """A parameter of a step, and where the job file has it: first in the step."""

    parameter: Movable
    paths: tuple[KeyPath, ...]

    @property
    def name(self) -> str:
        """What ``dpmask sweep --over`` calls it, such as mask[0].k."""
        return "+".join(map(key_path, self.paths))


def movable_of(job: Job, number: int) -> Iterator[PlacedMovable]:
    """What of a step may be moved; measures that take as many clusters as it, say, move with it."""
    step = job.file.mask[number]
    for one in job.methods[number].movable(step):
        if not number or not one.range.of_first_step or one.path[0] in step:
            yield PlacedMovable(one, (("mask", number, *one.path), *_followers(job, one)))


def _followers(job: Job, one: Movable) -> Iterator[KeyPath]:
    name = key_path(one.path)
    for at, asked in enumerate(job.file.measure):
        for parameter, followed in find_measure(asked["measure"]).follows.items():
            if followed == name and asked.get(parameter) == one.value:
                yield "measure", at, parameter
