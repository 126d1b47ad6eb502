"""What several measures need of two tables, from passes they share.

The first pass looks at every value (looking.py); up to three more find quantiles and what lies around them
(searching.py). Each is made only if a measure asks for it. Memory per task: one block, and counts at the sampled
values, at most half a million in all columns together; the driver holds some millions of values from around the
quantiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpmask.errors import InputError, JobError
from dpmask.kernels.comoments import CoMoments
from dpmask.kernels.deviation import Gaps
from dpmask.kernels.order.float_order import Floats
from dpmask.kernels.value_counts import MOST_VALUES
from dpmask.measures.utility.first_pass import Look, Need, look
from dpmask.measures.utility.quantile_search import PERCENTS, WINDOW, Around, Searches, Steps
from dpmask.measures.utility.table_pair import sides_of
from dpmask.table.checks import empty_column
from dpmask.table.columns import require_numeric
from dpmask.table.row_keys import require_groupable

__all__ = ["PERCENTS", "WINDOW", "Need", "Steps", "Summary", "require_columns", "summarised"]


@dataclass(frozen=True)
class Summary:
    """Two tables, summarised: a pair of things is one of the original and one of the masked table."""

    numbers: list[str]
    categories: list[str]
    looks: tuple[Look, Look]
    gaps: Gaps | None
    steps: list[Steps]
    quantiles: tuple[list[Floats], list[Floats]]
    around: Around

    @property
    def columns(self) -> list[str]:
        """All columns, numbers first."""
        return [*self.numbers, *self.categories]

    @property
    def before(self) -> CoMoments:
        """The original's moments, where they were asked for."""
        assert self.looks[0].moments is not None
        return self.looks[0].moments

    @property
    def after(self) -> CoMoments:
        """The masked table's."""
        assert self.looks[1].moments is not None
        return self.looks[1].moments

    def sizes(self, who: str) -> list[tuple[int, int]]:
        """How many values each number has in both tables; none in one of them is refused."""
        sizes = list(zip(*([one.values for one in look.samples] for look in self.looks), strict=True))
        for name, both in zip(self.numbers, sizes, strict=True):
            if not all(both):
                where = "one of the tables" if any(both) else "any record"
                raise empty_column(who, name, where)
        return sizes

    def shares(self, who: str) -> list[tuple[Floats, Floats]]:
        """For each column the share of records with each value or in each bin, missing values among them."""
        if not all(look.rows for look in self.looks):
            raise InputError(f"{who}: one of the tables has no record.")
        self.sizes(who)
        categories = zip(self.looks[0].value_counts, self.looks[1].value_counts, strict=True)
        counts = [*zip(*self.around.bins, strict=True), *(one.beside(two) for one, two in categories)]
        return [(one / self.looks[0].rows, two / self.looks[1].rows) for one, two in counts]


def require_columns(columns: Sequence[str], who: str) -> None:
    """Refuse no column at all, or one twice."""
    if isinstance(columns, str) or not columns or len(set(columns)) < len(columns):
        raise JobError(f"{who}: columns must be a list of one or more different columns; got {columns!r}.")


def summarised(original: Any, masked: Any, columns: Sequence[str], needs: Need, who: str) -> Summary:
    """What is needed, in as few passes as that takes. Only bins take categories, too."""
    require_columns(columns, who)
    sides = sides_of(original, masked, columns, who, beside=bool(needs & Need.DISTANCES))
    sides.check(columns, require_groupable if needs & Need.BINS else require_numeric, who)
    numbers = [name for name in columns if sides.is_numeric(name)]
    categories = [name for name in columns if name not in numbers]
    looks, distances = look(sides, numbers, categories, needs, who)
    _require_few(categories, looks, who)
    search = Searches(sides, numbers, looks, needs, who)
    steps = search.narrow()
    quantiles = search.quantiles()
    return Summary(numbers, categories, looks, distances, steps, quantiles, search.around(quantiles[0]))


def _require_few(categories: Sequence[str], looks: tuple[Look, Look], who: str) -> None:
    for side in looks:
        for name, one in zip(categories, side.value_counts, strict=True):
            if one.many:
                raise JobError(
                    f"{who}: column '{name}' has more than {MOST_VALUES:,} different values, so it tells records apart "
                    "by itself. Take it out of columns."
                )
