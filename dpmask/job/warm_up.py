"""Compiling ahead of a run: what a job needs, or everything, in as many processes as there are cores."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, NamedTuple

from dpmask.engine.progress import current
from dpmask.job.model import Job
from dpmask.kernels.kernel_cache import kept_kernels, kept_size, writable_folder
from dpmask.kernels.warm_up import Task, all_tasks, cold

_EVERY_RUN = ("draws", "moments", "histogram")
_CRISP = (Task("fuzzy", 1.0), Task("starts"), Task("labels"))
_METHODS: dict[str, tuple[Task, ...]] = {
    "microaggregation": (Task("cells"), Task("mdav")),
    "refinement": (Task("refinement"), Task("order"), *_CRISP, Task("fuzzy", 1.2)),
    "membership_transform": (Task("membership"), Task("order")),
    "rotation": (Task("rotation"),),
    "swapping": (Task("order"),),
    "regression_synthesis": (Task("regression"), Task("starts"), Task("labels")),
    "ipso": (Task("regression"),),
}
_MEASURES: dict[str, tuple[Task, ...]] = {
    "distance_linkage": (Task("linkage"),),
    "interval_disclosure": (Task("order"),),
    "attribute_inference": (Task("neighbours"),),
    "known_records": (Task("linkage"), Task("regression")),
    "probabilistic_linkage": (Task("order"),),
    "probabilistic_information_loss": (Task("order"), Task("moments with gaps")),
    "kolmogorov_smirnov": (Task("order"),),
    "total_variation": (Task("order"),),
    "hellinger": (Task("order"),),
    "moments": (Task("moments with gaps"),),
    "correlations": (Task("moments with gaps"),),
    "misclassification": _CRISP,
    "partition_agreement": (*_CRISP, Task("fuzzy", 1.2)),
}


_REGRESSION_STARTS = (2.0, 1.5, 1.25, 1.1)


class Warm(NamedTuple):
    """What a warm-up compiled, and what is kept where."""

    compiled: int
    kept: int
    size: int
    folder: str | None


def tasks_of(job: Job) -> list[Task]:
    """What a job's steps and measures compile."""
    tasks = [Task(name) for name in _EVERY_RUN]
    for step, method in zip(job.file.mask, job.methods, strict=True):
        tasks += _METHODS.get(step["method"], ())
        if step["method"] == "fuzzy_microaggregation":
            tasks += [Task(name, *method.clustering) for name in ("fuzzy", "closeness")]
            tasks += [Task("draw", *method.drawing), *map(Task, ("starts", "labels", "cells", "small groups"))]
        if step["method"] == "regression_synthesis":
            tasks += [Task(name, m) for name in ("fuzzy", "memberships") for m in _REGRESSION_STARTS]
    for one in job.measures:
        tasks += _MEASURES.get(one.measure, ())
        if one.measure == "cluster_distance":
            tasks += [Task("fuzzy", *_sharpness(one.parameters)), Task("starts"), Task("labels")]
    return tasks


def _sharpness(parameters: Any) -> tuple[float | None, float | None]:
    entropy = parameters.get("entropy")
    return (None, 1.0) if entropy is not None else (parameters.get("fuzziness") or 2.0, None)


def compile_seconds(job: Job) -> tuple[int, float]:
    """How many kernels a job would still have to compile on this machine, and the CPU that takes, about."""
    waiting = cold(tasks_of(job))
    return _missing(waiting), sum(task.seconds for task in waiting)


def _missing(tasks: list[Task]) -> int:
    return len({name for task in tasks for name in task.kernels} - kept_kernels())


def warm_up(job: Job | None = None) -> Warm:
    """Compile what is not kept yet."""
    waiting = cold(all_tasks() if job is None else tasks_of(job))
    missing, report = _missing(waiting), current()
    if waiting:
        processes = min(len(os.sched_getaffinity(0)), len(waiting))
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, mp_context=context) as pool:
            running = [pool.submit(task.run) for task in waiting]
            for done, task in enumerate(as_completed(running), start=1):
                task.result()
                report("compile", done, len(running))
    folder = writable_folder()
    return Warm(missing, len(kept_kernels()), kept_size(), None if folder is None else str(folder))
