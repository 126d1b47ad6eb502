"""Tasks: how work on runs of blocks reaches Dask, embedded or on a cluster, and how its results come back.

What storage or the cluster failed at is tried again. A task's name tells the stage; its arguments are opaque to Dask,
its logs and its dashboards.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import dask
from dask.base import named_schedulers
from dask.callbacks import Callback
from dask.delayed import Delayed, delayed

from dpmask.engine import progress
from dpmask.engine.guard import Failure, guarded
from dpmask.errors import ClusterError, DpmaskError, InputError

_TASKS_PER_THREAD = 4
_TRIES = 4
_MEMORY_SHARE = 0.4


class Span(NamedTuple):
    """Which block it is, and the position of its first record."""

    number: int
    first: int


class Block(NamedTuple):
    """A run of consecutive records. ``content`` is what a task turns into rows: a recipe, or a Delayed frame."""

    first: int
    rows: int
    content: Any


class Run(NamedTuple):
    """An aligned run of 1, 2, 4, ... blocks: what one task takes. Contents held on the cluster are one Delayed."""

    spans: tuple[Span, ...]
    contents: list[Any] | Delayed


Blocks = Sequence[Block] | Sequence[Run]


def runs_of(blocks: Blocks) -> list[Run]:
    """Blocks in aligned runs of a power of two; one by one where Dask makes the content, to hold one at a time."""
    items: Sequence[Any] = blocks
    if items and isinstance(items[0], Run):
        return list(items)
    length = 1
    if not any(isinstance(block.content, Delayed) for block in items):
        while len(items) >= 2 * length * _TASKS_PER_THREAD * threads():
            length *= 2
    spans = [Span(number, block.first) for number, block in enumerate(items)]
    contents = [block.content for block in items]
    starts = range(0, len(items), length)
    return [Run(tuple(spans[start : start + length]), contents[start : start + length]) for start in starts]


def task_of(work: Callable[..., Any], run: Run, label: str) -> Delayed:
    """One task over a run of blocks. Its name tells the stage, its arguments are opaque to Dask and its logs."""
    if isinstance(run.contents, Delayed):
        return delayed(partial(_on_contents, work, run.spans), pure=False)(run.contents, dask_key_name=task_name(label))
    if any(isinstance(content, Delayed) for content in run.contents):
        return delayed(partial(_on_parts, work, run.spans), pure=False)(*run.contents, dask_key_name=task_name(label))
    return delayed(partial(_on_contents, work, run.spans, run.contents), pure=False)(dask_key_name=task_name(label))


def task_name(label: str) -> str:
    """A task's name: the stage it belongs to, and what makes it one of a kind."""
    return f"{label.replace(' ', '_')}-{uuid.uuid4().hex}"


def _on_contents(work: Callable[..., Any], spans: Sequence[Span], contents: Any) -> Any:
    return contents if isinstance(contents, Failure) else guarded(work, spans, contents)


def _on_parts(work: Callable[..., Any], spans: Sequence[Span], *contents: Any) -> Any:
    return unless_failed(lambda *found: work(spans, list(found)), *contents)


def unless_failed(work: Callable[..., Any], *parts: Any) -> Any:
    """``work(*parts)``, or the failure that came in place of a part."""
    failed = [part for part in parts if isinstance(part, Failure)]
    return failed[0] if failed else guarded(work, *parts)


def computed(work: Callable[..., Any], runs: list[Run], label: str) -> list[Any]:
    """The results of all runs, in order. What storage or the cluster failed at is tried again, and only that."""
    results: dict[int, Any] = {}
    for attempt in range(_TRIES):
        waiting = [number for number in range(len(runs)) if number not in results]
        tasks = [task_of(work, runs[number], label) for number in waiting]
        failure: Failure | None = None
        for index, result in _finished(tasks, label, len(runs)):
            if not isinstance(result, Failure):
                results[waiting[index]] = result
            elif not result.worth_a_retry:
                raise result.error from None
            else:
                failure = result
        if failure is None:
            break
        if attempt == _TRIES - 1:
            raise failure.error from None
        progress.retried(label, len(runs) - len(results))
        time.sleep(2.0**attempt / 2)
    return [results[number] for number in range(len(runs))]


def hold(make_tasks: Callable[[], list[Delayed]], spans: list[tuple[Span, ...]], label: str) -> list[Run]:
    """The results of tasks, left where they were made; all are made anew when storage or the cluster failed at one."""
    for attempt in range(_TRIES):
        client, tasks = dask_client(), make_tasks()
        if client is None:
            contents = [result for _, result in _finished(tasks, label, len(tasks))]
        else:
            contents = client.persist(tasks, optimize_graph=False)
        runs = [Run(one, content) for one, content in zip(spans, contents, strict=True)]
        made = contents if client is None else _once(runs, label)
        failures = [found for found in map(_failure, made) if found is not None]
        if not failures:
            break
        if attempt == _TRIES - 1 or not all(failure.worth_a_retry for failure in failures):
            raise failures[0].error from None
        progress.retried(label, len(failures))
        time.sleep(2.0**attempt / 2)
    return runs


def _once(runs: list[Run], label: str) -> list[Any]:
    """Wait until all runs are made; what a run failed with comes back in its place."""
    tasks = [task_of(_no_work, run, label) for run in runs]
    return [result for _, result in sorted(_finished(tasks, label, len(tasks)), key=lambda pair: pair[0])]


def _failure(result: Any) -> Failure | None:
    return result if isinstance(result, Failure) else None


def _no_work(spans: Sequence[Span], contents: Any) -> None:
    return None


def fits_in_memory(size: int) -> bool:
    """Whether this many bytes may stay in the workers' memory, or this process's, and leave room to work."""
    client = dask_client()
    if client is not None:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        return size < _MEMORY_SHARE * sum(worker["memory_limit"] for worker in workers)
    import psutil

    return size < _MEMORY_SHARE * psutil.virtual_memory().available


def threads() -> int:
    """Worker threads at hand: the cluster's, or this process's."""
    client = dask_client()
    if client is not None:
        return max(1, sum(client.nthreads().values()))
    from dask.system import CPU_COUNT

    return int(dask.config.get("num_workers", None) or CPU_COUNT)


def _finished(tasks: list[Delayed], label: str, total: int) -> Iterator[tuple[int, Any]]:
    """Each task's number and result, on the cluster as they come, embedded when all are done."""
    tell = progress.current()
    before = total - len(tasks)
    tell(label, before, total)
    client = dask_client()
    if client is None:
        done = iter(range(before + 1, total + 1))
        keys = {task.key for task in tasks}

        def count(key: Any, *_: Any) -> None:
            if key in keys:
                tell(label, next(done), total)

        try:
            with Callback(posttask=count):
                results = _embedded(tasks)
        except Exception as error:
            raise _upstream(error) from None
        yield from enumerate(results)
        return
    yield from _from_cluster(client, tasks, lambda count: tell(label, before + count, total))


def _embedded(tasks: list[Delayed]) -> Any:
    """The results of the tasks, by Dask's threads in this process or the local scheduler that Dask is set to.

    The scheduler is called itself: dask.compute would import distributed, which costs more than many a pass.
    """
    graph = {key: part for task in tasks for key, part in task.__dask_graph__().items()}
    chosen = dask.config.get("scheduler", None) or "threads"
    get = chosen if callable(chosen) else named_schedulers[chosen]
    return get(graph, [task.key for task in tasks])


def _from_cluster(client: Any, tasks: list[Delayed], tell: Callable[[int], None]) -> Iterator[tuple[int, Any]]:
    """Results as the cluster finishes them; a task that kept losing its worker counts as failed."""
    from distributed import as_completed
    from distributed.client import FutureCancelledError
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    try:
        futures = client.compute(tasks, optimize_graph=False)
        numbers = {future.key: number for number, future in enumerate(futures)}
        for count, future in enumerate(as_completed(futures), start=1):
            try:
                result = future.result()
            except CommClosedError:
                raise
            except OSError as error:  # the caller's own graph: CommClosedError is one, too
                raise _upstream(error) from None
            except KilledWorker:
                result = Failure(
                    ClusterError(
                        "A task lost its worker again and again. Give workers more memory, or lower block_rows."
                    )
                )
            tell(count)
            yield numbers[future.key], result
    except (CommClosedError, FutureCancelledError, OSError):
        raise ClusterError("The Dask scheduler is gone. Start the cluster and run the job again.") from None
    except DpmaskError:
        raise
    except Exception as error:
        raise _upstream(error) from None


def _upstream(error: Exception) -> DpmaskError:
    return InputError(
        f"The table's own Dask tasks failed with {type(error).__name__}. Its text is withheld, it may hold values of "
        "records; compute the table by itself to see it."
    )


def dask_client() -> Any:
    """The distributed client that Dask would use now, if any; without one, distributed is not even imported."""
    if "distributed" not in sys.modules:
        return None
    scheduler = dask.base.get_scheduler()
    owner = getattr(scheduler, "__self__", None)
    return owner if hasattr(owner, "scheduler_info") else None
