"""A requirement counted in a table: the smallest group and the worst figure of each limit, from its rows alone.

Where cells of some columns were suppressed, a row's group are all records that match it (matching.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from dpmask.engine.collection import exchange, itself
from dpmask.engine.limits import current_limits
from dpmask.kernels.arrays import Counts, Floats
from dpmask.kernels.groups import NOBODY, GroupCells, cells, join_cells, split_cells
from dpmask.kernels.keys import grouped
from dpmask.kernels.matching import PartialRows
from dpmask.kernels.models import figures, is_broken, judged
from dpmask.lake.reading import Rows
from dpmask.table.encoders.base import CodeEncoder
from dpmask.table.matching import matched_rows, row_source
from dpmask.table.requirement import Requirement
from dpmask.table.row_keys import row_keys
from dpmask.table.sensitive import Limit, SensitiveColumn, limits_of
from dpmask.table.table import Table

_CELL_BYTES = 24
_DENSE = 1 << 20  # counts that are looked at together


class CountedGroups(NamedTuple):
    """The smallest group, the worst figure of each limit, the larger the worse, and records in broken groups."""

    smallest: int
    worst: Floats
    broken: int


class CountedRequirement(NamedTuple):
    """A requirement in a table: its smallest group, each limit with its worst figure, and the records it fails.

    ``broken``: records in groups that break k or a limit, of the set of known columns where these are most.
    """

    requirement: Requirement
    smallest: int
    figures: list[tuple[Limit, float]]
    broken: int

    @property
    def name(self) -> str:
        """What it is called in results."""
        return self.requirement.name

    def unmet(self) -> list[str]:
        """What does not hold, in words."""
        found = [f"a group has {self.smallest} records, k is {self.requirement.k}"]
        found = found if self.smallest < self.requirement.k else []
        return found + [
            f"{limit.name} is {figure:.6g} in a group, the limit is {limit.condition.limit:g}"
            for limit, figure in self.figures
            if is_broken(np.array([figure]), limit.condition)[0]
        ]


def count_requirement(
    table: Table,
    requirement: Requirement,
    columns: Mapping[str, SensitiveColumn],
    label: str,
    suppressed: Sequence[str] = (),
) -> CountedRequirement:
    """Count all groups of a requirement; rows meet by a hash of its columns, once for each set of known ones.

    Missing cells of the ``suppressed`` columns match every value.
    """
    limits = limits_of(requirement, columns)
    encoders = tuple(columns[name].encoder for name in requirement.sensitive)
    tasks = [_CountTask(names, encoders, requirement.k, tuple(limits)) for names in requirement.sets]
    found = [one.counted(table, label, suppressed) for one in tasks]
    worst = np.max([one.worst for one in found], axis=0) if limits else np.empty(0)
    pairs = [(limit, limit.condition.sign * figure) for limit, figure in zip(limits, worst.tolist(), strict=True)]
    return CountedRequirement(requirement, min(one.smallest for one in found), pairs, max(one.broken for one in found))


@dataclass(frozen=True, repr=False)
class _CountTask:
    """One set of columns, the sensitive ones beside it, and what is asked of each group."""

    names: tuple[str, ...]
    encoders: tuple[CodeEncoder, ...]
    k: int
    limits: tuple[Limit, ...]

    def counted(self, table: Table, label: str, suppressed: Sequence[str]) -> CountedGroups:
        if wild := [name for name in self.names if name in suppressed]:
            source = row_source(table, self.names, wild, self.encoders, label)
            return _merge(*matched_rows(source, self._matched, _merge, label))
        shards = -(-table.rows // current_limits().group_shard_rows)
        columns = list(dict.fromkeys([*self.names, *(one.column for one in self.encoders)]))
        split = table.select(columns).transform(partial(self._split, shards))
        size = table.rows * (_CELL_BYTES + 8 * len(self.encoders))
        found = exchange([split], self._gather, shards, f"{label}: exchange", size=size)
        return found.reduce(itself, _merge, label)

    def _split(self, shards: int, rows: Rows) -> list[GroupCells]:
        codes = [one.encode(rows) for one in self.encoders]
        return split_cells(cells(row_keys(rows, self.names), codes), shards)

    def _matched(self, rows: PartialRows, counts: Counts) -> CountedGroups:
        conditions = tuple(one.condition for one in self.limits)
        found = judged(counts if conditions else counts[:, 0], self.k, conditions)
        worst = np.array([one.max(initial=-np.inf) for one in found.figures])
        return CountedGroups(int(found.sizes.min(initial=NOBODY)), worst, int(rows.times[found.broken].sum()))

    def _gather(self, parts: list[GroupCells]) -> CountedGroups:
        """The groups of a shard, where all of a group's rows are."""
        found = join_cells(parts)
        groups = grouped(found.keys)
        sizes, numbers = groups.sums(found.times), groups.numbers()
        worst, broken = np.full(len(self.limits), -np.inf), sizes < self.k
        width = max(sum(one.size for one in self.encoders), 1)
        step = max(1, _DENSE // width)
        by_group = np.argsort(numbers, kind="stable")
        for first in range(0, len(sizes) if self.limits else 0, step):
            low, high = np.searchsorted(numbers[by_group], [first, first + step])
            counts = self._counts(found, by_group[low:high], numbers, first, min(step, len(sizes) - first))
            for place, limit in enumerate(self.limits):
                figure = figures(counts, limit.condition)
                worst[place] = max(worst[place], (limit.condition.sign * figure).max())
                broken[first : first + step] |= is_broken(figure, limit.condition)
        return CountedGroups(int(sizes.min(initial=NOBODY)), worst, int(sizes[broken].sum()))

    def _counts(self, found: GroupCells, rows: Counts, numbers: Counts, first: int, groups: int) -> Counts:
        """The counts of the codes of some groups (groups x codes of all sensitive columns)."""
        ends = np.cumsum([0, *(one.size for one in self.encoders)])
        counts = np.zeros((groups, int(ends[-1])), np.int64)
        for codes, offset in zip(found.codes, ends, strict=False):
            np.add.at(counts, (numbers[rows] - first, offset + codes[rows]), found.times[rows])
        return counts


def _merge(left: CountedGroups, right: CountedGroups) -> CountedGroups:
    return CountedGroups(
        min(left.smallest, right.smallest), np.maximum(left.worst, right.worst), left.broken + right.broken
    )
