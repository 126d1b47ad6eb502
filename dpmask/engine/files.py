"""Passes whose results are files, which a journal knows as they are written."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from dpmask.engine.collection import Collection
from dpmask.engine.journal import FileEntries, dumps, journalled, loads
from dpmask.engine.tasks import Position, computed, map_run, merge_tree, runs_of

Summary = TypeVar("Summary")


def write_files(
    blocks: Collection[tuple[Any, Summary]],
    merge: Callable[[Summary, Summary], Summary],
    label: str,
    still_there: Callable[[dict[int, Any]], dict[int, Any]],
) -> tuple[list[Any], Summary]:
    """Blocks whose content is a description of the file it was written to, and a summary of the block.

    The descriptions of all files, in block order, and the summaries merged. A journal knows the files run by run:
    ``still_there`` is given their descriptions, by block, and returns those of files that are there. After a resume
    runs may be others, and so may be the last digits of a summary's sums, though not of its counts. Summaries are
    packed until they are merged, so that there may be one for each block.
    """
    assert blocks.read is not None
    entries = FileEntries(label, blocks.positions)

    def arrived(run: WrittenRun) -> None:
        entries.keep(run.numbers[0], run)

    with journalled(None):
        written = _still_there(list(entries.known.values()), still_there)
        numbers = {number for run in written for number in run.numbers}
        entries.found(len(numbers))
        runs = runs_of(blocks.blocks, without=numbers)
        written += computed(partial(_written, blocks.read, merge), runs, label, arrived)
    written.sort(key=lambda run: run.numbers)
    files = {number: file for run in written for number, file in zip(run.numbers, run.files, strict=True)}
    return [files[number] for number in range(len(blocks.blocks))], _merged([run.summary for run in written], merge)


class WrittenRun(NamedTuple):
    """The numbers of a run's blocks, the description of each one's file, and the summary of them, packed."""

    numbers: tuple[int, ...]
    files: list[Any]
    summary: bytes


def _still_there(known: list[WrittenRun], still_there: Callable[[dict[int, Any]], dict[int, Any]]) -> list[WrittenRun]:
    """The runs all of whose files are; of those that share a block, as two earlier runs may have noted, only one."""
    if not known:
        return []
    there = still_there({number: file for run in known for number, file in zip(run.numbers, run.files, strict=True)})
    runs: list[WrittenRun] = []
    taken: set[int] = set()
    for run in known:
        if there.keys() >= set(run.numbers) and taken.isdisjoint(run.numbers):
            runs.append(run)
            taken.update(run.numbers)
    return runs


def _written(write: Any, merge: Any, spans: Sequence[Position], contents: list[Any]) -> WrittenRun:
    files, summaries = zip(*map_run(write, spans, contents), strict=True)
    packed = zlib.compress(dumps(merge_tree(list(summaries), merge)), 1)
    return WrittenRun(tuple(span.number for span in spans), list(files), packed)


def _merged(packed: list[bytes], merge: Callable[[Summary, Summary], Summary]) -> Summary:
    """The tree of ``merge_tree``, unpacked as it is needed: few summaries are open at a time."""
    if len(packed) == 1:
        return loads(zlib.decompress(packed[0]))
    half = 1 << (len(packed) - 1).bit_length() - 1
    return merge(_merged(packed[:half], merge), _merged(packed[half:], merge))
