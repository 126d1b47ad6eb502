"""Two lakes brought into one order of records, whoever masked the second one and however either is cut into blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmask.engine.collection import Collection, exchange
from dpmask.engine.limits import current_limits
from dpmask.engine.tasks import Block, Position
from dpmask.errors import InputError
from dpmask.kernels.keys import RowKeys, grouped
from dpmask.lake.arrow import array_of
from dpmask.lake.reading import Rows, open_parquet
from dpmask.lake.storage import Place
from dpmask.lake.writing import reordered
from dpmask.table.lake import Lake
from dpmask.table.row_keys import require_groupable, row_keys
from dpmask.table.steps import DroppedRows
from dpmask.table.table import Reader, Table

_CELL_BYTES = 16


def recut(table: Table, blocks: Sequence[Block]) -> Table:
    """The same records in other blocks: a task reads the blocks that its own one overlaps, one at a time."""
    read = table.reader
    pieces = [
        tuple(
            _Slice(number, one.content, one.first, max(one.first, wanted.first), min(_end(one), _end(wanted)))
            for number, one in enumerate(table.blocks)
            if one.first < _end(wanted) and wanted.first < _end(one)
        )
        for wanted in blocks
    ]
    contents = [Block(one.first, one.rows, _Recut(read, some)) for one, some in zip(blocks, pieces, strict=True)]
    return Table(table.masked_schema, tuple(contents), table.nullable)


def _end(block: Block) -> int:
    return block.first + block.rows


class _Slice(NamedTuple):
    """The records from ``start`` to ``stop`` of a block."""

    number: int
    content: Any
    first: int
    start: int
    stop: int


@dataclass(frozen=True)
class _Recut:
    """A block of parts of others."""

    reader: Callable[[Sequence[str]], Reader]
    slices: tuple[_Slice, ...]

    def read(self, columns: Sequence[str]) -> Rows:
        read = self.reader(columns)
        parts = [
            read(one.content, Position(one.number, one.first)).slice(one.start - one.first, one.stop - one.start)
            for one in self.slices
        ]
        return pa.concat_tables(parts).combine_chunks()


def in_source_order(release: Lake, pairing: Place, original: Table, columns: Sequence[str], who: str) -> Table:
    """These columns of a release in the order and the blocks of its source, by the holder's pairing files.

    Any row may lie in any file, so rows are exchanged; records that the release lacks count as dropped.
    """
    names = [file.url.rsplit("/", 1)[-1] for file in release.files]
    missing = next((name for name in names if name not in set(pairing.files())), None)
    if missing is not None:
        raise InputError(f"{pairing.url}: there is no {missing}, so it is not the pairing of this release.")
    contents = [
        _PairedFile(block.content, (pairing / name).full_url)
        for block, name in zip(release.by_file(), names, strict=True)
    ]
    ends = np.array([_end(block) for block in original.blocks])
    split = partial(_to_blocks, tuple(columns), ends)
    size = _CELL_BYTES * release.rows * (len(columns) + 1)
    found = Collection.of(contents).exchange(split, _in_order, len(ends), f"{who}: pair", size=size)
    there = found.with_positions().map(partial(_dropped, original.blocks_with([None] * len(ends))), f"{who}: count")
    firsts = [0, *accumulate(one.left for one in there)]
    blocks = [
        Block(*one) for one in zip(firsts, (one.left for one in there), found.as_contents(_unpacked_rows), strict=False)
    ]
    schema = pa.schema([release.schema.field(name) for name in columns])
    dropped = tuple(there) if firsts[-1] < original.rows else ()
    return Table(schema, tuple(blocks), release.nullable, origins=dropped)


class _PairedFile(NamedTuple):
    """A released file, and the file of the positions that its rows had."""

    content: Any
    pairing: str


class _PlacedRows(NamedTuple):
    """Rows, and the position of each in the source."""

    positions: NDArray[np.int64]
    rows: Packed


def _to_blocks(columns: Sequence[str], ends: NDArray[np.int64], file: _PairedFile) -> list[_PlacedRows]:
    """A released file cut into the rows of each block of the source."""
    with open_parquet(file.pairing) as opened:
        positions = opened.read(use_threads=False).column("position").to_numpy()
    rows = file.content.read(columns)
    if len(positions) != rows.num_rows or not np.all((positions >= 0) & (positions < ends[-1])):
        raise InputError(f"{file.pairing}: does not pair the records of this release. Is it that of another run?")
    block = np.searchsorted(ends, positions, side="right")
    order = np.argsort(block, kind="stable")
    cuts = np.searchsorted(block[order], np.arange(len(ends) + 1))
    rows, positions = reordered(rows, order), positions[order]
    return [
        _PlacedRows(positions[start:end], Packed.of(rows.slice(start, end - start)))
        for start, end in pairwise(cuts.tolist())
    ]


def _in_order(pieces: list[_PlacedRows]) -> _PlacedRows:
    """A block of the source from its rows in all files."""
    positions = np.concatenate([piece.positions for piece in pieces])
    order = np.argsort(positions, kind="stable")
    if np.any(np.diff(positions[order]) == 0):
        raise InputError("The pairing files name a record twice. Are they those of another run?")
    rows = pa.concat_tables([piece.rows.rows() for piece in pieces])
    return _PlacedRows(positions[order], Packed.of(reordered(rows, order)))


def _dropped(blocks: Sequence[Block], placed: _PlacedRows, position: Position) -> DroppedRows:
    first, rows, _ = blocks[position.number]
    return DroppedRows(first, rows, np.setdiff1d(np.arange(rows), placed.positions - first).astype(np.int32))


def _unpacked_rows(placed: _PlacedRows) -> PackedBlock:
    return PackedBlock(placed.rows)


class Keyed(NamedTuple):
    """Two tables with the same blocks, their records paired; and how many had no partner and were left out."""

    original: Table
    masked: Table
    unmatched_original: int
    unmatched_masked: int


def pair_by_column(original: Table, masked: Table, column: str, columns: Sequence[str], who: str) -> Keyed:
    """Records with the same value in a column, which must be unique on both sides, brought together in shards."""
    for table in (original, masked):
        require_groupable(table.masked_schema, [column], who)
    names = [column, *(name for name in columns if name != column)]
    rows = original.rows + masked.rows
    shards = -(-rows // current_limits().pair_shard_rows)
    sources = [
        table.select(names).transform(partial(_split, column, side, shards))
        for table, side in ((original, "original"), (masked, "masked table"))
    ]
    schemas = [pa.schema([table.masked_schema.field(name) for name in names]) for table in (original, masked)]
    gather = partial(_gather, column, schemas)
    paired = exchange(sources, gather, shards, f"{who}: pair", size=_CELL_BYTES * rows * len(names))
    counts = paired.map(_counts, f"{who}: count")
    return Keyed(
        _side(paired, "original", counts, schemas[0]),
        _side(paired, "masked", counts, schemas[1]),
        sum(one.alone for one in counts),
        sum(one.extra for one in counts),
    )


class Packed(NamedTuple):
    """Rows as the bytes of an Arrow stream, so that they travel and lie in files as arrays do."""

    stream: NDArray[np.uint8]

    @classmethod
    def of(cls, rows: Rows) -> Packed:
        """These rows, packed."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows.combine_chunks())
        return cls(np.frombuffer(sink.getvalue(), np.uint8))

    def rows(self) -> Rows:
        """The rows again."""
        return pa.ipc.open_stream(pa.py_buffer(self.stream)).read_all()


class KeyedRows(NamedTuple):
    """Rows, and the key of each."""

    keys: RowKeys
    rows: Packed


class _PairedShard(NamedTuple):
    """Paired rows of both tables, and how many of either were alone."""

    original: Packed
    masked: Packed
    rows: int
    alone: int
    extra: int


def _split(column: str, side: str, shards: int, rows: Rows) -> list[KeyedRows]:
    if rows.column(column).null_count:
        raise InputError(f"Records cannot be paired by '{column}': it is missing in records of the {side}.")
    keys = row_keys(rows, [column])
    place = keys.first % np.uint64(shards)
    picked = [np.flatnonzero(place == shard) for shard in range(shards)]
    return [KeyedRows(keys.at(some), Packed.of(rows.take(array_of(some)))) for some in picked]


def _gather(column: str, schemas: Sequence[Any], original: list[KeyedRows], masked: list[KeyedRows]) -> _PairedShard:
    sides = []
    for parts, side in ((original, "original"), (masked, "masked table")):
        keys = RowKeys(*(np.concatenate(lane) for lane in zip(*(part.keys for part in parts), strict=True)))
        groups = grouped(keys)
        if len(groups.starts) < len(groups.order):
            raise InputError(f"Records cannot be paired by '{column}': its values are not unique in the {side}.")
        sides.append((keys.at(groups.order), groups.order, [part.rows.rows() for part in parts]))
    (ours, our_order, our_rows), (theirs, their_order, their_rows) = sides
    partner = partners(ours, theirs)
    met = partner >= 0
    left = pa.concat_tables(our_rows).take(array_of(our_order[met]))
    right = pa.concat_tables(their_rows).take(array_of(their_order[partner[met]]))
    pairs = int(met.sum())
    return _PairedShard(
        Packed.of(pa.table(left.columns, schema=schemas[0])),
        Packed.of(pa.table(right.columns, schema=schemas[1])),
        pairs,
        len(our_order) - pairs,
        len(their_order) - pairs,
    )


def partners(ours: RowKeys, theirs: RowKeys) -> NDArray[np.int64]:
    """For each of our keys the place of the same one among theirs, -1 where there is none; both are different keys."""
    groups = grouped(RowKeys(*(np.concatenate(lanes) for lanes in zip(ours, theirs, strict=True))))
    numbers = groups.numbers()
    place = np.full(len(groups.starts), -1)
    place[numbers[len(ours.first) :]] = np.arange(len(theirs.first))
    return place[numbers[: len(ours.first)]]


def _counts(shard: _PairedShard) -> _PairedShard:
    nothing = Packed(np.empty(0, np.uint8))
    return shard._replace(original=nothing, masked=nothing)


def _side(paired: Collection[_PairedShard], side: str, counts: Sequence[_PairedShard], schema: Any) -> Table:
    firsts = [0, *accumulate(one.rows for one in counts)]
    contents = paired.as_contents(partial(_unpacked, side))
    blocks = [Block(*one) for one in zip(firsts, (one.rows for one in counts), contents, strict=False)]
    return Table(schema, tuple(blocks), frozenset(schema.names))


@dataclass(frozen=True)
class PackedBlock:
    """A block of packed rows."""

    packed: Packed

    def read(self, columns: Sequence[str]) -> Rows:
        """These columns of it."""
        return self.packed.rows().select(list(columns))


def _unpacked(side: str, shard: _PairedShard) -> PackedBlock:
    return PackedBlock(getattr(shard, side))
