"""Tasks: work on runs of blocks, and their results. What storage or the cluster failed at is tried again.

A task's name says the stage; its arguments are opaque to Dask, its logs and its dashboards.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple, TypeVar

from dask.delayed import Delayed, delayed

from dpmask.engine import progress
from dpmask.engine.dispatch import Watch, finished, persisted, thread_given_up, threads
from dpmask.engine.guard import Failure, guarded
from dpmask.engine.journal import resuming
from dpmask.engine.limits import current_limits
from dpmask.errors import ClusterError

Summary = TypeVar("Summary")
_LONGEST_OWNER = 40
_owner: ContextVar[str] = ContextVar("dpmask_task_owner", default="")
_passes_left: ContextVar[list[int] | None] = ContextVar("dpmask_passes_left", default=None)


class Position(NamedTuple):
    """Which block it is, and the position of its first record."""

    number: int
    first: int


class Block(NamedTuple):
    """A run of consecutive records. ``content`` is what a task turns into rows: a recipe, or a Delayed frame."""

    first: int
    rows: int
    content: Any


class Run(NamedTuple):
    """An aligned run of 1, 2, 4, ... blocks: what one task takes. Persisted on a cluster, its contents are Delayed."""

    spans: tuple[Position, ...]
    contents: list[Any] | Delayed | Later


class Later:
    """Content that is computed when it is first needed: what follows may be in a journal, and not need it."""

    def __init__(self, compute: Callable[[], Any]) -> None:
        self._compute: Callable[[], Any] | None = compute
        self._content: Any = None

    def get(self) -> Any:
        """The content itself."""
        if self._compute is not None:
            self._content, self._compute = self._compute(), None
        return self._content


def ready(content: Any) -> Any:
    """Any content, ready to be given to a task."""
    return content.get() if isinstance(content, Later) else content


Blocks = Sequence[Block] | Sequence[Run]


def spans_of(blocks: Blocks) -> list[Position]:
    """The number and first position of every block."""
    items: Sequence[Any] = blocks
    if items and isinstance(items[0], Run):
        return [span for run in items for span in run.spans]
    return [Position(number, block.first) for number, block in enumerate(items)]


def runs_of(blocks: Blocks, without: Container[int] = ()) -> list[Run]:
    """Blocks in aligned runs of a power of two; one by one where Dask computes the content: one at a time in memory."""
    items: Sequence[Any] = blocks
    if items and isinstance(items[0], Run):
        return list(items)
    pairs = zip(spans_of(items), (block.content for block in items), strict=True)
    wanted = [pair for pair in pairs if pair[0].number not in without]
    length = 1
    if not any(isinstance(content, Delayed | Later) for _, content in wanted):
        while len(wanted) >= 2 * length * current_limits().tasks_per_thread * threads():
            length *= 2
    parts = (wanted[start : start + length] for start in range(0, len(wanted), length))
    return [Run(tuple(span for span, _ in part), [content for _, content in part]) for part in parts]


def contents_of(run: Run) -> list[Any] | Delayed:
    """The contents of a run, computed if they were not yet."""
    contents = ready(run.contents)
    return contents if isinstance(contents, Delayed) else [ready(content) for content in contents]


def map_run(function: Callable[[Any, Position], Any], spans: Sequence[Position], contents: list[Any]) -> list[Any]:
    """``function(content, position)`` of every block of a run."""
    return [function(content, span) for content, span in zip(contents, spans, strict=True)]


def reduce_run(
    function: Callable[[Any, Position], Summary],
    merge: Callable[[Summary, Summary], Summary],
    spans: Sequence[Position],
    contents: list[Any],
) -> Summary:
    """The same, merged as ``merge_tree`` merges them, of which no more wait in memory than the tree has levels."""
    waiting: list[tuple[int, Summary]] = []  # of how many blocks, fewer and fewer
    for content, span in zip(contents, spans, strict=True):
        count, summary = 1, function(content, span)
        while waiting and waiting[-1][0] == count:
            count, summary = 2 * count, merge(waiting.pop()[1], summary)
        waiting.append((count, summary))
    _, summary = waiting.pop()
    while waiting:
        summary = merge(waiting.pop()[1], summary)
    return summary


def merge_tree(summaries: list[Summary], merge: Callable[[Summary, Summary], Summary]) -> Summary:
    """Merge neighbours, then neighbours of neighbours, until one is left."""
    while len(summaries) > 1:
        pairs = [merge(left, right) for left, right in zip(summaries[::2], summaries[1::2], strict=False)]
        summaries = pairs + summaries[2 * len(pairs) :]
    return summaries[0]


def task_of(work: Callable[..., Any], run: Run, label: str) -> Delayed:
    """One task over a run of blocks."""
    contents = contents_of(run)
    if isinstance(contents, Delayed):
        return delayed(partial(_on_contents, work, run.spans), pure=False)(contents, dask_key_name=task_name(label))
    if any(isinstance(content, Delayed) for content in contents):
        return delayed(partial(_on_parts, work, run.spans), pure=False)(*contents, dask_key_name=task_name(label))
    return delayed(partial(_on_contents, work, run.spans, contents), pure=False)(dask_key_name=task_name(label))


class _EnoughPassesError(Exception):
    """The block of ``first_passes`` ends."""


@contextmanager
def first_passes(most: int) -> Iterator[None]:
    """Make so many passes inside the block, and leave it where the next one would begin."""
    token = _passes_left.set([most])
    try:
        yield
    except _EnoughPassesError:
        pass
    finally:
        _passes_left.reset(token)


def _begin_pass() -> None:
    left = _passes_left.get()
    if left is not None:
        if not left[0]:
            raise _EnoughPassesError
        left[0] -= 1


@contextmanager
def tasks_named(owner: str) -> Iterator[None]:
    """Have the names of tasks begin with their owner's: by it a dashboard distinguishes the jobs of a cluster."""
    token = _owner.set(re.sub(r"\W+", "_", owner)[:_LONGEST_OWNER].strip("_"))
    try:
        yield
    finally:
        _owner.reset(token)


def task_name(label: str) -> str:
    """A task's name: whose it is, if that is known, the stage it belongs to, and what makes it one of a kind."""
    owner = _owner.get()
    return f"{owner}{':' if owner else ''}{label.replace(' ', '_')}-{uuid.uuid4().hex}"


def _on_contents(work: Callable[..., Any], spans: Sequence[Position], contents: Any) -> Any:
    return contents if isinstance(contents, Failure) else guarded(work, spans, contents)


def _on_parts(work: Callable[..., Any], spans: Sequence[Position], *contents: Any) -> Any:
    return unless_failed(lambda *found: work(spans, list(found)), *contents)


def unless_failed(work: Callable[..., Any], *parts: Any) -> Any:
    """``work(*parts)``, or the failure that came in place of a part."""
    failed = [part for part in parts if isinstance(part, Failure)]
    return failed[0] if failed else guarded(work, *parts)


def content_of(work: Callable[..., Any], *contents: Any) -> Any:
    """``work(*contents)`` as a block's content again: computed when it is needed, or by Dask, if one of them is."""
    if any(isinstance(content, Later) for content in contents):
        return Later(lambda: content_of(work, *map(ready, contents)))
    if any(isinstance(content, Delayed) for content in contents):
        joined = delayed(partial(unless_failed, work), pure=False)
        return joined(*contents, dask_key_name=task_name("content"))
    return work(*contents)


def computed(
    work: Callable[..., Any], runs: list[Run], label: str, on_result: Callable[[Any], None] = lambda result: None
) -> list[Any]:
    """The results of all runs, in order. ``on_result`` is called with each as it comes."""

    def attempt(waiting: list[int]) -> Iterator[tuple[int, Any]]:
        def arrived(number: int, result: Any) -> None:
            if not isinstance(result, Failure):
                on_result(result)

        return finished([task_of(work, runs[number], label) for number in waiting], Watch(label, len(runs), arrived))

    return _until_done(attempt, len(runs), label)


def persist_runs(
    make_tasks: Callable[[list[int]], list[Delayed]], spans: Sequence[tuple[Position, ...]], label: str
) -> list[Run]:
    """The results of tasks, left where they were computed; ``make_tasks`` gives the tasks with these numbers.

    While a journal may hold what follows from them they are not computed at once, but when a pass needs them.
    """

    def attempt(waiting: list[int]) -> Iterator[tuple[int, Any]]:
        return persisted(make_tasks(waiting), partial(_waited_for, label), Watch(label, len(spans)))

    later = Later(lambda: _until_done(attempt, len(spans), label))
    if resuming():
        return [Run(one, Later(partial(_one_of, later, number))) for number, one in enumerate(spans)]
    return [Run(one, content) for one, content in zip(spans, later.get(), strict=True)]


def _one_of(later: Later, number: int) -> Any:
    return later.get()[number]


def _waited_for(label: str, content: Delayed) -> Delayed:
    return delayed(_failure, pure=False)(content, dask_key_name=task_name(label))


def _failure(result: Any) -> Failure | None:
    return result if isinstance(result, Failure) else None


def _until_done(attempt: Callable[[list[int]], Iterator[tuple[int, Any]]], count: int, label: str) -> list[Any]:
    """The results of all tasks. What storage or the cluster failed at is tried again, and only that.

    Workers may die as often as they like while something gets done; a few attempts at which nothing does are the end.
    """
    _begin_pass()
    results: dict[int, Any] = {}
    tries = 0
    while waiting := [number for number in range(count) if number not in results]:
        with thread_given_up():
            failures = _collected(attempt(waiting), waiting, results)
        if not failures:
            break
        tries = tries + 1 if len(failures) == len(waiting) else 1
        error = failures[0].error
        most = current_limits()
        if tries >= (most.tries_of_killed if isinstance(error, ClusterError) else most.tries):
            raise error from None
        progress.retried(label, len(failures))
        time.sleep(2.0**tries * most.retry_seconds)
    return [results[number] for number in range(count)]


def _collected(found: Iterator[tuple[int, Any]], waiting: list[int], results: dict[int, Any]) -> list[Failure]:
    """Put what was found into ``results``; what failed and is worth another try comes back."""
    failures = []
    for index, result in found:
        if not isinstance(result, Failure):
            results[waiting[index]] = result
        elif result.worth_a_retry:
            failures.append(result)
        else:
            raise result.error from None
    return failures
