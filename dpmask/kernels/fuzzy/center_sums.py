"""Fuzzy c-means and its kin on one block: one pass gives sums that add up over blocks and yield the next centres.

Bezdek's fuzzy c-means (FCM), entropy-based FCM (EFCM), both with tolerance and with missing values; Torra (2020),
Prop. 1 and eq. 2-4; Torra, Endo, Miyamoto (2009), Algorithms 1 and 2. The second paper's Step 4 computes centres from
x_k; that is a misprint, they come from x_k + e_k here. Nothing of size rows x clusters is made: a pass needs room for
128 records. Several starts share a pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Floats
from dpmask.kernels.compile import compiled, plain
from dpmask.kernels.fuzzy.memberships import CRISP, ENTROPY, FUZZY, FUZZY_1_5, FUZZY_2, FUZZY_WHOLE, find_shares, finish
from dpmask.kernels.fuzzy.tiles import (
    ROWS,
    TOTAL,
    WEIGHT,
    Tile,
    add_to_sums,
    find_distances,
    load,
    new_tile,
    nothing_missing,
    prefetch_tile,
    scale_shares,
    separate_missing,
)
from dpmask.kernels.fuzzy.tolerance import settled

POWERED = True
"""An argument of kernels, not a constant in them: so they share the parts that find shares of u^m and shares of u."""
_LARGEST_WHOLE, _ALMOST = 100.0, 1e-12
_SLICE = 1 << 13
"""Records that a tolerance moves at a time: so many that few places of a tile are empty while the last ones move."""
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
) -> tuple[str, float]:
    """The model for fuzziness m >= 1 (1: crisp) or entropy weight lambda > 0, and its 1/(m-1) or lambda.

    ValueError where u^m would underflow.
    """
    if (fuzziness is None) == (entropy is None):
        raise ValueError("give either fuzziness or entropy")
    if fuzziness is None:
        if not (entropy is not None and 0.0 < entropy < math.inf):
            raise ValueError(f"entropy must be a finite number > 0; got {entropy}")
        return ENTROPY, float(entropy)
    if not 1.0 <= fuzziness < math.inf:
        raise ValueError(f"fuzziness must be a finite number >= 1; got {fuzziness}")
    if fuzziness > largest_fuzziness(clusters):
        raise ValueError(
            f"fuzziness {fuzziness} with {clusters} clusters: memberships to that power are too small for a computer; "
            f"the largest fuzziness for {clusters} clusters is {largest_fuzziness(clusters):.1f}"
        )
    if fuzziness == 1.0:
        return CRISP, math.inf
    exponent = 1.0 / (fuzziness - 1.0)
    if not _is_whole(exponent):
        return FUZZY, exponent
    return {1: FUZZY_2, 2: FUZZY_1_5}.get(round(exponent), FUZZY_WHOLE), float(round(exponent))


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
    objective, none, rows, total = np.zeros(starts), np.empty(0), 0, 0.0
    tile, add = new_tile(columns, clusters, partial=partial), sum_block(model, partial)
    for records, own, some in _movements(model, partial, block, padded, clusters, kappas, exponent):
        sums = (weighted[own], weight[own], objective[own], none, none)
        count, heavy = add(records, padded[own], clusters, counts[some], exponent, POWERED, tile, *sums)
        rows, total = (rows + count, total + heavy) if own.start == 0 else (rows, total)
    weight = weight[:, :clusters] if partial else weight[:, :clusters, 0]
    return CenterSums(weighted[:, :clusters], weight, objective, rows, total)


def _movements(
    model: str, partial: bool, block: Floats, centers: Floats, clusters: int, tolerances: Floats, exponent: float
) -> Iterator[tuple[Floats, slice, slice]]:
    """Records as they count, for which starts, and which of the block they are: as they are, or moved to each start."""
    if not len(tolerances):
        yield plain(block), slice(0, len(centers)), slice(0, block.shape[1])
        return
    for first in range(0, block.shape[1], _SLICE):
        some = slice(first, min(first + _SLICE, block.shape[1]))
        records, own = plain(block[:, some]), tolerances[some] if len(tolerances) > 1 else tolerances
        for start, at in enumerate(centers):
            yield settled(model, partial, records, at, clusters, own, exponent), slice(start, start + 1), some


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
    result, clusters = np.empty((len(centers), block.shape[1])), len(centers)
    kappas, padded = _for_each("tolerance", tolerance, block), even(block, centers[None])
    tile, find = new_tile(block.shape[0], clusters, partial=partial), _find_memberships(model, partial)
    for records, _, some in _movements(model, partial, block, padded, clusters, kappas, exponent):
        found = np.empty((clusters, records.shape[1]))
        find(records, padded[0], clusters, exponent, not POWERED, tile, found)
        result[:, some] = found
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
def sum_block(model: str, partial: bool) -> Any:
    """The kernel of a pass; where the last two arguments have room, it notes how near and how heavy records are."""
    distances, shares_of = find_distances(partial), find_shares(model, partial)
    finish_shares, add = finish(model), add_to_sums(partial)
    separate, noting = separate_missing if partial else nothing_missing, not partial

    @compiled(variant=(model, partial))
    def sum_block(
        block: Floats,
        centers: Floats,
        clusters: int,
        weights: Floats,
        exponent: float,
        powered: bool,
        tile: Tile,
        weighted: Floats,
        weight: Floats,
        objective: Floats,
        nearest: Floats,
        largest: Floats,
    ) -> tuple[int, float]:
        records, seen, lines, shares, _, _ = tile
        counted, total = 0, 0.0
        for first in range(0, block.shape[1], ROWS):
            count = load(block, first, weights, records, lines)
            counted += separate(records, seen, lines, count)
            total = _plus(total, lines)
            for start in range(len(centers)):
                for i in range(0, shares.shape[0], 2):
                    if start == 0:
                        prefetch_tile(block, first + ROWS, i // 2, shares.shape[0] // 2)
                    distances(records, seen, lines, centers[start, i : i + 2], shares[i : i + 2])
                if noting and nearest.size > 0:
                    _note_nearest(shares, clusters, count, nearest)
                shares_of(records, seen, lines, shares, centers[start], clusters, exponent, powered)
                finish_shares(lines, exponent)
                objective[start] += scale_shares(shares, lines)
                if noting and largest.size > 0:
                    _note_largest(shares, clusters, largest)
                add(records, seen, lines, shares, weighted[start], weight[start])
        return counted, total

    return sum_block


@compiled(part=True, reassociate=False)
def _plus(total: float, lines: Floats) -> float:
    """A sum of weights from the left, whatever the processor."""
    tile = 0.0
    for k in range(ROWS):
        tile += lines[WEIGHT, k]
    return total + tile


@compiled(part=True)
def _note_nearest(shares: Floats, clusters: int, count: int, nearest: Floats) -> None:
    for i in range(clusters):
        least = nearest[i]
        for k in range(count):
            least = shares[i, k] if shares[i, k] < least else least
        nearest[i] = least


@compiled(part=True)
def _note_largest(shares: Floats, clusters: int, largest: Floats) -> None:
    for i in range(clusters):
        most = largest[i]
        for k in range(ROWS):
            most = shares[i, k] if shares[i, k] > most else most
        largest[i] = most


@cache
def _find_memberships(model: str, partial: bool) -> Any:
    distances, shares_of = find_distances(partial), find_shares(model, partial)
    separate = separate_missing if partial else nothing_missing

    @compiled(variant=(model, partial))
    def find_memberships(
        block: Floats, centers: Floats, clusters: int, exponent: float, powered: bool, tile: Tile, result: Floats
    ) -> None:
        records, seen, lines, shares, _, _ = tile
        for first in range(0, block.shape[1], ROWS):
            count = load(block, first, lines[0][:0], records, lines)
            separate(records, seen, lines, count)
            distances(records, seen, lines, centers, shares)
            shares_of(records, seen, lines, shares, centers, clusters, exponent, powered)
            for i in range(clusters):
                found = result[i, first:]
                for k in range(count):
                    found[k] = shares[i, k] * (1.0 / lines[TOTAL, k])

    return find_memberships
