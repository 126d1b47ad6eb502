"""What methods that release groups of equal rows have in common: groups of variables, parts, figures and claims."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

from dpmask.engine.draws import Subkey
from dpmask.engine.passes import Run
from dpmask.errors import JobError
from dpmask.masking.fitted import FittedColumns
from dpmask.masking.microaggregation.cells import (
    CellMethod,
    Shards,
    figures_of,
    fit_shards,
    masked_table,
    models_of,
    shards_of,
)
from dpmask.masking.microaggregation.figures import Figures, GroupFigures, leaving_sign
from dpmask.masking.microaggregation.variables import Variables
from dpmask.parameters import require_columns
from dpmask.table import table as tables

_MANY = 0.2
_MOSTLY = 0.5


class Part(Protocol):
    """One group of variables, fitted."""

    @property
    def variables(self) -> Variables:
        """The variables it masks together."""

    @property
    def figures(self) -> GroupFigures:
        """What its groups came to."""

    def mask_table(self, table: tables.Table) -> tables.Table:
        """The table with these variables masked."""


class CellPart(NamedTuple):
    """Variables masked in cells; the models stay where the cells are."""

    variables: Variables
    figures: GroupFigures
    shards: Shards
    method: CellMethod
    models: list[Run]

    def mask_table(self, table: tables.Table) -> tables.Table:
        """The table with these variables masked: its records go to their cells and back."""
        return masked_table(table, self.shards, self.method, self.models)


def cell_part(
    table: tables.Table, variables: Variables, method: CellMethod, size: int, expected: float, key: Subkey, who: str
) -> CellPart:
    """Fit a method to the cells of a table."""
    shards = shards_of(table, variables.columns, variables.scale, size, key.subkey("cells"), who)
    fitted = fit_shards(table, shards, method)
    parts, sizes = figures_of(fitted, table.rows)
    leaving = leaving_sign(variables.columns, variables.low, variables.high, parts)
    figures = GroupFigures(variables.columns, expected, sizes, parts, leaving)
    return CellPart(variables, figures, shards, method, models_of(fitted))


def settled_groups(method: Any) -> None:
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
        raise JobError(f"{who}: groups must hold each of the columns once, and no others.")
    object.__setattr__(method, "groups", groups or (method.columns,))


@dataclass(frozen=True)
class Grouped(FittedColumns):
    """A fitted method whose records share rows."""

    method: Any
    key: Subkey
    parts: tuple[Part, ...]

    who: ClassVar[str]

    @cached_property
    def figures(self) -> Figures:
        """Group sizes, nearness to real records, loss."""
        return Figures(tuple(part.figures for part in self.parts))

    def mask_table(self, table: tables.Table) -> tables.Table:
        """The table with every group of variables masked."""
        for part in self.parts:
            table = part.mask_table(table)
        return table

    def claims(self) -> list[dict[str, Any]]:
        """What the released files can be checked for: sizes of groups, and constraints."""
        least = self.method.minimum_size or 0
        found: list[dict[str, Any]] = []
        for part in self.parts:
            claim: dict[str, Any] = {"columns": list(part.variables.columns)}
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
                    f"{figures.expected:.4g}, the smallest has {figures.smallest}. minimum_size makes them larger."
                )
            if figures.on_records > _MOSTLY:
                found.append(
                    f"{self.who}: {figures.on_records:.0%} of the released rows of {names} lie on a real record. Take "
                    "a smaller fuzziness, a larger k, or minimum_size."
                )
            found += [
                f"{self.who}: masked values leave the sign of all originals. The constraint '{bound}' prevents it."
                for bound in figures.leaving
            ]
        return found
