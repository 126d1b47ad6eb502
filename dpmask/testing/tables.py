"""What checks of methods and measures need of tables: partitions, comparisons, values to recognise in texts."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd

from dpmask.engine.collection import itself

_DIGITS = 5
"""A number of fewer digits may stand in a text by chance."""
_LETTERS = 4
_FORMS = ("{!s}", "{:.6g}", "{:.8g}", "{:.9g}")


def in_partitions(frame: pd.DataFrame, partitions: int) -> Any:
    """The frame as a Dask frame in so many partitions, and an empty one among them."""
    cuts = [len(frame) * number // partitions for number in range(partitions + 1)]
    pieces = [frame.iloc[low:high] for low, high in pairwise(cuts)]
    pieces.insert(1, frame.iloc[:0])
    return dd.from_map(itself, pieces, meta=frame.iloc[:0])


@contextmanager
def logged(texts: list[str]) -> Iterator[None]:
    """Add to ``texts`` what is logged meanwhile."""
    handler, root = logging.Handler(), logging.getLogger()
    handler.emit = lambda record: texts.append(record.getMessage())  # type: ignore[method-assign]
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


def require_alike(found: pd.DataFrame, expected: pd.DataFrame, tolerance: float = 0.0) -> None:
    """Fail unless two frames have the same index, columns and values, floats to this share of their deviation."""
    assert found.index.equals(expected.index), "the index differs"
    assert list(found.columns) == list(expected.columns), "the columns differ"
    for name in expected.columns:
        assert _alike(found[name], expected[name], tolerance), f"values of '{name}' differ"


def _alike(found: pd.Series, expected: pd.Series, tolerance: float) -> bool:
    if tolerance and pd.api.types.is_float_dtype(expected.dtype):
        left, right = found.to_numpy(float, na_value=np.nan), expected.to_numpy(float, na_value=np.nan)
        scale = float(np.nanstd(right)) if len(right) else 0.0
        return bool(np.allclose(left, right, rtol=tolerance, atol=tolerance * scale, equal_nan=True))
    return _values(found) == _values(expected)


def _values(column: pd.Series) -> list[Any]:
    return [None if missing else value for value, missing in zip(column.tolist(), column.isna(), strict=True)]


class Recognisable:
    """The values of a table that nobody would write by chance: long numbers, and words that are not in ``known``."""

    def __init__(self, frame: pd.DataFrame, known: str) -> None:
        words = {form for name in frame.columns for value in frame[name].dropna().unique() for form in _forms(value)}
        self._words = words - _words(known) - {str(name) for name in frame.columns}

    def found_in(self, text: str) -> bool:
        """Whether a text shows one of them."""
        return not self._words.isdisjoint(_words(text))


def _forms(value: Any) -> Iterator[str]:
    """How a value may be written; nothing where that is too short to be recognised."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, str | int | float | np.number):
        return
    if isinstance(value, str):
        yield from (word for word in _words(value) if len(word) >= _LETTERS)
        return
    for form in _FORMS:
        text = form.format(value)
        if sum(letter.isdigit() for letter in text.split("e")[0]) >= _DIGITS:
            yield text.lstrip("-")


def _words(text: str) -> set[str]:
    """The words and numbers of a text, without the marks around them."""
    return {word.strip(".") for word in re.findall(r"[\w.]+(?:e[+-]\d+)?", text)}
