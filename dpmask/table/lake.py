"""A lake: Parquet files that together are one table with one schema, each record at a known position."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from typing import Any

import pyarrow as pa

from dpmask.engine.tasks import Block
from dpmask.errors import InputError, JobError
from dpmask.lake.block_plan import Piece, plan_blocks
from dpmask.lake.csv import Dialect
from dpmask.lake.filters import RowFilter, row_filter
from dpmask.lake.footers import DataFile, Facts, FoundFiles, all_null, find_sources
from dpmask.lake.listing import shown_ignored
from dpmask.lake.reading import FilePart, LakeBlock, open_parquet
from dpmask.lake.schema import RULES, common_schema
from dpmask.table.columns import require_known
from dpmask.table.filtering import filtered_blocks, verdicts
from dpmask.table.table import Table

BLOCK_ROWS = 1_000_000
Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True)
class Lake(Table):
    """A lake opened from its footers. ``to_dask()`` gives a Dask DataFrame; every method takes the lake as it is."""

    files: tuple[DataFile, ...] = ()
    ignored: tuple[str, ...] = ()
    """Parquet and CSV files of its folders that are no data by rule, as their names begin with _ or a dot."""

    def __repr__(self) -> str:
        names = ", ".join(self.schema.names)
        return f"<Lake: {self.rows:,} rows in {len(self.files)} files, {len(self.blocks)} blocks; columns {names}>"

    @property
    def table_version(self) -> str | None:
        """Of a table with a log: its format, and the version or snapshot that is read."""
        log = self.files[0].log if self.files else None
        return f"{log.format} {log.version}" if log else None

    def warnings(self) -> list[str]:
        """What somebody who counts on all files should know."""
        return [f"source: {shown_ignored(self.ignored)}. A file that is named itself is read."] if self.ignored else []

    def by_file(self) -> list[Block]:
        """The lake as blocks of one whole file each: for files that are a block of somebody's already."""
        blocks, first = [], 0
        for number, file in enumerate(self.files):
            pieces = [Piece(number, group, 0, rows) for group, rows in enumerate(file.groups) if rows]
            rows = sum(file.groups)
            first_block = self.blocks[0].content
            recipe = _lake_block(self.files, pieces, self.schema, first_block.categories, first_block.missing)
            blocks.append(Block(first, rows, recipe))
            first += rows
        return blocks


def read_lake(
    source: Source,
    *,
    columns: Sequence[str] | None = None,
    block_rows: int = BLOCK_ROWS,
    schema: str = "strict",
    csv: Mapping[str, str] | None = None,
    missing: Mapping[str, Sequence[str | float]] | None = None,
    where: str | None = None,
    version: int | None = None,
) -> Lake:
    """Open a folder, a glob or one file of Parquet, or a small CSV, anywhere fsspec reaches; or a list of these.

    Only footers are read here. All files must have one schema, or, with ``schema="union"``, one that holds what all of
    them have: a column is null in files without it, and the wider of two types is taken. Hive folders (``year=2024/``)
    become columns; a folder with a manifest is read as the release it is, that of a Delta Lake or Iceberg table as its
    log says, as it is now or at ``version``, the number of a version or a snapshot. ``columns`` keeps some columns;
    ``block_rows`` bounds the rows of a block, which is what one task holds in memory. ``csv`` has the ``separator`` and
    the ``encoding`` of CSV files, where they are not a comma and UTF-8. ``missing`` names for some columns
    the codes that mean a missing value, such as ``{"occupation": ["?", "NA"]}``: they are read as null. ``where`` takes
    only some rows, such as ``year = 2026 and region in (north, south)``: files in other Hive folders are not opened,
    row groups that footers rule out not read, and what they leave open is counted in one pass.
    """
    if isinstance(columns, str):
        raise JobError(f"read_lake: columns must be a list of names; got {columns!r}.")
    if isinstance(block_rows, bool) or not isinstance(block_rows, int) or block_rows < 1:
        raise JobError(f"read_lake: block_rows must be an integer >= 1; got {block_rows!r}.")
    taken = row_filter(where) if where else None
    (files, ignored), stored, whole = _opened(source, schema, csv, taken, version)
    read = names = whole.names
    if columns is not None:
        require_known(whole, columns, "read_lake")
        names = list(columns)
        read = [*names, *(name for name in (taken.columns if taken else ()) if name not in names)]
    whole = pa.schema([whole.field(name) for name in read])
    codes = {name: _codes(whole, name, given) for name, given in (missing or {}).items()}
    for name in codes:
        whole = whole.set(whole.get_field_index(name), whole.field(name).with_nullable(True))
    known = verdicts(files, taken, whole, codes)
    skipped = {group for group, verdict in known.items() if verdict is False}
    plan = plan_blocks([file.groups for file in files], block_rows, skipped)
    categories = _categories(files, stored, whole) if plan else {}
    recipes = [(pieces, _lake_block(files, pieces, whole, categories, codes)) for pieces in plan]
    blocks = filtered_blocks(files, recipes, taken, known)
    if not blocks:
        text = f" where {taken.text}" if taken else ""
        raise InputError(
            f"{', '.join(_sources(source))}: has no rows{text} in {len(files)} file{'s' * (len(files) != 1)}."
        )
    unknown = Facts(None, None, None)
    facts = {name: unknown if name in codes else _facts(files, name) for name in names}
    if not all(known.values()) or any(file.deleted is not None for file in files):  # footers count other rows, too
        facts = {name: _without_range(fact) for name, fact in facts.items()}
    nullable = frozenset(name for name, fact in facts.items() if fact.nulls != 0)
    shown = pa.schema([whole.field(name) for name in names])
    return Lake(schema=shown, blocks=tuple(blocks), nullable=nullable, files=tuple(files), facts=facts, ignored=ignored)


def lake_columns(
    source: Source, *, schema: str, csv: Mapping[str, str], where: str | None, version: int | None
) -> list[str]:
    """The names of the columns that ``read_lake`` finds."""
    return list(_opened(source, schema, csv, row_filter(where) if where else None, version)[2].names)


def _opened(
    source: Source, schema: str, csv: Mapping[str, str] | None, taken: RowFilter | None, version: int | None
) -> tuple[FoundFiles, Any, Any]:
    """The files of a lake, the schema of what they store, and that with the keys of folders."""
    if csv is not None and not set(csv) <= {"separator", "encoding"}:
        raise JobError(f"read_lake: csv may have separator and encoding; got {', '.join(csv)}.")
    if schema not in RULES:
        raise JobError(f"read_lake: schema must be {' or '.join(RULES)}; got {schema!r}.")
    sources = _sources(source)
    if not sources:
        raise JobError("read_lake: source must name a lake; got an empty list.")
    found = find_sources(sources, Dialect(**csv or {}), taken, version)
    files = found.files
    stored = common_schema(files, schema) if files else pa.schema([])
    whole = _with_hive(stored, files)
    if taken:
        taken.check(whole)
    return found, stored, whole


def _sources(source: Source) -> list[str]:
    return [os.fspath(one) for one in ([source] if isinstance(source, str | os.PathLike) else source)]


def _without_range(fact: Facts) -> Facts:
    """What is still known of a column when some rows are left out: that it has no nulls, if it has none."""
    return Facts(0 if fact.nulls == 0 else None, None, None)


def _with_hive(schema: Any, files: Sequence[DataFile]) -> Any:
    """The schema with a column for each key in the folders' names; a table's in the order of its log."""
    for key, _ in files[0].hive if files else ():
        kinds = {file.kinds[key] for file in files}
        schema = schema.append(pa.field(key, kinds.pop() if len(kinds) == 1 else pa.string()))
    log = files[0].log if files else None
    return schema if log is None else pa.schema([schema.field(name) for name in log.schema.names])


def _facts(files: Sequence[DataFile], name: str) -> Facts:
    return reduce(Facts.joined, (_facts_in(file, name) for file in files))


def _facts_in(file: DataFile, name: str) -> Facts:
    """A column in one file; in one that lacks it, all null, but a key of its folders is known by no footer."""
    if any(name == key for key, _ in file.hive):
        return Facts(None, None, None)
    return file.facts.get(name) or all_null(sum(file.groups))


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


def _codes(schema: Any, column: str, given: Sequence[Any]) -> Any:
    """The codes of a column that mean missing, in its type."""
    require_known(schema, [column], "missing")
    kind = schema.field(column).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if isinstance(given, str) or not isinstance(given, list | tuple) or not given:
        raise JobError(f"missing: codes of '{column}' must be a list, such as ['?', 'NA']; got {given!r}.")
    try:
        return pa.array(list(given), kind)
    except (pa.ArrowException, TypeError, OverflowError):
        raise JobError(f"missing: codes of '{column}' must be of its type, {kind}; got {list(given)!r}.") from None


def _lake_block(
    files: Sequence[DataFile],
    pieces: list[Piece],
    schema: Any,
    categories: dict[str, Any],
    missing: dict[str, Any],
) -> LakeBlock:
    parts = []
    for number, run in groupby(pieces, lambda piece: piece.file):
        file = files[number]
        given = (file.url, file.size, dict(file.hive), tuple(run), file.groups, file.dialect, file.stored)
        parts.append(FilePart(*given))
    return LakeBlock(tuple(parts), schema, categories, missing)
