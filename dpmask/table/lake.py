"""A lake: Parquet files that together are one table with one schema, each record at a known position."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from typing import Any

import pyarrow as pa

from dpmask.engine.tasks import Block
from dpmask.errors import InputError, JobError
from dpmask.lake.block_plan import Piece, plan_blocks
from dpmask.lake.footers import DataFile, Facts, find_files
from dpmask.lake.reading import FilePart, LakeBlock, open_parquet
from dpmask.lake.storage import Place
from dpmask.table.columns import require_known
from dpmask.table.table import Table

BLOCK_ROWS = 1_000_000
_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)


@dataclass(frozen=True)
class Lake(Table):
    """A lake opened from its footers. ``to_dask()`` gives a Dask DataFrame; every method takes the lake as it is."""

    files: tuple[DataFile, ...] = ()

    def __repr__(self) -> str:
        names = ", ".join(self.schema.names)
        return f"<Lake: {self.rows:,} rows in {len(self.files)} files, {len(self.blocks)} blocks; columns {names}>"

    def by_file(self) -> list[Block]:
        """The lake as blocks of one whole file each: for files that are a block of somebody's already."""
        blocks, first = [], 0
        for number, file in enumerate(self.files):
            pieces = [Piece(number, group, 0, rows) for group, rows in enumerate(file.groups) if rows]
            rows = sum(file.groups)
            recipe = _lake_block(self.files, pieces, self.schema, self.blocks[0].content.categories)
            blocks.append(Block(first, rows, recipe))
            first += rows
        return blocks


def read_lake(
    source: str | os.PathLike[str], *, columns: Sequence[str] | None = None, block_rows: int = BLOCK_ROWS
) -> Lake:
    """Open a folder, a glob or one file of Parquet, or a small CSV, anywhere fsspec reaches.

    Only footers are read here. All files must have one schema; Hive folders (``year=2024/``) become columns; a folder
    with a manifest is read as the release it is. ``columns`` keeps some of the columns; ``block_rows`` bounds the rows
    of a block, which is what one task holds in memory.
    """
    if isinstance(columns, str):
        raise JobError(f"read_lake: columns must be a list of names; got {columns!r}.")
    if isinstance(block_rows, bool) or not isinstance(block_rows, int) or block_rows < 1:
        raise JobError(f"read_lake: block_rows must be an integer >= 1; got {block_rows!r}.")
    source = os.fspath(source)
    place = Place(source)
    files = find_files(place)
    stored = _common_schema(files)
    schema = _with_hive(stored, files)
    if columns is not None:
        require_known(schema, columns, "read_lake")
        schema = pa.schema([schema.field(name) for name in columns])
    plan = plan_blocks([file.groups for file in files], block_rows)
    if not plan:
        raise InputError(f"{source}: has no rows in {len(files)} files.")
    categories = _categories(files, stored, schema)
    blocks, first = [], 0
    for pieces in plan:
        rows = sum(piece.rows for piece in pieces)
        blocks.append(Block(first, rows, _lake_block(files, pieces, schema, categories)))
        first += rows
    facts = {name: _facts(files, name) for name in schema.names}
    nullable = frozenset(name for name, fact in facts.items() if fact.nulls != 0)
    return Lake(schema=schema, blocks=tuple(blocks), nullable=nullable, files=tuple(files), facts=facts)


def _common_schema(files: Sequence[DataFile]) -> Any:
    """The one schema of all files, by the first; another column or type in any other file is refused."""
    first = files[0]
    expected = {field.name: field.type for field in first.schema}
    for file in files:
        found = {field.name: field.type for field in file.schema}
        if len(found) < len(file.schema.names):
            twice = next(name for name, times in Counter(file.schema.names).items() if times > 1)
            raise InputError(f"{file.name}: has more than one column '{twice}'. Give each column its own name.")
        clash = next((key for key, _ in file.hive if key in found), None)
        if clash is not None:
            raise InputError(f"{file.name}: '{clash}' is a column of the file and a folder's name. Rename one.")
        if [key for key, _ in file.hive] != [key for key, _ in first.hive]:
            raise InputError(f"{file.name}: its folders do not name the same keys as those of {first.name}.")
        for name, kind in expected.items():
            if name not in found:
                raise InputError(f"{file.name}: column '{name}' is missing, which {first.name} has.")
            if found[name] != kind:
                raise InputError(
                    f"{file.name}: column '{name}' is {found[name]}, the lake's schema says {kind}. "
                    f"Write the file again with {kind}."
                )
        extra = next((name for name in found if name not in expected), None)
        if extra is not None:
            raise InputError(f"{file.name}: column '{extra}' is not in the lake's schema (that of {first.name}).")
    return first.schema


def _with_hive(schema: Any, files: Sequence[DataFile]) -> Any:
    """The schema with a column for each key in the folders' names: int64 where that loses nothing, else string."""
    for number, (key, _) in enumerate(files[0].hive):
        values = [file.hive[number][1] for file in files]
        whole = all(value is None or _WHOLE.fullmatch(value) for value in values)
        schema = schema.append(pa.field(key, pa.int64() if whole else pa.string()))
    return schema


def _facts(files: Sequence[DataFile], name: str) -> Facts:
    unknown = Facts(None, None, None)
    return reduce(Facts.joined, (file.facts.get(name, unknown) for file in files))


def _categories(files: Sequence[DataFile], stored: Any, schema: Any) -> dict[str, Any]:
    """The categories of each dictionary column, as the first file with rows has them."""
    names = [field.name for field in stored if pa.types.is_dictionary(field.type) and field.name in schema.names]
    if not names:
        return {}
    file = next(file for file in files if sum(file.groups))
    group = next(number for number, rows in enumerate(file.groups) if rows)
    with open_parquet(file.url) as opened:
        rows = opened.read_row_group(group, columns=names, use_threads=False)
    return {name: rows.column(name).chunk(0).dictionary for name in names}


def _lake_block(files: Sequence[DataFile], pieces: list[Piece], schema: Any, categories: dict[str, Any]) -> LakeBlock:
    parts = []
    for number, run in groupby(pieces, lambda piece: piece.file):
        file = files[number]
        parts.append(FilePart(file.url, dict(file.hive), tuple(run), file.groups))
    return LakeBlock(tuple(parts), schema, categories)
