"""Masked blocks, written to the private folder first. What is measured and judged is read back from there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.collection import Collection
from dpmask.engine.draws import Subkey, shuffled
from dpmask.engine.files import write_files
from dpmask.engine.tasks import Block, Position, content_of
from dpmask.errors import InputError
from dpmask.lake.reading import Rows, open_parquet
from dpmask.lake.storage import Place
from dpmask.lake.writing import bare_schema, keep_categories, reordered, used_categories, write_positions, write_rows
from dpmask.table.dropping import POSITION, with_positions
from dpmask.table.table import BlockObserver, DroppedRows, Reader, Table


class StagedFile(NamedTuple):
    """One block of the release."""

    name: str
    rows: int
    bytes: int
    sha256: str
    nulls: dict[str, int]


@dataclass(frozen=True)
class Folder:
    """Where one run keeps its blocks and, when rows are shuffled, which record each row was."""

    staging: Place
    pairing: Place
    order: Subkey | None


class _NoObserver:
    """Summarises nothing."""

    columns: tuple[str, ...] = ()

    def __call__(self, rows: Rows) -> None:
        """No summary."""


def _nothing(left: None, right: None) -> None:
    """Merges nothing."""


class Observation(NamedTuple):
    """Summaries taken while a table is masked: of its blocks before and after, and how two of them are merged."""

    before: BlockObserver = _NoObserver()
    after: BlockObserver = _NoObserver()
    merge: Callable[[Any, Any], Any] = _nothing


def stage(
    original: Table, table: Table, columns: Sequence[str], folder: Folder, observed: Observation
) -> tuple[list[StagedFile], tuple[Any, Any]]:
    """Mask every block and write it; and the summaries of the original and of the masked table.

    One pass, and a small one before it over dictionary columns, if there are any.
    """
    positioned, names = (with_positions(table), [*columns, POSITION]) if table.origins else (table, columns)
    write = partial(_write, folder, _categories(table, columns), observed.after)
    if positioned.blocks is original.blocks:  # every record is masked by itself, and its original at hand
        blocks = positioned.select(names, observed.before)
    else:
        contents = (
            content_of(partial(_WithOriginal, one.content), two.content)
            for one, two in zip(original.blocks, positioned.blocks, strict=True)
        )
        read = partial(_with_original, observed.before, positioned.reader(names))
        blocks = Collection(positioned.blocks_with(contents), read)
    written = blocks.with_positions().transform(write)
    return write_files(written, partial(_merge_both, observed.merge), "mask", partial(_still_there, folder, table))


class _WithOriginal(NamedTuple):
    """A block's content, and that of the original block. Its repr shows nothing of either."""

    original: Any
    content: Any

    def __repr__(self) -> str:
        return "<WithOriginal>"


def _with_original(before: BlockObserver, read: Reader, both: _WithOriginal, position: Position) -> tuple[Any, Rows]:
    return before(both.original.read(before.columns)), read(both.content, position)


def _merge_both(merge: Callable[[Any, Any], Any], left: tuple[Any, Any], right: tuple[Any, Any]) -> tuple[Any, Any]:
    return merge(left[0], right[0]), merge(left[1], right[1])


def _still_there(folder: Folder, table: Table, known: dict[int, StagedFile]) -> dict[int, StagedFile]:
    """Of the files that an earlier run staged, by block, those that are there as they were."""
    origins: Sequence[DroppedRows | None] = table.origins or [None] * len(table.blocks)
    asked = [table.blocks[number]._replace(content=(file, origins[number])) for number, file in known.items()]
    found = Collection(asked).with_positions().map(partial(_is_there, folder), "staged before")
    return {number: file for (number, file), there in zip(known.items(), found, strict=True) if there}


def _is_there(folder: Folder, staged: tuple[StagedFile, DroppedRows | None], position: Position) -> bool:
    file, origin = staged
    try:
        data = (folder.staging / file.name).map()
    except InputError:
        return False
    if hashlib.sha256(data).hexdigest() != file.sha256:
        return False
    _write_pairing(folder, file.name, file.rows, position, None if origin is None else origin.first + origin.kept)
    return True


def _write_pairing(
    folder: Folder, name: str, rows: int, position: Position, positions: NDArray[np.int64] | None
) -> NDArray[np.int64] | None:
    """The order of a file's rows, None for that of the input. Which records they are is written for the data holder.

    That is known without a file where neither the order was changed nor records were dropped (``positions``).
    """
    order = None if folder.order is None else shuffled(folder.order, position.first, rows)
    if order is not None or positions is not None:
        positions = position.first + np.arange(rows) if positions is None else positions
        write_positions(positions if order is None else positions[order], folder.pairing / name)
    return order


def _categories(table: Table, columns: Sequence[str]) -> dict[str, frozenset[int]]:
    """The codes in use over the whole table: others must not be released."""
    coded = [name for name in columns if table.is_dictionary(name)]
    return table.select(coded).reduce(used_categories, _either, "categories") if coded else {}


def _either(left: dict[str, frozenset[int]], right: dict[str, frozenset[int]]) -> dict[str, frozenset[int]]:
    return {name: left[name] | right[name] for name in left}


def _name(number: int) -> str:
    return f"part-{number:05d}.parquet"


def _write(
    folder: Folder,
    categories: Mapping[str, frozenset[int]],
    after: BlockObserver,
    masked: tuple[Any, Rows],
    position: Position,
) -> tuple[StagedFile, tuple[Any, Any]]:
    """Write one block, and which records its rows are; and the summaries of it before and after masking."""
    before, rows = masked
    name, positions = _name(position.number), None
    if POSITION in rows.schema.names:
        positions, rows = rows.column(POSITION).to_numpy(), rows.drop_columns([POSITION])
    summary, rows = after(rows.select(after.columns)), keep_categories(rows, categories)
    order = _write_pairing(folder, name, rows.num_rows, position, positions)
    if order is not None:
        rows = reordered(rows, order)
    nulls = {column: rows.column(column).null_count for column in rows.schema.names}
    written = write_rows(rows, folder.staging / name)
    return StagedFile(name, rows.num_rows, written.bytes, written.sha256, nulls), (before, summary)


def staged_table(table: Table, columns: Sequence[str], folder: Folder) -> Table:
    """The staged files as a table with the blocks of the masked one, every record back at its position."""
    blocks = []
    for number, (first, rows, _) in enumerate(table.blocks):
        url = (folder.staging / _name(number)).full_url
        blocks.append(Block(first, rows, _StagedBlock(url, first, rows, folder.order)))
    return Table(bare_schema(table.masked_schema, columns), tuple(blocks), table.nullable, origins=table.origins)


@dataclass(frozen=True)
class _StagedBlock:
    url: str
    first: int
    rows: int
    order: Subkey | None

    def read(self, columns: Sequence[str]) -> Rows:
        with open_parquet(self.url) as file:
            rows = file.read(columns=list(columns), use_threads=False).select(list(columns))
        if self.order is None:
            return rows
        back = np.empty(self.rows, np.int64)
        back[shuffled(self.order, self.first, self.rows)] = np.arange(self.rows)
        return reordered(rows, back)
