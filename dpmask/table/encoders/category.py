"""Small codes for the values of columns that are masked.

Taxonomies by their leaves, other categories by value, numbers and dates in order. A missing value is a value of its own
and has the last code.

Two passes at most find the codes: one over all columns for the values that occur, and, for numbers with more than
65,000 different ones, those of exact quantiles, at which alone such a column is cut then.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpmask.engine.passes import Span
from dpmask.errors import InputError, JobError
from dpmask.lake.reading import Rows
from dpmask.table.columns import Floats, floats, is_numeric, numbers_of_texts
from dpmask.table.quantiles import order_statistics
from dpmask.table.table import Table
from dpmask.table.taxonomy import Branch

Codes = NDArray[np.uint16]

MOST_CODES = 65_000
_QUANTILES = 4096
_SHOWN, _SHOWN_FROM = 5, 10
_EPOCH = datetime.date(1970, 1, 1)
_INTERVAL = re.compile(r"\[([^,\[\]()]+), ([^,\[\]()]+)\)")


def is_date(kind: Any) -> bool:
    """Whether values of a type are days, or moments, which are taken by their day."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def is_ordered(kind: Any) -> bool:
    """Whether a column of this type can be cut into intervals."""
    return is_numeric(kind) or is_date(kind)


def numbers(rows: Rows, column: str) -> Floats:
    """A column of numbers or dates as floats, dates as days since 1970, NaN where missing."""
    kind = rows.schema.field(column).type
    if not is_date(kind):
        return floats(rows, column)
    place = rows.schema.get_field_index(column)
    days = rows.column(place).cast(pa.date32(), safe=False).cast(pa.int32())
    return floats(pa.table({column: days}), column)


def day_number(text: str) -> float:
    """Days since 1970 of a date such as 1985-03-01."""
    return float((datetime.date.fromisoformat(text) - _EPOCH).days)


def day_text(number: float) -> str:
    """The date of a number of days since 1970."""
    return str(_EPOCH + datetime.timedelta(days=int(number)))


def texts_and_places(rows: Rows, column: str) -> tuple[list[str | None], NDArray[np.int64]]:
    """The different values of a column as texts, and for each row which it has; a missing one is None, the last."""
    chunked = rows.column(column)
    array = chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks()
    if pa.types.is_null(array.type):
        return [None], np.zeros(len(array), np.int64)
    coded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    size = len(coded.dictionary)
    places = pc.fill_null(pc.cast(coded.indices, pa.int64()), size).to_numpy(zero_copy_only=False)
    texts = pc.cast(coded.dictionary, pa.string()).to_pylist()
    return [*texts, None], places


@dataclass(frozen=True)
class Coding:
    """How one column's values become codes: by ``known`` texts, or by the edges between ordered values."""

    column: str
    known: Mapping[str, int] | None
    edges: Floats | None
    missing: bool

    @property
    def size(self) -> int:
        """How many codes there are."""
        values = len(self.known) if self.known is not None else len(self.edges) + 1  # type: ignore[arg-type]
        return values + self.missing

    def codes(self, rows: Rows) -> NDArray[np.int64]:
        """The code of each row; a text that is not known, or missing where none was, has the code ``size``."""
        if self.known is None:
            assert self.edges is not None
            values = numbers(rows, self.column)
            codes = np.searchsorted(self.edges, values, side="right")
            return np.where(np.isnan(values), self._missing, codes)
        texts, places = texts_and_places(rows, self.column)
        table = [self._missing if text is None else self.known.get(text, self.size) for text in texts]
        return np.array(table, np.int64)[places]

    @property
    def _missing(self) -> int:
        return self.size - 1 if self.missing else self.size


@dataclass(frozen=True)
class Found:
    """What one column holds: texts and how often, or different numbers; how many are missing or where they must not."""

    texts: Counter[str]
    numbers: Floats
    missing: int
    outside: int

    @property
    def many(self) -> bool:
        """More different values than there may be codes."""
        return max(len(self.texts), len(self.numbers)) > MOST_CODES

    def plus(self, other: Found) -> Found:
        """Both together; where there are too many values some are enough to know it."""
        numbers_ = self.numbers if self.many else other.numbers if other.many else _first(self.numbers, other.numbers)
        texts = self.texts if self.many else other.texts if other.many else self.texts + other.texts
        return Found(texts, numbers_, self.missing + other.missing, self.outside + other.outside)


def _first(left: Floats, right: Floats) -> Floats:
    both: Floats = np.union1d(left, right)[: MOST_CODES + 1]
    return both


def find_values(
    table: Table, columns: Sequence[str], domains: Mapping[str, tuple[float, float]], who: str
) -> dict[str, Found]:
    """The values of columns: as numbers where a domain is declared, which they must lie in, otherwise as texts."""
    find = partial(_find, tuple(columns), dict(domains))
    return table.reduce_rows(columns, find, _merge, f"{who}: values")


def _find(
    columns: tuple[str, ...], domains: dict[str, tuple[float, float]], rows: Rows, span: Span
) -> dict[str, Found]:
    found = {}
    for column in columns:
        if column in domains:
            values = numbers(rows, column)
            low, high = domains[column]
            present = values[~np.isnan(values)]
            outside = int(((present < low) | (present >= high)).sum())
            found[column] = Found(Counter(), np.unique(present)[: MOST_CODES + 1], len(values) - len(present), outside)
        else:
            texts, places = texts_and_places(rows, column)
            counts = np.bincount(places, minlength=len(texts)).tolist()
            seen: Counter[str] = Counter()
            for text, count in zip(texts[:-1], counts, strict=False):
                if count and text is not None:
                    seen[text] += count
            found[column] = Found(seen, np.empty(0), len(places) - sum(seen.values()), 0)
    return found


def _merge(left: dict[str, Found], right: dict[str, Found]) -> dict[str, Found]:
    return {column: left[column].plus(right[column]) for column in left}


def tree_coding(column: str, tree: Branch, found: Found, who: str) -> Coding:
    """Codes by the leaves of a taxonomy, which must have all values of the data."""
    known = {value: code for code, value in enumerate(tree.values())}
    lacking = {text: count for text, count in found.texts.items() if text not in known}
    if lacking:
        raise InputError(f"{who}: column '{column}': {told_lacking(lacking)} Add them to the taxonomy.")
    return Coding(column, known, None, found.missing > 0)


def told_lacking(lacking: Mapping[str, int]) -> str:
    """What a taxonomy lacks: values that many records have by name, others by their number only."""
    named = sorted((text for text, count in lacking.items() if count >= _SHOWN_FROM), key=lambda text: -lacking[text])
    shown = ", ".join(f"'{text}' ({lacking[text]} records)" for text in named[:_SHOWN])
    rest = len(lacking) - min(len(named), _SHOWN)
    records = sum(lacking.values()) - sum(lacking[text] for text in named[:_SHOWN])
    others = f"{rest} values in {records} records" if rest else ""
    return f"the taxonomy lacks {' and '.join(part for part in (shown, others) if part)}."


def value_coding(column: str, found: Found, who: str) -> Coding:
    """Codes by value, in the order of the texts."""
    if found.many:
        raise JobError(
            f"{who}: column '{column}' has more than {MOST_CODES} different values, so it tells records apart by "
            "itself. Declare it as an identifier, or give it a domain (a number) or a taxonomy."
        )
    return Coding(column, {text: code for code, text in enumerate(sorted(found.texts))}, None, found.missing > 0)


def number_codings(table: Table, found: Mapping[str, Found], who: str) -> dict[str, Coding]:
    """Codes in order: a code for each value, or for each of many quantiles."""
    for column, one in found.items():
        if one.outside:
            raise InputError(
                f"{who}: column '{column}' has values outside its domain in {one.outside} records. Widen the domain: "
                "[low, high) holds low, but not high."
            )
    many = [column for column, one in found.items() if one.many]
    for column in many:
        if is_date(table.masked_schema.field(column).type):
            raise JobError(f"{who}: column '{column}' has more than {MOST_CODES} different days. Take fewer.")
    ordered = order_statistics(table, many, _ranks, f"{who}: values") if many else []
    edges = {column: _above_first(one.values) for column, one in zip(many, ordered, strict=True)}
    return {
        column: Coding(column, None, edges.get(column, one.numbers[1:]), one.missing > 0)
        for column, one in found.items()
    }


def _ranks(size: int) -> list[int]:
    return [size * number // _QUANTILES for number in range(_QUANTILES)]


def _above_first(values: Floats) -> Floats:
    edges: Floats = np.unique(values[values > values[0]])
    return edges


def middles(rows: Rows, column: str) -> Floats:
    """A column of numbers, dates or interval labels as floats, an interval by its middle; NaN where missing."""
    if is_ordered(rows.schema.field(column).type):
        return numbers(rows, column)
    return numbers_of_texts(rows, column, _middle)


def _middle(text: str) -> float:
    """The middle of an interval such as [20, 40) or [1970-01-01, 1980-01-01)."""
    match = _INTERVAL.fullmatch(text)
    try:
        low, high = (float(end) if _is_number(end) else day_number(end) for end in match.groups()) if match else (0, 0)
    except ValueError:
        match = None
    if match is None:
        raise InputError("A column of interval labels has a text that is none, such as [20, 40). It is withheld.")
    return (low + high) / 2.0


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
