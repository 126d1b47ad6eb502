"""A Collection: blocks that a function is mapped over, and whose summaries are merged in one fixed tree.

A task takes an aligned run of 1, 2, 4, ... blocks, as many as leave each worker thread a few tasks, and merges inside
the run along the same tree the driver follows above it. So the number of workers decides only who computes a subtree,
never in which order two summaries meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from dask.delayed import Delayed, delayed

from dpmask.engine.checkpointed import persist_in_files
from dpmask.engine.dispatch import fits_in_memory
from dpmask.engine.exchange import Source, exchanged
from dpmask.engine.journal import through_journal
from dpmask.engine.meeting import meet_runs
from dpmask.engine.tasks import (
    Block,
    Blocks,
    Position,
    Run,
    computed,
    content_of,
    map_run,
    merge_tree,
    persist_runs,
    reduce_run,
    runs_of,
    spans_of,
    task_name,
    task_of,
    unless_failed,
)

Content = TypeVar("Content")
Other = TypeVar("Other")
Result = TypeVar("Result")


def itself(content: Content) -> Content:
    """The content as it is: for passes over what is ready."""
    return content


def merge_each(merge: Callable[[Any, Any], Result], left: Sequence[Any], right: Sequence[Any]) -> list[Result]:
    """What merging gives for each of several summaries."""
    return [merge(one, two) for one, two in zip(left, right, strict=True)]


@dataclass(frozen=True, eq=False, repr=False)
class Collection(Generic[Content]):
    """Blocks in position order. A function is given a block's content; after ``with_positions`` its Position, too.

    ``blocks`` and ``read``, which gives the content in a task, are for the engine and for tables.
    """

    blocks: Blocks
    read: Callable[[Any, Position], Content] | None = None
    positioned: bool = False

    @classmethod
    def of(cls, contents: Iterable[Content]) -> Collection[Content]:
        """Anything that tasks are to work on, such as the names of files."""
        return cls([Block(0, 0, content) for content in contents])

    @classmethod
    def of_shards(cls, function: Callable[[Any], Content], contents: Sequence[Any], label: str) -> Collection[Content]:
        """``function`` of each of these, persisted as shards are: an exchange may have them beside it."""
        runs = [Run((Position(number, 0),), [content]) for number, content in enumerate(contents)]
        work, spans = partial(map_run, partial(_applied, function, None, False)), [run.spans for run in runs]
        return cls(persist_runs(lambda numbers: [task_of(work, runs[n], label) for n in numbers], spans, label))

    def __repr__(self) -> str:
        return f"<Collection: {len(self.positions)} blocks>"

    def __getitem__(self, some: slice) -> Collection[Content]:
        return replace(self, blocks=self.blocks[some])

    @property
    def positions(self) -> list[Position]:
        """The number of each block, and the position of its first record."""
        return spans_of(self.blocks)

    def with_positions(self) -> Collection[Content]:
        """The same, but functions are called with ``(content, position)``."""
        return replace(self, positioned=True)

    def transform(self, function: Callable[..., Result]) -> Collection[Result]:
        """``function`` of every block's content, computed anew in each pass that reads it."""
        return Collection(self.blocks, self._task(function))

    def map(self, function: Callable[..., Result], label: str) -> list[Result]:
        """``function`` of every block's content, in block order. Meant for small results."""
        work = partial(map_run, self._task(function))
        return self.as_one_pass(
            lambda: [result for run in computed(work, runs_of(self.blocks), label) for result in run], label
        )

    def reduce(self, function: Callable[..., Result], merge: Callable[[Result, Result], Result], label: str) -> Result:
        """``function`` of every block's content, merged in the fixed tree. There must be at least one block."""
        work = partial(reduce_run, self._task(function), merge)
        return self.as_one_pass(lambda: merge_tree(computed(work, runs_of(self.blocks), label), merge), label)

    def as_one_pass(self, compute: Callable[[], Result], label: str) -> Result:
        """What ``compute`` finds by passes over these blocks. In a journal they are one, however many they are."""
        return through_journal(label, self.positions, compute)

    def persist(self, function: Callable[..., Result], label: str, *, size: int | None = None) -> Collection[Result]:
        """``function`` of every block's content, kept in the workers' memory for further passes.

        With ``size``, about how many bytes that takes, only where it fits, and computed in every pass where it does
        not. On a cluster a lost worker's share is computed again from the blocks.
        """
        if size is not None and not fits_in_memory(size):
            return self.transform(function)
        runs, work = runs_of(self.blocks), partial(map_run, self._task(function))
        spans = [run.spans for run in runs]
        return Collection(persist_runs(lambda numbers: [task_of(work, runs[n], label) for n in numbers], spans, label))

    def persist_checkpointed(self, function: Callable[..., Result], label: str) -> Collection[Result]:
        """The same for results that take long to compute, of shards: a journal keeps each in a file as it comes."""
        runs = persist_in_files(self._task(function), _shards(self), label)
        return self.persist(function, label) if runs is None else Collection(runs)

    def persist_joined(
        self, function: Callable[..., Result], join: Callable[[list[Result]], Other], label: str
    ) -> Collection[Other]:
        """``join`` of all blocks' results, one block on one worker: for samples that never come to the driver."""

        def tasks(numbers: list[int]) -> list[Delayed]:
            work = partial(map_run, self._task(function))
            parts = [task_of(work, run, label) for run in runs_of(self.blocks)]
            return [delayed(partial(_joined, join), pure=False)(*parts, dask_key_name=task_name(label))]

        return Collection(persist_runs(tasks, [(Position(0, 0),)], label))

    def exchange(
        self,
        split: Callable[..., list[Any]],
        join: Callable[..., Result],
        targets: int | Sequence[Position],
        label: str,
        *,
        size: int,
        beside: Collection[Any] | None = None,
    ) -> Collection[Result]:
        """Blocks cut anew: ``split`` gives a piece for each target, ``join(pieces)`` a target's content.

        ``size`` is about how many bytes move. ``beside`` has a shard for each target, which ``join`` is given, too.
        """
        return exchange([self.transform(split)], join, targets, label, size=size, beside=beside)

    def meet_all(
        self,
        others: Collection[Other],
        function: Callable[[Content, Other], Result],
        merge: Callable[[Result, Result], Result],
        finish: Callable[[Content, Result], Content],
        label: str,
    ) -> Collection[Content]:
        """``finish(content, summary)`` of each block, persisted: it has met all blocks of another collection.

        The summary is ``function(content, other)`` merged over the others, and may be as large as the content: contents
        travel to the others' tasks, and nothing comes to the driver. The collection must be persisted.
        """
        assert self.read is None
        merge_lists = partial(merge_each, merge)
        work = partial(_meeting, function, others.read, merge_lists)
        runs, met = runs_of(self.blocks), runs_of(others.blocks)
        return Collection(meet_runs(work, merge_lists, partial(merge_each, finish), runs, met, label))

    def as_contents(self, function: Callable[..., Any], *beside: Iterable[Any]) -> list[Any]:
        """What a table's blocks are to hold: ``function`` of each block's content, after the contents beside it."""
        places = ((run, at, span) for run in runs_of(self.blocks) for at, span in enumerate(run.spans))
        found = []
        for (run, at, span), *given in zip(places, *beside, strict=True):
            lazy = not isinstance(run.contents, list)
            work = partial(_beside, function, self.read, self.positioned, span, at if lazy else None)
            found.append(content_of(work, *given, run.contents if lazy else run.contents[at]))
        return found

    def _task(self, function: Callable[..., Result]) -> Callable[[Any, Position], Result]:
        return partial(_applied, function, self.read, self.positioned)


def exchange(
    sources: Sequence[Collection[Any]],
    join: Callable[..., Result],
    targets: int | Sequence[Position],
    label: str,
    *,
    size: int,
    beside: Collection[Any] | None = None,
) -> Collection[Result]:
    """``Collection.exchange`` of several: a block is a list of pieces, and ``join`` is given a list for each source."""
    spans = [Position(number, 0) for number in range(targets)] if isinstance(targets, int) else targets
    given = [Source(source.read or _content, source.blocks) for source in sources]
    more = None if beside is None else _shards(beside)
    return Collection(exchanged(given, partial(_without_position, join), spans, label, size, more))


def concatenated(collections: Sequence[Collection[Content]]) -> Collection[Content]:
    """Persisted collections as one."""
    assert all(one.read is None for one in collections)
    return Collection([run for one in collections for run in runs_of(one.blocks)])


def _shards(collection: Collection[Any]) -> list[Run]:
    """Blocks that are a run each, whatever the workers: what an exchange gives."""
    runs = runs_of(collection.blocks)
    assert collection.read is None
    assert all(len(run.spans) == 1 for run in runs)
    return runs


def _applied(function: Callable[..., Any], read: Any, positioned: bool, content: Any, span: Position) -> Any:
    content = _read(read, content, span)
    return function(content, span) if positioned else function(content)


def _read(read: Callable[[Any, Position], Any] | None, content: Any, span: Position) -> Any:
    return content if read is None else read(content, span)


def _content(content: Any, span: Position) -> Any:
    return content


def _beside(function: Any, read: Any, positioned: bool, span: Position, at: int | None, *contents: Any) -> Any:
    *given, content = contents
    return _applied(partial(function, *given), read, positioned, content if at is None else content[at], span)


def _without_position(join: Callable[..., Any], span: Position, *pieces: Any) -> Any:
    return join(*pieces)


def _joined(join: Callable[[list[Any]], Any], *parts: Any) -> Any:
    return unless_failed(lambda *runs: [join([result for run in runs for result in run])], *parts)


def _meeting(
    function: Any, read: Any, merge: Any, contents: list[Any], spans: Sequence[Position], others: list[Any]
) -> list[Any]:
    """The summaries of all contents of a run over a run of others, each of which is read once."""
    return reduce_run(partial(_with_each, function, read, contents), merge, spans, others)


def _with_each(function: Any, read: Any, contents: list[Any], other: Any, span: Position) -> list[Any]:
    other = _read(read, other, span)
    return [function(content, other) for content in contents]
