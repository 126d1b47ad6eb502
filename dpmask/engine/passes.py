"""A pass: one function mapped over the blocks, summaries merged in a tree whose shape follows from the blocks alone.

A task takes an aligned run of 1, 2, 4, ... blocks, as many as leave each worker thread a few tasks, and merges inside
the run along the same tree the driver follows above it. So the number of workers decides only who computes a subtree,
never in which order two summaries meet.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from dask.delayed import Delayed, delayed

from dpmask.engine.dispatch import fits_in_memory, threads
from dpmask.engine.guard import Failure, guarded
from dpmask.engine.journal import Parts, Shelf, dumps, journalled, loads, remembered, shelved
from dpmask.engine.tasks import (
    Block,
    Blocks,
    Run,
    Span,
    computed,
    contents_of,
    hold,
    runs_of,
    spans_of,
    task_name,
    task_of,
    unless_failed,
)
from dpmask.errors import StorageError

__all__ = [
    "Block",
    "Blocks",
    "Run",
    "Span",
    "fits_in_memory",
    "hold_beside",
    "hold_blocks",
    "hold_dear",
    "hold_joined",
    "map_blocks",
    "map_files",
    "merge_tree",
    "one_pass",
    "reduce_blocks",
    "threads",
]

Summary = TypeVar("Summary")


def map_blocks(function: Callable[[Any, Span], Any], blocks: Blocks, label: str) -> list[Any]:
    """``function(content, span)`` of every block, in block order. Meant for small results."""

    def compute() -> list[Any]:
        return [result for run in computed(partial(map_run, function), runs_of(blocks), label) for result in run]

    found: list[Any] = remembered(label, spans_of(blocks), compute)
    return found


def map_files(
    function: Callable[[Any, Span], tuple[Any, Summary]],
    merge: Callable[[Summary, Summary], Summary],
    blocks: Sequence[Block],
    label: str,
    standing: Callable[[dict[int, Any]], dict[int, Any]],
) -> tuple[list[Any], Summary]:
    """Passes whose results are files: ``function(content, span)`` tells of one, and has a summary of the block besides.

    What is told of all files, in block order, and the summaries merged. A checkpoint knows the files run by run:
    ``standing`` is given what was told of them, by block, and gives back that of files that are still there. After a
    resume runs may be others, and so may be the last digits of a summary's sums, though not of its counts. Summaries
    are packed until they are merged, so that there may be one for each block.
    """
    parts = Parts(label, spans_of(blocks))

    def heard(run: Run, made: Made) -> None:
        parts.keep(made.numbers[0], made)

    with journalled(None):
        made = _still_there(list(parts.known.values()), standing)
        numbers = {number for one in made for number in one.numbers}
        parts.stood(len(numbers))
        runs = runs_of(blocks, without=numbers)
        made += computed(partial(_files_of_run, function, merge), runs, label, heard)
    made.sort(key=lambda one: one.numbers)
    files = {number: file for one in made for number, file in zip(one.numbers, one.files, strict=True)}
    return [files[number] for number in range(len(blocks))], _merged([one.summary for one in made], merge)


class Made(NamedTuple):
    """What a run of blocks made: their numbers, what is told of the file of each, and the summary of them, packed."""

    numbers: tuple[int, ...]
    files: list[Any]
    summary: bytes


def _still_there(known: list[Made], standing: Callable[[dict[int, Any]], dict[int, Any]]) -> list[Made]:
    """The runs all of whose files are; of those that share a block, as two earlier runs may have noted, only one."""
    if not known:
        return []
    there = standing({number: file for one in known for number, file in zip(one.numbers, one.files, strict=True)})
    runs: list[Made] = []
    taken: set[int] = set()
    for one in known:
        if there.keys() >= set(one.numbers) and taken.isdisjoint(one.numbers):
            runs.append(one)
            taken.update(one.numbers)
    return runs


def _files_of_run(function: Any, merge: Any, spans: Sequence[Span], contents: list[Any]) -> Made:
    files, summaries = zip(*map_run(function, spans, contents), strict=True)
    packed = zlib.compress(dumps(merge_tree(list(summaries), merge)), 1)
    return Made(tuple(span.number for span in spans), list(files), packed)


def _merged(packed: list[bytes], merge: Callable[[Summary, Summary], Summary]) -> Summary:
    """The tree of ``merge_tree``, unpacked as it is needed: few summaries are open at a time."""
    if len(packed) == 1:
        found: Summary = loads(zlib.decompress(packed[0]))
        return found
    half = 1 << (len(packed) - 1).bit_length() - 1
    return merge(_merged(packed[:half], merge), _merged(packed[half:], merge))


def reduce_blocks(
    function: Callable[[Any, Span], Summary],
    merge: Callable[[Summary, Summary], Summary],
    blocks: Blocks,
    label: str,
) -> Summary:
    """The summaries of all blocks, merged in the fixed tree. There must be at least one block."""

    def compute() -> Summary:
        return merge_tree(computed(partial(_reduce_run, function, merge), runs_of(blocks), label), merge)

    found: Summary = remembered(label, spans_of(blocks), compute)
    return found


def one_pass(compute: Callable[[], Summary], blocks: Blocks, label: str) -> Summary:
    """Several passes that a checkpoint takes for one, as their number follows from the workers, their result not."""
    found: Summary = remembered(label, spans_of(blocks), compute)
    return found


def hold_blocks(function: Callable[[Any, Span], Any], blocks: Blocks, label: str) -> list[Run]:
    """``function(content, span)`` of every block, kept in the workers' memory for further passes.

    On a cluster a lost worker's share is made again from the blocks: it is held by lineage, not by luck.
    """
    runs = runs_of(blocks)
    work = partial(map_run, function)
    return hold(lambda numbers: [task_of(work, runs[n], label) for n in numbers], [run.spans for run in runs], label)


def hold_dear(function: Callable[[Any, Span], Any], blocks: Sequence[Run], label: str) -> list[Run]:
    """As ``hold_blocks``, for results that take long to make: a checkpoint keeps each in a file as it is made."""
    shelf, name, again = shelved(label, spans_of(blocks))
    if shelf is None:
        return hold_blocks(function, blocks, label)
    files = [f"{name}-{run.spans[0].number}" for run in blocks]
    there = [False] * len(files)
    if again:
        with journalled(None):
            there = map_blocks(partial(_is_kept, shelf), [Block(0, 0, file) for file in files], f"{label}: kept before")

    def task(number: int) -> Delayed:
        if there[number]:
            return task_of(partial(_got, shelf), Run(blocks[number].spans, [files[number]]), label)
        return task_of(partial(_put, shelf, files[number], function), blocks[number], label)

    return hold(lambda numbers: [task(n) for n in numbers], [run.spans for run in blocks], label)


def _is_kept(shelf: Shelf, file: str, span: Span) -> bool:
    return shelf.get(file) is not None


def _got(shelf: Shelf, spans: Sequence[Span], files: list[str]) -> Any:
    data = shelf.get(files[0])
    if data is None:
        raise StorageError("A file of the checkpoint has gone. Run the job again.")
    return loads(data)


def _put(shelf: Shelf, file: str, function: Any, spans: Sequence[Span], contents: list[Any]) -> list[Any]:
    data = dumps(map_run(function, spans, contents))
    shelf.put(file, data)
    made: list[Any] = loads(data)
    return made


def hold_joined(
    function: Callable[[Any, Span], Any], join: Callable[[list[Any]], Any], blocks: Blocks, label: str
) -> list[Run]:
    """``join`` of all blocks' results, made and kept in one place on the cluster: for samples the driver never sees."""

    def tasks(numbers: list[int]) -> list[Delayed]:
        parts = [task_of(partial(map_run, function), run, label) for run in runs_of(blocks)]
        return [delayed(partial(_join, join), pure=False)(*parts, dask_key_name=task_name(label))]

    return hold(tasks, [(Span(0, 0),)], label)


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
    runs, work = runs_of(blocks), partial(_reduce_beside, function, merge)

    def merged(left: Delayed, right: Delayed) -> Delayed:
        return delayed(partial(unless_failed, merge), pure=False)(left, right, dask_key_name=task_name(label))

    def finished(one: Run) -> Delayed:
        contents = contents_of(one)
        summary = merge_tree([_task_beside(work, contents, run, label) for run in runs], merged)
        lazy = isinstance(contents, Delayed)
        last = partial(unless_failed, finish if lazy else partial(finish, contents))
        return delayed(last, pure=False)(*([contents] if lazy else []), summary, dask_key_name=task_name(label))

    return hold(lambda numbers: [finished(held[n]) for n in numbers], [one.spans for one in held], label)


def merge_tree(summaries: list[Summary], merge: Callable[[Summary, Summary], Summary]) -> Summary:
    """Merge neighbours, then neighbours of neighbours, until one is left."""
    while len(summaries) > 1:
        pairs = [merge(left, right) for left, right in zip(summaries[::2], summaries[1::2], strict=False)]
        summaries = pairs + summaries[2 * len(pairs) :]
    return summaries[0]


def _join(join: Callable[[list[Any]], Any], *parts: Any) -> Any:
    return unless_failed(lambda *runs: [join([result for run in runs for result in run])], *parts)


def _task_beside(work: Callable[..., Any], held: list[Any] | Delayed, run: Run, label: str) -> Delayed:
    """One task over a run of blocks and what is held."""
    if not isinstance(held, Delayed):
        return task_of(partial(work, held), run, label)
    contents = contents_of(run)
    lazy = any(isinstance(content, Delayed) for content in contents)
    task = partial(_on_both, work, run.spans, None if lazy else contents)
    return delayed(task, pure=False)(held, *(contents if lazy else ()), dask_key_name=task_name(label))


def _on_both(work: Callable[..., Any], spans: Sequence[Span], contents: Any, held: Any, *parts: Any) -> Any:
    return held if isinstance(held, Failure) else guarded(work, held, spans, parts if contents is None else contents)


def map_run(function: Callable[[Any, Span], Any], spans: Sequence[Span], contents: list[Any]) -> list[Any]:
    return [function(content, span) for content, span in zip(contents, spans, strict=True)]


def _reduce_run(function: Any, merge: Any, spans: Sequence[Span], contents: list[Any]) -> Any:
    return merge_tree(map_run(function, spans, contents), merge)


def _reduce_beside(function: Any, merge: Any, held: list[Any], spans: Sequence[Span], contents: Sequence[Any]) -> Any:
    return _reduce_run(partial(function, held), merge, spans, list(contents))
