"""Checks that parameter classes make of themselves, all in one form of words."""

from __future__ import annotations

import math
from typing import Any

from dpmask.errors import JobError


def _refuse(owner: object, name: str, expected: str, found: object) -> JobError:
    return JobError(f"{type(owner).__name__}: {name} must be {expected}; got {found!r}.")


def require_number(owner: Any, name: str, *, above: float = -math.inf, at_most: float = math.inf) -> None:
    """Hold ``owner.name`` to a finite number in (above, at_most]."""
    value = getattr(owner, name)
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not (number and above < value <= at_most):
        limits = [f"> {above:g}"] * (above > -math.inf) + [f"<= {at_most:g}"] * (at_most < math.inf)
        raise _refuse(owner, name, " ".join(["a number", " and ".join(limits)]).strip(), value)


def require_columns(owner: Any, name: str) -> None:
    """Hold ``owner.name`` to one or more different column names, kept as a tuple."""
    value = getattr(owner, name)
    if isinstance(value, str) or not isinstance(value, list | tuple) or not value:
        raise _refuse(owner, name, "a list of one or more column names", value)
    if not all(isinstance(column, str) for column in value):
        raise _refuse(owner, name, "a list of names", value)
    twice = sorted({column for column in value if value.count(column) > 1})
    if twice:
        raise _refuse(owner, name, "a list of different columns", f"{', '.join(twice)} twice")
    object.__setattr__(owner, name, tuple(value))


def require_flag(owner: Any, name: str) -> None:
    """Hold ``owner.name`` to true or false."""
    if not isinstance(getattr(owner, name), bool):
        raise _refuse(owner, name, "true or false", getattr(owner, name))
