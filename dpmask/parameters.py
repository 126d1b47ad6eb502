"""Checks that parameter classes make of themselves, all in one form of words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

from dpmask.errors import JobError

if TYPE_CHECKING:
    Names = Sequence[str]
    NameLists = Sequence[Sequence[str]]
    Several = Sequence[Any]
    SeveralLists = Sequence[Sequence[Any]]
    Bounds = Mapping[str, Sequence[float | None]]
    NumberLists = Mapping[str, Sequence[float]]
else:  # parameters may be given as lists, too; they are kept, and a job's are checked, as tuples
    Names = tuple[str, ...]
    NameLists = tuple[tuple[str, ...], ...]
    Several = tuple[Any, ...]
    SeveralLists = tuple[tuple[Any, ...], ...]
    Bounds = Mapping[str, tuple[float | None, float | None]]
    NumberLists = Mapping[str, tuple[float, ...]]


def _refuse(owner: object, name: str, expected: str, found: object) -> JobError:
    return JobError(f"{type(owner).__name__}: {name} must be {expected}; got {found!r}.")


def require_number(
    owner: Any, name: str, *, above: float | None = None, at_least: float | None = None, at_most: float = math.inf
) -> None:
    """Refuse ``owner.name`` unless it is a finite number in the given range."""
    value = getattr(owner, name)
    number = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    low = (above is None or value > above) and (at_least is None or value >= at_least) if number else False
    if not (number and low and value <= at_most):
        limits = [("> ", above), (">= ", at_least), ("<= ", at_most if at_most < math.inf else None)]
        expected = " and ".join(f"{sign}{limit:g}" for sign, limit in limits if limit is not None)
        raise _refuse(owner, name, f"a number {expected}".strip(), value)


def require_integer(owner: Any, name: str, *, at_least: int) -> None:
    """Refuse ``owner.name`` unless it is an integer of at least this."""
    value = getattr(owner, name)
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise _refuse(owner, name, f"an integer >= {at_least}", value)


def require_choice(owner: Any, name: str, choices: Sequence[str]) -> None:
    """Refuse ``owner.name`` unless it is one of these."""
    if getattr(owner, name) not in choices:
        raise _refuse(owner, name, " or ".join(repr(choice) for choice in choices), getattr(owner, name))


def require_columns(owner: Any, name: str) -> None:
    """Refuse ``owner.name`` unless it is one or more different column names; they are kept as a tuple."""
    value = getattr(owner, name)
    if isinstance(value, str) or not isinstance(value, list | tuple) or not value:
        raise _refuse(owner, name, "a list of one or more column names", value)
    if not all(isinstance(column, str) for column in value):
        raise _refuse(owner, name, "a list of names", value)
    twice = sorted({column for column in value if value.count(column) > 1})
    if twice:
        raise _refuse(owner, name, "a list of different columns", f"{', '.join(twice)} twice")
    object.__setattr__(owner, name, tuple(value))


def require_texts(owner: Any, name: str) -> None:
    """Keep ``owner.name`` as a tuple; a single text stands for itself."""
    value = getattr(owner, name)
    object.__setattr__(owner, name, (value,) if isinstance(value, str) else tuple(value))


def require_flag(owner: Any, name: str) -> None:
    """Refuse ``owner.name`` unless it is true or false."""
    if not isinstance(getattr(owner, name), bool):
        raise _refuse(owner, name, "true or false", getattr(owner, name))
