"""Persisted results that a journal keeps in files, each written by the worker that computed it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dask.delayed import Delayed

from dpmask.engine.journal import JournalFiles, dumps, journal_files, loads
from dpmask.engine.tasks import Block, Position, Run, computed, map_run, persist_runs, runs_of, spans_of, task_of
from dpmask.errors import StorageError


def persist_in_files(function: Callable[[Any, Position], Any], shards: Sequence[Run], label: str) -> list[Run] | None:
    """``function(content, position)`` of every shard, persisted; None, where there is no journal to keep files."""
    store, name, resumed = journal_files(label, spans_of(shards))
    if store is None:
        return None
    files = [f"{name}-{run.spans[0].number}" for run in shards]
    there = _kept_before(store, files, label) if resumed else [False] * len(files)

    def task(number: int) -> Delayed:
        if there[number]:
            return task_of(partial(_get, store), Run(shards[number].spans, [files[number]]), label)
        return task_of(partial(_put, store, files[number], function), shards[number], label)

    return persist_runs(lambda numbers: [task(n) for n in numbers], [run.spans for run in shards], label)


def _kept_before(store: JournalFiles, files: Sequence[str], label: str) -> list[bool]:
    runs = runs_of([Block(0, 0, file) for file in files])
    return [kept for run in computed(partial(_are_kept, store), runs, f"{label}: kept before") for kept in run]


def _are_kept(store: JournalFiles, spans: Sequence[Position], files: list[str]) -> list[bool]:
    return [store.get(file) is not None for file in files]


def _get(store: JournalFiles, spans: Sequence[Position], files: list[str]) -> Any:
    data = store.get(files[0])
    if data is None:
        raise StorageError("A file of the checkpoint has gone. Run the job again.")
    return loads(data)


def _put(store: JournalFiles, file: str, function: Any, spans: Sequence[Position], contents: list[Any]) -> list[Any]:
    data = dumps(map_run(function, spans, contents))
    store.put(file, data)
    return loads(data)
