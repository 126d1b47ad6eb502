"""Moving rows between tasks: every block is cut into pieces, one for each target, and a target joins what it is sent.

Pieces are arrays, in tuples of any depth, and meet in block order, so a target's content does not depend on who sent
first. On a cluster pieces travel between workers, which spill to their disks when memory runs short, and what is lost
with a worker is computed again. Inside one process they lie in memory or, where they would not fit, in files without a
name that vanish with the process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from dpmask.engine.dispatch import dask_client, fits_in_memory
from dpmask.engine.guard import Failure
from dpmask.engine.tasks import (
    Blocks,
    Position,
    Run,
    contents_of,
    map_run,
    persist_runs,
    runs_of,
    task_name,
    task_of,
    unless_failed,
)

Piece = tuple[Any, ...]
"""Arrays, or tuples of arrays and the like, at any depth."""
_Keep = Callable[[list[Any]], list[Any]]


class Source(NamedTuple):
    """Blocks, and what splits each into one piece for every target: ``split(content, span)``."""

    split: Callable[[Any, Position], list[Any]]
    blocks: Blocks


def exchanged(
    sources: Sequence[Source],
    join: Callable[..., Any],
    targets: Sequence[Position],
    label: str,
    size: int,
    beside: Sequence[Run] | None,
) -> list[Run]:
    """Every block is cut, every target joins: ``join(position, pieces of each source..., what is beside)``."""

    def tasks(numbers: list[int]) -> list[Delayed]:
        keep = _keep(size)
        sent = [
            [task_of(partial(_cut_run, one.split, keep), run, label) for run in runs_of(one.blocks)] for one in sources
        ]
        return [joined(sent, number, keep) for number in numbers]

    def joined(sent: list[list[Delayed]], number: int, keep: _Keep) -> Delayed:
        pieces = [_of(number, cut, label) for cuts in sent for cut in cuts]
        more = [] if beside is None else [contents_of(beside[number])]
        work = partial(_join, partial(join, targets[number]), keep, [len(cuts) for cuts in sent])
        return delayed(work, pure=False)(*pieces, *more, dask_key_name=task_name(label))

    return persist_runs(tasks, [(span,) for span in targets], label)


def _cut_run(
    split: Callable[[Any, Position], list[Piece]],
    keep: _Keep,
    spans: Sequence[Position],
    contents: list[Any],
) -> list[list[Piece]]:
    return [keep(pieces) for pieces in map_run(split, spans, contents)]


def _of(number: int, cut: Delayed, label: str) -> Delayed:
    return delayed(partial(_of_target, number), pure=False)(cut, dask_key_name=task_name(label))


def _of_target(number: int, cut: Any) -> Any:
    return cut if isinstance(cut, Failure) else [pieces[number] for pieces in cut]


def _join(join: Callable[..., Any], keep: _Keep, sent: list[int], *parts: Any) -> Any:
    """A target's content from its pieces; a run of persisted contents is a list, also this one."""

    def work(*parts: Any) -> list[Any]:
        rest = iter(parts)
        pieces = [[piece for cut in islice(rest, count) for piece in cut] for count in sent]
        return keep([join(*pieces, *(content for (content,) in rest))])

    return unless_failed(work, *parts)


def _keep(size: int) -> _Keep:
    """Where pieces lie on their way: on a cluster workers spill by themselves."""
    return _in_files if dask_client() is None and not fits_in_memory(2 * size) else _in_memory


def _in_memory(pieces: list[Piece]) -> list[Piece]:
    return pieces


def _in_files(pieces: list[Any]) -> list[Any]:
    """The same pieces, their arrays mapped from a file that has no name any more."""
    arrays = list(_arrays(pieces))
    with tempfile.TemporaryFile(dir=dask.config.get("temporary_directory", None)) as file:
        for array in arrays:
            file.write(np.ascontiguousarray(array).data)
        file.write(bytes(1))  # an empty file cannot be mapped
        file.flush()
        mapped = np.memmap(file, np.uint8, mode="r")
    kept, at = [], 0
    for array in arrays:
        part = mapped[at : at + array.nbytes]
        kept.append(np.frombuffer(part, array.dtype).reshape(array.shape) if array.nbytes else array)
        at += array.nbytes
    return _with_arrays(pieces, iter(kept))


def _arrays(piece: Any) -> Iterator[NDArray[Any]]:
    """All arrays in a piece, in order."""
    if isinstance(piece, np.ndarray):
        yield piece
    elif isinstance(piece, list | tuple):
        for part in piece:
            yield from _arrays(part)


def _with_arrays(piece: Any, arrays: Iterator[NDArray[Any]]) -> Any:
    """A piece of the same kind with these arrays."""
    if isinstance(piece, np.ndarray):
        return next(arrays)
    if not isinstance(piece, list | tuple):
        return piece
    parts = [_with_arrays(part, arrays) for part in piece]
    make: Callable[[list[Any]], Any] = getattr(piece, "_make", type(piece))
    return make(parts)
