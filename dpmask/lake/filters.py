"""Row filters: `year = 2026 and region in ('north', 'south')`.

Columns are compared with values, with `and` between comparisons; a missing value, NaN too, meets none of them. A name
or a value with spaces stands in quotes. Values are read in the type of their column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from dpmask.errors import JobError, nearest, printable

_COMPARE = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_QUOTED = r"`[^`]+`|'[^']*'|\"[^\"]*\""
_WORD = rf"(?:{_QUOTED}|[^\s=!<>`'\"(),]+)"
_COMPARISON = re.compile(
    rf"\s*({_QUOTED}|[^\s=!<>]+?)\s*(?:(==|!=|<=|>=|=|<|>)\s*({_QUOTED}|[^\s=!<>]+)"
    rf"|(?<=[\s`'\"])(in)\s*\(\s*({_WORD}(?:\s*,\s*{_WORD})*)\s*\))\s*",
    re.IGNORECASE,
)
_AND = re.compile(r"(?<=[\s)`'\"])and\s", re.IGNORECASE)
_MOST_DIGITS = 300
_FORM = "must read COLUMN = VALUE, or !=, <, <=, >, >=, or COLUMN in (VALUE, ...)"


class Comparison(NamedTuple):
    """A column compared with a value; by ``in``, with several."""

    column: str
    sign: str
    values: tuple[str, ...]

    def check(self, schema: Any, who: str) -> None:
        """Refuse a column that is not there, and a value that its type does not have."""
        if self.column not in schema.names:
            raise JobError(f"{who}: there is no column '{self.column}'. {nearest(self.column, schema.names)}")
        kind = _plain(schema.field(self.column).type)
        for value in self.values:
            if _typed(kind, value) is None:
                what = "holds numbers" if _is_number(kind) else f"is {kind}"
                text = f"column '{self.column}' {what}; it cannot be compared with '{printable(value, 80)}'."
                raise JobError(f"{who}: {text}")

    def holds(self, values: Any) -> Any:
        """Whether it holds for each value of the column: flags without nulls."""
        kind = _plain(values.type)
        if pa.types.is_null(kind):
            return pa.repeat(pa.scalar(False), len(values))
        values = values if values.type == kind else values.cast(kind)
        if self.sign == "in":
            return reduce(pc.or_, (Comparison(self.column, "=", (one,)).holds(values) for one in self.values))
        value = _typed(kind, self.values[0])
        compared = values if value.type == kind else pc.cast(values, value.type, safe=False)
        met = _COMPARE[self.sign](compared, value)
        if pa.types.is_floating(kind):
            met = pc.and_(met, pc.invert(pc.is_nan(compared)))
        return pc.fill_null(met, False)

    def by_range(self, low: Any, high: Any, kind: Any) -> bool | None:
        """Whether it holds for all values from low to high, or for none; None if for some, or if that is not known."""
        if self.sign == "in":
            found = [Comparison(self.column, "=", (one,)).by_range(low, high, kind) for one in self.values]
            return True if True in found else False if set(found) == {False} else None
        if self.sign == "!=":
            same = self._replace(sign="=").by_range(low, high, kind)
            return None if same is None else not same
        if self.sign == "=":
            if not self._replace(sign="<=")._at(low, kind) or not self._replace(sign=">=")._at(high, kind):
                return False
            return True if self._at(low, kind) and self._at(high, kind) else None
        both = {self._at(low, kind), self._at(high, kind)}
        return both.pop() if len(both) == 1 else None

    def _at(self, value: Any, kind: Any) -> bool:
        return bool(self.holds(pa.array([value], _plain(kind)))[0].as_py())


class RowFilter(NamedTuple):
    """Comparisons that all hold for the rows that are taken."""

    text: str
    comparisons: tuple[Comparison, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return tuple(dict.fromkeys(one.column for one in self.comparisons))

    def check(self, schema: Any) -> None:
        """Refuse columns that are not there, and values that their types do not have."""
        for one in self.comparisons:
            one.check(schema, f"where {printable(self.text, 200)}")

    def holds(self, columns: Any) -> Any:
        """Whether each row is taken, by its columns: flags without nulls."""
        return reduce(pc.and_, (one.holds(columns[one.column]) for one in self.comparisons))

    def of_folders(self, kinds: Mapping[str, Any], folders: Sequence[Mapping[str, str | None]]) -> list[bool]:
        """Of the folders of files, by keys and values, those that may hold rows to take."""
        found = [True] * len(folders)
        for one in self.comparisons:
            if one.column in kinds:
                one.check(pa.schema([(one.column, kinds[one.column])]), f"where {printable(self.text, 200)}")
                values = pa.array([folder.get(one.column) for folder in folders], pa.string()).cast(kinds[one.column])
                found = [both and met for both, met in zip(found, one.holds(values).to_pylist(), strict=True)]
        return found


def row_filter(text: str) -> RowFilter:
    """What a text says of rows."""
    return RowFilter(text, comparisons(text))


def comparisons(text: str) -> tuple[Comparison, ...]:
    """The comparisons of a text, with `and` between them."""
    found, start = [], 0
    while True:
        one = _COMPARISON.match(text, start)
        more = one and _AND.match(text, one.end())
        if one is None or not (more or one.end() == len(text)):
            raise JobError(f"'{printable(text[start:].strip(), 200)}' {_FORM}.")
        values = re.findall(_WORD, one[5]) if one[4] else [one[3]]
        sign = "in" if one[4] else one[2].replace("==", "=")
        found.append(Comparison(_unquoted(one[1]), sign, tuple(map(_unquoted, values))))
        if not more:
            return tuple(found)
        start = more.end()


def _unquoted(text: str) -> str:
    return text[1:-1] if text[0] in "`'\"" and text[-1] == text[0] else text


def _plain(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _typed(kind: Any, text: str) -> Any:
    """The value that a text names, in the type in which it is compared; None if it names none."""
    if pa.types.is_null(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.scalar(text, pa.string() if pa.types.is_null(kind) else kind)
    if pa.types.is_boolean(kind):
        flag = {"true": True, "false": False}.get(text.lower())
        return None if flag is None else pa.scalar(flag)
    if _is_number(kind):
        return _number(kind, text)
    return _moment(kind, text) if pa.types.is_temporal(kind) else None


def _number(kind: Any, text: str) -> Any:
    """In the type itself where it has the value exactly, else as a double."""
    try:
        exact = Decimal(text)
        if not exact.is_finite() or exact.adjusted() > _MOST_DIGITS:
            return None
        if pa.types.is_floating(kind):
            return pa.scalar(float(exact), pa.float64())
        if pa.types.is_decimal(kind) or exact == int(exact):
            return pa.scalar(exact if pa.types.is_decimal(kind) else int(exact), kind)
    except InvalidOperation:
        return None
    except (pa.ArrowException, OverflowError, ValueError):
        pass
    return pa.scalar(float(exact), pa.float64())


def _moment(kind: Any, text: str) -> Any:
    zone = kind.tz if pa.types.is_timestamp(kind) else None
    try:
        return pa.scalar(text).cast(kind)
    except (pa.ArrowException, ValueError):
        if zone is None:
            return None
    try:
        return pc.assume_timezone(pa.scalar(text).cast(pa.timestamp(kind.unit)), zone)
    except (pa.ArrowException, ValueError):
        return None
