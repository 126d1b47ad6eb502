"""Persisted runs that meet all blocks of another collection, on the workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dask.delayed import Delayed, delayed

from dpmask.engine.guard import Failure, guarded
from dpmask.engine.tasks import Position, Run, contents_of, merge_tree, persist_runs, task_name, task_of, unless_failed


def meet_runs(
    work: Callable[..., Any],
    merge: Callable[[Any, Any], Any],
    finish: Callable[[list[Any], Any], list[Any]],
    runs: Sequence[Run],
    others: Sequence[Run],
    label: str,
) -> list[Run]:
    """``finish(contents, summary)`` of each run, persisted.

    The summary is ``work(contents, spans, other contents)`` of each run of others, merged in the fixed tree.
    """

    def merged(left: Delayed, right: Delayed) -> Delayed:
        return delayed(partial(unless_failed, merge), pure=False)(left, right, dask_key_name=task_name(label))

    def finished(run: Run) -> Delayed:
        contents = contents_of(run)
        summary = merge_tree([_task_with(work, contents, other, label) for other in others], merged)
        lazy = isinstance(contents, Delayed)
        last = partial(unless_failed, finish if lazy else partial(finish, contents))
        return delayed(last, pure=False)(*([contents] if lazy else []), summary, dask_key_name=task_name(label))

    return persist_runs(lambda numbers: [finished(runs[n]) for n in numbers], [run.spans for run in runs], label)


def _task_with(work: Callable[..., Any], contents: list[Any] | Delayed, other: Run, label: str) -> Delayed:
    """One task over the contents of a run and a run of others."""
    if not isinstance(contents, Delayed):
        return task_of(partial(work, contents), other, label)
    met = contents_of(other)
    if isinstance(met, Delayed):
        both = partial(unless_failed, partial(_on_persisted, work, other.spans))
        return delayed(both, pure=False)(contents, met, dask_key_name=task_name(label))
    lazy = any(isinstance(content, Delayed) for content in met)
    task = partial(_on_both, work, other.spans, None if lazy else met)
    return delayed(task, pure=False)(contents, *(met if lazy else ()), dask_key_name=task_name(label))


def _on_both(work: Callable[..., Any], spans: Sequence[Position], met: Any, contents: Any, *parts: Any) -> Any:
    return contents if isinstance(contents, Failure) else guarded(work, contents, spans, parts if met is None else met)


def _on_persisted(work: Callable[..., Any], spans: Sequence[Position], contents: Any, met: Any) -> Any:
    return work(contents, spans, met)
