"""What a release showed of each person, kept under keyed digests, and joined with a later table by these.

Files are private: a row is the two words of a person's digest and the released values. Whoever reads one checks its
hash first. Rows meet by digest, in shards; a person whom a release lacks has no values there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpmask.engine.collection import Collection, exchange
from dpmask.engine.limits import current_limits
from dpmask.engine.tasks import Block, Position
from dpmask.errors import VerificationError
from dpmask.kernels.keys import RowKeys, grouped
from dpmask.lake.arrow import array_of
from dpmask.lake.reading import Rows
from dpmask.lake.storage import Place
from dpmask.lake.writing import write_rows
from dpmask.table.alignment import KeyedRows, Packed, PackedBlock, partners
from dpmask.table.beside import beside
from dpmask.table.people import KnownPeople
from dpmask.table.table import Table

_PERSON = (" (person, first)", " (person, second)")
_CELL_BYTES = 16


class KeptFile(NamedTuple):
    """A file of kept rows: its name, its hash, and how many rows it has."""

    file: str
    sha256: str
    rows: int


def keep_rows(
    original: Table, masked: Table, columns: Sequence[str], known: KnownPeople, place: Place
) -> list[KeptFile]:
    """Write what is released of each person, one file for each block, as rows-NNNNN of the place's name; one pass."""
    identified = beside(
        [(original, {name: name for name in known.identifiers}), (masked, {name: name for name in columns})]
    )
    rows = identified.select([*known.identifiers, *columns]).with_positions()
    return rows.map(partial(_keep, known, tuple(columns), place), "series: rows")


def _keep(known: KnownPeople, columns: tuple[str, ...], place: Place, rows: Rows, position: Position) -> KeptFile:
    words = known.identities_of(rows)
    arrays = [array_of(words[:, lane]) for lane in range(2)]
    arrays += [_plain(rows.column(name)) for name in columns]
    kept = pa.table(arrays, names=[*_PERSON, *columns])
    name = f"{place.path.rsplit('/', 1)[-1]}-{position.number:05d}.parquet"
    return KeptFile(name, write_rows(kept, place.parent / name).digest, rows.num_rows)


def _plain(column: Any) -> Any:
    """Categories as their values: files need not agree on codes."""
    column = column.combine_chunks()
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def kept_table(place: Place, files: Sequence[KeptFile]) -> Table:
    """The kept rows of a release in a folder."""
    contents = [_KeptBlock(place / one.file, one.sha256) for one in files]
    firsts = [0, *accumulate(one.rows for one in files)]
    blocks = [Block(*one) for one in zip(firsts, (one.rows for one in files), contents, strict=False)]
    schema = contents[0].whole().schema
    return Table(schema, tuple(blocks), frozenset(schema.names))


@dataclass(frozen=True)
class _KeptBlock:
    """A file of kept rows, read as a whole once its hash is checked."""

    place: Place
    sha256: str

    def whole(self) -> Rows:
        data = self.place.read()
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise VerificationError(f"{self.place.url}: was changed since it was written. Restore it from a backup.")
        return pq.read_table(pa.BufferReader(data), use_threads=False)

    def read(self, columns: Sequence[str]) -> Rows:
        return self.whole().select(list(columns))


def with_earlier(
    original: Table, masked: Table, earlier: Sequence[Table], columns: Sequence[str], known: KnownPeople
) -> list[Table]:
    """The original, the masked table and each earlier release, all with these columns and paired by position."""
    own = {name: _named(name, 0) for name in columns}
    identified = beside([(original, {name: name for name in (*known.identifiers, *columns)}), (masked, own)])
    rows = original.rows + sum(one.rows for one in earlier)
    shards = -(-rows // current_limits().pair_shard_rows)
    names = [*known.identifiers, *columns, *own.values()]
    sources: list[Collection[Any]] = [identified.select(names).transform(partial(_by_identity, known, shards))]
    sources += [one.select([*_PERSON, *columns]).transform(partial(_by_words, shards)) for one in earlier]
    renamed = [{name: _named(name, at) for name in columns} for at in range(1, len(earlier) + 1)]
    size = _CELL_BYTES * rows * (len(columns) + 1)
    met = exchange(sources, partial(_met, renamed), shards, "series: earlier releases", size=size)
    sizes = met.map(_size, "series: people")
    firsts = [0, *accumulate(sizes)]
    contents = met.as_contents(_block)
    fields = [original.masked_schema.field(name) for name in columns]
    fields += [masked.masked_schema.field(name).with_name(own[name]) for name in columns]
    for one, some in zip(earlier, renamed, strict=True):
        fields += [one.schema.field(name).with_name(some[name]) for name in columns]
    schema = pa.schema(fields)
    blocks = tuple(Block(*one) for one in zip(firsts, sizes, contents, strict=False))
    joined = Table(schema, blocks, frozenset(schema.names))
    views = [{name: name for name in columns}, *({new: name for name, new in some.items()} for some in (own, *renamed))]
    return [beside([(joined, view)]) for view in views]


def _named(column: str, release: int) -> str:
    return f"{column} (release -{release})"


def _by_identity(known: KnownPeople, shards: int, rows: Rows) -> list[KeyedRows]:
    return _cut(known.identities_of(rows).T, rows.drop_columns(list(known.identifiers)), shards)


def _by_words(shards: int, rows: Rows) -> list[KeyedRows]:
    words = np.array([rows.column(name).to_numpy() for name in _PERSON])
    return _cut(words, rows.drop_columns(list(_PERSON)), shards)


def _cut(words: Any, rows: Rows, shards: int) -> list[KeyedRows]:
    keys = RowKeys(*(np.ascontiguousarray(lane) for lane in words))
    place = keys.first % np.uint64(shards)
    picked = [np.flatnonzero(place == shard) for shard in range(shards)]
    return [KeyedRows(keys.at(some), Packed.of(rows.take(array_of(some)))) for some in picked]


def _met(renamed: Sequence[Mapping[str, str]], *sides: list[KeyedRows]) -> Packed:
    """One shard: the newest table's people in the order of their digests, with what each earlier release has."""
    ours, mine = _whole(sides[0])
    order = grouped(ours).order
    ours, found = ours.at(order), mine.take(array_of(order))
    for side, names in zip(sides[1:], renamed, strict=True):
        theirs, rows = _whole(side)
        places = partners(ours, theirs)
        taken = rows.take(array_of(places, places < 0))
        for old, new in names.items():
            found = found.append_column(pa.field(new, taken.schema.field(old).type), taken.column(old))
    return Packed.of(found)


def _whole(parts: list[KeyedRows]) -> tuple[RowKeys, Rows]:
    keys = RowKeys(*(np.concatenate(lane) for lane in zip(*(part.keys for part in parts), strict=True)))
    return keys, pa.concat_tables([part.rows.rows() for part in parts])


def _size(packed: Packed) -> int:
    return int(packed.rows().num_rows)


def _block(packed: Packed) -> PackedBlock:
    return PackedBlock(packed)
