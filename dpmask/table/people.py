"""Which people of a table were in earlier tables: by keyed digests, so that no identifier is kept.

Those who came together are a block: a table has all of a block, or nobody of it. A person's values are digested, too:
whoever's have changed since is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.draws import Subkey
from dpmask.errors import InputError
from dpmask.kernels.arrays import Counts, Words
from dpmask.lake.reading import Rows
from dpmask.table.content import record_digests
from dpmask.table.row_keys import require_groupable
from dpmask.table.table import Table

_WHO = "series"


@dataclass(frozen=True, repr=False)
class KnownPeople:
    """People of earlier tables: their digests (people x 3 words, in order), and the number of each one's block.

    Of the three words two are of the ``identifiers``, and one of the values of the ``counted`` columns.
    """

    key: Subkey
    identifiers: tuple[str, ...]
    counted: tuple[str, ...]
    digests: NDArray[np.uint64]
    blocks: Counts
    number: int
    """How many blocks there are: that of people who are new."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return tuple(dict.fromkeys([*self.identifiers, *self.counted]))

    def identities_of(self, rows: Rows) -> NDArray[np.uint64]:
        """The two words of each row's identifiers."""
        return record_digests(self.key.subkey("identity"), rows, self.identifiers)

    def digests_of(self, rows: Rows) -> NDArray[np.uint64]:
        """The digests of a block's rows."""
        found = np.empty((rows.num_rows, 3), np.uint64)
        found[:, :2] = self.identities_of(rows)
        found[:, 2] = record_digests(self.key.subkey("values"), rows, self.counted, found[:, :2])[:, 0]
        return found

    def found(self, digests: NDArray[np.uint64]) -> NDArray[np.intp]:
        """The place of each person among those known, -1 for one who is new."""
        places = np.minimum(np.searchsorted(self.digests[:, 0], digests[:, 0]), max(len(self.digests) - 1, 0))
        if not len(self.digests):
            return np.full(len(digests), -1)
        return np.where((self.digests[places, :2] == digests[:, :2]).all(axis=1), places, -1)

    def blocks_of(self, rows: Rows) -> Counts:
        """The number of each row's block."""
        places = self.found(self.digests_of(rows))
        return np.where(places < 0, self.number, np.append(self.blocks, self.number)[places])


def known_people(
    key: Subkey, identifiers: Sequence[str], counted: Sequence[str], blocks: Sequence[NDArray[np.uint64]]
) -> KnownPeople:
    """The people of some blocks."""
    numbers = np.repeat(np.arange(len(blocks)), [len(one) for one in blocks])
    digests = np.concatenate([np.empty((0, 3), np.uint64), *blocks])
    order = np.argsort(digests[:, 0])
    return KnownPeople(
        key, tuple(identifiers), tuple(sorted(counted)), digests[order], numbers[order].astype(np.int64), len(blocks)
    )


class TablePeople(NamedTuple):
    """The people of a table: who is new, and of each known block how many are there, and how many with other values.

    ``sums``: of the digests of those who are there, which show a person who is there twice.
    """

    new: NDArray[np.uint64]
    there: Counts
    changed: Counts
    sums: Words

    def plus(self, other: TablePeople) -> TablePeople:
        """Both together."""
        return TablePeople(
            np.concatenate([self.new, other.new]),
            self.there + other.there,
            self.changed + other.changed,
            self.sums + other.sums,
        )


def people_of(table: Table, known: KnownPeople) -> TablePeople:
    """Count a table's people by block, in one pass; two records of one person are refused."""
    require_groupable(table.schema, known.columns, _WHO)
    found = table.select(known.columns).reduce(partial(_people, known), TablePeople.plus, f"{_WHO}: people")
    new = found.new[np.lexsort(found.new.T[::-1])]
    twice = int((new[1:, :2] == new[:-1, :2]).all(axis=1).sum()) + int((found.there > _sizes(known)).sum())
    if twice:
        raise InputError(
            f"{_WHO}: {', '.join(known.identifiers)} must be different for every record, so that people can be found "
            "again; some are there more than once, or missing."
        )
    return found._replace(new=new)


def complete_blocks(found: TablePeople, known: KnownPeople) -> tuple[set[int], dict[int, int]]:
    """The blocks that are there as a whole; and of those there in part, how many people are missing."""
    sums = np.zeros(known.number, np.uint64)
    np.add.at(sums, known.blocks, known.digests[:, 0])
    whole = (found.there == _sizes(known)) & (found.sums == sums)
    lacking = _sizes(known) - found.there
    partly = {number: max(int(lacking[number]), 1) for number in np.flatnonzero(~whole & (found.there > 0)).tolist()}
    return set(np.flatnonzero(whole).tolist()), partly


def _sizes(known: KnownPeople) -> Counts:
    return np.bincount(known.blocks, minlength=known.number)


def _people(known: KnownPeople, rows: Rows) -> TablePeople:
    digests = known.digests_of(rows)
    places = known.found(digests)
    old = places >= 0
    blocks = known.blocks[places[old]]
    changed = known.digests[places[old], 2] != digests[old, 2]
    sums = np.zeros(known.number, np.uint64)
    np.add.at(sums, blocks, digests[old, 0])
    return TablePeople(
        digests[~old],
        np.bincount(blocks, minlength=known.number),
        np.bincount(blocks[changed], minlength=known.number),
        sums,
    )
