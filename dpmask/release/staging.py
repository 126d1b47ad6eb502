"""Masked blocks, written to the private folder first. What is measured and judged is read back from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from dpmask.engine.draws import Subkey, shuffled
from dpmask.engine.passes import Block, Span
from dpmask.lake.columns import Rows
from dpmask.lake.dropping import POSITION, with_positions
from dpmask.lake.recipe import open_parquet
from dpmask.lake.storage import Place
from dpmask.lake.table import Table
from dpmask.lake.write import bare_schema, keep_categories, reordered, used_categories, write_positions, write_rows


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


def stage(table: Table, columns: Sequence[str], folder: Folder) -> list[StagedFile]:
    """Mask every block and write it. One pass, and a small one before it over dictionary columns, if there are any."""
    categories = _categories(table, columns)
    write = partial(_write, folder, categories)
    if table.origins:
        return with_positions(table).map([*columns, POSITION], write, "mask")
    return table.map(columns, write, "mask")


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


def _write(folder: Folder, categories: Mapping[str, frozenset[int]], rows: Rows, span: Span) -> StagedFile:
    """Write one block; which records its rows were is noted where these were shuffled, or some dropped."""
    name, some = _name(span.number), POSITION in rows.schema.names
    positions = rows.column(POSITION).to_numpy() if some else span.first + np.arange(rows.num_rows)
    rows = keep_categories(rows.drop_columns([POSITION]) if some else rows, categories)
    if folder.order is not None:
        order = shuffled(folder.order, span.first, rows.num_rows)
        rows, positions = reordered(rows, order), positions[order]
    if some or folder.order is not None:
        write_positions(positions, folder.pairing / name)
    nulls = {column: rows.column(column).null_count for column in rows.schema.names}
    written = write_rows(rows, folder.staging / name)
    return StagedFile(name, rows.num_rows, written.bytes, written.sha256, nulls)


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
