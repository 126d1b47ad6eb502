"""Compiling ahead of a run: what a job needs, or everything, in as many processes as there are cores."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from threading import Lock
from typing import Any, NamedTuple

from dpmask.engine.passes import threads
from dpmask.engine.progress import current
from dpmask.job.model import Job
from dpmask.kernels.kernel_cache import kept_kernels, kept_size, watching, writable_folder
from dpmask.kernels.warm_up import Task, all_tasks, cold

_EVERY_RUN = ("draws", "moments", "histogram")
_CRISP = (Task("fuzzy", 1.0), Task("starts"), Task("labels"))
_METHODS: dict[str, tuple[Task, ...]] = {
    "noise": (Task("normals"),),
    "microaggregation": (Task("mdav"), Task("labels")),
    "refinement": (Task("refinement"),),
    "membership_transform": (Task("membership"),),
    "rotation": (Task("rotation"), Task("normals")),
    "regression_synthesis": (Task("regression"), Task("fuzzy", 2.0), Task("memberships", 2.0), Task("starts")),
    "ipso": (Task("regression"), Task("normals")),
}
_MEASURES: dict[str, tuple[Task, ...]] = {
    "distance_linkage": (Task("linkage"),),
    "interval_disclosure": (Task("order"),),
    "attribute_inference": (Task("neighbours"),),
    "probabilistic_information_loss": (Task("order"),),
    "kolmogorov_smirnov": (Task("order"),),
    "total_variation": (Task("order"),),
    "hellinger": (Task("order"),),
    "misclassification": _CRISP,
    "partition_agreement": _CRISP,
}
_PERHAPS: dict[str, tuple[Task, ...]] = {
    "microaggregation": (Task("cells"),),
    "refinement": (Task("order"), *_CRISP, Task("fuzzy", 1.2)),
    "membership_transform": (Task("order"),),
    "swapping": (Task("order"),),
    "regression_synthesis": (
        *(Task(name, m) for name in ("fuzzy", "memberships") for m in (1.5, 1.25, 1.1)),
        *(Task("labels"), Task("normals")),
    ),
    "known_records": (Task("linkage"), Task("regression")),
    "probabilistic_linkage": (Task("order"),),
    "partition_agreement": (Task("fuzzy", 1.2),),
}
"""What some tables or parameters need besides: compiled ahead, not counted."""


class Warm(NamedTuple):
    """What a warm-up compiled, and what is kept where."""

    compiled: int
    kept: int
    size: int
    folder: str | None


def tasks_of(job: Job, *, nulls: bool = False, perhaps: bool = False) -> list[Task]:
    """What a job's steps and measures compile, with nulls in its source or without; or what they perhaps do, too."""
    tasks = [Task(name) for name in (*_EVERY_RUN, *(["moments with gaps"] if nulls or perhaps else []))]
    methods: Sequence[Any] = job.methods
    for step, method in zip(job.file.mask, methods, strict=True):
        tasks += _METHODS.get(step["method"], ())
        if step["method"] == "fuzzy_microaggregation":
            tasks += [Task(name, *method.clustering) for name in ("fuzzy", "closeness")]
            tasks += [Task("draw", *method.drawing), *map(Task, ("starts", "labels", "cells", "small groups"))]
    for one in job.measures:
        tasks += _MEASURES.get(one.measure, ())
        if one.measure == "cluster_distance":
            tasks += [Task("fuzzy", *_sharpness(one.parameters)), Task("starts")]
    names = [*(step["method"] for step in job.file.mask), *(one.measure for one in job.measures)]
    return tasks + [task for name in names for task in _PERHAPS.get(name, ())] if perhaps else tasks


def _sharpness(parameters: Any) -> tuple[float | None, float | None]:
    entropy = parameters.get("entropy")
    return (None, 1.0) if entropy is not None else (parameters.get("fuzziness") or 2.0, None)


def compile_seconds(job: Job, *, nulls: bool = False) -> tuple[int, float]:
    """How many kernels a job would still have to compile on this machine, and the CPU that takes, about."""
    waiting = cold(tasks_of(job, nulls=nulls))
    return _missing(waiting), sum(task.seconds for task in waiting)


@contextmanager
def compiling_announced(job: Job) -> Iterator[None]:
    """Say with the first kernel that a run compiles in this process why nothing else seems to happen."""
    (kernels, _), report, announced = compile_seconds(job), current(), Lock()

    def announce(_: str) -> None:
        if announced.acquire(blocking=False):
            place = writable_folder()
            kept = f"kept at {place}" if place else "not kept: no folder can be written, set NUMBA_CACHE_DIR to one"
            some = f"{kernels} kernels" if kernels else "a kernel"
            report(f"compiling {some}, once on this machine; {kept}", 0, 0)

    with watching(announce):
        yield


def _missing(tasks: list[Task]) -> int:
    return len({name for task in tasks for name in task.kernels} - kept_kernels())


def warm_up(job: Job | None = None) -> Warm:
    """Compile what is not kept yet."""
    waiting = cold(all_tasks() if job is None else tasks_of(job, perhaps=True))
    missing, report = _missing(waiting), current()
    if waiting:
        processes = min(threads(), len(waiting))
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, mp_context=context) as pool:
            running = [pool.submit(task.run) for task in waiting]
            for done, task in enumerate(as_completed(running), start=1):
                task.result()
                report("compile", done, len(running))
    folder = writable_folder()
    return Warm(missing, len(kept_kernels()), kept_size(), None if folder is None else str(folder))
