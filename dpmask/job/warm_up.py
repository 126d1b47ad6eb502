"""Compiling ahead of a run: what a job needs, or everything, in as many processes as there are cores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import NamedTuple

from dpmask.engine.dispatch import threads
from dpmask.engine.limits import current_limits
from dpmask.engine.progress import Listener, current
from dpmask.job.model import Job
from dpmask.kernels.kernel_cache import kept_kernels, kept_size, watching, writable_folder
from dpmask.kernels.warm_up import KernelUse, Task, all_tasks, cold
from dpmask.measures.measure import MeasureRequest
from dpmask.report.page import load_templates

_EVERY_RUN = ("shuffle", "linkage")
_OF_NUMBERS = ("draws", "moments", "histogram")


class SourceFacts(NamedTuple):
    """What of a source decides which kernels run; by default a long one without nulls, whose numbers stay numbers."""

    rows: int | None = None
    nulls: bool = False
    numbers: bool = True
    """Whether columns of numbers are masked and released as such."""

    @property
    def tasks(self) -> list[Task]:
        """What every job of it compiles."""
        long = self.rows is None or self.rows > current_limits().assigned_records
        of_numbers = (*_OF_NUMBERS, *(["moments with gaps"] if self.nulls else [])) if self.numbers else ()
        return [Task(name) for name in (*_EVERY_RUN, *(["crowds"] if long else []), *of_numbers)]


class Warm(NamedTuple):
    """What a warm-up compiled, and what is kept where."""

    compiled: int
    kept: int
    size: int
    folder: str | None


def tasks_of(job: Job, source: SourceFacts | None = None) -> list[Task]:
    """What a job compiles of a source; of any source what it compiles only sometimes, too."""
    attacks = [MeasureRequest(name, name, {**one}) for method in job.methods for name, one in method.attacks().items()]
    uses = [*(method.kernels for method in job.methods), *(_use(one) for one in (*job.measures, *attacks))]
    if source is None:
        return SourceFacts(nulls=True).tasks + [task for use in uses for task in use.all]
    gaps = source.nulls or any(one.parameters.get("weight") for one in job.measures)  # weights count as gaps do
    return source._replace(nulls=gaps).tasks + [task for use in uses for task in use.always]


def _use(one: MeasureRequest) -> KernelUse:
    return one.definition.kernels_for(one.parameters)


def compile_seconds(job: Job, source: SourceFacts) -> tuple[int, float]:
    """How many kernels a job would still have to compile on this machine, and the CPU that takes, about."""
    waiting = cold(tasks_of(job, source))
    return _missing(waiting), sum(task.seconds for task in waiting)


@contextmanager
def compiling_announced(job: Job | None = None, report: Listener | None = None) -> Iterator[None]:
    """Say with the first kernel that this process compiles why nothing else seems to happen; of a job, how many it has.

    ``report`` is called with it, by default the listener of passes.
    """
    report, announced = report or current(), Lock()

    def announce(_: str) -> None:
        if announced.acquire(blocking=False):
            kernels, place = compile_seconds(job, SourceFacts())[0] if job else 0, writable_folder()
            kept = f"kept at {place}" if place else "not kept: no folder can be written, set NUMBA_CACHE_DIR to one"
            some = f"{kernels} kernels" if kernels else "a kernel" if job else "kernels"
            report(f"compiling {some}, once on this machine; {kept}", 0, 0)

    with watching(announce):
        yield


def _missing(tasks: list[Task]) -> int:
    return len({name for task in tasks for name in task.kernels} - kept_kernels())


def warm_up(job: Job | None = None) -> Warm:
    """Compile what is not kept yet."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed

    waiting = cold(all_tasks() if job is None else tasks_of(job))
    missing, report = _missing(waiting), current()
    if waiting:
        processes = min(threads(), len(waiting))
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, mp_context=context) as pool:
            running = [pool.submit(task.run) for task in waiting]
            for done, task in enumerate(as_completed(running), start=1):
                task.result()
                report("compile", done, len(running))
    load_templates()
    folder = writable_folder()
    return Warm(missing, len(kept_kernels()), kept_size(), None if folder is None else str(folder))
