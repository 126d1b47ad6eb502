"""A pass: one function mapped over the blocks, summaries merged in a tree whose shape follows from the blocks alone.

A task takes an aligned run of 1, 2, 4, ... blocks, as many as leave each worker thread a few tasks, and merges inside
the run along the same tree the driver follows above it. So the number of workers decides only who computes a subtree,
never in which order two summaries meet.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import dask
from dask.base import named_schedulers
from dask.callbacks import Callback
from dask.delayed import Delayed, delayed

from dpmask.engine import progress
from dpmask.engine.guard import Failure, guarded
from dpmask.errors import ClusterError, DpmaskError, InputError

Summary = TypeVar("Summary")

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


def map_blocks(function: Callable[[Any, Span], Any], blocks: Blocks, label: str) -> list[Any]:
    """``function(content, span)`` of every block, in block order. Meant for small results."""
    return [result for run in _compute(partial(_map_run, function), _runs(blocks), label) for result in run]


def reduce_blocks(
    function: Callable[[Any, Span], Summary],
    merge: Callable[[Summary, Summary], Summary],
    blocks: Blocks,
    label: str,
) -> Summary:
    """The summaries of all blocks, merged in the fixed tree. There must be at least one block."""
    return merge_tree(_compute(partial(_reduce_run, function, merge), _runs(blocks), label), merge)


def hold_blocks(function: Callable[[Any, Span], Any], blocks: Blocks, label: str) -> list[Run]:
    """``function(content, span)`` of every block, kept in the workers' memory for further passes.

    On a cluster a lost worker's share is made again from the blocks: it is held by lineage, not by luck.
    """
    runs = _runs(blocks)
    work = partial(_map_run, function)
    return _held(lambda: [_task(work, run, label) for run in runs], [run.spans for run in runs], label)


def hold_joined(
    function: Callable[[Any, Span], Any], join: Callable[[list[Any]], Any], blocks: Blocks, label: str
) -> list[Run]:
    """``join`` of all blocks' results, made and kept in one place on the cluster: for samples the driver never sees."""

    def tasks() -> list[Delayed]:
        parts = [_task(partial(_map_run, function), run, label) for run in _runs(blocks)]
        return [delayed(partial(_join, join), pure=False)(*parts, dask_key_name=_name(label))]

    return _held(tasks, [(Span(0, 0),)], label)


def _join(join: Callable[[list[Any]], Any], *parts: Any) -> Any:
    return _unless_failed(lambda *runs: [join([result for run in runs for result in run])], *parts)


def _unless_failed(work: Callable[..., Any], *parts: Any) -> Any:
    failed = [part for part in parts if isinstance(part, Failure)]
    return failed[0] if failed else guarded(work, *parts)


def hold_beside(
    function: Callable[[list[Any], Any, Span], Summary],
    merge: Callable[[Summary, Summary], Summary],
    finish: Callable[[list[Any], Summary], list[Any]],
    held: Sequence[Run],
    blocks: Sequence[Block],
    label: str,
) -> list[Run]:
    """Each held run met with all blocks: ``finish(contents, summary)`` of its contents, held in their place.

    The summary is ``function(contents, content, span)`` merged over the blocks, and may be as large as the contents:
    these travel to the blocks' tasks, and nothing comes to the driver.
    """
    runs, work = _runs(blocks), partial(_reduce_beside, function, merge)

    def merged(left: Delayed, right: Delayed) -> Delayed:
        return delayed(partial(_unless_failed, merge), pure=False)(left, right, dask_key_name=_name(label))

    def finished(one: Run) -> Delayed:
        summary = merge_tree([_task_beside(work, one.contents, run, label) for run in runs], merged)
        lazy = isinstance(one.contents, Delayed)
        last = partial(_unless_failed, finish if lazy else partial(finish, one.contents))
        return delayed(last, pure=False)(*([one.contents] if lazy else []), summary, dask_key_name=_name(label))

    return _held(lambda: [finished(one) for one in held], [one.spans for one in held], label)


def _task_beside(work: Callable[..., Any], held: list[Any] | Delayed, run: Run, label: str) -> Delayed:
    """One task over a run of blocks and what is held."""
    if not isinstance(held, Delayed):
        return _task(partial(work, held), run, label)
    lazy = any(isinstance(content, Delayed) for content in run.contents)
    task = partial(_on_both, work, run.spans, None if lazy else run.contents)
    return delayed(task, pure=False)(held, *(run.contents if lazy else ()), dask_key_name=_name(label))


def _on_both(work: Callable[..., Any], spans: Sequence[Span], contents: Any, held: Any, *parts: Any) -> Any:
    return held if isinstance(held, Failure) else guarded(work, held, spans, parts if contents is None else contents)


def _reduce_beside(function: Any, merge: Any, held: list[Any], spans: Sequence[Span], contents: Sequence[Any]) -> Any:
    return _reduce_run(partial(function, held), merge, spans, list(contents))


def _held(make_tasks: Callable[[], list[Delayed]], spans: list[tuple[Span, ...]], label: str) -> list[Run]:
    """The results of tasks, left where they were made; all are made anew when storage or the cluster failed at one."""
    for attempt in range(_TRIES):
        client, tasks = _client(), make_tasks()
        if client is None:
            contents = [result for _, result in _finished(tasks, label, len(tasks))]
        else:
            contents = client.persist(tasks, optimize_graph=False)
        runs = [Run(one, content) for one, content in zip(spans, contents, strict=True)]
        failures = [found for found in map(_failure, _once(runs, label)) if found is not None]
        if not failures:
            break
        if attempt == _TRIES - 1 or not all(failure.worth_a_retry for failure in failures):
            raise failures[0].error from None
        time.sleep(2.0**attempt / 2)
    return runs


def _once(runs: list[Run], label: str) -> list[Any]:
    """Wait until all runs are made; what a run failed with comes back in its place."""
    tasks = [_task(_no_work, run, label) for run in runs]
    return [result for _, result in sorted(_finished(tasks, label, len(tasks)), key=lambda pair: pair[0])]


def _failure(result: Any) -> Failure | None:
    return result if isinstance(result, Failure) else None


def _no_work(spans: Sequence[Span], contents: Any) -> None:
    return None


def merge_tree(summaries: list[Summary], merge: Callable[[Summary, Summary], Summary]) -> Summary:
    """Merge neighbours, then neighbours of neighbours, until one is left."""
    while len(summaries) > 1:
        pairs = [merge(left, right) for left, right in zip(summaries[::2], summaries[1::2], strict=False)]
        summaries = pairs + summaries[2 * len(pairs) :]
    return summaries[0]


def fits_in_memory(size: int) -> bool:
    """Whether this many bytes may stay in the workers' memory, or this process's, and leave room to work."""
    client = _client()
    if client is not None:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        return size < _MEMORY_SHARE * sum(worker["memory_limit"] for worker in workers)
    import psutil

    return size < _MEMORY_SHARE * psutil.virtual_memory().available


def threads() -> int:
    """Worker threads at hand: the cluster's, or this process's."""
    client = _client()
    if client is not None:
        return max(1, sum(client.nthreads().values()))
    from dask.system import CPU_COUNT

    return int(dask.config.get("num_workers", None) or CPU_COUNT)


def _map_run(function: Callable[[Any, Span], Any], spans: Sequence[Span], contents: list[Any]) -> list[Any]:
    return [function(content, span) for content, span in zip(contents, spans, strict=True)]


def _reduce_run(function: Any, merge: Any, spans: Sequence[Span], contents: list[Any]) -> Any:
    return merge_tree(_map_run(function, spans, contents), merge)


def _runs(blocks: Blocks) -> list[Run]:
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


def _task(work: Callable[..., Any], run: Run, label: str) -> Delayed:
    """One task over a run of blocks. Its name tells the stage, its arguments are opaque to Dask and its logs."""
    if isinstance(run.contents, Delayed):
        return delayed(partial(_on_contents, work, run.spans), pure=False)(run.contents, dask_key_name=_name(label))
    if any(isinstance(content, Delayed) for content in run.contents):
        return delayed(partial(_on_parts, work, run.spans), pure=False)(*run.contents, dask_key_name=_name(label))
    return delayed(partial(_on_contents, work, run.spans, run.contents), pure=False)(dask_key_name=_name(label))


def _name(label: str) -> str:
    return f"{label.replace(' ', '_')}-{uuid.uuid4().hex}"


def _on_contents(work: Callable[..., Any], spans: Sequence[Span], contents: Any) -> Any:
    return contents if isinstance(contents, Failure) else guarded(work, spans, contents)


def _on_parts(work: Callable[..., Any], spans: Sequence[Span], *contents: Any) -> Any:
    failed = [content for content in contents if isinstance(content, Failure)]
    return failed[0] if failed else guarded(work, spans, list(contents))


def _compute(work: Callable[..., Any], runs: list[Run], label: str) -> list[Any]:
    """The results of all runs, in order. What storage or the cluster failed at is tried again, and only that."""
    results: dict[int, Any] = {}
    for attempt in range(_TRIES):
        waiting = [number for number in range(len(runs)) if number not in results]
        tasks = [_task(work, runs[number], label) for number in waiting]
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
        time.sleep(2.0**attempt / 2)
    return [results[number] for number in range(len(runs))]


def _finished(tasks: list[Delayed], label: str, total: int) -> Iterator[tuple[int, Any]]:
    """Each task's number and result, on the cluster as they come, embedded when all are done."""
    tell = progress.current()
    before = total - len(tasks)
    tell(label, before, total)
    client = _client()
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


def _client() -> Any:
    """The distributed client that Dask would use now, if any; without one, distributed is not even imported."""
    if "distributed" not in sys.modules:
        return None
    scheduler = dask.base.get_scheduler()
    owner = getattr(scheduler, "__self__", None)
    return owner if hasattr(owner, "scheduler_info") else None
