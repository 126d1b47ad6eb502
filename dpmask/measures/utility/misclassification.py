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
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.clustering.fuzzy_c_means import FittedFuzzyCMeans
from dpmask.clustering.k_means import KMeans
from dpmask.engine.draws import Subkey
from dpmask.errors import InputError
from dpmask.kernels.arrays import Counts, Floats
from dpmask.kernels.scipy_parts import assign
from dpmask.kernels.warm_up import CRISP, KernelUse
from dpmask.measures.measure import Measure
from dpmask.results import Loss, Term
from dpmask.table.pairs import pair_numbers
from dpmask.table.table import Frame, as_table

_WHO = "misclassification"


@dataclass(frozen=True, kw_only=True)
class Misclassification(Loss):
    """``value`` is the share of records that changed cluster, warm; ``sizes`` what their sizes show of it."""

    sizes: float
    clusters: int
    records: int

    judged: ClassVar[tuple[str, ...]] = ("value", "sizes")
    about: ClassVar[Term] = Term(
        "The share of records whose k-means cluster changed, under the best one-to-one matching of clusters; sizes "
        "compares only how large the clusters are.",
        "0 means the same clusters; larger means more information lost.",
        "Ahmad, Haque and Tauhid 2014, its formula corrected",
    )

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"{self.value:.2%} of {self.records:,} records changed cluster (k-means, {self.clusters} clusters, the "
            f"best one-to-one matching); by the sizes of the clusters alone it would be {self.sizes:.4g}. 0 means the "
            "same clusters; larger means that more of the cluster structure was lost."
        )


def misclassification(
    original: Frame,
    masked: Frame,
    *,
    columns: Sequence[str],
    clusters: int,
    standardise: bool = True,
    starts: int = 20,
    seed: int = 0,
) -> Misclassification:
    """The share of records that k-means puts into another cluster after masking.

    Parameters
    ----------
    columns
        The numeric columns to cluster by.
    standardise
        Cluster each table in standard deviations of its own columns. A rotation keeps distances in the units it was
        made in: turn it off where columns were rotated.
    starts
        How many starts k-means makes, the best of which counts.
    seed
        Chooses the starts.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"income": [1, 2, 3, 11, 12, 13]})
    >>> masked = original.replace(3, 12)
    >>> round(dpmask.utility.misclassification(original, masked, columns=["income"], clusters=2).value, 4)
    0.1667
    """
    method = KMeans(clusters=clusters, standardise=standardise, starts=starts, nulls="drop")
    pairs, names = pair_numbers(original, masked, columns, _WHO)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the warm start shows what a restart's luck adds
        fit = partial(_fit, columns, method.subkey("fuzzy c-means", None, seed))
        before = fit(method, original)
        masked_means = pairs.reduce(names, partial(_masked_means, before), _Means.plus, f"{_WHO}: original clusters")
        if not masked_means.counts.sum():
            raise InputError(f"{_WHO}: no record is complete in both tables.")
        after = {
            "warm": fit(replace(method, initial=masked_means.means()), masked),
            "cold": fit(method, masked),
        }
    moved = pairs.reduce(names, partial(_moved, before, after), np.add, f"{_WHO}: count")
    return _result(dict(zip(after, moved, strict=True)))


def _fit(columns: Sequence[str], key: Subkey, method: KMeans, table: Frame) -> FittedFuzzyCMeans:
    return method.fit_numbers(as_table(table, method.who), columns, None, key)


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


def _masked_means(before: FittedFuzzyCMeans, columns: Sequence[Floats]) -> _Means:
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
        parts[f"records_{start}"] = 1.0 - float(table[assign(-table)].sum() / table.sum())
        gaps = np.sort(table.sum(axis=0)) - np.sort(table.sum(axis=1))
        parts[f"sizes_{start}"] = float(np.abs(gaps).sum() / table.sum())
    warm = moved["warm"]
    return Misclassification(
        value=parts["records_warm"],
        sizes=parts["sizes_warm"],
        clusters=len(warm),
        records=int(warm.sum()),
        parts=parts,
    )


_FIT_SECONDS, _ROW_SECONDS = 0.25, 3e-7
"""CPU of clustering a sample, and each record of the table; from the passes of the job cluster_analysis."""


def _work(_: Mapping[str, Any], rows: int) -> float:
    return _FIT_SECONDS + _ROW_SECONDS * rows


MEASURE = Measure(function=misclassification, result=Misclassification, passes=8, work=_work, kernels=KernelUse(CRISP))
