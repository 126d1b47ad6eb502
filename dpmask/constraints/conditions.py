"""Edit rules with a condition: `if status = single then spouse_wage = 0`, `if age < 15 and sex = man then income = 0`.

The condition compares columns with values, `and` between comparisons; a missing value meets none. The rule after
`then` is a constraint (dpmask.constraints.parser). A name or a value with spaces stands in quotes.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dpmask.constraints.parser import ConstraintError
from dpmask.errors import JobError, nearest
from dpmask.kernels.arrays import Flags
from dpmask.lake.reading import Rows
from dpmask.table.columns import floats, is_numeric
from dpmask.table.encoders.texts import text_values

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_RULE = re.compile(r"\s*if\s(.+?)\sthen\s(.+)", re.IGNORECASE | re.DOTALL)
_QUOTED = r"`[^`]+`|'[^']*'|\"[^\"]*\""
_COMPARISON = re.compile(rf"\s*({_QUOTED}|[^\s=!<>]+)\s*(==|!=|<=|>=|=|<|>)\s*({_QUOTED}|[^\s=!<>]+)\s*")
_AND = re.compile(r"\sand\s", re.IGNORECASE)


class Comparison(NamedTuple):
    """A column compared with a value."""

    column: str
    sign: str
    value: str

    def check(self, schema: Any, text: str) -> None:
        """Refuse a column that is not there, and one without an order where one is asked for."""
        if self.column not in schema.names:
            raise JobError(f"rule '{text}': there is no column '{self.column}'. {nearest(self.column, schema.names)}")
        ordered = is_numeric(schema.field(self.column).type)
        if self.sign not in {"=", "==", "!="} and not ordered:
            raise JobError(f"rule '{text}': column '{self.column}' has no order; compare it by = or !=.")
        if ordered and _number(self.value) is None:
            raise JobError(f"rule '{text}': column '{self.column}' holds numbers; '{self.value}' is none.")

    def holds(self, rows: Rows) -> Flags:
        """Whether it holds for each row."""
        compare = _COMPARE[self.sign]
        if is_numeric(rows.schema.field(self.column).type):
            values = floats(rows, self.column)
            met: Flags = compare(values, _number(self.value)) & ~np.isnan(values)
            return met
        found: Flags = text_values(rows, self.column).lookup(lambda text: compare(text, self.value), False, np.bool_)
        return found


class Rule(NamedTuple):
    """A constraint that holds where all comparisons do."""

    text: str
    comparisons: tuple[Comparison, ...]
    constraint: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the condition reads."""
        return tuple(dict.fromkeys(one.column for one in self.comparisons))

    def applies(self, rows: Rows) -> Flags:
        """The rows that it binds."""
        return np.logical_and.reduce([one.holds(rows) for one in self.comparisons])


def split_rules(texts: Sequence[str]) -> tuple[list[str], list[Rule]]:
    """Plain constraints, and those with a condition."""
    plain, rules = [], []
    for text in texts:
        if isinstance(text, str) and re.match(r"\s*if\s", text, re.IGNORECASE):
            rules.append(_parsed(text))
        else:
            plain.append(text)
    return plain, rules


def _parsed(text: str) -> Rule:
    found = _RULE.fullmatch(text)
    if found is None:
        raise ConstraintError(f"rule '{text}': must read 'if COLUMN = VALUE then CONSTRAINT'")
    comparisons = []
    for part in _AND.split(found[1]):
        one = _COMPARISON.fullmatch(part)
        if one is None:
            raise ConstraintError(f"rule '{text}': '{part.strip()}' must read COLUMN = VALUE, or !=, <, <=, >, >=")
        comparisons.append(Comparison(_unquoted(one[1]), one[2], _unquoted(one[3])))
    return Rule(text, tuple(comparisons), found[2].strip())


def _unquoted(text: str) -> str:
    return text[1:-1] if text[0] in "`'\"" and text[-1] == text[0] else text


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
