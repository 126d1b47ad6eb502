"""Fuzzy microaggregation: every record takes the values of a cluster centre that it draws by its memberships.

Algorithm 1 of Torra 2020: fuzzy c-means (or entropy-based fuzzy c-means) with c = n / k clusters and fuzziness m1, then
each record draws a centre with its memberships for m2. An intruder cannot know which centre a record was nearest to.
Linear constraints and bounds hold for every centre, so for every released record, whatever the input did; integer
columns stay integer (see dpmask.kernels.rounding_with_constraints).

Protects against: linking a record by its exact or nearly exact values. Does not promise k-anonymity by itself: k is the
expected size of a group, the realised ones vary, down to single records. ``minimum_size`` makes them at least that
large. With many clusters and m1 of 2 or more the centres lie on real records, which then are released: keep m1 small.

Up to ``cell_size`` records it is Algorithm 1 as printed. Larger tables are cut into compact cells of that size and each
is masked by itself, so cost grows with n, not with n^2; there clusters begin as groups of Ward's hierarchy
(dpmask.kernels.ward), from which a few passes lead to less loss than many from records that lie apart. Few clusters (up
to 500) are fitted to the whole table instead. Passes over the data: one for the spread, one to send the records to
their cells, one more to mask. Memory per task: one block, or eight cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpmask.clustering.iteration import ClusterModel, Records, off_records, solve
from dpmask.constraints.zeros import AUTO
from dpmask.engine.draws import Subkey, record_uniforms, uniforms_at
from dpmask.engine.limits import current_limits
from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Floats
from dpmask.kernels.cells import share_out
from dpmask.kernels.fuzzy.center_sums import largest_fuzziness
from dpmask.kernels.fuzzy.draws import closeness, draw_centers
from dpmask.kernels.fuzzy.starts import spread_out
from dpmask.kernels.keys import float_keys, grouped
from dpmask.kernels.microaggregation import merge_small
from dpmask.kernels.ward import Merges, cut, means, merge_all
from dpmask.kernels.warm_up import KernelUse, Task
from dpmask.masking.microaggregation.cell_method import Cell, Integers
from dpmask.masking.microaggregation.cells import fit_in_cells
from dpmask.masking.microaggregation.grouped_release import CELL_SIZES, FittedGroup, FittedSharedRows, SharedRowsMethod
from dpmask.masking.microaggregation.variables import Variables
from dpmask.masking.microaggregation.whole_table import Sharpness, fit_whole_table
from dpmask.masking.movable import Movable, ParameterRange, Trial, movable_numbers
from dpmask.masking.parts import Parts
from dpmask.parameters import NameLists, Names, Several, require_integer, require_number
from dpmask.table.table import Table

_FUZZINESS = 1.1
_TRIAL = Trial("k sets the risk; at the same linkage other fuzziness (m1, m2) loses about as much or more, so it stays")
_FEW_CLUSTERS = 500
_PASSES = 1000
_CELL_SECONDS, _WHOLE_SECONDS, _DRAW_SECONDS, _OVERHEAD = 0.7e-9, 2e-8, 1.8e-9, 8
"""What plans count for each record, cluster and column, and the columns that a pass's own cost is worth: the passes of
a cell, the many more that bring a whole table to rest, and the hierarchy and draws of a cell, for which equal records
count one by one; from the jobs household_income and scientific_use_file, and FuzzyMicroaggregation with k from 10 to
1000."""
_SHIFT = 1e-6
_DECREASE = 1e-2
"""Centres of a whole table are brought to rest; those of a cell until a pass gains less than this share."""


@dataclass(frozen=True, kw_only=True)
class FuzzyMicroaggregation(SharedRowsMethod["FittedFuzzyMicroaggregation"]):
    """Every record takes the values of a cluster centre that it draws by its memberships.

    Parameters
    ----------
    k, clusters
        Expected records in a group, or the number of clusters: one of them.
    fuzziness, draw_fuzziness
        The paper's m1, of the clusters (1.1 by default), and m2, of the draws (halfway between 1 and m1).
    entropy, draw_entropy
        Instead of these, lambda1 and lambda2 (twice lambda1 by default) of the entropy model.
    minimum_size
        No released group is smaller.
    cell_size
        The most records that are clustered together: by default 4000, or 100 k if that is more, and the whole table
        where it takes no more than 500 clusters.

    Examples
    --------
    >>> import dpmask, pandas
    >>> people = pandas.DataFrame({"net": [10.0, 11.0, 50.0, 52.0] * 5, "tax": [1.0, 2.0, 9.0, 10.0] * 5})
    >>> method = dpmask.FuzzyMicroaggregation(columns=["net", "tax"], k=10, minimum_size=5)
    >>> fitted = method.fit(people, seed=7)
    >>> fitted.figures.smallest >= 5
    True

    """

    columns: Names = ()
    k: int | None = None
    clusters: int | None = None
    fuzziness: float | None = None
    entropy: float | None = None
    draw_fuzziness: float | None = None
    draw_entropy: float | None = None
    constraints: Names = ()
    groups: NameLists = ()
    minimum_size: int | None = None
    cell_size: int | None = None
    by: Several = ()
    zeros: str = AUTO

    neutral: ClassVar[tuple[str, ...]] = ("by", "zeros")
    ranges: ClassVar[Mapping[str, ParameterRange]] = {
        "k": ParameterRange(2, whole=True, counts="records", trial=_TRIAL),
        "clusters": ParameterRange(2, whole=True, counts="groups", trial=_TRIAL),
        "minimum_size": ParameterRange(2, whole=True, counts="records"),
        "cell_size": CELL_SIZES,
        "fuzziness": ParameterRange(1.05, 4),
        "draw_fuzziness": ParameterRange(1, 4),
        "entropy": ParameterRange(0.01),
        "draw_entropy": ParameterRange(0.01),
    }

    def __post_init__(self) -> None:
        self.settle_groups()
        if (self.k is None) == (self.clusters is None):
            raise JobError(f"{self.who}: give either k (records in a group) or clusters, and not both.")
        for name, least in (("k", 2), ("clusters", 1), ("minimum_size", 2)):
            if getattr(self, name) is not None:
                require_integer(self, name, at_least=least)
        self._check_model()
        self.check_cell_size()

    def _check_model(self) -> None:
        fuzzy, entropic = ("fuzziness", "draw_fuzziness"), ("entropy", "draw_entropy")
        given = [name for name in fuzzy + entropic if getattr(self, name) is not None]
        if set(given).intersection(fuzzy) and set(given).intersection(entropic):
            raise JobError(f"{self.who}: give fuzziness and draw_fuzziness, or entropy and draw_entropy; not of both.")
        if given == ["draw_entropy"]:
            raise JobError(f"{self.who}: draw_entropy needs entropy.")
        for name in given:
            require_number(self, name, **({"at_least": 1} if name in fuzzy else {"above": 0}))

    def movable(self, given: Mapping[str, Any]) -> Iterator[Movable]:
        """The fuzziness, too, where a job leaves it out."""
        omitted = {} if "entropy" in given else {"fuzziness": _FUZZINESS}
        return movable_numbers({**omitted, **given}, self.ranges)

    @property
    def least(self) -> int:
        """Records that a released row is shared by, at least."""
        return self.minimum_size or 1

    @property
    def draws(self) -> bool:
        """Whether memberships leave anything to draw."""
        return self.draw_fuzziness != 1

    @property
    def fewest(self) -> int:
        """Records that a table must have."""
        return max(super().fewest, self.clusters or 1)

    def _sizes(self, rows: int) -> tuple[Fraction, int]:
        """Records of a cluster, and the most of a cell: the whole table when it takes few clusters."""
        per_cluster = Fraction(self.k) if self.k is not None else Fraction(rows, self.clusters or 1)
        few = rows // per_cluster <= _FEW_CLUSTERS
        return per_cluster, self.cell_size or (rows if few else self.default_cell_size(per_cluster))

    def work(self, rows: int) -> float:
        """CPU seconds beyond reading the table, about."""
        return self.work_on_groups(rows, 1)

    def work_on_groups(self, rows: int, size: int) -> float:
        """Passes over equal records count one of them."""
        per_cluster, most = self._sizes(rows)
        clusters = max(1.0, min(rows, most) / float(per_cluster))
        each = _WHOLE_SECONDS / size if rows <= most else _CELL_SECONDS / size + _DRAW_SECONDS
        return self.gathering(rows) + sum(each * rows * clusters * (_OVERHEAD + len(group)) for group in self.groups)

    def fit_table(self, table: Table, key: Subkey) -> FittedFuzzyMicroaggregation:
        """Find the clusters of every cell."""
        return FittedFuzzyMicroaggregation(self, key, *self.fit_groups(table, key))

    def group_size(self, rows: int) -> int:
        """Records in a group, expected or at least."""
        return max(self.least, int(self._sizes(rows)[0]))

    def fit_group(self, table: Table, variables: Sequence[Variables], parts: Parts, key: Subkey) -> FittedGroup:
        """One group of variables, clustered in cells, or as a whole where a large table takes few clusters."""
        per_cluster, size = self._sizes(table.rows)
        if len(parts.sizes) > 1 and self.cell_size is None and size > current_limits().largest_cell:
            size = self.default_cell_size(per_cluster)
        in_a_cell = max(1, int(min(size, table.rows) // per_cluster))
        if self.fuzziness is not None and self.fuzziness > largest_fuzziness(in_a_cell):
            raise JobError(
                f"{self.who}: fuzziness {self.fuzziness:g} is too large for {in_a_cell} clusters: memberships to that "
                f"power vanish. The largest is {largest_fuzziness(in_a_cell):.4g}."
            )
        whole = table.rows <= size
        decrease = 0.0 if whole else _DECREASE
        method = FuzzyCells(self, per_cluster, decrease, key.subkey("draw"), key.subkey("cells"))
        if whole and len(variables) == 1 and table.rows > current_limits().largest_cell:
            clusters = int(table.rows // per_cluster)
            return fit_whole_table(table, variables[0], method, self.clustering, clusters, self.least, key, self.who)
        return fit_in_cells(table, variables, parts, method, size, float(per_cluster), key, self.who)

    @property
    def kernels(self) -> KernelUse:
        """What it runs."""
        fuzzy = (Task("fuzzy", *self.clustering), Task("drawn centres", *self.drawing))
        return KernelUse((*fuzzy, Task("ward"), Task("labels"), Task("cells"), Task("small groups")), (Task("starts"),))

    @property
    def clustering(self) -> Sharpness:
        """Memberships of the clusters: fuzziness m1 or entropy weight lambda1."""
        return Sharpness(None if self.entropy else self.fuzziness or _FUZZINESS, self.entropy)

    @property
    def drawing(self) -> Sharpness:
        """Memberships of the draws: m2 or lambda2."""
        if self.entropy is not None:
            return Sharpness(None, self.draw_entropy or 2.0 * self.entropy)
        return Sharpness(self.draw_fuzziness or ((self.fuzziness or _FUZZINESS) + 1.0) / 2.0, None)


class Equal(NamedTuple):
    """Records of a cell, equal ones as one of their weight: those of an earlier step, such as MDAV, are few."""

    block: Floats
    weights: Floats

    @classmethod
    def of(cls, block: Floats) -> Equal:
        """Those of a block."""
        equal = grouped(float_keys(block))
        return cls(np.ascontiguousarray(block[:, equal.firsts]), equal.sizes.astype(np.float64))


def _grouped_start(equal: Equal, merges: Merges, clusters: int) -> Floats:
    """Groups of Ward's hierarchy: after a pass or two they lose less than records that lie apart after many."""
    return means(equal.block, equal.weights, cut(merges, len(equal.weights), clusters)).T


@dataclass(frozen=True)
class FuzzyCells:
    """Algorithm 1 in one cell."""

    method: FuzzyMicroaggregation
    per_cluster: Fraction
    decrease: float
    key: Subkey
    starts: Subkey

    def clusters(self, records: int) -> int:
        """One for k records each."""
        return int(records // self.per_cluster)

    def gains(self, cells: Sequence[Cell]) -> Floats:
        """What clusters beyond the first take off the squares in their cells."""
        return np.concatenate([merge_all(*Equal.of(cell.block)).gains for cell in cells])

    def fit_cells(self, cells: Sequence[Cell], clusters: int) -> list[Floats]:
        """The centres of the cells' clusters, in clustering units; cells that spread more get more of them.

        Without cells clusters gather where records spread, and sparse ones have clusters of their own: with n / k for
        each cell the loss on skewed data was three times that of no cells.
        """
        equal = [Equal.of(cell.block) for cell in cells]
        merges = [merge_all(*one) for one in equal]
        shares = share_out([one.gains for one in merges], max(len(cells), clusters))
        numbered = zip(range(len(cells)), cells, equal, merges, shares, strict=True)
        return [self._centers(*one) for one in numbered]

    def _centers(self, number: int, cell: Cell, equal: Equal, merges: Merges, clusters: int) -> Floats:
        limits = cell.variables.limits
        model = ClusterModel(*self.method.clustering, None, False, limits.units if limits else None)
        resting = self.decrease == 0.0
        start = self._drawn_start(number, cell, clusters) if resting else _grouped_start(equal, merges, clusters)
        starts, records = off_records(model, equal.block, equal.weights, [start]), Records(*equal, None)
        return solve(model, records, starts, _SHIFT, _PASSES, accelerate=resting, decrease=self.decrease).centers

    def _drawn_start(self, number: int, cell: Cell, clusters: int) -> Floats:
        """Records that lie apart, which the key decides: Algorithm 1 in one cell."""
        draws = record_uniforms(self.starts.subkey(f"cell 0 {number}"), 0, clusters)[:, None]
        return cell.block[:, spread_out(cell.block, np.ones(cell.block.shape[1]), draws).records].T

    def draw(self, block: Floats, uniforms: Floats, centers: Floats) -> Integers:
        """The centre that each record draws."""
        fuzziness, entropy = self.method.drawing
        return draw_centers(block, centers, uniforms, fuzziness=fuzziness, entropy=entropy)

    def mask_cell(self, cell: Cell, model: Floats) -> tuple[Integers, Floats]:
        """The group of each record and the groups' rows: drawn, merged where too small, and on the grid."""
        least, block, variables = self.method.least, cell.block, cell.variables
        if block.shape[1] < least:
            raise InputError(
                f"{self.method.who}: a cell has fewer than {least} records of this table. Fit to this table."
            )
        drawn = self.draw(block, uniforms_at(self.key, cell.positions), model)
        sizes = np.bincount(drawn, minlength=len(model))
        merged = merge_small(variables.to_original(model), sizes, variables.scale.sd, least)
        return merged.place[drawn], variables.finished(merged.rows)

    def weight_shares(self, cell: Cell, model: Floats, groups: Integers) -> Floats:
        """How much of each centre its most important record makes up."""
        fuzziness, entropy = self.method.clustering
        return closeness(cell.block, model, fuzziness=fuzziness, entropy=entropy).share


@dataclass(frozen=True)
class FittedFuzzyMicroaggregation(FittedSharedRows):
    """Clusters of every group of variables and, on the table they were fitted to, what they came to."""

    method: FuzzyMicroaggregation

    @property
    def of_one_table(self) -> str:
        """Without a smallest size nothing can be counted again."""
        promised = self.method.minimum_size is not None
        return "" if promised else "k is only expected, of that table; minimum_size would be counted in every one"

    def statement(self) -> str:
        """What a reader of the release may know."""
        method = self.method
        size = f"{method.k} records each" if method.k else f"{method.clusters} groups"
        more = "".join(f" {one}" for one in self.particulars())
        least = f" No row is shared by fewer than {method.minimum_size} records." if method.minimum_size else ""
        how = (
            f"clusters with {method.clustering.describe()}, each record's centre drawn with {method.drawing.describe()}"
        )
        return (
            f"The values of {self.groups_listed} were replaced by those of fuzzy cluster centres, variables that stand "
            f"together as one row (fuzzy microaggregation, Torra 2020; {size} expected; {how}).{least}{more} "
            "Means are nearly kept; variances are smaller, and correlations tend to be stronger, than those of the "
            "originals." + " ".join(["", *self.apart()])
        )

    def for_analysts(self) -> list[str]:
        """That no total is exact, and what else rows do."""
        nearly = (
            f"Totals and means of {', '.join(self.method.columns)} are nearly those of the originals; none is exact."
        )
        return [nearly, *super().for_analysts()]

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        return [
            "k is the expected size of a group; only minimum_size promises one.",
            "Rare records that lie far from all others have a centre near them: measure the linkage.",
            *self.facts_released(),
            *self.apart(),
            *self.warnings(),
        ]
