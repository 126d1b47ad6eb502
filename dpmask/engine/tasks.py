"""Tasks: work on runs of blocks, and what they come to. What storage or the cluster failed at is tried again.

A task's name tells the stage; its arguments are opaque to Dask, its logs and its dashboards.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from dask.delayed import Delayed, delayed

from dpmask.engine import journal as checkpoint
from dpmask.engine import progress
from dpmask.engine.dispatch import Watch, finished, kept, threads
from dpmask.engine.guard import Failure, guarded
from dpmask.errors import ClusterError

_TASKS_PER_THREAD = 4
_TRIES = 4
_TRIES_OF_KILLED = 2


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
    contents: list[Any] | Delayed | Later


class Later:
    """Content that is made when it is first needed: what follows may be known from a checkpoint, and not need it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make: Callable[[], Any] | None = make
        self._made: Any = None

    def made(self) -> Any:
        """The content itself."""
        if self._make is not None:
            self._made, self._make = self._make(), None
        return self._made


def made(content: Any) -> Any:
    """Any content, ready to be given to a task."""
    return content.made() if isinstance(content, Later) else content


Blocks = Sequence[Block] | Sequence[Run]


def spans_of(blocks: Blocks) -> list[Span]:
    """The number and first position of every block."""
    items: Sequence[Any] = blocks
    if items and isinstance(items[0], Run):
        return [span for run in items for span in run.spans]
    return [Span(number, block.first) for number, block in enumerate(items)]


def runs_of(blocks: Blocks, without: Collection[int] = ()) -> list[Run]:
    """Blocks in aligned runs of a power of two; one by one where Dask makes the content, to hold one at a time."""
    items: Sequence[Any] = blocks
    if items and isinstance(items[0], Run):
        return list(items)
    pairs = zip(spans_of(items), (block.content for block in items), strict=True)
    wanted = [pair for pair in pairs if pair[0].number not in without]
    length = 1
    if not any(isinstance(content, Delayed | Later) for _, content in wanted):
        while len(wanted) >= 2 * length * _TASKS_PER_THREAD * threads():
            length *= 2
    parts = (wanted[start : start + length] for start in range(0, len(wanted), length))
    return [Run(tuple(span for span, _ in part), [content for _, content in part]) for part in parts]


def contents_of(run: Run) -> list[Any] | Delayed:
    """What a run holds, made if it was not yet."""
    contents = made(run.contents)
    return contents if isinstance(contents, Delayed) else [made(content) for content in contents]


def task_of(work: Callable[..., Any], run: Run, label: str) -> Delayed:
    """One task over a run of blocks. Its name tells the stage, its arguments are opaque to Dask and its logs."""
    contents = contents_of(run)
    if isinstance(contents, Delayed):
        return delayed(partial(_on_contents, work, run.spans), pure=False)(contents, dask_key_name=task_name(label))
    if any(isinstance(content, Delayed) for content in contents):
        return delayed(partial(_on_parts, work, run.spans), pure=False)(*contents, dask_key_name=task_name(label))
    return delayed(partial(_on_contents, work, run.spans, contents), pure=False)(dask_key_name=task_name(label))


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


def content_of(work: Callable[..., Any], *contents: Any) -> Any:
    """``work(*contents)`` as a block's content again: made when it is needed, or by Dask, if one of them is."""
    if any(isinstance(content, Later) for content in contents):
        return Later(lambda: content_of(work, *map(made, contents)))
    if any(isinstance(content, Delayed) for content in contents):
        joined = delayed(partial(unless_failed, work), pure=False)
        return joined(*contents, dask_key_name=task_name("content"))
    return work(*contents)


def computed(
    work: Callable[..., Any], runs: list[Run], label: str, heard: Callable[[Run, Any], None] = lambda run, result: None
) -> list[Any]:
    """The results of all runs, in order. ``heard`` is told of each as it comes."""

    def attempt(waiting: list[int]) -> Iterator[tuple[int, Any]]:
        def told(number: int, result: Any) -> None:
            if not isinstance(result, Failure):
                heard(runs[waiting[number]], result)

        return finished([task_of(work, runs[number], label) for number in waiting], Watch(label, len(runs), told))

    return _until_done(attempt, len(runs), label)


def hold(make_tasks: Callable[[list[int]], list[Delayed]], spans: list[tuple[Span, ...]], label: str) -> list[Run]:
    """The results of tasks, left where they were made; ``make_tasks`` makes those with these numbers.

    While a checkpoint may know what comes of them they are not made at once, but when a pass needs them.
    """

    def attempt(waiting: list[int]) -> Iterator[tuple[int, Any]]:
        waited_for = partial(_waited_for, label)
        return kept(make_tasks(waiting), waited_for, Watch(label, len(spans)))

    later = Later(lambda: _until_done(attempt, len(spans), label))
    if checkpoint.replaying():
        return [Run(one, Later(partial(_one_of, later, number))) for number, one in enumerate(spans)]
    return [Run(one, content) for one, content in zip(spans, later.made(), strict=True)]


def _one_of(later: Later, number: int) -> Any:
    return later.made()[number]


def _waited_for(label: str, content: Delayed) -> Delayed:
    return delayed(_failure, pure=False)(content, dask_key_name=task_name(label))


def _failure(result: Any) -> Failure | None:
    return result if isinstance(result, Failure) else None


def _until_done(attempt: Callable[[list[int]], Iterator[tuple[int, Any]]], count: int, label: str) -> list[Any]:
    """The results of all tasks. What storage or the cluster failed at is tried again, and only that.

    Workers may die as often as they like while something gets done; a few attempts at which nothing does are the end.
    """
    results: dict[int, Any] = {}
    tries = 0
    while waiting := [number for number in range(count) if number not in results]:
        failures = _collected(attempt(waiting), waiting, results)
        if not failures:
            break
        tries = tries + 1 if len(failures) == len(waiting) else 1
        error = failures[0].error
        if tries >= (_TRIES_OF_KILLED if isinstance(error, ClusterError) else _TRIES):
            raise error from None
        progress.retried(label, len(failures))
        time.sleep(2.0**tries / 4)
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
