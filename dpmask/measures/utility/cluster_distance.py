"""How far the fuzzy clusters of a masked table lie from those of the original.

Both tables are clustered, each standardised by itself, giving centres a_i and b_j and memberships. Each original
cluster i is paired with a masked one, pi(i): eagerly with the nearest centre (the paper's way; two may share one) or by
the best one-to-one assignment, one for each distance. Then

    d1 = sum_i |a_i - b_pi(i)|, in standard deviations (the paper prints squares and reports this: both are given)
    d2 = sum_k sum_i (u^A_ik - u^B_pi(i)k)^2 over paired records

A cold start clusters the masked table afresh, and restart luck counts as loss; a warm one starts from the original's
centres and shows what masking did. Torra, Endo and Miyamoto 2009, section 3. Passes: those of three clusterings, and
one over both tables.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpmask.clustering.fuzzy_c_means import FittedFuzzyCMeans, FuzzyCMeans
from dpmask.errors import InputError
from dpmask.kernels.arrays import Floats
from dpmask.kernels.scipy_parts import assign
from dpmask.kernels.warm_up import KernelUse, Task
from dpmask.measures.measure import Measure
from dpmask.results import Exhibit, Loss, Term
from dpmask.table.pairs import pair_numbers
from dpmask.table.table import Frame

_WHO = "cluster_distance"
_MAJORITY = 0.5


class _Sums(NamedTuple):
    """What one block adds: squared differences of pairs of clusters, and how sharp the original's memberships are."""

    squares: Floats  # clusterings x clusters x clusters: sum_k (u^A_ik - u^B_jk)^2
    records: int
    sharpness: float
    clear: int


@dataclass(frozen=True, kw_only=True)
class ClusterDistance(Loss):
    """``value`` is d2 a record, warm, under the best one-to-one assignment; ``parts`` has every variant."""

    memberships: Mapping[str, float]
    histories: Mapping[str, Sequence[tuple[float, float]]] = field(repr=False)

    exhibits: ClassVar[Mapping[str, Exhibit]] = {
        "memberships": Exhibit("numbers", "Memberships"),
        "histories": Exhibit("histories", "Convergence"),
    }
    about: ClassVar[Term] = Term(
        "Both tables are clustered by fuzzy c-means, the masked one from the original's centres, and clusters "
        "paired one to one; value is the sum of squared differences of memberships, a record.",
        "0 means the same clusters, 2 is the most; larger means more information lost.",
        "Torra, Endo and Miyamoto 2009, section 3",
    )

    def explain(self) -> str:
        """What the number means."""
        return (
            f"Memberships in {self.memberships['clusters']:.0f} fuzzy clusters changed by {self.value:.4g} a record. "
            "0 means the same clusters, 2 is the most; larger means that more of the cluster structure was lost."
        )


def cluster_distance(
    original: Frame,
    masked: Frame,
    *,
    columns: Sequence[str],
    clusters: int,
    fuzziness: float | None = None,
    entropy: float | str | None = None,
    tolerance: float | None = None,
    masked_tolerance: float | None = None,
    starts: int = 20,
    shift: float = 1e-6,
    seed: int = 0,
) -> ClusterDistance:
    """Distances between the fuzzy clusters of two tables.

    Parameters
    ----------
    columns
        The numeric columns to cluster by.
    fuzziness, entropy, starts, shift
        As of ``dpmask.FuzzyCMeans``.
    tolerance, masked_tolerance
        The paper's kappa of the original and of the masked table, by default the same.
    seed
        Chooses the starts.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"income": [1.0, 2.0, 3.0, 11.0, 12.0, 13.0]})
    >>> masked = pandas.DataFrame({"income": [1.0, 2.0, 12.0, 11.0, 12.0, 13.0]})
    >>> round(dpmask.utility.cluster_distance(original, masked, columns=["income"], clusters=2).value, 2)
    0.33
    """
    method = FuzzyCMeans(
        clusters=clusters, fuzziness=fuzziness, entropy=entropy, tolerance=tolerance, starts=starts, shift=shift
    )
    other = method if masked_tolerance is None else replace(method, tolerance=masked_tolerance)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the report shows how the clusterings went
        before = method.fit(original, columns=columns, seed=seed)
        after = {
            "cold": other.fit(masked, columns=columns, seed=seed),
            "warm": replace(other, initial=before.centers).fit(masked, columns=columns, seed=seed),
        }
    pairs, names = pair_numbers(original, masked, columns, _WHO)
    sums = pairs.reduce(names, partial(_block, before, after), _merge, "cluster distance")
    if not sums.records:
        raise InputError(f"{_WHO}: no record is complete in both tables.")
    return _result(before, after, sums)


def _gaps(before: FittedFuzzyCMeans, after: FittedFuzzyCMeans) -> Floats:
    """|a_i - b_j|, each in its own table's standard deviations."""
    return np.linalg.norm(before.solution.centers[:, None] - after.solution.centers[None], axis=2)


def _distances(start: str, gaps: Floats, squares: Floats) -> dict[str, float]:
    """Each distance under the eager pairing, by nearest centres, and under the one-to-one pairing that minimises it."""
    nearest = np.argmin(gaps, axis=1)
    found = {}
    for name, costs in (("d1", gaps), ("d1_squared", gaps**2), ("d2", squares)):
        for how, pi in (("eager", nearest), ("optimal", assign(costs)[1])):
            found[f"{name}_{start}_{how}"] = float(costs[np.arange(len(pi)), pi].sum())
    return found


def _block(
    before: FittedFuzzyCMeans,
    after: Mapping[str, FittedFuzzyCMeans],
    columns: Sequence[Floats],
) -> _Sums:
    half = len(columns) // 2
    shares = before.shares(columns[:half])
    others = [fitted.shares(columns[half:]) for fitted in after.values()]
    whole = ~np.isnan(shares[0]) & ~np.isnan(others[0][0])
    kept = shares[:, whole]
    squares = np.array([[((share - other[:, whole]) ** 2).sum(axis=1) for share in kept] for other in others])
    clear = int((kept.max(axis=0) > _MAJORITY).sum()) if kept.size else 0
    return _Sums(squares, int(whole.sum()), float((kept**2).sum()), clear)


def _merge(left: _Sums, right: _Sums) -> _Sums:
    return _Sums(
        left.squares + right.squares,
        left.records + right.records,
        left.sharpness + right.sharpness,
        left.clear + right.clear,
    )


def _result(
    before: FittedFuzzyCMeans,
    after: Mapping[str, FittedFuzzyCMeans],
    sums: _Sums,
) -> ClusterDistance:
    parts: dict[str, float] = {}
    for (name, fitted), squares in zip(after.items(), sums.squares, strict=True):
        parts |= _distances(name, _gaps(before, fitted), squares)
    clusterings = {"original": before, **after}
    return ClusterDistance(
        value=parts["d2_warm_optimal"] / sums.records,
        parts=parts,
        memberships={
            "clusters": float(len(before.centers)),
            "partition_coefficient": sums.sharpness / sums.records,
            "share_of_records_with_a_majority_cluster": sums.clear / sums.records,
        },
        histories={name: [(step.objective, step.shift) for step in one.history] for name, one in clusterings.items()},
    )


def _kernels(parameters: Mapping[str, Any]) -> KernelUse:
    entropy = parameters.get("entropy")
    model = (None, 1.0) if entropy is not None else (parameters.get("fuzziness") or 2.0, None)
    return KernelUse((Task("fuzzy", *model), Task("starts")))


MEASURE = Measure(function=cluster_distance, result=ClusterDistance, passes=7, complete=True, kernels=_kernels)
