"""Several tables of the same records as one: the columns of each beside those of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from dpmask.engine.tasks import Position, content_of
from dpmask.lake.reading import Rows
from dpmask.table.alignment import recut
from dpmask.table.dropping import with_gaps
from dpmask.table.table import Reader, Table


def beside(tables: Sequence[tuple[Table, Mapping[str, str]]]) -> Table:
    """One table with some columns of each, {name there: new name}. Records pair by position.

    What a table dropped is missing there. Blocks are those of the first one.
    """
    whole = [with_gaps(table) if table.origins else table for table, _ in tables]
    blocks = whole[0].blocks
    cut = [table if _spans(table.blocks) == _spans(blocks) else recut(table, blocks) for table in whole]
    names = [names for _, names in tables]
    parts = [
        _TableReader(table.reader(list(some)), tuple(some.values())) for table, some in zip(cut, names, strict=True)
    ]
    contents = zip(*([block.content for block in table.blocks] for table in cut), strict=True)
    joined = [
        content_of(partial(_joined, parts, position), *some)
        for position, some in zip(cut[0].positions, contents, strict=True)
    ]
    each = [
        (table.masked_schema.field(name), new)
        for table, some in zip(cut, names, strict=True)
        for name, new in some.items()
    ]
    schema = pa.schema([field.with_name(new) for field, new in each])
    return Table(schema, cut[0].blocks_with(joined), frozenset(schema.names))


def _spans(blocks: Sequence[Any]) -> list[Any]:
    return [block[:2] for block in blocks]


@dataclass(frozen=True, repr=False)
class _TableReader:
    """What reads one of the tables, and what its columns are called here."""

    read: Reader
    names: tuple[str, ...]


def _joined(parts: Sequence[_TableReader], position: Position, *contents: Any) -> _Beside:
    return _Beside(tuple(parts), position, contents)


@dataclass(frozen=True, repr=False)
class _Beside:
    """One block of all tables. Its repr shows nothing of them."""

    parts: tuple[_TableReader, ...]
    position: Position
    contents: tuple[Any, ...]

    def read(self, columns: Sequence[str]) -> Rows:
        found: dict[str, Any] = {}
        for part, content in zip(self.parts, self.contents, strict=True):
            if not set(part.names).isdisjoint(columns):
                found |= zip(part.names, part.read(content, self.position).columns, strict=True)
        return pa.table({name: found[name] for name in columns})
