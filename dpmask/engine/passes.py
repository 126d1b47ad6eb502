"""The functions that Collection took the place of, until their callers are migrated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from dpmask.engine.collection import Collection
from dpmask.engine.dispatch import fits_in_memory, threads
from dpmask.engine.meeting import meet_runs
from dpmask.engine.tasks import Block, Blocks, Run, Span, merge_tree, reduce_run, runs_of

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
    "merge_tree",
    "one_pass",
    "reduce_blocks",
    "threads",
]

Summary = TypeVar("Summary")


def map_blocks(function: Callable[[Any, Span], Any], blocks: Blocks, label: str) -> list[Any]:
    """``Collection.map``."""
    return _at(blocks).map(function, label)


def reduce_blocks(
    function: Callable[[Any, Span], Summary],
    merge: Callable[[Summary, Summary], Summary],
    blocks: Blocks,
    label: str,
) -> Summary:
    """``Collection.reduce``."""
    return _at(blocks).reduce(function, merge, label)


def one_pass(compute: Callable[[], Summary], blocks: Blocks, label: str) -> Summary:
    """``Collection.as_one_pass``."""
    return _at(blocks).as_one_pass(compute, label)


def hold_blocks(function: Callable[[Any, Span], Any], blocks: Blocks, label: str) -> list[Run]:
    """``Collection.persist``."""
    return runs_of(_at(blocks).persist(function, label).blocks)


def hold_dear(function: Callable[[Any, Span], Any], blocks: Sequence[Run], label: str) -> list[Run]:
    """``Collection.persist_checkpointed``."""
    return runs_of(_at(blocks).persist_checkpointed(function, label).blocks)


def hold_joined(
    function: Callable[[Any, Span], Any], join: Callable[[list[Any]], Any], blocks: Blocks, label: str
) -> list[Run]:
    """``Collection.persist_joined``."""
    return runs_of(_at(blocks).persist_joined(function, join, label).blocks)


def hold_beside(
    function: Callable[[list[Any], Any, Span], Summary],
    merge: Callable[[Summary, Summary], Summary],
    finish: Callable[[list[Any], Summary], list[Any]],
    held: Sequence[Run],
    blocks: Sequence[Block],
    label: str,
) -> list[Run]:
    """``Collection.meet_all``, of the contents of a whole run."""
    return meet_runs(partial(_reduce_beside, function, merge), merge, finish, held, runs_of(blocks), label)


def _reduce_beside(function: Any, merge: Any, held: list[Any], spans: Sequence[Span], contents: Sequence[Any]) -> Any:
    return reduce_run(partial(function, held), merge, spans, list(contents))


def _at(blocks: Blocks) -> Collection[Any]:
    return Collection(blocks, positioned=True)
