"""What methods that release groups of equal rows have in common: groups of variables, parts, figures and claims."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from dpmask.engine.draws import Subkey
from dpmask.engine.passes import Run
from dpmask.errors import JobError
from dpmask.kernels.covariance import CovarianceSums
from dpmask.masking.draw_purpose import table_identity
from dpmask.masking.method import FittedMethod
from dpmask.masking.microaggregation.cells import (
    CellMethod,
    Shards,
    figures_of,
    fit_shards,
    masked_table,
    models_of,
    shards_of,
)
from dpmask.masking.microaggregation.figures import GroupFigures, MicroaggregationFigures, group_figures
from dpmask.masking.microaggregation.variables import Variables
from dpmask.parameters import require_columns
from dpmask.results import Plain
from dpmask.table.table import Table

_MANY = 0.2
_MOSTLY = 0.5


class FittedGroup(Protocol):
    """One group of variables, fitted."""

    @property
    def variables(self) -> Variables:
        """The variables it masks together."""

    @property
    def figures(self) -> GroupFigures:
        """What its groups came to."""

    def mask_table(self, table: Table) -> Table:
        """The table with these variables masked."""


class CellGroup(NamedTuple):
    """Variables masked in cells; the models stay where the cells are."""

    variables: Variables
    figures: GroupFigures
    shards: Shards
    method: CellMethod
    models: list[Run]

    def mask_table(self, table: Table) -> Table:
        """The table with these variables masked: its records go to their cells and back."""
        return masked_table(table, self.shards, self.method, self.models)


def fit_in_cells(
    table: Table, variables: Variables, method: CellMethod, size: int, expected: float, key: Subkey, who: str
) -> CellGroup:
    """Fit a method to the cells of a table."""
    shards = shards_of(table, variables.columns, variables.scale, size, key.subkey("cells"), who)
    fitted = fit_shards(table, shards, method)
    parts, sizes = figures_of(fitted, table.rows)
    figures = group_figures(variables.columns, variables.signs, expected, sizes, parts)
    return CellGroup(variables, figures, shards, method, models_of(fitted))


def bound_key(key: Subkey, purpose: str, table: Table, columns: Sequence[str], found: CovarianceSums) -> Subkey:
    """The key of draws for this purpose and this table alone."""
    return key.subkey(f"{purpose} {table_identity(table, columns, found.values, found.low, found.high)}")


def figures_of_groups(parts: Sequence[FittedGroup]) -> MicroaggregationFigures:
    """The figures of all groups of variables."""
    return MicroaggregationFigures(tuple(part.figures for part in parts))


def settle_groups(method: Any) -> None:
    """Make columns and groups agree: one group of all columns if none are given, all grouped columns otherwise."""
    who = type(method).__name__
    groups = method.groups
    if isinstance(groups, str) or any(isinstance(group, str) for group in groups):
        raise JobError(f"{who}: groups must be lists of columns, such as [[net, tax], [age, hours]].")
    groups = tuple(tuple(group) for group in groups)
    grouped = tuple(name for group in groups for name in group)
    if not method.columns:
        object.__setattr__(method, "columns", grouped)
    require_columns(method, "columns")
    if groups and (any(not group for group in groups) or sorted(grouped) != sorted(method.columns)):
        raise JobError(f"{who}: groups must name each of the columns once, and no others.")
    object.__setattr__(method, "groups", groups or (method.columns,))


@dataclass(frozen=True)
class FittedSharedRows(FittedMethod, ABC):
    """A fitted method whose records share rows."""

    method: Any
    key: Subkey
    parts: tuple[FittedGroup, ...]
    figures: MicroaggregationFigures = field()

    def mask_table(self, table: Table) -> Table:
        """The table with every group of variables masked."""
        for part in self.parts:
            table = part.mask_table(table)
        return table

    def claims(self) -> list[dict[str, Plain]]:
        """What the released files can be checked for: sizes of groups, and constraints."""
        least = self.method.minimum_size or 0
        found = []
        for part in self.parts:
            claim: dict[str, Plain] = {"columns": list(part.variables.columns)}
            if least:
                claim["smallest_group"] = least
            if part.variables.texts:
                claim["constraints"] = list(part.variables.texts)
            if len(claim) > 1:
                found.append(claim)
        return found

    def warnings(self) -> list[str]:
        """What is wrong with these groups, if anything."""
        found = []
        for part in self.parts:
            names, figures = ", ".join(part.variables.columns), part.figures
            if figures.below_k > _MANY and not self.method.minimum_size:
                found.append(
                    f"{self.who}: {figures.below_k:.0%} of the records of {names} are in groups smaller than "
                    f"{figures.expected_size:.4g}, the smallest has {figures.smallest}. minimum_size makes them larger."
                )
            if figures.on_records > _MOSTLY:
                found.append(
                    f"{self.who}: {figures.on_records:.0%} of the released rows of {names} lie on a real record. Take "
                    "a smaller fuzziness, a larger k, or minimum_size."
                )
            found += [
                f"{self.who}: masked values leave the sign of all originals. The constraint '{bound}' prevents it."
                for bound in figures.bounds_to_add
            ]
        return found
