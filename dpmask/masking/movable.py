"""What of a method's parameters may be moved: by the explorer's sliders, and by a sweep that is given no ``--over``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple


class Trial(NamedTuple):
    """Why a sweep tries a parameter by itself."""

    why: str
    values: Sequence[Any] = ()
    """What it tries beside the job's own value; by default multiples of that."""
    least: float = 0
    """The least of these multiples, where the range begins below it."""


GROUP_SIZE = Trial("k sets the risk: larger groups link less and lose more", least=2)
"""Of methods that make groups of at least k records."""


class ParameterRange(NamedTuple):
    """Where a number begins and may end, and what it is a number of."""

    low: float = 0
    high: float = math.inf
    whole: bool = False
    counts: Literal["", "records", "groups"] = ""
    """What it counts, if a sample must have fewer: records of a group, or groups of records."""
    trial: Trial | None = None
    """If a sweep tries it by itself."""
    of_first_step: bool = False
    """Whether only the first step of a job may have it."""


class Movable(NamedTuple):
    """A parameter that may be moved: where it is in its step, what it is called, and its value."""

    path: tuple[str | int, ...]
    label: str
    value: Any
    range: ParameterRange = ParameterRange()
    choices: tuple[str, ...] = ()
    """What else it may be, if it is no number."""


def movable_numbers(given: Mapping[str, Any], ranges: Mapping[str, ParameterRange]) -> Iterator[Movable]:
    """Each number of a step, those with a range first; without one it begins at 0, whole if it is written so."""
    for name in dict.fromkeys([*ranges, *given]):
        value = given.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            found = ranges.get(name, ParameterRange(whole=isinstance(value, int)))
            yield Movable((name,), name.replace("_", " "), value, found)
