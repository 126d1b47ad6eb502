"""Moving rows between tasks: every block is cut into pieces, one for each target, and a target joins what it is sent.

Pieces are tuples of arrays and meet in block order, so what a target makes does not depend on who sent first. On a
cluster pieces travel between workers, which spill to their disks when memory runs short, and what is lost with a worker
is made again. Inside one process they lie in memory or, where they would not fit, in files without a name that vanish
with the process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from dpmask.engine.guard import Failure, guarded
from dpmask.engine.passes import Blocks, Run, Span, _client, _held, _map_run, _name, _runs, _task, fits_in_memory

Piece = tuple[NDArray[Any], ...]
_Keep = Callable[[list[Piece]], list[Piece]]


def hold_exchanged(
    split: Callable[[Any, Span], list[Piece]],
    join: Callable[..., Piece],
    blocks: Blocks,
    targets: Sequence[Span],
    label: str,
    *,
    size: int,
    beside: Sequence[Run] | None = None,
) -> list[Run]:
    """``join(pieces, span)`` of every target, held for further passes.

    ``split(content, span)`` of a block gives one piece for each target. ``beside`` holds one more argument of ``join``
    for each target. ``size`` says about how many bytes move.
    """
    keep = _in_files if _client() is None and not fits_in_memory(2 * size) else _in_memory

    def tasks() -> list[Delayed]:
        cut = [_task(partial(_cut_run, split, keep), run, label) for run in _runs(blocks)]
        work = partial(_join, join, keep)
        return [_join_task(work, cut, number, span, beside, label) for number, span in enumerate(targets)]

    return _held(tasks, [(span,) for span in targets], label)


def _join_task(
    work: Callable[..., Any], cut: list[Delayed], number: int, span: Span, beside: Sequence[Run] | None, label: str
) -> Delayed:
    pieces = [delayed(partial(_of_target, number), pure=False)(one, dask_key_name=_name(label)) for one in cut]
    more = [] if beside is None else [beside[number].contents]
    return delayed(partial(work, span, len(pieces)), pure=False)(*pieces, *more, dask_key_name=_name(label))


def _cut_run(
    split: Callable[[Any, Span], list[Piece]],
    keep: _Keep,
    spans: Sequence[Span],
    contents: list[Any],
) -> list[list[Piece]]:
    return [keep(pieces) for pieces in _map_run(split, spans, contents)]


def _of_target(number: int, cut: Any) -> Any:
    return cut if isinstance(cut, Failure) else [pieces[number] for pieces in cut]


def _join(join: Callable[..., Piece], keep: _Keep, span: Span, sent: int, *parts: Any) -> Any:
    """What a target makes of its pieces; a run of held contents is a list, also this one."""
    failed = [part for part in parts if isinstance(part, Failure)]
    if failed:
        return failed[0]
    pieces = [piece for part in parts[:sent] for piece in part]
    beside = [content for (content,) in parts[sent:]]
    return guarded(lambda: keep([join(pieces, span, *beside)]))


def beside(function: Callable[[Any, Any], Any], content: Any, run: Run) -> Any:
    """``function(content, held)`` of a block's content and what a run of one holds, as a block's content again."""
    if isinstance(content, Delayed) or isinstance(run.contents, Delayed):
        made = delayed(partial(_beside, function), pure=False)
        return made(content, run.contents, dask_key_name=_name("beside"))
    return _beside(function, content, run.contents)


def _beside(function: Callable[[Any, Any], Any], content: Any, contents: Any) -> Any:
    return contents if isinstance(contents, Failure) else function(content, *contents)


def _in_memory(pieces: list[Piece]) -> list[Piece]:
    return pieces


def _in_files(pieces: list[Piece]) -> list[Piece]:
    """The same arrays, mapped from a file that has no name any more."""
    arrays = [array for piece in pieces for array in piece]
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
    lines = iter(kept)
    return [_like(piece, [next(lines) for _ in piece]) for piece in pieces]


def _like(piece: Piece, arrays: list[NDArray[Any]]) -> Piece:
    """A tuple of the same kind."""
    make: Callable[[list[NDArray[Any]]], Piece] = getattr(piece, "_make", tuple)
    return make(arrays)
