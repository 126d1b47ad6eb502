"""Rows in a random order over the whole release: neither a row's file nor its place there says which record it was.

Two keyed draws belong to each record: one says to which file of the release it goes, the other where it stands among
the rows there, as these are sorted by it. So the order follows from key and positions alone, whatever the cluster. Each
file is of about as many records as a block. Masked blocks are staged cut into a piece for each file of the release, and
after the decision every file is put together from its pieces: the whole release is written and read once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.collection import Collection
from dpmask.engine.draws import Subkey, record_words, words_at
from dpmask.engine.files import write_files
from dpmask.engine.tasks import Position
from dpmask.kernels.shuffle import places_in_order
from dpmask.lake.reading import Rows, join_pieces, read_pieces
from dpmask.lake.storage import Place
from dpmask.lake.writing import reordered, write_pieces, write_positions
from dpmask.release.folder import (
    BlockFiles,
    Folder,
    Positions,
    StagedFile,
    part_name,
    put_back,
    same_bytes,
    source_positions,
    undamaged,
    write_part,
)
from dpmask.table.dropping import POSITION, rows_with_positions
from dpmask.table.table import Table

_FEW = 1 << 16
"""So many files have numbers of two bytes, which are sorted in one go."""


def shuffled_folder(staging: Place, pairing: Place, key: Subkey, table: Table) -> Folder:
    """A folder for this table, in as many files as it takes for none to be much larger than a block.

    A single block is shuffled as a whole where it lies.
    """
    if len(table.blocks) == 1:
        return BlockFiles(staging, pairing, key)
    largest = max(block.rows for block in table.blocks)
    return ShuffledFiles(staging, pairing, key, max(-(-table.rows // max(largest, 1)), 1))


@dataclass(frozen=True)
class ShuffledFiles(Folder):
    """``files`` of the release, each with rows of all blocks."""

    key: Subkey
    files: int

    def write(self, rows: Rows, position: Position, positions: Positions) -> StagedFile:
        """Write a masked block in pieces, with its records' positions."""
        name, files = block_name(position.number), self.numbers(rows, position)
        placed = rows_with_positions(rows, source_positions(position, rows.num_rows, positions))
        cut = reordered(placed, np.argsort(files, kind="stable"))
        written = write_pieces(cut, np.bincount(files, minlength=self.files).tolist(), self.staging / name)
        return StagedFile(name, rows.num_rows, written.bytes, written.digest, {})

    def still_there(self, file: StagedFile, position: Position, positions: Positions) -> bool:
        """Whether a block that an earlier run wrote is there as it was."""
        return undamaged(self.staging / file.name, file.sha256)

    def content(self, position: Position, rows: int) -> Any:
        """What reads a block again, every record back at its position."""
        return _PieceFile((self.staging / block_name(position.number)).full_url, position.first, rows, self)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Columns that files do not have."""
        return ()

    def numbers(self, rows: Rows, position: Position) -> NDArray[Any]:
        """The number of the file that each record of a block goes to."""
        return self.files_of(position.first, rows.num_rows)

    def part(self, number: int) -> str:
        """The name of a file of the release."""
        return part_name(number)

    def words(self, first: int, rows: int) -> NDArray[np.uint64]:
        """The draws of the records of a block that choose their files."""
        return record_words(self.key.subkey("file"), first, rows)

    def files_of(self, first: int, rows: int) -> NDArray[Any]:
        """The same numbers, where they follow from positions alone."""
        numbers = self.words(first, rows) % np.uint64(self.files)
        return numbers.astype(np.uint16 if self.files <= _FEW else np.int64)

    def released(self, files: Sequence[StagedFile]) -> list[StagedFile]:
        """Every file of the release, put together from its pieces; one pass."""
        urls = [(self.staging / file.name).full_url for file in files]
        parts = Collection.of(range(self.files)).transform(partial(_put_together, self, urls))
        return write_files(parts, _nothing, "shuffle", self._still_there)[0]

    def _still_there(self, known: dict[int, StagedFile]) -> dict[int, StagedFile]:
        found = Collection.of(known.values()).map(partial(_is_there, self), "shuffled before")
        return {number: file for (number, file), there in zip(known.items(), found, strict=True) if there}


def block_name(number: int) -> str:
    """The name of the file that a block is staged in."""
    return f"block-{number:05d}.arrow"


def _put_together(folder: ShuffledFiles, blocks: Sequence[str], number: int) -> tuple[StagedFile, None]:
    """Write one file of the release, and which records its rows are."""
    rows = join_pieces(blocks, number)
    positions = rows.column(POSITION).to_numpy()
    order = places_in_order(words_at(folder.key.subkey("place"), positions))
    name, released = folder.part(number), rows.drop_columns([POSITION, *folder.left_out])
    write_positions(positions[order], folder.pairing / name)
    return write_part(reordered(released, order), name, folder.staging), None


def _is_there(folder: ShuffledFiles, file: StagedFile) -> bool:
    return (folder.pairing / file.name).exists() and same_bytes(folder.staging / file.name, file.sha256)


def _nothing(left: None, right: None) -> None:
    """There is no summary to merge."""


@dataclass(frozen=True)
class _PieceFile:
    url: str
    first: int
    rows: int
    folder: ShuffledFiles

    def read(self, columns: Sequence[str]) -> Rows:
        order = np.argsort(self.folder.files_of(self.first, self.rows), kind="stable")
        return put_back(read_pieces(self.url, columns), order)
