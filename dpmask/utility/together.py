"""Several measures of information loss from passes they share: at most four over both tables, however many measures."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

from dpmask.errors import JobError, nearest
from dpmask.utility import measure_function
from dpmask.utility.summary import Need, Summary, summarised

_WHO = "summarise"
SHARED = (
    "il1s",
    "probabilistic_information_loss",
    "moments",
    "correlations",
    "kolmogorov_smirnov",
    "total_variation",
    "hellinger",
)
"""The measures that share passes."""
_TAKE_CATEGORIES = Need.BINS


class Measured(Mapping[str, Any]):
    """Measures by name. Each is worked out when it is asked for, and may then refuse the columns by an error."""

    def __init__(self, found: Summary, names: Sequence[str]) -> None:
        self._found, self._names = found, tuple(names)

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        return _module(name).result(self._found)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def summarise(original: Any, masked: Any, *, columns: Sequence[str], measures: Sequence[str] | None = None) -> Measured:
    """The measures, all unless some are named, of two tables paired by index or position.

    Columns may be numbers or categories; measures that take numbers only see the numbers among them.
    """
    names = _known(measures)
    needs = reduce(or_, (_module(name).NEEDS for name in names))
    found = summarised(original, masked, columns, needs, _WHO)
    if measures is None:
        names = [name for name in names if _fits(name, len(found.numbers))]
    return Measured(found, names)


def _known(measures: Sequence[str] | None) -> list[str]:
    names = list(SHARED if measures is None else measures)
    if not names:
        raise JobError(f"{_WHO}: measures must name one or more of {', '.join(SHARED)}; got none.")
    for name in names:
        if name not in SHARED:
            raise JobError(f"{_WHO}: '{name}' shares no passes with others. {nearest(name, SHARED)}")
    return names


def _fits(name: str, numbers: int) -> bool:
    """Whether there are enough numbers for a measure."""
    least = 0 if _module(name).NEEDS & _TAKE_CATEGORIES else getattr(_module(name), "LEAST_COLUMNS", 1)
    return numbers >= least


def _module(name: str) -> Any:
    return sys.modules[measure_function(name).__module__]
