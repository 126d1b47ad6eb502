"""The digits of a public number: no more than one record's change would leave as they are.

A number of a loss is rounded to a power of ten that is at least 50 times what one record typically moves it by (a share
of 1 / rows, unless its result says otherwise), of a scale of 1 or of the number's own size, whichever is larger; and to
two digits. The power of ten is also at least half the share that the farthest record has in the variance of a column:
had it a value 10 % larger or smaller, that share would change by about a fifth (1.1^2 - 1), less than half a step. A
number that keeps no digit is not shown. So an intruder who has the release with a person and the one without learns
nothing exact of that person. Counts and what a job says stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

from dpmask.results import Loss

_RECORDS = 50
"""How many records' change a public number does not show."""
_OF_LEVERAGE = 0.5
"""The least step, as a part of the share that the farthest record has."""
_DIGITS = 2
_LARGEST = 300

AnyLoss = TypeVar("AnyLoss", bound=Loss)


def public_number(value: float, one_record: float, records: int = _RECORDS, digits: int = _DIGITS) -> float:
    """A number with the digits that may be public, if one record may move it by ``one_record`` of its scale."""
    if not math.isfinite(value):
        return value
    size = math.ceil(math.log10(abs(value))) if value else 0
    step = max(_exponent(one_record * records) + max(size, 0), size - digits)
    return float(f"{round(value * 10.0**-step)}e{step}") if step < _LARGEST else 0.0


def _exponent(share: float) -> int:
    """The power of ten at or above a share."""
    return math.ceil(math.log10(share) - 1e-9)


def public_loss(found: AnyLoss, rows: int, leverage: float = 0.0) -> AnyLoss | None:
    """A measured loss with all its numbers rounded, so that what it explains is, too; None if one keeps no digit.

    ``leverage`` is the largest share that one record has in the variance of one of its columns.
    """
    rows = found.equal_records(rows)
    if found.far_values_weigh and leverage > 0:
        rows = min(rows, int(_RECORDS / (_OF_LEVERAGE * leverage)))
    if any(_exponent(_RECORDS * found.one_record(name, rows)) >= 0 for name in found.judged):
        return None
    rounded = {one.name: _rounded(getattr(found, one.name), found.one_record(one.name, rows)) for one in fields(found)}
    return replace(found, **rounded)


def _rounded(value: Any, one_record: float) -> Any:
    if isinstance(value, float):
        return public_number(value, one_record)
    if isinstance(value, Mapping):
        return {name: _rounded(one, one_record) for name, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_rounded(one, one_record) for one in value)
    return value


def public_share(count: int, total: int) -> float:
    """A share of released records, which anybody can count: to one record."""
    return public_number(count / total, 1 / total, records=1, digits=6) if total else 0.0
