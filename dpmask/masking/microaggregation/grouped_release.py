"""What methods that release groups of equal rows have in common: groups of variables, cells, figures and claims."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from dpmask.engine.draws import Subkey
from dpmask.engine.limits import current_limits
from dpmask.errors import JobError
from dpmask.masking.draw_purpose import bound_key
from dpmask.masking.method import Fitted, FittedMethod, Method
from dpmask.masking.microaggregation.cells import CellGroup
from dpmask.masking.microaggregation.figures import MicroaggregationFigures
from dpmask.masking.microaggregation.variables import Variables, checked_covariance, make_variables
from dpmask.masking.microaggregation.whole_table import WholeTableGroup
from dpmask.parameters import require_columns, require_integer
from dpmask.results import Plain, Result
from dpmask.table.table import Table

FittedGroup = CellGroup | WholeTableGroup
"""One group of variables, fitted."""

_CELL = 4000
_GROUPS_IN_A_CELL = 100
_MANY = 0.2
_MOSTLY = 0.5


class SharedRowsMethod(Method[Fitted], ABC):
    """A method that masks each of its ``groups`` of columns by itself, large tables in cells."""

    k: int | None
    groups: tuple[tuple[str, ...], ...]
    constraints: tuple[str, ...] = ()
    cell_size: int | None
    purpose: ClassVar[str]
    """The first words of what its draws are for."""
    passes: ClassVar[int] = 3
    figures: ClassVar[type[Result] | None] = MicroaggregationFigures

    @property
    @abstractmethod
    def least(self) -> int:
        """Records that a released row is shared by, at least."""

    @property
    def fewest(self) -> int:
        """Records that a table must have."""
        return max(self.k or 1, self.least)

    @abstractmethod
    def fit_group(self, table: Table, variables: Variables, key: Subkey) -> FittedGroup:
        """One group of variables, fitted."""

    def settle_groups(self) -> None:
        """Make columns and groups agree: one group of all columns if none are given, all grouped columns otherwise."""
        if isinstance(self.groups, str) or any(isinstance(group, str) for group in self.groups):
            raise JobError(f"{self.who}: groups must be lists of columns, such as [[net, tax], [age, hours]].")
        groups = tuple(tuple(group) for group in self.groups)
        grouped = tuple(name for group in groups for name in group)
        if not self.columns:
            object.__setattr__(self, "columns", grouped)
        require_columns(self, "columns")
        if groups and (any(not group for group in groups) or sorted(grouped) != sorted(self.columns)):
            raise JobError(f"{self.who}: groups must name each of the columns once, and no others.")
        object.__setattr__(self, "groups", groups or (self.columns,))

    def check_cell_size(self) -> None:
        """Refuse cells that are too small for two groups, or too large for one task."""
        if self.cell_size is not None:
            require_integer(self, "cell_size", at_least=max(4, 2 * max(self.k or 1, self.least)))
            most = current_limits().largest_cell
            if self.cell_size > most:
                raise JobError(f"{self.who}: cell_size must be at most {most}; got {self.cell_size}.")

    def default_cell_size(self, per_group: Fraction | int) -> int:
        """4000 records, or room for a hundred groups."""
        room = min(int(_GROUPS_IN_A_CELL * per_group), current_limits().largest_cell)
        return max(_CELL, room, 2 * max(int(per_group), self.least))

    def fit_groups(self, table: Table, key: Subkey) -> tuple[Subkey, tuple[FittedGroup, ...], MicroaggregationFigures]:
        """The key of the draws, every group of variables, and what they came to."""
        found = checked_covariance(table, self.columns, self.fewest, self.who)
        own = bound_key(key, f"{self.purpose} {self!r}", table, self.columns, found)
        variables = make_variables(table.masked_schema, found, self.groups, self.constraints, self.who)
        parts = tuple(self.fit_group(table, one, own.subkey(f"group {n}")) for n, one in enumerate(variables))
        return own, parts, MicroaggregationFigures(tuple(part.figures for part in parts))


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

    @property
    def together(self) -> str:
        """The columns, those of a group together."""
        return "; ".join(", ".join(part.variables.columns) for part in self.parts)

    def claims(self) -> list[dict[str, Plain]]:
        """What the released files can be checked for: sizes of groups, and constraints."""
        found = []
        for part in self.parts:
            claim: dict[str, Plain] = {"columns": list(part.variables.columns)}
            if self.method.least > 1:
                claim["smallest_group"] = self.method.least
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
            if figures.below_k > _MANY and self.method.least == 1:
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
