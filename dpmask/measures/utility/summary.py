"""What several measures need of two tables, from passes they share.

The first pass reads every value (first_pass.py); up to three more find quantiles and what lies around them
(quantile_search.py). Each is made only if a measure needs it. Memory per task: one block, and counts at the sampled
values, at most half a million in all columns together; the driver holds some millions of values from around the
quantiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Floats
from dpmask.kernels.comoments import CoMoments
from dpmask.kernels.deviation import Gaps
from dpmask.kernels.value_counts import MOST_VALUES
from dpmask.measures.measure import Need
from dpmask.measures.utility.first_pass import FirstPass, first_pass
from dpmask.measures.utility.quantile_search import Around, QuantileSearch, Steps
from dpmask.measures.utility.table_pair import table_pair
from dpmask.measures.utility.weights import Weights, find_weights
from dpmask.table.checks import empty_column
from dpmask.table.columns import require_numeric
from dpmask.table.row_keys import require_groupable
from dpmask.table.table import Frame


@dataclass(frozen=True)
class Summary:
    """Two tables, summarised: a pair of things is one of the original and one of the masked table."""

    numbers: list[str]
    categories: list[str]
    found: tuple[FirstPass, FirstPass]
    gaps: Gaps | None
    steps: list[Steps]
    quantiles: tuple[list[Floats], list[Floats]]
    around: Around
    weights: Weights | None = None

    @property
    def weighed(self) -> dict[str, Any]:
        """What results say of weights."""
        return {"weight": self.weights.column, "heaviest": self.weights.heaviest} if self.weights else {}

    @property
    def columns(self) -> list[str]:
        """All columns, numbers first."""
        return [*self.numbers, *self.categories]

    @property
    def before(self) -> CoMoments:
        """The original's moments, where they were asked for."""
        assert self.found[0].moments is not None
        return self.found[0].moments

    @property
    def after(self) -> CoMoments:
        """The masked table's."""
        assert self.found[1].moments is not None
        return self.found[1].moments

    def sizes(self, who: str) -> list[tuple[int, int]]:
        """What each number's values in both tables weigh, or how many there are; none in one of them is refused."""
        sizes = list(zip(*([one.size for one in table.samples] for table in self.found), strict=True))
        for name, both in zip(self.numbers, sizes, strict=True):
            if not all(both):
                where = "one of the tables" if any(both) else "any record"
                raise empty_column(who, name, where)
        return sizes

    def shares(self, who: str) -> list[tuple[Floats, Floats]]:
        """For each column the share of records with each value or in each bin, missing values among them."""
        if not all(table.rows for table in self.found):
            raise InputError(f"{who}: one of the tables has no record.")
        self.sizes(who)
        categories = zip(self.found[0].value_counts, self.found[1].value_counts, strict=True)
        counts = [*zip(*self.around.bins, strict=True), *(one.beside(two) for one, two in categories)]
        return [(one / self.found[0].size, two / self.found[1].size) for one, two in counts]


def require_columns(columns: Sequence[str], who: str) -> None:
    """Refuse no column at all, or one twice."""
    if isinstance(columns, str) or not columns or len(set(columns)) < len(columns):
        raise JobError(f"{who}: columns must be a list of one or more different columns; got {columns!r}.")


def summarised(
    original: Frame, masked: Frame, columns: Sequence[str], needs: Need, who: str, weight: str | None = None
) -> Summary:
    """What is needed, in as few passes as that takes. Only bins take categories, too."""
    require_columns(columns, who)
    reads = list(dict.fromkeys([*columns, *([weight] if weight else [])]))
    tables = table_pair(original, masked, reads, who, paired=bool(needs & Need.DISTANCES))
    tables.check(columns, require_groupable if needs & Need.BINS else require_numeric, who)
    numbers = [name for name in columns if tables.is_numeric(name)]
    categories = [name for name in columns if name not in numbers]
    weights = find_weights(tables, weight, who)
    found, distances = first_pass(tables, numbers, categories, needs, who, weights)
    _require_few(categories, found, who)
    search = QuantileSearch(tables, numbers, found, needs, who, weights)
    steps = search.narrow()
    quantiles = search.quantiles()
    return Summary(numbers, categories, found, distances, steps, quantiles, search.around(quantiles[0]), weights)


def _require_few(categories: Sequence[str], found: tuple[FirstPass, FirstPass], who: str) -> None:
    for table in found:
        for name, one in zip(categories, table.value_counts, strict=True):
            if one.many:
                raise JobError(
                    f"{who}: column '{name}' has more than {MOST_VALUES:,} different values, so it identifies "
                    "records by itself. Take it out of columns."
                )
