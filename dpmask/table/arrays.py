"""A table of what was computed: one column of words, as texts, and columns of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

import pyarrow as pa

from dpmask.engine.collection import Collection
from dpmask.engine.tasks import Block
from dpmask.kernels.arrays import Floats, Words
from dpmask.lake.reading import Rows
from dpmask.table.table import Table

Values = Callable[[Any], tuple[Words, Floats]]
"""A word for each row of a content, and its numbers (columns x rows), NaN where missing."""


def table_of_arrays(contents: Collection[Any], rows: Sequence[int], names: Sequence[str], values: Values) -> Table:
    """The table whose blocks are these contents, of so many rows; its first column has the words."""
    made = contents.as_contents(partial(_Arrays, tuple(names), values))
    blocks = [Block(*one) for one in zip([0, *accumulate(rows)], rows, made, strict=False)]
    kinds = [pa.string(), *([pa.float64()] * (len(names) - 1))]
    return Table(pa.schema(list(zip(names, kinds, strict=True))), tuple(blocks), frozenset(names))


@dataclass(frozen=True, repr=False)
class _Arrays:
    """A block of them. Its repr shows none."""

    names: tuple[str, ...]
    values: Values
    content: Any

    def read(self, columns: Sequence[str]) -> Rows:
        words, numbers = self.values(self.content)
        arrays = [pa.array(words).cast(pa.string()), *(pa.array(one, from_pandas=True) for one in numbers)]
        return pa.table(dict(zip(self.names, arrays, strict=True))).select(list(columns))
