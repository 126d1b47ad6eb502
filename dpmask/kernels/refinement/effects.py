"""What each candidate for refinement would do to the groups of one quasi-identifier, from their cells.

A(QID) after a refinement is the smallest occupied cell of its node, or A itself if that is smaller (Fung et al. 2009,
section 4.2.2). Splitting groups further only lowers it, so the effects on groups that did not change remain valid
bounds. What else a requirement asks of its groups is counted here, too: one more field of ``Effect``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.refinement.cells import NOBODY, Cells, Counts, Values, node_cells


class Effect(NamedTuple):
    """The effect of refining a node, for each of its candidates: the smallest cell, and the records in cells below k.

    ``kept``: for each slot, whether it has a cell of k records or more.
    """

    smallest: Counts
    lost: Counts
    kept: NDArray[np.bool_]


Effects = dict[tuple[int, int], Effect]
"""By (place of the attribute in the quasi-identifier, node)."""


def candidate_effects(cells: Cells, values: Sequence[Values], k: int) -> Effects:
    """The effects of all candidates on these groups."""
    found: Effects = {}
    for key, apart, table in node_cells(cells, values):
        effect = (_of_each_slot if apart else _of_all_slots)(table, k)
        found[key] = _merged(found[key], effect) if key in found else effect
    return found


def _of_all_slots(table: Counts, k: int) -> Effect:
    """All slots of a node become groups of their own (groups x slots)."""
    occupied = table[table > 0]
    lost = occupied[occupied < k].sum()
    return Effect(np.array([occupied.min(initial=NOBODY)]), np.array([lost]), np.any(table >= k, axis=0))


def _of_each_slot(table: Counts, k: int) -> Effect:
    """Each slot is separated from all others, where it is occupied."""
    rest = np.where(table > 0, table.sum(axis=1, keepdims=True) - table, 0)
    cells = np.stack([table, rest])
    smallest = np.where(cells > 0, cells, NOBODY).min(axis=(0, 1), initial=NOBODY)
    return Effect(smallest, np.where(cells < k, cells, 0).sum(axis=(0, 1)), np.any(table >= k, axis=0))


def _merged(left: Effect, right: Effect) -> Effect:
    return Effect(np.minimum(left.smallest, right.smallest), left.lost + right.lost, left.kept | right.kept)


def merge_effects(left: Effects, right: Effects) -> Effects:
    """The effects on the groups of both."""
    both = left.keys() & right.keys()
    return {**left, **right, **{key: _merged(left[key], right[key]) for key in both}}
