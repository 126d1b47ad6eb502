"""Keys of a block's rows, from columns of any type: what groups and joins are made by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpmask.errors import JobError
from dpmask.kernels.arrays import Words
from dpmask.kernels.keys import RowKeys, float_words, new_keys, with_word
from dpmask.lake.arrow import array_of, filled, numbers_of
from dpmask.lake.reading import Rows
from dpmask.table.columns import floats, is_nested, require_known
from dpmask.table.encoders.texts import text_values

_LOOK = 1 << 14
"""Rows that are looked at first: where these differ, all do."""
_REPEATED = 4
"""Rows for each combination of values, at least, for keys to be computed once for each."""


def require_groupable(schema: Any, columns: Iterable[str], who: str) -> None:
    """Refuse a column that is not there, or of a type whose values cannot be distinguished here."""
    columns = list(columns)
    require_known(schema, columns, who)
    for column in columns:
        kind = schema.field(column).type
        if is_nested(kind):
            raise JobError(f"{who}: column '{column}' is {kind}; records are not grouped by that. Take it out.")


def row_keys(rows: Rows, columns: Sequence[str]) -> RowKeys:
    """A key for each row's values in these columns. 1 and 1.0 are equal, -0.0 and 0.0 too; missing equals missing.

    Where few rows of texts differ, each different one has its key computed once.
    """
    few = _few_different(rows, columns)
    if few is None:
        return _keys(rows, columns)
    examples, numbers = few
    return _keys(rows.select(list(columns)).take(array_of(examples)), columns).at(numbers)


def _few_different(rows: Rows, columns: Sequence[str]) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    """A row for each different one, and for every row the number of its own; None if they may be many."""
    kinds = [rows.schema.field(column).type for column in columns]
    if not kinds or not all(pa.types.is_dictionary(kind) or pa.types.is_string(kind) for kind in kinds):
        return None
    for some in (rows.slice(0, _LOOK), rows):
        numbers, most, count = np.zeros(some.num_rows, np.intp), some.num_rows // _REPEATED, 1
        for column in columns:
            found = text_values(some, column)
            count *= len(found.counts)
            if count > most:
                return None
            numbers *= len(found.counts)
            numbers += found.places
    example = np.full(count, -1, np.intp)
    example[numbers] = np.arange(len(numbers))
    there = example >= 0
    return example[there], (np.cumsum(there) - 1)[numbers]


def _keys(rows: Rows, columns: Sequence[str]) -> RowKeys:
    keys = new_keys(rows.num_rows)
    for column in columns:
        found, absent = column_words(rows, column)
        for words in found:
            keys = with_word(keys, words, absent)
    return keys


def column_words(rows: Rows, column: str) -> tuple[list[Words], NDArray[np.bool_] | None]:
    """One or more words for each value of a column, the same for the same value, and where it is missing, if it is."""
    if pa.types.is_floating(rows.schema.field(column).type):
        values = floats(rows, column)
        absent = np.isnan(values)
        return [float_words(values)], absent if absent.any() else None
    array = rows.column(column).combine_chunks()
    return _words(array), missing(rows, column) if array.null_count else None


def missing(rows: Rows, column: str) -> NDArray[np.bool_]:
    """Where a column has no value."""
    return _integer_words(rows.column(column).combine_chunks().is_null()).astype(np.bool_)


def _words(array: Any) -> list[Words]:
    """One or more words for each value, the same for the same value; anything where it is missing."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _taken(_words(array.dictionary), array.indices)
    if pa.types.is_decimal(kind):
        return _decimal_words(array)
    if pa.types.is_null(kind):
        return [np.zeros(len(array), np.uint64)]
    if pa.types.is_primitive(kind):
        return [_integer_words(array)]
    coded = array.dictionary_encode()
    texts = coded.dictionary.cast(pa.large_binary())
    ends = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset :][: len(texts) + 1].tolist()
    data = memoryview(texts.buffers()[2] or b"")
    digests = [blake2b(data[start:end], digest_size=16).digest() for start, end in pairwise(ends)]
    pairs = np.frombuffer(b"".join(digests), np.uint64).reshape(-1, 2)
    return _taken([pairs[:, 0], pairs[:, 1]], coded.indices)


def _integer_words(array: Any) -> Words:
    kind = array.type
    if pa.types.is_boolean(kind):
        array = pc.cast(array, pa.uint8())
    elif not pa.types.is_integer(kind):
        array = array.view(pa.int64() if kind.bit_width == 64 else pa.int32())  # noqa: PLR2004
    return numbers_of(filled(array, 0)).astype(np.int64, copy=False).view(np.uint64)


def _decimal_words(array: Any) -> list[Words]:
    """The digits as they are stored: two words for 38 of them, four for more."""
    if array.type.bit_width < 128:  # noqa: PLR2004
        array = array.cast(pa.decimal128(38, array.type.scale))
    width = array.type.bit_width // 64
    stored = np.frombuffer(array.buffers()[1], np.uint64)
    pieces = stored[width * array.offset : width * (array.offset + len(array))].reshape(-1, width)
    return [np.ascontiguousarray(pieces[:, number]) for number in range(width)]


def _taken(words: list[Words], indices: Any) -> list[Words]:
    codes = _integer_words(indices).astype(np.intp)
    return [one[codes] if len(one) else np.zeros(len(codes), np.uint64) for one in words]
