"""Membership transforms: every value is replaced by its fuzzy membership, a number from 0 to 1.

S rises from 0 at the smallest value a to 1 at the largest b, Z = 1 - S falls; the triangular function rises to a peak
and falls again; the Gaussian one falls on both sides of the mean. a, b, the mean (which is the peak, too) and the
standard deviation are the column's own, or given as ``bounds``.

Protects against: reading off a value, as long as nobody knows the bounds. Nothing else: S and Z are undone exactly by
an intruder who knows a and b, or two people's values; triangular and Gaussian but for the side of the peak. Order and
outliers stay visible. A rotation afterwards (the paper's hybrid) falls to the same intruder: measure ``known_records``.

Paper: Ahmad, Haque and Tauhid 2014. The masked columns are doubles; missing values stay missing. Passes over the data:
one for the bounds, one to mask. Memory per task: one block and three columns of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.draws import Subkey
from dpmask.errors import JobError, nearest
from dpmask.kernels.membership import gaussian, s_shape, triangular, z_shape
from dpmask.kernels.moments import Moments
from dpmask.kernels.warm_up import ORDER, KernelUse, Task
from dpmask.lake.reading import Rows, Schema
from dpmask.masking.column_method import ColumnMethod
from dpmask.masking.method import FittedMethod
from dpmask.parameters import Names, NumberLists, require_choice, require_columns
from dpmask.table.columns import as_floats, float_schema, floats, room
from dpmask.table.table import Table

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
_DESCRIPTIONS = {
    "s": "an S-shaped fuzzy set. The order of the values is kept, distances are not.",
    "z": "a Z-shaped fuzzy set. The order of the values is reversed, and distances are not kept.",
    "triangular": "a triangular fuzzy set. Neither the order of the values nor distances are kept.",
    "gaussian": "a Gaussian fuzzy set. Neither the order of the values nor distances are kept.",
}
_INVERTIBLE = ("s", "z")


@dataclass(frozen=True, kw_only=True)
class MembershipTransform(ColumnMethod["FittedMembershipTransform"]):
    """Values replaced by their membership in a fuzzy set, a number from 0 to 1.

    Parameters
    ----------
    columns
        The columns of numbers to mask.
    function
        "s", "z", "triangular" or "gaussian".
    bounds
        For some columns their [low, high], for triangular [low, peak, high], for gaussian [mean, standard deviation].
        The others take them from the data: least, mean and largest value, standard deviation.

    Examples
    --------
    >>> import dpmask, pandas
    >>> people = pandas.DataFrame({"age": [0, 60, 120]})
    >>> method = dpmask.MembershipTransform(columns=["age"], function="s", bounds={"age": [0, 120]})
    >>> method.fit(people, seed=7).mask(people)["age"].tolist()
    [0.0, 0.5, 1.0]

    """

    columns: Names
    function: str
    bounds: NumberLists = field(default_factory=dict)

    withheld: ClassVar[tuple[str, ...]] = ("bounds",)  # they undo the masking

    def __post_init__(self) -> None:
        require_columns(self, "columns")
        require_choice(self, "function", tuple(_SHAPES))
        if not isinstance(self.bounds, Mapping):
            raise JobError(f"{self.who}: bounds must name columns, such as {{age: [0, 120]}}; got {self.bounds!r}.")
        for column, given in self.bounds.items():
            if column not in self.columns:
                raise JobError(f"{self.who}: bounds name '{column}'. {nearest(str(column), self.columns)}")
            self._require_bounds(column, given)
        object.__setattr__(self, "bounds", {name: tuple(map(float, given)) for name, given in self.bounds.items()})

    @property
    def kernels(self) -> KernelUse:
        """What it runs."""
        return KernelUse((Task("membership"),), ORDER.all)

    def _require_bounds(self, column: str, given: Any) -> None:
        wanted = 3 if self.function == "triangular" else 2
        try:
            numbers = np.array([float(one) for one in given])
        except (TypeError, ValueError):
            numbers = np.empty(0)
        rising = numbers[1:] > (0.0 if self.function == "gaussian" else numbers[:-1])
        if len(numbers) != wanted or not np.isfinite(numbers).all() or not rising.all():
            raise JobError(f"{self.who}: bounds of '{column}' must be {_LIMITS[self.function]}; got {given!r}.")

    def masked_schema(self, schema: Schema) -> Schema:
        """Memberships are doubles."""
        return float_schema(schema, self.columns)

    @property
    def draws(self) -> bool:
        """Memberships are functions of the values and their range."""
        return False

    def attacks(self) -> Mapping[str, Mapping[str, Any]]:
        """An intruder who knows some records."""
        return {"known_records": {"columns": list(self.masks)}}

    def fit_table(self, table: Table, key: Subkey) -> FittedMembershipTransform:
        """Learn the bounds that are not given, in one pass. The key only marks the release: nothing is drawn."""
        moments = self.moments(table, "membership: bounds")
        return FittedMembershipTransform(
            self,
            {name: self.bounds.get(name) or self._own(moments, number) for number, name in enumerate(self.columns)},
            tuple(name for number, name in enumerate(self.columns) if self._outside(moments, number, name)),
            key,
        )

    def _own(self, moments: Moments, number: int) -> tuple[float, ...]:
        """A column's own bounds."""
        low, mean, high = (float(part[number]) for part in (moments.low, moments.mean, moments.high))
        if self.function == "gaussian":
            return mean, float(moments.sd[number])
        return (low, mean, high) if self.function == "triangular" else (low, high)

    def _outside(self, moments: Moments, number: int, name: str) -> bool:
        """Whether a column has values beyond the bounds that it was given."""
        given = self.bounds.get(name)
        if given is None or self.function == "gaussian":
            return False
        return bool(moments.low[number] < given[0] or moments.high[number] > given[-1])


@dataclass(frozen=True)
class FittedMembershipTransform(FittedMethod):
    """The bounds of each column. They are extremes of records, and private."""

    method: MembershipTransform
    bounds: NumberLists
    outside: tuple[str, ...]
    key: Subkey

    def mask_rows(self, rows: Rows, first: int) -> Rows:
        """One block with memberships."""
        shape = _SHAPES[self.method.function]
        for column, bounds in self.bounds.items():
            rows = as_floats(rows, column, shape(floats(rows, column), *bounds, room(rows.num_rows)))
        return rows

    def statement(self) -> str:
        """What a reader of the release may know."""
        return (
            f"The values of {', '.join(self.method.columns)} were replaced by their membership, a number from 0 to 1, "
            f"in {_DESCRIPTIONS[self.method.function]} Its bounds are not published."
        )

    def for_analysts(self) -> list[str]:
        """What memberships keep."""
        names = ", ".join(self.method.columns)
        kept = (
            "their order is that of the originals, rising or falling alike, but for values beyond the bounds: ranks, "
            "quantile groups and rank correlations (but for their signs) are exact"
            if self.method.function in _INVERTIBLE
            else "values on both sides of the peak share memberships, so that not even their order is kept"
        )
        return [
            f"Memberships of {names} are no amounts: totals, means, variances and Pearson's correlations are not those "
            f"of the originals; {kept}."
        ]

    def warnings(self) -> list[str]:
        """Columns whose values do not all lie within the bounds they were given."""
        return [
            f"{self.who}: '{column}' has values outside its bounds; they share a membership of 0 or 1. Widen the "
            "bounds, if that is not meant."
            for column in self.outside
        ]

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        undone = (
            "S and Z are undone exactly by an intruder who knows the bounds, or any two people's values of a column: "
            "known_records measures it."
            if self.method.function in _INVERTIBLE
            else "An intruder who knows the bounds, or a few people's values, undoes the transform but for the side of "
            "the peak."
        )
        return [
            undone,
            "Equal values have equal memberships, and extremes stay extremes: records can be linked by them.",
            *self.warnings(),
        ]
