"""What methods that release groups of equal rows have in common: groups of variables, cells, figures and claims."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from dpmask.constraints.conditions import split_rules
from dpmask.constraints.strata import Strata, check_strata, make_strata
from dpmask.engine.draws import Subkey
from dpmask.engine.limits import current_limits
from dpmask.errors import JobError
from dpmask.kernels.covariance import CovarianceSums
from dpmask.masking.method import Fitted, FittedMethod, Method
from dpmask.masking.microaggregation.cells import CellGroup
from dpmask.masking.microaggregation.figures import MicroaggregationFigures
from dpmask.masking.microaggregation.variables import (
    Variables,
    VariablesOf,
    checked_covariance,
    constraints_by_group,
    too_few,
)
from dpmask.masking.microaggregation.whole_table import WholeTableGroup
from dpmask.masking.parts import Parts, count_parts, make_parts, whole_table
from dpmask.parameters import require_choice, require_columns, require_integer, require_texts
from dpmask.results import Plain, Result
from dpmask.table.columns import require_numeric
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
    constraints: tuple[str, ...]
    by: tuple[Any, ...]
    zeros: str
    cell_size: int | None
    advice: ClassVar[str] = "Take a smaller fuzziness, a larger k, or minimum_size."
    """What to do where released rows lie on records."""
    figures: ClassVar[type[Result] | None] = MicroaggregationFigures

    @property
    def passes(self) -> int:
        """Passes over the data to fit: one more counts strata and patterns."""
        return 3 + (bool(self.strata.columns) or self.zeros == "keep")

    @property
    @abstractmethod
    def least(self) -> int:
        """Records that a released row is shared by, at least."""

    @property
    def fewest(self) -> int:
        """Records that a table must have."""
        return max(self.k or 1, self.least)

    @abstractmethod
    def group_size(self, rows: int) -> int:
        """Records in a group of a table of so many: no part of the table is smaller."""

    @abstractmethod
    def fit_group(self, table: Table, variables: Sequence[Variables], parts: Parts, key: Subkey) -> FittedGroup:
        """One group of variables, fitted; ``variables`` are those of each part."""

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
        require_texts(self, "constraints")
        require_choice(self, "zeros", ("keep", "mask"))
        object.__setattr__(self, "by", (self.by,) if isinstance(self.by, str) else tuple(self.by))
        constraints_by_group(self.always, self.columns, self.groups, self.who)
        constraints_by_group([rule.constraint for rule in self.strata.rules], self.columns, self.groups, self.who)

    @property
    def rules(self) -> Sequence[str]:
        """The constraints and edit rules that it keeps."""
        return self.constraints

    @property
    def masks_zeros(self) -> bool:
        """Whether it could keep zeros where they are, and does not."""
        return self.zeros != "keep"

    @property
    def always(self) -> list[str]:
        """The constraints without a condition."""
        return split_rules(self.constraints)[0]

    @cached_property
    def strata(self) -> Strata:
        """The strata that are masked by themselves."""
        return make_strata(self.by, split_rules(self.constraints)[1], self.columns, self.who)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns it learns from."""
        return tuple(dict.fromkeys([*self.masks, *self.strata.columns]))

    def check(self, table: Table) -> None:
        """Refuse a table whose schema or footers do not fit, before anything is read."""
        super().check(table)
        check_strata(self.strata, table.masked_schema, self.who)
        if table.rows < self.fewest:
            raise too_few(self.who, self.fewest, table.rows)

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

    def fit_groups(self, table: Table, key: Subkey) -> tuple[tuple[FittedGroup, ...], MicroaggregationFigures]:
        """Every group of variables, and what they came to."""
        found = checked_covariance(table, self.columns, self.fewest, self.who)
        rules = [rule.constraint for rule in self.strata.rules]
        texts = constraints_by_group(self.always, self.columns, self.groups, self.who)
        bound = constraints_by_group(rules, self.columns, self.groups, self.who)
        source = VariablesOf(table.masked_schema, found, self.columns, self.who)
        fitted = []
        for number, parts in enumerate(self._parts(table, found)):
            group, own = self.groups[number], [self.always[at] for at in texts[number]]
            applying = [tuple(at for at in rule if at in bound[number]) for rule in parts.rules]
            parts = parts._replace(rules=tuple(applying))  # noqa: PLW2901
            variables = source.of_parts(group, own, rules, parts)
            fitted.append(self.fit_group(table, variables, parts, key.subkey(f"group {number}")))
        return tuple(fitted), MicroaggregationFigures(tuple(part.figures for part in fitted))

    def _parts(self, table: Table, found: CovarianceSums) -> list[Parts]:
        """The parts of each group of variables; the whole table where there is nothing to tell apart."""
        keep, strata = self.zeros == "keep", self.strata
        if not keep and not strata.columns and (found.values == found.rows).all():
            return [whole_table(group, table.rows) for group in self.groups]
        counts = count_parts(table, self.groups, strata, keep, self.who)
        least = self.group_size(table.rows)
        return [make_parts(counts, n, group, strata, keep, least) for n, group in enumerate(self.groups)]


@dataclass(frozen=True)
class FittedSharedRows(FittedMethod, ABC):
    """A fitted method whose records share rows."""

    method: Any
    key: Subkey
    parts: tuple[FittedGroup, ...]
    figures: MicroaggregationFigures = field()

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns it reads."""
        return tuple(self.method.reads)

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns it masks."""
        return tuple(self.method.masks)

    def check(self, table: Table) -> None:
        """Refuse a table that cannot be masked, before anything is read."""
        require_numeric(table.masked_schema, self.changes, self.who)
        check_strata(self.method.strata, table.masked_schema, self.who)

    def mask_table(self, table: Table) -> Table:
        """The table with every group of variables masked."""
        for part in self.parts:
            table = part.mask_table(table)
        return table

    @property
    def together(self) -> str:
        """The columns, those of a group together."""
        return "; ".join(", ".join(part.variables.columns) for part in self.parts)

    def apart(self) -> list[str]:
        """That groups of columns are masked by themselves, if there are several."""
        if len(self.parts) == 1:
            return []
        return [
            f"Each of the {len(self.parts)} groups of columns was masked by itself: records share the row of each "
            "group, but hardly ever those of all, and a row of all columns together may be one record's alone."
        ]

    def particulars(self) -> list[str]:
        """What holds of strata, zeros, missing values and constraints."""
        method = self.method
        found = [f"Every record satisfies {', '.join(method.always)}."] if method.always else []
        found += [f"Edit rules hold: {'; '.join(rule.text for rule in method.strata.rules)}."] * bool(
            method.strata.rules
        )
        if method.by:
            names = ", ".join(one.column for one in method.strata.classings)
            found.append(f"Strata by {names} were masked by themselves, small ones joined to the nearest.")
        if method.zeros == "keep":
            found.append("Zeros stay zero.")
        if any(part.figures.patterns_merged for part in self.parts):
            found.append(
                "Where fewer records than a group have a pattern of zeros and missing values, further values of theirs "
                "were set to zero or missing."
            )
        return found

    def for_analysts(self) -> list[str]:
        """What rows that are shared do to statistics."""
        names = ", ".join(self.method.columns)
        by = ", ".join(one.column for one in self.method.strata.classings)
        return [
            f"Variances and the spread within classes of {names} are too small, correlations and R^2 of regressions on "
            "them tend to be too large; tests that take the rows for observations are too sure.",
            *([f"Analyses within {by} are safer than across finer classes."] if by else []),
        ]

    def facts_released(self) -> list[str]:
        """That zeros and gaps stay where they are, if they do."""
        if not any(part.figures.patterns > part.figures.strata for part in self.parts):
            return []
        return [
            "Which values are zero, if these are kept, or missing is released as it is: an intruder who knows what a "
            "person does not have may find candidates by it."
        ]

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
                    f"{self.who}: {figures.on_records:.0%} of the released rows of {names} lie on a real record. "
                    f"{self.method.advice}"
                )
            found += [
                f"{self.who}: masked values leave the sign of all originals. The constraint '{bound}' prevents it."
                for bound in figures.bounds_to_add
            ]
        return found
