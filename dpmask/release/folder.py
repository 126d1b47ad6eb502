"""Where a run keeps its masked blocks, in the order in which the release has them: ``order`` of a job.

``BlockFiles`` is a file for each block, its rows as they came or in a random order: it is staged as it is published.
``dpmask/release/shuffled.py`` has the one whose rows are in a random order over the whole release.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.draws import Subkey, shuffled
from dpmask.engine.tasks import Position
from dpmask.errors import InputError
from dpmask.lake.reading import Rows, open_parquet
from dpmask.lake.storage import Place
from dpmask.lake.writing import DamageCheck, reordered, write_positions, write_rows

Positions = NDArray[np.int64] | None
"""Those that the records of a block have in the source; None where no record of the source was dropped."""


class StagedFile(NamedTuple):
    """A file of the release, or of what it will be made from."""

    name: str
    rows: int
    bytes: int
    sha256: str
    """Of what it will be made from, a ``DamageCheck``."""
    nulls: dict[str, int]


@dataclass(frozen=True)
class Folder(ABC):
    """Where one run keeps its blocks, and which record each released row was."""

    staging: Place
    pairing: Place

    @abstractmethod
    def write(self, rows: Rows, position: Position, positions: Positions) -> StagedFile:
        """Write a masked block."""

    @abstractmethod
    def content(self, position: Position, rows: int) -> Any:
        """What reads a block again, every record back at its position."""

    def still_there(self, file: StagedFile, position: Position, positions: Positions) -> bool:
        """Whether a block that an earlier run wrote is there as it was."""
        return same_bytes(self.staging / file.name, file.sha256)

    def released(self, files: Sequence[StagedFile]) -> list[StagedFile]:
        """The files to publish, made from those of the blocks."""
        return list(files)


def same_bytes(place: Place, sha256: str) -> bool:
    """Whether a file is there and has this hash."""
    return _has_digest(place, hashlib.sha256(), sha256)


def undamaged(place: Place, digest: str) -> bool:
    """Whether a file of pieces is there as it was written."""
    return _has_digest(place, DamageCheck(), digest)


def _has_digest(place: Place, check: Any, digest: str) -> bool:
    try:
        check.update(place.map())
    except InputError:
        return False
    return bool(check.hexdigest() == digest)


def part_name(number: int) -> str:
    """The name of a file of the release."""
    return f"part-{number:05d}.parquet"


def write_part(rows: Rows, name: str, staging: Place) -> StagedFile:
    """Write a file of the release."""
    nulls = {column: rows.column(column).null_count for column in rows.schema.names}
    written = write_rows(rows, staging / name)
    return StagedFile(name, rows.num_rows, written.bytes, written.digest, nulls)


def source_positions(position: Position, rows: int, positions: Positions) -> NDArray[np.int64]:
    """The positions in the source of all records of a block."""
    return position.first + np.arange(rows) if positions is None else positions


@dataclass(frozen=True)
class BlockFiles(Folder):
    """A file for each block, its rows in a random order under a key, or without one as they came."""

    key: Subkey | None

    def write(self, rows: Rows, position: Position, positions: Positions) -> StagedFile:
        """Write a masked block, and which records its rows are."""
        order = self._pair(position, rows.num_rows, positions)
        return write_part(rows if order is None else reordered(rows, order), part_name(position.number), self.staging)

    def content(self, position: Position, rows: int) -> Any:
        """What reads a block again, every record back at its position."""
        return _BlockFile((self.staging / part_name(position.number)).full_url, position.first, rows, self.key)

    def still_there(self, file: StagedFile, position: Position, positions: Positions) -> bool:
        """Whether a block is there as it was; which records its rows are is written again."""
        if not super().still_there(file, position, positions):
            return False
        self._pair(position, file.rows, positions)
        return True

    def _pair(self, position: Position, rows: int, positions: Positions) -> NDArray[np.int64] | None:
        """The order of a file's rows, None for that of the input. Which records they are is written for the holder.

        That is known without a file where neither the order was changed nor records were dropped.
        """
        order = None if self.key is None else shuffled(self.key, position.first, rows)
        if order is not None or positions is not None:
            found = source_positions(position, rows, positions)
            write_positions(found if order is None else found[order], self.pairing / part_name(position.number))
        return order


@dataclass(frozen=True)
class _BlockFile:
    url: str
    first: int
    rows: int
    key: Subkey | None

    def read(self, columns: Sequence[str]) -> Rows:
        with open_parquet(self.url) as file:
            rows = file.read(columns=list(columns), use_threads=False).select(list(columns))
        return rows if self.key is None else put_back(rows, shuffled(self.key, self.first, self.rows))


def put_back(rows: Rows, order: NDArray[np.int64]) -> Rows:
    """Rows that were put into an order (``reordered``), as they were."""
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return reordered(rows, back)
