"""Single records that are at risk, by their positions, and why: plain numbers, which pages and files show."""

from __future__ import annotations

from typing import NamedTuple


class KnownColumn(NamedTuple):
    """One more column that the intruder knows: how many rows fit as well as the own, and the chance of a right link."""

    column: str
    candidates: int
    chance: float


class ExposedRecord(NamedTuple):
    """A record by its position in the source, from 0, and what each known column adds, the most informative first.

    Columns that add nothing more at the end are left out.
    """

    position: int
    rows: int
    """Rows of the release: what it is among when nothing is known."""
    steps: tuple[KnownColumn, ...]

    @property
    def chance(self) -> float:
        """The chance of a right link when all columns are known."""
        return self.steps[-1].chance


class GivenAway(NamedTuple):
    """How much of their sensitive values the released rows of some records say, and a stranger's row beside it."""

    own: float
    stranger: float
    records: int


class Exposure(NamedTuple):
    """The riskiest of the records attacked, the riskiest first; and what rows give away, if a column is sensitive."""

    records: tuple[ExposedRecord, ...]
    given_away: GivenAway | None
