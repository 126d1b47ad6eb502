"""Masked blocks, written to the private folder first. What is measured and judged is read back from there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.draws import Subkey, shuffled
from dpmask.engine.passes import Block, Span, map_blocks, map_files
from dpmask.engine.tasks import content_of
from dpmask.errors import InputError
from dpmask.lake.reading import Rows, open_parquet
from dpmask.lake.storage import Place
from dpmask.lake.writing import bare_schema, keep_categories, reordered, used_categories, write_positions, write_rows
from dpmask.table.dropping import POSITION, with_positions
from dpmask.table.table import Onlooker, Origin, Table


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
    """Observes nothing."""

    columns: tuple[str, ...] = ()

    def __call__(self, rows: Rows, span: Span) -> None:
        """Nothing is observed."""


def _nothing(left: None, right: None) -> None:
    """Merges nothing."""


class Observation(NamedTuple):
    """What is observed while a table is masked: its blocks before and after, and how two parts are merged."""

    before: Onlooker = _NoObserver()
    after: Onlooker = _NoObserver()
    merge: Callable[[Any, Any], Any] = _nothing


def stage(
    original: Table, table: Table, columns: Sequence[str], folder: Folder, observed: Observation
) -> tuple[list[StagedFile], tuple[Any, Any]]:
    """Mask every block and write it; and what was observed of the original and of the masked table.

    One pass, and a small one before it over dictionary columns, if there are any.
    """
    positioned, names = (with_positions(table), [*columns, POSITION]) if table.origins else (table, columns)
    blocks, write = positioned.blocks, partial(_write, folder, _categories(table, columns), observed.after)
    if blocks is original.blocks:  # every record is masked by itself, and its original at hand
        task = positioned.on_rows(names, write, observed.before)
    else:
        task = partial(_with_original, observed.before, positioned.on_rows(names, write))
        contents = [
            content_of(partial(_WithOriginal, one.content), two.content)
            for one, two in zip(original.blocks, blocks, strict=True)
        ]
        blocks = tuple(block._replace(content=content) for block, content in zip(blocks, contents, strict=True))
    standing = partial(_standing, folder, table)
    return map_files(partial(_file_first, task), partial(_merge_both, observed.merge), blocks, "mask", standing)


class _WithOriginal(NamedTuple):
    """A block's content, and that of the block it comes from. Its repr shows nothing of either."""

    original: Any
    content: Any

    def __repr__(self) -> str:
        return "<WithOriginal>"


def _with_original(
    look: Onlooker, task: Callable[[Any, Span], Any], pair: _WithOriginal, span: Span
) -> tuple[Any, Any]:
    return look(pair.original.read(look.columns), span), task(pair.content, span)


def _file_first(task: Callable[[Any, Span], Any], content: Any, span: Span) -> tuple[StagedFile, tuple[Any, Any]]:
    before, (file, after) = task(content, span)
    return file, (before, after)


def _merge_both(merge: Callable[[Any, Any], Any], left: tuple[Any, Any], right: tuple[Any, Any]) -> tuple[Any, Any]:
    return merge(left[0], right[0]), merge(left[1], right[1])


def _standing(folder: Folder, table: Table, known: dict[int, StagedFile]) -> dict[int, StagedFile]:
    """Of the files that an earlier run staged, by block, those that are there as they were."""
    origins: Sequence[Origin | None] = table.origins or [None] * len(table.blocks)
    asked = [table.blocks[number]._replace(content=(file, origins[number])) for number, file in known.items()]
    found = map_blocks(partial(_stands, folder), asked, "staged before")
    return {number: file for (number, file), stands in zip(known.items(), found, strict=True) if stands}


def _stands(folder: Folder, staged: tuple[StagedFile, Origin | None], span: Span) -> bool:
    file, origin = staged
    try:
        data = (folder.staging / file.name).map()
    except InputError:
        return False
    if hashlib.sha256(data).hexdigest() != file.sha256:
        return False
    _write_pairing(folder, file.name, file.rows, span, None if origin is None else origin.first + origin.kept)
    return True


def _write_pairing(
    folder: Folder, name: str, rows: int, span: Span, positions: NDArray[np.int64] | None
) -> NDArray[np.int64] | None:
    """The order of a file's rows, None for that of the input. Which records they are is written for the data holder.

    That is known without a file where neither the order was changed nor records were dropped (``positions``).
    """
    order = None if folder.order is None else shuffled(folder.order, span.first, rows)
    if order is not None or positions is not None:
        positions = span.first + np.arange(rows) if positions is None else positions
        write_positions(positions if order is None else positions[order], folder.pairing / name)
    return order


def _categories(table: Table, columns: Sequence[str]) -> dict[str, frozenset[int]]:
    """The codes in use over the whole table: others must not be released."""
    coded = [name for name in columns if table.is_dictionary(name)]
    return table.reduce_rows(coded, _used, _either, "categories") if coded else {}


def _used(rows: Rows, span: Span) -> dict[str, frozenset[int]]:
    return used_categories(rows)


def _either(left: dict[str, frozenset[int]], right: dict[str, frozenset[int]]) -> dict[str, frozenset[int]]:
    return {name: left[name] | right[name] for name in left}


def _name(number: int) -> str:
    return f"part-{number:05d}.parquet"


def _write(
    folder: Folder, categories: Mapping[str, frozenset[int]], look: Onlooker, rows: Rows, span: Span
) -> tuple[StagedFile, Any]:
    """Write one block, and which records its rows are; and what is observed of it."""
    name, positions = _name(span.number), None
    if POSITION in rows.schema.names:
        positions, rows = rows.column(POSITION).to_numpy(), rows.drop_columns([POSITION])
    seen, rows = look(rows.select(look.columns), span), keep_categories(rows, categories)
    order = _write_pairing(folder, name, rows.num_rows, span, positions)
    if order is not None:
        rows = reordered(rows, order)
    nulls = {column: rows.column(column).null_count for column in rows.schema.names}
    written = write_rows(rows, folder.staging / name)
    return StagedFile(name, rows.num_rows, written.bytes, written.sha256, nulls), seen


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
