"""A method applied to households: columns that all members share are masked once, and all members get the same.

The method is fitted to a table with one record for each household, its first member, and masks that. So its groups,
ranks and draws are those of households, and a draw belongs to a household, wherever its members lie; these get their
household's values by an exchange. A column that differs between members is refused: it is none of the household.

Protects against: taking the mean of a household's several masked values, which would undo the mask. What else it
protects against is what the method does. Passes over the data: two that exchange numbers of households, one to compare
members, and those of the method over the households.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpmask.engine.draws import Subkey
from dpmask.errors import JobError
from dpmask.kernels.warm_up import KernelUse
from dpmask.masking import method_class
from dpmask.masking.method import FittedMethod, Method
from dpmask.masking.movable import Movable
from dpmask.results import Plain, Result
from dpmask.table import table as tables
from dpmask.table.first_members import first_members, given_to_members
from dpmask.table.households import require_households_by_footers
from dpmask.table.label_sets import LabelSets
from dpmask.table.requirement import HOUSEHOLDS
from dpmask.table.row_keys import require_groupable

_MANY = 1_000_000
_SECONDS = 2e-6
"""CPU of a record that is sent to its household and back."""


@dataclass(frozen=True, kw_only=True)
class OfHouseholds(Method["FittedOfHouseholds"]):
    """A method that masks each household once.

    Parameters
    ----------
    method
        The method: one that masks numbers and leaves their types alone, such as noise, swapping or microaggregation.
    household
        The column that numbers households.

    Examples
    --------
    >>> import dpmask, pandas
    >>> people = pandas.DataFrame({"household": [1, 2, 1, 3], "rent": [500.0, 700.0, 500.0, 900.0]})
    >>> noise = dpmask.NoiseAddition(columns=["rent"], scale=0.5)
    >>> masked = dpmask.OfHouseholds(method=noise, household="household").fit(people, seed=7).mask(people)["rent"]
    >>> bool(masked[0] == masked[2]), bool(masked[0] == people["rent"][0])
    (True, False)

    """

    method: Method[Any]
    household: str

    def __post_init__(self) -> None:
        if self.method.drops or self.method.origins or self.household in self.method.masks:
            raise JobError(
                f"{self.who}: of: households is for methods that change numbers of households, not for "
                f"{self.method.who} of {', '.join(self.method.masks)}. Take it out."
            )

    @property
    def who(self) -> str:
        """Its name in messages."""
        return f"{self.method.who} of households"

    @property
    def passes(self) -> int:
        """Two for the households, and those of the method."""
        return 2 + self.method.passes

    @property
    def masks(self) -> tuple[str, ...]:
        """The columns it masks."""
        return self.method.masks

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns it learns from."""
        return (self.household, *self.method.reads)

    @property
    def draws(self) -> bool:
        """Whether the method draws."""
        return self.method.draws

    @property
    def repeatable(self) -> tuple[str, ...]:
        """Those of the method."""
        return self.method.repeatable

    @property
    def on_zeros(self) -> str | None:
        """What the method does with zeros."""
        return self.method.on_zeros

    @property
    def rules(self) -> Sequence[str]:
        """The constraints that it keeps."""
        return self.method.rules

    @property
    def judged(self) -> tuple[str, ...]:
        """The figures that a policy may name."""
        return self.method.judged

    @property
    def kernels(self) -> KernelUse:
        """What it runs."""
        return self.method.kernels

    def parameters(self) -> dict[str, Any]:
        """Those of the method, and of what."""
        return {**self.method.parameters(), "of": HOUSEHOLDS, "household": self.household}

    def drawn_parameters(self) -> dict[str, Any]:
        """Those that the method's draws are bound to, and of what."""
        return {**self.method.drawn_parameters(), "of": HOUSEHOLDS, "household": self.household}

    def work(self, rows: int) -> float:
        """CPU seconds beyond reading the table."""
        return self.method.work(rows) + _SECONDS * rows

    def check(self, table: tables.Table) -> None:
        """Refuse a table whose schema does not fit, before anything is read."""
        require_groupable(table.masked_schema, [self.household], self.who)
        require_households_by_footers(table, self.household, self.who)
        self.method.check(table)
        if self.method.masked_schema(table.masked_schema) != table.masked_schema:
            raise JobError(f"{self.who}: it would change the types of columns. Mask records instead (without of:).")

    def movable(self, given: Mapping[str, Any]) -> Iterator[Movable]:
        """What may be moved of the method."""
        return self.method.movable(given)

    def label_sets(self, solution: Mapping[str, Any]) -> LabelSets:
        """Those of the method."""
        return self.method.label_sets(solution)

    def attacks(self) -> Mapping[str, Mapping[str, Any]]:
        """Those of the method; and where households get values of their own, which show who lives together, that."""
        shown = {"households": {"household": self.household}} if self.method.group_size(_MANY) == 1 else {}
        return {**self.method.attacks(), **shown}

    def fit_table(self, table: tables.Table, key: Subkey) -> FittedOfHouseholds:
        """Fit the method to the first members."""
        heads = first_members(table, self.household, self.masks, self.who)
        self.method.check(heads)
        return FittedOfHouseholds(self, self.method.fit_table(heads, key), key)


def method_of_step(name: str, parameters: Mapping[str, Any]) -> Method[Any]:
    """The method of a job's step, from its parameters in one spelling."""
    given = dict(parameters)
    household = given.pop("household") if given.pop("of", None) == HOUSEHOLDS else None
    method: Method[Any] = method_class(name)(**given)
    return method if household is None else OfHouseholds(method=method, household=household)


@dataclass(frozen=True)
class FittedOfHouseholds(FittedMethod):
    """A method fitted to households."""

    method: OfHouseholds
    fitted: FittedMethod
    key: Subkey

    @property
    def inputs(self) -> tuple[str, ...]:
        """What the method reads, and the number of the household."""
        return tuple(dict.fromkeys([*self.fitted.inputs, self.method.household]))

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns it changes."""
        return tuple(self.fitted.changes)

    @property
    def figures(self) -> Result | None:  # type: ignore[override]
        """Those of the method, counted in households."""
        return self.fitted.figures

    def check(self, table: tables.Table) -> None:
        """Refuse a table that cannot be masked."""
        self.fitted.check(table)

    @property
    def of_one_table(self) -> str:
        """That of the method."""
        return self.fitted.of_one_table

    def require_promises(self, table: tables.Table) -> None:
        """Count in households what the method promises."""
        self.fitted.require_promises(first_members(table, self.method.household, self.changes, self.who))

    def mask_table(self, table: tables.Table) -> tables.Table:
        """All members with their household's values."""
        heads = first_members(table, self.method.household, self.changes, self.who)
        return given_to_members(table, heads.masked_by(self.fitted), self.method.household, self.changes, self.who)

    def statement(self) -> str:
        """What a reader of the release may know."""
        return f"{self.fitted.statement()} Each household was masked once: all its members have the same values."

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        shared = "Members of a household share these values, by which they may be put together."
        return [*self.fitted.weaknesses(), shared]

    def for_analysts(self) -> list[str]:
        """What the method says; its totals are those of households."""
        return self.fitted.for_analysts()

    def warnings(self) -> list[str]:
        """Those of the method."""
        return self.fitted.warnings()

    def claims(self) -> list[dict[str, Plain]]:
        """Those of the method: what holds of households holds of their members."""
        return self.fitted.claims()

    def solution(self) -> dict[str, Plain] | None:
        """That of the method."""
        return self.fitted.solution()
