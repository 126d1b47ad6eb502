"""What an intruder knows of all members of a household, and the households of both tables, one row each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.tasks import Position
from dpmask.kernels.arrays import Counts, Flags, Floats
from dpmask.kernels.households import Homes, compositions
from dpmask.kernels.keys import RowKeys, with_word
from dpmask.lake.reading import Rows
from dpmask.table.beside import beside
from dpmask.table.columns import floats
from dpmask.table.dropping import PRESENT
from dpmask.table.label_sets import AsReleased, with_labels
from dpmask.table.pairs import masked_name, pair
from dpmask.table.row_keys import missing, row_keys
from dpmask.table.table import Frame, Table

MOST_MEMBERS = 4
"""Members whose numbers are compared, the lowest first."""


class WideHouseholds(NamedTuple):
    """Households that the release has, one row each: compositions as words, sizes, numbers (columns x ranks x rows)."""

    before: RowKeys
    after: RowKeys
    sizes: Counts
    numbers: tuple[Floats, Floats]


class KnownMembers(NamedTuple):
    """What an intruder knows of each member."""

    household: str
    numbers: tuple[str, ...]
    labels: tuple[str, ...]
    released: tuple[AsReleased, ...]
    gaps: bool
    """Whether records may be missing in the release."""
    suppressed: tuple[str, ...] = ()
    """The labels in which a missing cell is taken for what it was."""

    @property
    def columns(self) -> list[str]:
        """All that is read of both tables."""
        names = [*self.numbers, *self.labels]
        return [*names, *map(masked_name, names), *([PRESENT] if self.gaps else [])]

    @property
    def size(self) -> int:
        """Bytes of a member."""
        return 33 + 16 * len(self.numbers)

    def originals(self, rows: Rows) -> Rows:
        """The labels of originals, as they would be released."""
        for one in self.released:
            rows = one.replaced(rows)
        return rows

    def members(self, rows: Rows, position: Position) -> tuple[NDArray[Any], ...]:
        """Whether each is in the release, the keys of its labels before and after, and its numbers."""
        values = [
            np.array([floats(rows, name) for name in names]).reshape(len(self.numbers), rows.num_rows)
            for names in (self.numbers, list(map(masked_name, self.numbers)))
        ]
        originals = self.originals(rows)
        before = row_keys(originals, self.labels)
        after = self.released_keys(rows, originals)
        return (self.there(rows), *before, *after, *values)

    def released_keys(self, rows: Rows, originals: Rows) -> RowKeys:
        """The keys of released labels; ``originals`` has what suppressed ones were."""
        for name in self.suppressed:
            rows = with_labels(rows, masked_name(name), originals.column(name))
        return row_keys(rows, list(map(masked_name, self.labels)))

    def there(self, rows: Rows) -> Flags:
        """Whether each record is in the release."""
        return ~missing(rows, PRESENT) if self.gaps else np.ones(rows.num_rows, np.bool_)

    def wide(self, homes: Homes) -> WideHouseholds:
        """Households with a member in the release. Members who are not are known, and cannot be seen."""
        there, one, two, three, four, known, seen = homes.members
        left = np.add.reduceat(there, homes.starts, dtype=np.int64) if len(homes.starts) else np.empty(0, np.int64)
        kept = np.flatnonzero(left)
        before = with_word(compositions(RowKeys(one, two), homes.starts), homes.sizes.view(np.uint64)).at(kept)
        masked = RowKeys(*(np.where(there, lane, np.uint64(0)) for lane in (three, four)))
        after = with_word(compositions(masked, homes.starts), left.view(np.uint64)).at(kept)
        numbers = homes.numbers()
        ranked = _ranked(known, numbers, homes.starts), _ranked(np.where(there, seen, np.nan), numbers, homes.starts)
        return WideHouseholds(before, after, left[kept], (ranked[0][..., kept], ranked[1][..., kept]))


def _ranked(values: Floats, numbers: Counts, starts: Counts) -> Floats:
    """The numbers of each household in rising order (columns x ranks x households), missing where there are fewer."""
    found = np.full((len(values), MOST_MEMBERS, len(starts)), np.nan)
    for place, column in enumerate(values):
        order = np.lexsort((column, numbers))
        rank = np.arange(len(numbers)) - starts[numbers]
        few = rank < MOST_MEMBERS
        found[place, rank[few], numbers[few]] = column[order][few]
    return found


def side_by_side(original: Frame, masked: Frame, task: KnownMembers, who: str) -> Table:
    """Both tables as one: the household's number, and all that is compared, before and after."""
    names = [*task.numbers, *task.labels]
    if not (isinstance(original, Table) and isinstance(masked, Table)):
        masked = masked.assign(**{task.household: 0})  # it may have no such column, and need not
        return pair(original, masked, [task.household, *names], who, marks=True)
    there = {PRESENT: PRESENT} if task.gaps else {}
    given = {name: name for name in (task.household, *names)}
    return beside([(original, given), (masked, {name: masked_name(name) for name in names} | there)])
