"""The different rows of a block, and which of its rows each stands for: masked records are often equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmask.kernels.keys import Grouping, mostly_equal
from dpmask.lake.arrow import array_of
from dpmask.lake.reading import Rows

_NUMBER = "row number"
_LOOK = 1 << 14
"""Rows that show whether many are equal: where each row of a million is there twice, a hundred of them are."""


class DistinctRows(NamedTuple):
    """Each different row once, in the order of their first ones, and the rows of the block that are equal to it."""

    rows: Rows
    members: Grouping  # of each distinct row in rising order


def distinct_rows(rows: Rows, columns: Sequence[str], *, exact: bool = True) -> DistinctRows:
    """The different rows in these columns, by their values as they are stored.

    Of a type that Arrow does not group, equal rows stay apart; so do 0 and -0, null and NaN. Unless it must be
    ``exact``, so do rows of which fewer than half are equal to others: to find these would cost more than they do.
    """
    some, count = rows.select(list(columns)), rows.num_rows
    if not exact and not _repeat(some):
        return DistinctRows(some, Grouping(np.arange(count), np.arange(count)))
    numbers = pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(np.arange(count))])  # without pandas
    numbered = some.append_column(_NUMBER, numbers)
    try:
        found = numbered.group_by(list(columns), use_threads=False).aggregate([(_NUMBER, "list")])
    except pa.ArrowNotImplementedError:
        return DistinctRows(some, Grouping(np.arange(count), np.arange(count)))
    lists = found.column(f"{_NUMBER}_list").combine_chunks()
    members, ends = np.asarray(lists.flatten()), np.asarray(lists.offsets).astype(np.int64)
    firsts, sizes = members[ends[:-1]], np.diff(ends)
    order = np.argsort(firsts)
    starts = np.cumsum(sizes[order]) - sizes[order]
    places = np.repeat(ends[:-1][order] - starts, sizes[order]) + np.arange(count)
    return DistinctRows(some.take(array_of(firsts[order])), Grouping(members[places], starts))


def _repeat(rows: Rows) -> bool:
    """Whether about half of the rows are equal to others, as far as some show; or all of them are few."""
    places = looked_at(rows.num_rows)
    if len(places) == rows.num_rows:
        return True
    return mostly_equal(distinct_rows(rows.take(array_of(places)), rows.schema.names).members.sizes, rows.num_rows)


def looked_at(rows: int) -> NDArray[np.int64]:
    """The places of rows that show whether many are equal: some evenly spread, some side by side; all, if few."""
    if rows <= 4 * _LOOK:
        return np.arange(rows)
    return np.union1d(np.linspace(0, rows - 1, _LOOK).astype(np.int64), rows // 2 + np.arange(_LOOK))
