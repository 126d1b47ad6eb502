"""The different rows of a block, and which of its rows each stands for: masked records are often equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from dpmask.kernels.keys import Grouping
from dpmask.lake.reading import Rows

_NUMBER = "row number"


class DistinctRows(NamedTuple):
    """Each different row once, in the order of their first ones, and the rows of the block that are equal to it."""

    rows: Rows
    members: Grouping  # of each distinct row in rising order


def distinct_rows(rows: Rows, columns: Sequence[str]) -> DistinctRows:
    """The different rows in these columns, by their values as they are stored.

    Of a type that Arrow does not group, equal rows stay apart; so do 0 and -0, null and NaN.
    """
    some, count = rows.select(list(columns)), rows.num_rows
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
    return DistinctRows(some.take(firsts[order]), Grouping(members[places], starts))
