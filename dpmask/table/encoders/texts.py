"""A column's values as texts: those of one block and which row has which, and how often each occurs in a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmask.kernels.arrays import Floats
from dpmask.lake.arrow import array_of, filled, numbers_of, texts_of
from dpmask.lake.reading import Rows
from dpmask.table.columns import whole_array
from dpmask.table.encoders.base import Codes


class TextColumn(NamedTuple):
    """The different values of a block's column, how many rows have each, and which one each row has."""

    values: Any  # an Arrow array; some may belong to no row
    counts: Codes  # one more than values: the last is for missing ones
    places: Codes

    def texts(self, most: int | None = None) -> dict[int, str]:
        """The texts of the values that rows have, by their place; at most so many."""
        used = np.flatnonzero(self.counts[:-1])[:most]
        texts = pc.cast(self.values.take(array_of(used)), pa.string()).to_pylist()
        return {place: text for place, text in zip(used.tolist(), texts, strict=True) if text is not None}

    def lookup(self, function: Callable[[str], Any], missing: Any, kind: type = np.float64) -> Any:
        """For each row what a function makes of its text, computed once for each text."""
        table = np.full((len(self.counts), *np.shape(missing)), missing, kind)
        for place, text in self.texts().items():
            table[place] = function(text)
        return table[self.places]


def text_values(rows: Rows, column: str) -> TextColumn:
    """The values of a block's column, which may be of any type that has texts."""
    array = whole_array(rows.column(column))
    if pa.types.is_null(array.type):
        return TextColumn(texts_of([]), np.array([len(array)]), np.zeros(len(array), np.int64))
    coded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    size = len(coded.dictionary)
    places = numbers_of(filled(pc.cast(coded.indices, pa.int64()), size))
    return TextColumn(coded.dictionary, np.bincount(places, minlength=size + 1), places)


def text_numbers(rows: Rows, column: str, number: Callable[[str], float]) -> Floats:
    """A number for each row, made of its text; NaN where it is missing."""
    return text_values(rows, column).lookup(number, np.nan)


@dataclass(frozen=True)
class TextCounts:
    """How many rows have each text, and how many have none; some of the texts where there are more than ``most``."""

    texts: Counter[str]
    missing: int
    most: int

    @classmethod
    def of(cls, rows: Rows, column: str, *, most: int) -> TextCounts:
        """One block's."""
        found, counts = text_values(rows, column), Counter[str]()
        for place, text in found.texts(most + 1).items():
            counts[text] += int(found.counts[place])
        many = len(counts) > most
        return cls(counts, 0 if many else len(found.places) - counts.total(), most)

    @property
    def many(self) -> bool:
        """Whether there are more different texts than are counted."""
        return len(self.texts) > self.most

    def plus(self, other: TextCounts) -> TextCounts:
        """Both together; where there are too many texts, some are enough to know it."""
        texts = self.texts if self.many else other.texts if other.many else self.texts + other.texts
        return TextCounts(texts, self.missing + other.missing, self.most)
