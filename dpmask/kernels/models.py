"""Privacy models: how far the sensitive values of each group are from what a requirement allows.

Sensitive values are small codes 0, 1, ...; a group is its counts n(s) of each, n in all, p(s) = n(s)/n, and q(s) is the
share of s in the whole table. The figure of a group is

    distinct    how many codes occur, and entropy: exp(-sum p ln p), each at least l (Machanavajjhala et al. 2007)
    recursive   r_1 / (r_l + ... + r_m) below c, counts sorted downwards; infinite where nothing is left (the same)
    confidence  the largest p(s), or that of one s, at most h (Wang, Fung and Yu 2005; Wong et al. 2006)
    closeness   the distance of p from q, at most t (Li, Li and Venkatasubramanian 2007): 1/2 sum |p - q|; in order
                sum |P_i - Q_i| / (m - 1) of the cumulated shares; by a tree, what must move over each node times its
                height, over that of the root.

Every figure of two groups together is at most as bad as the worse of both: so what is broken stays broken when groups
are split, and what holds for groups holds for their unions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Counts, Flags, Floats
from dpmask.kernels.elementary import exp, log, log_where_positive

_TOLERANCE = 1e-9  # of a limit: what only rounding separates from it is not beyond it
_SMALL = 1 << 12  # counts whose n ln n are computed once


class Node(NamedTuple):
    """A node of a taxonomy: its height over that of the root, and its children, codes or nodes after all codes."""

    height: float
    children: tuple[int, ...]


class Condition(NamedTuple):
    """What a model asks of a group's counts, which are those from ``low`` to ``high`` of all that were counted.

    ``code``: the value whose share is limited, -1 for any. ``shares``: q of each code; with an order ``steps``, what a
    share that moves from each code to the next one costs; with a ``tree`` its nodes, children first.
    """

    kind: str
    low: int
    high: int
    limit: float
    rank: int = 1
    code: int = -1
    shares: Floats = np.empty(0)
    steps: Floats = np.empty(0)
    tree: tuple[Node, ...] = ()

    @property
    def sign(self) -> int:
        """1 where larger figures are worse, otherwise -1."""
        return -1 if self.kind in {"distinct_l", "entropy_l"} else 1


def figures(counts: Counts, condition: Condition) -> Floats:
    """The figure of each group (groups x all counts); no group may be empty."""
    held = counts[:, condition.low : condition.high]
    if condition.kind == "distinct_l":
        return (held > 0).sum(axis=1).astype(np.float64)
    if condition.kind == "recursive_l":
        ranked = -np.sort(-held, axis=1)
        rest = ranked[:, condition.rank - 1 :].sum(axis=1)
        return np.divide(ranked[:, 0], rest, out=np.full(len(held), np.inf), where=rest > 0)
    sizes = held.sum(axis=1)
    if condition.kind == "entropy_l":
        return exp(log(sizes) - _n_log_n(held).sum(axis=1) / sizes)
    shares = held / sizes[:, None]
    if condition.kind == "confidence":
        return shares.max(axis=1) if condition.code < 0 else shares[:, condition.code]
    return _distances(shares - condition.shares, condition)


def _n_log_n(counts: Counts) -> Floats:
    """N ln n of each count, 0 of none; almost all counts are small, and theirs are known."""
    found = _small_n_log_n()[np.minimum(counts, _SMALL - 1)]
    large = counts >= _SMALL
    found[large] = counts[large] * log(counts[large])
    return found


@cache
def _small_n_log_n() -> Floats:
    """The same of 0, 1, ..."""
    numbers = np.arange(_SMALL, dtype=np.float64)
    return numbers * log_where_positive(numbers)


def _distances(moved: Floats, condition: Condition) -> Floats:
    """How far the shares of each group must move."""
    if condition.tree:
        return _tree_distances(moved, condition.tree)
    if len(condition.steps):
        return (np.abs(np.cumsum(moved, axis=1)) * condition.steps).sum(axis=1)
    return np.maximum(moved, 0.0).sum(axis=1)


def _tree_distances(moved: Floats, tree: tuple[Node, ...]) -> Floats:
    """At each node what one child has too much goes to those that have too little; what is left goes up."""
    extra, total = list(moved.T), np.zeros(len(moved))
    for height, children in tree:
        below = np.array([extra[child] for child in children])
        up = below.sum(axis=0)
        total += height * (np.abs(below).sum(axis=0) - np.abs(up)) / 2.0  # the smaller of both sides
        extra.append(up)
    return total


def is_broken(figure: Floats, condition: Condition) -> Flags:
    """Which figures are beyond the limit."""
    limit, slack = condition.limit, _TOLERANCE * max(condition.limit, 1.0)
    if condition.sign < 0:
        return figure < limit - slack
    return figure >= limit - slack if condition.kind == "recursive_l" else figure > limit + slack


class Judged(NamedTuple):
    """The sizes of some cells, which of them are broken, and the figure of each condition, -inf in empty ones."""

    sizes: Counts
    broken: Flags
    figures: list[Floats]


def judged(cells: Counts, k: int, conditions: Sequence[Condition]) -> Judged:
    """Cells of any shape; with conditions the last axis has the counts of codes."""
    sizes = cells[..., : conditions[0].high].sum(axis=-1) if conditions else cells
    occupied = sizes > 0
    broken, found = occupied & (sizes < k), []
    counts = cells[occupied] if conditions else cells
    for one in conditions:
        figure, signed = figures(counts, one), np.full(sizes.shape, -np.inf)
        signed[occupied] = one.sign * figure
        broken[occupied] |= is_broken(figure, one)
        found.append(signed)
    return Judged(sizes, broken, found)
