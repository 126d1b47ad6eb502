"""What methods that release groups of equal rows have in common: groups of variables, cells, figures and claims."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from dpmask.constraints.conditions import split_rules
from dpmask.constraints.strata import Strata, check_strata, make_strata
from dpmask.constraints.zeros import AUTO, KEEP, MASK, ZEROS, describe_kept, zeros_kept
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
from dpmask.masking.movable import ParameterRange
from dpmask.masking.parts import Parts, count_parts, make_parts, patterns_fit, whole_table
from dpmask.parameters import NameLists, Names, Several, require_choice, require_columns, require_integer, require_texts
from dpmask.results import Plain, Result
from dpmask.table.table import Table

FittedGroup = CellGroup | WholeTableGroup
"""One group of variables, fitted."""

CELL_SIZES = ParameterRange(10, whole=True)
_CELL = 4000
_GROUPS_IN_A_CELL = 100
_ROW_SECONDS, _VALUE_SECONDS = 1e-6, 2.5e-7
"""What plans count for each record that is sent to its cell and back, and for each of its values."""
_MANY = 0.2
_MOSTLY = 0.5


class SharedRowsMethod(Method[Fitted], ABC):
    """A method that masks each of its ``groups`` of columns by itself, large tables in cells.

    Parameters
    ----------
    columns
        The columns of numbers to mask; those of ``groups`` by default.
    groups
        Lists of columns that are masked together, each list by itself; all columns are one by default.
    constraints
        What holds for every released record, such as "net + tax = gross", "age >= 0" or
        "if status = single then spouse_wage = 0".
    by
        Columns that make strata, each of which is masked by itself: "sex", or {"age": [15, 25, 65]} for bands, or
        {"region": a taxonomy}.
    zeros
        "keep": zeros stay zero, and other values do not become it; "mask": they are values as any other; "auto", the
        default: "keep" for columns of which at least 5 % are zero, unless all others are the same.
    """

    k: int | None
    groups: NameLists
    constraints: Names
    by: Several
    zeros: str
    cell_size: int | None
    advice: ClassVar[str] = "Take a smaller fuzziness, a larger k, or minimum_size."
    """What to do where released rows lie on records."""
    figures: ClassVar[type[Result] | None] = MicroaggregationFigures
    once_default: ClassVar[Mapping[str, Any]] = {"zeros": MASK}

    @property
    def passes(self) -> int:
        """Passes over the data to fit: one more counts strata and patterns."""
        return 3 + (bool(self.strata.columns) or self.zeros == KEEP)

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
        require_choice(self, "zeros", ZEROS)
        object.__setattr__(self, "by", (self.by,) if isinstance(self.by, str) else tuple(self.by))
        constraints_by_group(self.always, self.columns, self.groups, self.who)
        constraints_by_group([rule.constraint for rule in self.strata.rules], self.columns, self.groups, self.who)

    @property
    def rules(self) -> Sequence[str]:
        """The constraints and edit rules that it keeps."""
        return self.constraints

    @property
    def on_zeros(self) -> str:
        """What it does with zeros."""
        return self.zeros

    @property
    def always(self) -> list[str]:
        """The constraints without a condition."""
        return split_rules(self.constraints)[0]

    @cached_property
    def strata(self) -> Strata:
        """The strata that are masked by themselves."""
        return make_strata(self.by, split_rules(self.constraints)[1], self.columns, self.who)

    @cached_property
    def kept(self) -> Strata:
        """The domains whose totals are kept; none by default."""
        return Strata((), ())

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

    def gathering(self, rows: int) -> float:
        """CPU seconds in which records of a cell come together, and their rows back, about."""
        return (_ROW_SECONDS + _VALUE_SECONDS * len(self.columns)) * rows

    def fit_groups(self, table: Table, key: Subkey) -> tuple[tuple[FittedGroup, ...], MicroaggregationFigures]:
        """Every group of variables, and what they came to."""
        found = checked_covariance(table, self.columns, self.fewest, self.who)
        rules = [rule.constraint for rule in self.strata.rules]
        texts = constraints_by_group(self.always, self.columns, self.groups, self.who)
        bound = constraints_by_group(rules, self.columns, self.groups, self.who)
        source = VariablesOf(table.masked_schema, found, self.masks, self.who)
        kept = self._kept(table, found)
        fitted = []

        def of_group(number: int, parts: Parts) -> tuple[Parts, list[Variables]]:
            own = [self.always[at] for at in texts[number]]
            applying = [tuple(at for at in rule if at in bound[number]) for rule in parts.rules]
            parts = parts._replace(rules=tuple(applying))
            return parts, source.of_parts(self.groups[number], own, rules, parts)

        for number, parts in enumerate(self._parts(table, found, kept)):
            group = self.groups[number]
            try:
                parts, variables = of_group(number, parts)  # noqa: PLW2901
            except JobError:
                if self.zeros != AUTO or not kept.intersection(group):
                    raise
                kept -= set(group)  # constraints that zeros contradict: masked as they were
                parts, variables = of_group(number, self._parts(table, found, kept)[number])  # noqa: PLW2901
            drawn = key.subkey("zeros kept") if self.zeros == AUTO and kept.intersection(group) else key
            fitted.append(self.fit_group(table, variables, parts, drawn.subkey(f"group {number}")))
        return tuple(fitted), MicroaggregationFigures(tuple(part.figures for part in fitted))

    def _kept(self, table: Table, found: CovarianceSums) -> set[str]:
        """The columns whose zeros stay."""
        least = self.group_size(table.rows)
        kept = set(zeros_kept(table, self.columns, self.zeros, (found.low, found.high), least, self.who))
        if self.zeros == AUTO:  # a default refuses nothing: groups of too many columns are masked as they were
            kept -= {name for group in self.groups if not patterns_fit(group) for name in group}
        return kept

    def _parts(self, table: Table, found: CovarianceSums, kept: set[str]) -> list[Parts]:
        """The parts of each group of variables; the whole table where nothing distinguishes records."""
        strata = self.strata
        if not kept and not strata.columns and (found.values == found.rows).all():
            return [whole_table(group, table.rows) for group in self.groups]
        flags = [tuple(name in kept for name in group) for group in self.groups]
        counts = count_parts(table, self.groups, strata, flags, self.who)
        least, totals = self.group_size(table.rows), self.kept.columns
        return [make_parts(counts, n, group, strata, flags[n], least, totals) for n, group in enumerate(self.groups)]


@dataclass(frozen=True)
class FittedSharedRows(FittedMethod, ABC):
    """A fitted method whose records share rows."""

    method: SharedRowsMethod[Any]
    key: Subkey
    parts: tuple[FittedGroup, ...]
    figures: MicroaggregationFigures = field()

    def check(self, table: Table) -> None:
        """Refuse a table that cannot be masked, before anything is read."""
        super().check(table)
        check_strata(self.method.strata, table.masked_schema, self.who)

    def mask_table(self, table: Table) -> Table:
        """The table with every group of variables masked."""
        for part in self.parts:
            table = part.mask_table(table)
        return table

    @property
    def zeros_kept(self) -> list[str]:
        """The columns whose zeros stay."""
        parts = [part.shards.parts for part in self.parts if isinstance(part, CellGroup)]
        return [name for one in parts for name, kept in zip(one.columns, one.zeros, strict=True) if kept]

    @property
    def groups_listed(self) -> str:
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
        found += [one for one in [describe_kept(self.zeros_kept, method.zeros)] if one]
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
