"""Membership transforms: every value is replaced by its fuzzy membership, a number from 0 to 1.

S rises from 0 at the smallest value a to 1 at the largest b, Z = 1 - S falls; the triangular function rises to a peak
and falls again; the Gaussian one falls on both sides of the mean. a, b, the mean (which is the peak, too) and the
standard deviation are the column's own, or given as ``bounds``.

Protects against: reading off a value, as long as nobody knows the bounds. Nothing else: S and Z are undone exactly by
who knows a and b, or two people's values; triangular and Gaussian but for the side of the peak. Order and outliers stay
visible. A rotation afterwards (the paper's hybrid) falls to the same intruder: measure ``known_records``.

Paper: Ahmad, Haque and Tauhid 2014. The masked columns are doubles; missing values stay missing. Passes over the data:
one for the bounds, one to mask. Memory per task: one block and three columns of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.draws import Subkey, make_key
from dpmask.errors import JobError, nearest
from dpmask.kernels.membership import gaussian, s_shape, triangular, z_shape
from dpmask.kernels.moments import Moments, column_moments, merge_moments
from dpmask.lake.reading import Rows
from dpmask.masking.draw_purpose import told_apart
from dpmask.masking.fitted import FittedColumns
from dpmask.parameters import require_choice, require_columns
from dpmask.table import table as tables
from dpmask.table.checks import require_spread, require_spread_by_footers
from dpmask.table.columns import as_floats, float_schema, floats, require_numeric, room

_WHO = "MembershipTransform"
_SHAPES: dict[str, Callable[..., NDArray[np.float64]]] = {
    "s": s_shape,
    "z": z_shape,
    "triangular": triangular,
    "gaussian": gaussian,
}
_LIMITS = {
    "s": "[low, high], low < high",
    "z": "[low, high], low < high",
    "triangular": "[low, peak, high], low < peak < high",
    "gaussian": "[mean, standard deviation], the latter > 0",
}
_TOLD = {
    "s": "an S-shaped fuzzy set. The order of the values is kept, distances are not.",
    "z": "a Z-shaped fuzzy set. The order of the values is reversed, and distances are not kept.",
    "triangular": "a triangular fuzzy set. Neither the order of the values nor distances are kept.",
    "gaussian": "a Gaussian fuzzy set. Neither the order of the values nor distances are kept.",
}
_INVERTIBLE = ("s", "z")


@dataclass(frozen=True, kw_only=True)
class MembershipTransform:
    """Values replaced by memberships; ``function`` is "s", "z", "triangular" or "gaussian".

    ``bounds`` gives columns their [low, high], for triangular [low, peak, high], for gaussian [mean, standard
    deviation]. Columns without take them from the data: least, mean and largest value, standard deviation.
    """

    columns: tuple[str, ...]
    function: str
    bounds: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    passes: ClassVar[int] = 1
    judged: ClassVar[tuple[str, ...]] = ()
    withheld: ClassVar[tuple[str, ...]] = ("bounds",)
    """Parameters that undo the masking: they stay out of the manifest."""
    undone_by: ClassVar[str] = "known_records"
    """The measure of an attack that undoes it: a job that does not take it is warned."""

    @property
    def masks(self) -> tuple[str, ...]:
        """The columns it masks."""
        return self.columns

    def __post_init__(self) -> None:
        require_columns(self, "columns")
        require_choice(self, "function", tuple(_SHAPES))
        if not isinstance(self.bounds, Mapping):
            raise JobError(f"{_WHO}: bounds must name columns, such as {{age: [0, 120]}}; got {self.bounds!r}.")
        for column, given in self.bounds.items():
            if column not in self.columns:
                raise JobError(f"{_WHO}: bounds speak of '{column}'. {nearest(str(column), self.columns)}")
            self._require_bounds(column, given)
        object.__setattr__(self, "bounds", {name: tuple(map(float, given)) for name, given in self.bounds.items()})

    def _require_bounds(self, column: str, given: Any) -> None:
        wanted = 3 if self.function == "triangular" else 2
        try:
            numbers = np.array([float(one) for one in given])
        except (TypeError, ValueError):
            numbers = np.empty(0)
        rising = numbers[1:] > (0.0 if self.function == "gaussian" else numbers[:-1])
        if len(numbers) != wanted or not np.isfinite(numbers).all() or not rising.all():
            raise JobError(f"{_WHO}: bounds of '{column}' must be {_LIMITS[self.function]}; got {given!r}.")

    def work(self, rows: int) -> float:
        """CPU seconds beyond reading the table: none to speak of."""
        return 0.0

    def masked_schema(self, schema: Any) -> Any:
        """Memberships are doubles."""
        return float_schema(schema, self.columns)

    def check(self, table: tables.Table) -> None:
        """Refuse a table whose schema or footers do not fit, before anything is read."""
        require_numeric(table.masked_schema, self.columns, _WHO)
        require_spread_by_footers(table, self.columns, _WHO)

    def fit(
        self, table: Any, *, key: str | bytes | Subkey | None = None, seed: int | None = None
    ) -> FittedMembershipTransform:
        """Learn the bounds that are not given, in one pass. The key only marks the release: nothing is drawn."""
        source = tables.as_table(table, _WHO)
        secret = make_key(_WHO, key=key, seed=seed)
        self.check(source)
        seen = source.reduce(self.columns, column_moments, merge_moments, "membership: bounds")
        require_spread(seen, self.columns, _WHO)
        told = told_apart(source, self.columns, seen.values, seen.low, seen.high)
        fitted = FittedMembershipTransform(
            self,
            {name: self.bounds.get(name) or self._own(seen, number) for number, name in enumerate(self.columns)},
            tuple(name for number, name in enumerate(self.columns) if self._outside(seen, number, name)),
            secret.subkey(f"membership {self.function} {told}"),
        )
        for warning in fitted.warnings():
            warnings.warn(warning, stacklevel=2)
        return fitted

    def _own(self, seen: Moments, number: int) -> tuple[float, ...]:
        """A column's own bounds."""
        low, mean, high = (float(part[number]) for part in (seen.low, seen.mean, seen.high))
        if self.function == "gaussian":
            return mean, float(seen.sd[number])
        return (low, mean, high) if self.function == "triangular" else (low, high)

    def _outside(self, seen: Moments, number: int, name: str) -> bool:
        """Whether a column has values beyond the bounds that it was given."""
        given = self.bounds.get(name)
        if given is None or self.function == "gaussian":
            return False
        return bool(seen.low[number] < given[0] or seen.high[number] > given[-1])


@dataclass(frozen=True)
class FittedMembershipTransform(FittedColumns):
    """Memberships ready to be taken: the bounds of each column. These are extremes of real people, and private."""

    method: MembershipTransform
    bounds: Mapping[str, tuple[float, ...]] = field(repr=False)
    outside: tuple[str, ...]
    key: Subkey

    who: ClassVar[str] = _WHO

    def mask_rows(self, rows: Rows, first: int) -> Rows:
        """One block with memberships."""
        shape = _SHAPES[self.method.function]
        for column, bounds in self.bounds.items():
            rows = as_floats(rows, column, shape(floats(rows, column), *bounds, room(rows.num_rows)))
        return rows

    def masked_schema(self, schema: Any) -> Any:
        """Memberships are doubles."""
        return self.method.masked_schema(schema)

    def statement(self) -> str:
        """What a reader of the release may know."""
        return (
            f"The values of {', '.join(self.method.columns)} were replaced by their membership, a number from 0 to 1, "
            f"in {_TOLD[self.method.function]} Its bounds are not published."
        )

    def warnings(self) -> list[str]:
        """Columns whose values do not all lie within the bounds they were given."""
        return [
            f"{_WHO}: '{column}' has values outside its bounds; they share a membership of 0 or 1. Widen the bounds, "
            "if that is not meant."
            for column in self.outside
        ]

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        undone = (
            "S and Z are undone exactly by who knows the bounds, or any two people's values of a column: known_records "
            "measures it."
            if self.method.function in _INVERTIBLE
            else "Who knows the bounds, or a few people's values, undoes the transform but for the side of the peak."
        )
        return [
            undone,
            "Equal values have equal memberships, and extremes stay extremes: records can be linked by them.",
            *self.warnings(),
        ]
