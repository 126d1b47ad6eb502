"""Several measures of information loss from passes they share: at most four over both tables, however many measures.

Distances between records take a fifth, over the pairs, where tables are frames or the masked one lost records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from operator import or_
from typing import Any, Protocol

from dpmask import registry
from dpmask.errors import JobError, nearest
from dpmask.measures import measure_function
from dpmask.measures.utility.summary import Need, Summary, summarised

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


class Asked(Protocol):
    """A measure that somebody asks for: what the result is called, the measure, and its parameters."""

    @property
    def name(self) -> str:
        """What the result is called."""

    @property
    def measure(self) -> str:
        """The measure."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Its parameters."""


def groups_of(asked: Sequence[Asked], is_numeric: Callable[[str], bool]) -> list[list[Asked]]:
    """Those measures that are better taken together: of the same columns, two or more, all of which they take."""
    groups: dict[tuple[str, ...], list[Asked]] = {}
    for one in asked:
        columns = tuple(one.parameters.get("columns", ()))
        if one.measure in SHARED and (_takes_categories(one.measure) or all(map(is_numeric, columns))):
            groups.setdefault(columns, []).append(one)
    return [group for group in groups.values() if len(group) > 1]


def needs_of(measures: Iterable[str]) -> Need:
    """What measures that share passes need of the tables, all together."""
    return reduce(or_, (_module(name).NEEDS for name in measures))


def take_together(original: Any, masked: Any, group: Sequence[Asked], who: str) -> dict[str, Callable[[], Any]]:
    """What gives each measure of a group, from passes they share: the same as it would be alone."""
    columns = group[0].parameters["columns"]
    found = summarised(original, masked, columns, needs_of(one.measure for one in group), who)
    return {one.name: partial(_module(one.measure).result, found, **_others(one)) for one in group}


def _others(asked: Asked) -> dict[str, Any]:
    return {name: value for name, value in asked.parameters.items() if name != "columns"}


def _takes_categories(measure: str) -> bool:
    return bool(_module(measure).NEEDS & _TAKE_CATEGORIES)


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
    found = summarised(original, masked, columns, needs_of(names), _WHO)
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
    least = 0 if _takes_categories(name) else getattr(_module(name), "LEAST_COLUMNS", 1)
    return numbers >= least


def _module(name: str) -> Any:
    return registry.module_of(measure_function(name))
