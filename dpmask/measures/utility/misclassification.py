"""Misclassification: how many records k-means puts into another cluster once the table is masked.

k-means clusters the original and the masked table. The clusters are matched one to one so that as many records as
possible stay (the best assignment on the table of counts), and the share of the others is the error. Beside it stands
the error of the literature (Ahmad, Haque and Tauhid 2014, whose formula is misprinted; Oliveira and Zaiane 2003),

    (1/N) sum_i | |C_i(D)| - |C_i(D')| |, clusters in the order of their sizes,

which sees the sizes only: records that change places between clusters do not count.

A cold start clusters the masked table afresh, and restart luck counts as error. A warm one starts from the original's
clusters, as the masked records' means over each, and shows what masking did; it needs no common units, so memberships
and rotated columns can be compared, too. Records with a missing value on either side are left out. Passes: those of
three clusterings, and two over both tables. Memory per task: one block of both.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from dpmask.clustering.fuzzy_c_means import FittedFuzzyCMeans
from dpmask.clustering.k_means import KMeans
from dpmask.errors import InputError
from dpmask.table.columns import require_numeric
from dpmask.table.pairs import masked_name, pair

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

_WHO = "misclassification"
PASSES = 8  # over both tables, about


@dataclass(frozen=True)
class Misclassification:
    """``value`` is the share of records that changed cluster, warm; ``sizes`` what their sizes show of it."""

    value: float
    sizes: float
    clusters: int
    records: int
    parts: Mapping[str, float] = field(default_factory=dict)

    judged: ClassVar[tuple[str, ...]] = ("value", "sizes")
    public: ClassVar[bool] = True
    definition: ClassVar[str] = (
        "The share of records whose k-means cluster changed, under the best one-to-one matching of clusters; sizes "
        "compares only how large the clusters are."
    )
    direction: ClassVar[str] = "0 means the same clusters; larger means more information lost."
    source: ClassVar[str] = "Ahmad, Haque and Tauhid 2014, its formula corrected."

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"{self.value:.2%} of {self.records:,} records changed cluster (k-means, {self.clusters} clusters, the "
            f"best one-to-one matching); by the sizes of the clusters alone it would be {self.sizes:.4g}. 0 means the "
            "same clusters; larger means that more of the cluster structure was lost."
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {**vars(self), "parts": dict(self.parts)}


def misclassification(
    original: Any,
    masked: Any,
    *,
    columns: Sequence[str],
    clusters: int,
    standardise: bool = True,
    starts: int = 20,
    seed: int = 0,
) -> Misclassification:
    """The error between two tables: frames paired by index, or lakes by position.

    With ``standardise`` each table is clustered in standard deviations of its own columns. A rotation keeps distances
    in the units it was made in: leave it out where columns were rotated.
    """
    method = KMeans(clusters=clusters, standardise=standardise, starts=starts, nulls="drop")
    pairs = pair(original, masked, columns, _WHO)
    names = [*columns, *(masked_name(column) for column in columns)]
    require_numeric(pairs.masked_schema, names, _WHO)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a restart's luck is told by the warm start beside it
        before = method.fit(original, columns=columns, seed=seed)
        met = pairs.reduce(names, partial(_met, before), _Means.plus, f"{_WHO}: original clusters")
        if not met.counts.sum():
            raise InputError(f"{_WHO}: no record is complete in both tables.")
        after = {
            "warm": replace(method, initial=met.means()).fit(masked, columns=columns, seed=seed),
            "cold": method.fit(masked, columns=columns, seed=seed),
        }
    moved = pairs.reduce(names, partial(_moved, before, after), np.add, f"{_WHO}: count")
    return _result(dict(zip(after, moved, strict=True)))


class _Means(NamedTuple):
    """Masked records of each original cluster: how many, and their sums."""

    counts: Counts
    sums: Floats  # clusters x columns

    def plus(self, other: _Means) -> _Means:
        return _Means(self.counts + other.counts, self.sums + other.sums)

    def means(self) -> Floats:
        """Their means; of all records for a cluster that has none."""
        all_of_them = self.sums.sum(axis=0) / self.counts.sum()
        filled = np.maximum(self.counts, 1)[:, None]
        return np.where(self.counts[:, None] > 0, self.sums / filled, all_of_them)


def _met(before: FittedFuzzyCMeans, columns: Sequence[Floats]) -> _Means:
    half, clusters = len(columns) // 2, len(before.centers)
    labels, masked = before.nearest(columns[:half]), np.array(columns[half:])
    whole = (labels >= 0) & np.isfinite(masked).all(axis=0)
    kept = labels[whole]
    sums = np.array([np.bincount(kept, column[whole], clusters) for column in masked], np.float64)
    return _Means(np.bincount(kept, minlength=clusters), sums.T)


def _moved(
    before: FittedFuzzyCMeans, after: Mapping[str, FittedFuzzyCMeans], columns: Sequence[Floats]
) -> NDArray[np.int64]:
    """For each start the records by original and by masked cluster."""
    half, clusters = len(columns) // 2, len(before.centers)
    labels = before.nearest(columns[:half])
    tables = []
    for fitted in after.values():
        others = fitted.nearest(columns[half:])
        whole = (labels >= 0) & (others >= 0)
        cells = labels[whole] * clusters + others[whole]
        tables.append(np.bincount(cells, minlength=clusters**2).reshape(clusters, clusters))
    return np.array(tables)


def _result(moved: Mapping[str, Counts]) -> Misclassification:
    parts = {}
    for start, table in moved.items():
        parts[f"records_{start}"] = 1.0 - float(table[linear_sum_assignment(-table)].sum() / table.sum())
        gaps = np.sort(table.sum(axis=0)) - np.sort(table.sum(axis=1))
        parts[f"sizes_{start}"] = float(np.abs(gaps).sum() / table.sum())
    warm = moved["warm"]
    return Misclassification(parts["records_warm"], parts["sizes_warm"], len(warm), int(warm.sum()), parts)
