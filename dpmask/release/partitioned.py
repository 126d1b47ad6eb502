"""Rows in folders by values of released columns: ``partition_by`` of a job.

A first pass counts the records of each folder, so that each has as many files as it takes for none to be much larger
than a block. Then it is as in shuffled.py: keyed draws of a record say to which file of its folder it goes, and where
it stands there; blocks are staged in a piece for each file, and files put together from pieces after the decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.draws import Subkey
from dpmask.engine.tasks import Position
from dpmask.errors import InputError
from dpmask.lake.hive import count_folders, folders_of, merge_folders
from dpmask.lake.reading import Rows, read_pieces
from dpmask.lake.storage import Place
from dpmask.lake.writing import reordered
from dpmask.release.folder import part_name
from dpmask.release.shuffled import ShuffledFiles, block_name
from dpmask.table.dropping import POSITION
from dpmask.table.table import Table

MOST_FOLDERS = 10_000


class PartitionFolder(NamedTuple):
    """A folder: its name, the number of its first file among all, and how many it has."""

    folder: str
    first: int
    files: int


def partitioned_folder(
    staging: Place, pairing: Place, key: Subkey, table: Table, columns: Sequence[str]
) -> PartitionedFiles:
    """A folder for this table, with folders by these columns in it; one pass over them."""
    count = partial(count_folders, tuple(columns))
    found = table.select(list(columns)).reduce(count, merge_folders, "partitions")
    if len(found) > MOST_FOLDERS:
        raise InputError(
            f"partition_by: {', '.join(columns)} would make {len(found):,} folders; {MOST_FOLDERS:,} are the most. "
            "Choose a column with fewer values."
        )
    partitions = tuple(_partitions(found, max(block.rows for block in table.blocks)))
    files = sum(one.files for one in partitions)
    return PartitionedFiles(staging, pairing, key, files, tuple(columns), partitions)


def _partitions(counts: Mapping[str, int], most: int) -> list[PartitionFolder]:
    found, first = [], 0
    for folder, rows in sorted(counts.items()):
        found.append(PartitionFolder(folder, first, -(-rows // max(most, 1))))
        first += found[-1].files
    return found


@dataclass(frozen=True)
class PartitionedFiles(ShuffledFiles):
    """Files in folders by the values of ``columns``, which stand in the folders' names and not in the files."""

    columns: tuple[str, ...]
    partitions: tuple[PartitionFolder, ...]

    @property
    def left_out(self) -> tuple[str, ...]:
        """Columns that files do not have."""
        return self.columns

    def numbers(self, rows: Rows, position: Position) -> NDArray[Any]:
        """The number of the file that each record of a block goes to."""
        codes, folders = folders_of(rows, self.columns)
        known = {one.folder: one for one in self.partitions}
        first, files = np.array([known[name][1:] for name in folders], np.int64).reshape(-1, 2).T
        words = self.words(position.first, rows.num_rows)
        return first[codes] + (words % files[codes].astype(np.uint64)).astype(np.int64)

    def part(self, number: int) -> str:
        """The name of a file of the release."""
        at = np.searchsorted([one.first for one in self.partitions], number, side="right") - 1
        one = self.partitions[at]
        return f"{one.folder}/{part_name(number - one.first)}"

    def content(self, position: Position, rows: int) -> Any:
        """What reads a block again, every record back at its position."""
        return _PartitionedPieces((self.staging / block_name(position.number)).full_url)


@dataclass(frozen=True)
class _PartitionedPieces:
    url: str

    def read(self, columns: Sequence[str]) -> Rows:
        rows = read_pieces(self.url, [*columns, POSITION])
        return reordered(rows.drop_columns([POSITION]), np.argsort(rows.column(POSITION).to_numpy(), kind="stable"))
