"""Fuzzy c-means and its kin on one block: one pass gives sums that add up over blocks and yield the next centres.

Bezdek's fuzzy c-means (FCM), entropy-based FCM (EFCM), both with tolerance and with missing values; Torra (2020),
Prop. 1 and eq. 2-4; Torra, Endo, Miyamoto (2009), Algorithms 1 and 2. The second paper's Step 4 computes centres from
x_k; that is a misprint, they come from x_k + e_k here. Nothing of size rows x clusters is made: a pass needs room for
128 records. Several starts share a pass.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.compile import compiled, plain
from dpmask.kernels.fuzzy.memberships import CRISP, ENTROPY, FUZZY, FUZZY_WHOLE, Model, find_shares, finish
from dpmask.kernels.fuzzy.tiles import ROWS, add_to_sums, load, new_tile, nothing_missing, separate_missing
from dpmask.kernels.fuzzy.tolerance import load_tolerance, new_movement, settle

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_LARGEST_WHOLE, _ALMOST = 100.0, 1e-12
_NO_WEIGHT = 1e-300  # smaller sums have lost their digits to underflow


class CenterSums(NamedTuple):
    """One block's share of the next centres."""

    weighted: Floats  # starts x clusters x columns: sum_k w_k u_ik^m (x_k + e_k)
    weight: Floats  # starts x clusters: sum_k w_k u_ik^m; with partial distances one for each column, too
    objective: Floats  # starts: J at the centres that were given
    rows: int  # records counted: all but those with every value missing
    total_weight: float  # sum_k w_k over these

    @property
    def empty(self) -> NDArray[np.bool_]:
        """Where nobody weighs on a cluster (with partial distances: on a value of it)."""
        return self.weight < _NO_WEIGHT

    def centers(self, previous: Floats) -> Floats:
        """The next centres; what is empty stays as it was."""
        partial = self.weight.ndim == self.weighted.ndim
        weight, empty = (self.weight, self.empty) if partial else (self.weight[..., None], self.empty[..., None])
        return np.where(empty, previous, self.weighted / np.where(empty, 1.0, weight))


def merge(left: CenterSums, right: CenterSums) -> CenterSums:
    """The sums of both parts together."""
    return CenterSums(
        left.weighted + right.weighted,
        left.weight + right.weight,
        left.objective + right.objective,
        left.rows + right.rows,
        left.total_weight + right.total_weight,
    )


def largest_fuzziness(clusters: int) -> float:
    """The largest m that `clusters` centres allow: beyond it c^-m, the u^m of a record between them, underflows."""
    return 290.0 / math.log10(clusters) if clusters > 1 else math.inf


def membership_model(
    clusters: int, *, fuzziness: float | None = None, entropy: float | None = None
) -> tuple[Model, float]:
    """The model for fuzziness m >= 1 (1: crisp) or entropy weight lambda > 0, and its 1/(m-1) or lambda.

    ValueError where u^m would underflow.
    """
    if (fuzziness is None) == (entropy is None):
        raise ValueError("give either fuzziness or entropy")
    if fuzziness is None:
        if not (entropy is not None and 0.0 < entropy < math.inf):
            raise ValueError(f"entropy must be a finite number > 0; got {entropy}")
        return Model(ENTROPY), float(entropy)
    if not 1.0 <= fuzziness < math.inf:
        raise ValueError(f"fuzziness must be a finite number >= 1; got {fuzziness}")
    if fuzziness > largest_fuzziness(clusters):
        raise ValueError(
            f"fuzziness {fuzziness} with {clusters} clusters: memberships to that power are too small for a computer; "
            f"the largest fuzziness for {clusters} clusters is {largest_fuzziness(clusters):.1f}"
        )
    if fuzziness == 1.0:
        return Model(CRISP), math.inf
    exponent = 1.0 / (fuzziness - 1.0)
    return (Model(FUZZY_WHOLE, round(exponent)) if _is_whole(exponent) else Model(FUZZY)), exponent


def _is_whole(exponent: float) -> bool:
    """Whether 1/(m-1) is a whole number, and small: m = 1.1 or 1.05, which floats hold almost."""
    return exponent < _LARGEST_WHOLE and abs(exponent - round(exponent)) < _ALMOST * exponent and round(exponent) > 0


def center_sums(
    block: Floats,
    centers: Floats,
    *,
    fuzziness: float | None = None,
    entropy: float | None = None,
    weights: Floats | None = None,
    tolerance: float | Floats | None = None,
    partial: bool = False,
) -> CenterSums:
    """One pass of one block (columns x rows) at `centers` (starts x clusters x columns).

    `weights`: one for each record, >= 0. `tolerance`: kappa, one number or one for each record. `partial`: NaN is a
    missing value, and distances are those of the observed columns times columns/observed.
    """
    starts, clusters, columns = centers.shape
    model, exponent = membership_model(clusters, fuzziness=fuzziness, entropy=entropy)
    padded, kappas = even(block, centers), _for_each("tolerance", tolerance, block)
    counts = _for_each("weights", None if weights is None else np.atleast_1d(weights), block)
    weighted = np.zeros(padded.shape)
    weight = np.zeros((starts, padded.shape[1], columns if partial else 1))
    objective = np.zeros(starts)
    block = plain(block)
    sum_block = _sum_block(model, partial, tolerance is not None)
    rows, total = sum_block(block, padded, clusters, counts, kappas, exponent, weighted, weight, objective)
    weight = weight[:, :clusters] if partial else weight[:, :clusters, 0]
    return CenterSums(weighted[:, :clusters], weight, objective, rows, total)


def memberships(
    block: Floats,
    centers: Floats,
    *,
    fuzziness: float | None = None,
    entropy: float | None = None,
    tolerance: float | Floats | None = None,
    partial: bool = False,
) -> Floats:
    """u_ik (clusters x rows) at `centers` (clusters x columns). A record without any value belongs 1/c to each."""
    model, exponent = membership_model(len(centers), fuzziness=fuzziness, entropy=entropy)
    result = np.empty((len(centers), block.shape[1]))
    kappas = _for_each("tolerance", tolerance, block)
    find = _find_memberships(model, partial, tolerance is not None)
    find(plain(block), even(block, centers[None])[0], len(centers), kappas, exponent, result)
    return result


def labels(block: Floats, centers: Floats, *, partial: bool = False) -> Integers:
    """The nearest centre of each record, the first of several. Without tolerance it has the largest membership, too."""
    result = np.empty(block.shape[1], np.int64)
    _find_labels(partial)(plain(block), even(block, centers[None])[0], len(centers), result)
    return result


def even(block: Floats, centers: Floats) -> Floats:
    """The centres, the last one twice if their number is odd: kernels work on pairs."""
    if block.shape[0] != centers.shape[2]:
        raise ValueError(f"centers have {centers.shape[2]} columns, the block has {block.shape[0]}")
    odd = centers.shape[1] % 2
    return np.ascontiguousarray(np.concatenate([centers, centers[:, centers.shape[1] - odd :][:, :odd]], axis=1))


def _for_each(name: str, values: float | Floats | None, block: Floats) -> Floats:
    """One number for each record, one for all, or none: kernels do not check lengths."""
    if values is None:
        return np.empty(0)
    numbers = plain(np.ravel(values))
    if np.ndim(values) > 0 and len(numbers) != block.shape[1]:
        raise ValueError(f"{name}: {len(numbers)} numbers for {block.shape[1]} records")
    return numbers


@cache
def _sum_block(model: Model, partial: bool, tolerant: bool) -> Any:
    settle_in: Any = settle(model, partial) if tolerant else None
    shares, finish_shares, add = find_shares(model, partial, powered=True), finish(model), add_to_sums(partial)
    separate = separate_missing if partial else nothing_missing

    @compiled(variant=(*model, partial, tolerant))
    def sum_block(
        block: Floats,
        centers: Floats,
        clusters: int,
        weights: Floats,
        tolerances: Floats,
        exponent: float,
        weighted: Floats,
        weight: Floats,
        objective: Floats,
    ) -> tuple[int, float]:
        columns, rows = block.shape
        tile, movement = new_tile(columns, clusters, partial), new_movement(columns if tolerant else 0)
        counted, total = 0, 0.0
        for first in range(0, rows, ROWS):
            counted += separate(tile, load(tile, block, first, weights))
            total = _plus(total, tile.weight)
            if tolerant:
                load_tolerance(tile, tolerances, first)
            for start in range(len(centers)):
                records = tile.records
                if tolerant:
                    records = settle_in(tile, movement, centers[start], clusters, exponent)
                else:
                    shares(tile, records, centers[start], clusters, exponent)
                finish_shares(tile, exponent)
                objective[start] += add(tile, records, weighted[start], weight[start])
        return counted, total

    return sum_block


@compiled(part=True, reassociate=False)
def _plus(total: float, weight: Floats) -> float:
    """A sum from the left, whatever the processor."""
    tile = 0.0
    for k in range(ROWS):
        tile += weight[k]
    return total + tile


@cache
def _find_memberships(model: Model, partial: bool, tolerant: bool) -> Any:
    settle_in: Any = settle(model, partial) if tolerant else None
    shares = find_shares(model, partial, powered=False)
    separate = separate_missing if partial else nothing_missing

    @compiled(variant=(*model, partial, tolerant))
    def find_memberships(
        block: Floats, centers: Floats, clusters: int, tolerances: Floats, exponent: float, result: Floats
    ) -> None:
        columns, rows = block.shape
        tile, movement = new_tile(columns, clusters, partial), new_movement(columns if tolerant else 0)
        for first in range(0, rows, ROWS):
            count = load(tile, block, first, np.empty(0))
            separate(tile, count)
            records = tile.records
            if tolerant:
                load_tolerance(tile, tolerances, first)
                records = settle_in(tile, movement, centers, clusters, exponent)
            shares(tile, records, centers, clusters, exponent)
            for i in range(clusters):
                for k in range(count):
                    result[i, first + k] = tile.shares[i, k] * (1.0 / tile.total[k])

    return find_memberships


@cache
def _find_labels(partial: bool) -> Any:
    shares = find_shares(Model(CRISP), partial, powered=False)
    separate = separate_missing if partial else nothing_missing

    @compiled(variant=(partial,))
    def find_labels(block: Floats, centers: Floats, clusters: int, result: Integers) -> None:
        columns, rows = block.shape
        tile = new_tile(columns, clusters, partial)
        for first in range(0, rows, ROWS):
            count = load(tile, block, first, np.empty(0))
            separate(tile, count)
            shares(tile, tile.records, centers, clusters, 0.0)
            for k in range(count):
                for i in range(clusters):
                    if tile.shares[i, k] > 0.0:
                        result[first + k] = i

    return find_labels
