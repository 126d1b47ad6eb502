"""Moving rows between tasks: every block is cut into pieces, one for each target, and a target joins what it is sent.

Pieces are arrays, in tuples of any depth, and meet in block order, so what a target makes does not depend on who sent
first. On a cluster pieces travel between workers, which spill to their disks when memory runs short, and what is lost
with a worker is made again. Inside one process they lie in memory or, where they would not fit, in files without a name
that vanish with the process.
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

from dpmask.engine.guard import Failure, guarded
from dpmask.engine.passes import Blocks, Run, Span, _client, _held, _map_run, _name, _runs, _task, fits_in_memory

Piece = tuple[Any, ...]
"""Arrays, or tuples of arrays and the like, at any depth."""
_Keep = Callable[[list[Any]], list[Any]]


class Source(NamedTuple):
    """Blocks, and what splits each into one part for every shard: ``split(content, span)``."""

    split: Callable[[Any, Span], list[Any]]
    blocks: Blocks


def exchange_blocks(
    sources: Sequence[Source], gather: Callable[..., Any], shards: int, label: str, *, size: int
) -> list[Run]:
    """Shards of one or more tables, held for further passes: ``gather`` has a list of parts from each source.

    ``size`` says about how many bytes move. A task holds the parts of one block, or those of one shard.
    """
    keep = _keep(size)

    def tasks() -> list[Delayed]:
        sent = [[_task(partial(_cut_run, one.split, keep), run, label) for run in _runs(one.blocks)] for one in sources]
        return [_gather_task(partial(_gather, gather, keep), sent, shard, label) for shard in range(shards)]

    return _held(tasks, [(Span(shard, 0),) for shard in range(shards)], label)


def _gather_task(work: Callable[..., Any], sent: list[list[Delayed]], shard: int, label: str) -> Delayed:
    parts = [_of(shard, run, label) for runs in sent for run in runs]
    return delayed(partial(work, [len(runs) for runs in sent]), pure=False)(*parts, dask_key_name=_name(label))


def _gather(gather: Callable[..., Any], keep: _Keep, sizes: list[int], *runs: Any) -> Any:
    failed = [run for run in runs if isinstance(run, Failure)]
    if failed:
        return failed[0]
    rest = iter(runs)
    sources = [[part for run in islice(rest, size) for part in run] for size in sizes]
    return guarded(lambda: keep([gather(*sources)]))


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
    keep = _keep(size)

    def tasks() -> list[Delayed]:
        cut = [_task(partial(_cut_run, split, keep), run, label) for run in _runs(blocks)]
        work = partial(_join, join, keep)
        return [_join_task(work, cut, number, span, beside, label) for number, span in enumerate(targets)]

    return _held(tasks, [(span,) for span in targets], label)


def _join_task(
    work: Callable[..., Any], cut: list[Delayed], number: int, span: Span, beside: Sequence[Run] | None, label: str
) -> Delayed:
    pieces = [_of(number, one, label) for one in cut]
    more = [] if beside is None else [beside[number].contents]
    return delayed(partial(work, span, len(pieces)), pure=False)(*pieces, *more, dask_key_name=_name(label))


def _cut_run(
    split: Callable[[Any, Span], list[Piece]],
    keep: _Keep,
    spans: Sequence[Span],
    contents: list[Any],
) -> list[list[Piece]]:
    return [keep(pieces) for pieces in _map_run(split, spans, contents)]


def _of(number: int, cut: Delayed, label: str) -> Delayed:
    return delayed(partial(_of_target, number), pure=False)(cut, dask_key_name=_name(label))


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


def _keep(size: int) -> _Keep:
    """Where pieces lie on their way: on a cluster workers spill by themselves."""
    return _in_files if _client() is None and not fits_in_memory(2 * size) else _in_memory


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
    found: list[Any] = _with_arrays(pieces, iter(kept))
    return found


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
