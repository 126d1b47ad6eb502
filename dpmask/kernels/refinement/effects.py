"""What each candidate for refinement would do to the groups of one quasi-identifier, from their cells.

A(QID) after a refinement is the smallest occupied cell of its node, or A itself if that is smaller (Fung et al. 2009,
section 4.2.2); what models ask of sensitive values is judged by the cells' counts of their codes. Splitting groups
further only makes all of them worse, so the effects on groups that did not change remain valid bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Counts, Flags, Floats
from dpmask.kernels.models import Condition, Judged, judged
from dpmask.kernels.refinement.cells import NOBODY, Cells, node_cells
from dpmask.kernels.refinement.grouping import Values


class Effect(NamedTuple):
    """The effect of refining a node, for each of its candidates: the smallest cell, and the records in broken cells.

    A cell is broken if it has fewer than k records, or if a model does not hold in it. ``kept``: for each slot, whether
    it has a cell that is not. ``worst``: for each condition the worst figure, the larger the worse, and ``at`` the size
    of the smallest cell that has it (conditions x candidates).
    """

    smallest: Counts
    lost: Counts
    kept: NDArray[np.bool_]
    worst: Floats
    at: Counts


Effects = dict[tuple[int, int], Effect]
"""By (place of the attribute in the quasi-identifier, node)."""


def candidate_effects(cells: Cells, values: Sequence[Values], k: int, conditions: Sequence[Condition] = ()) -> Effects:
    """The effects of all candidates on these groups."""
    found: Effects = {}
    for key, apart, table in node_cells(cells, values):
        effect = (_of_each_slot if apart else _of_all_slots)(table, k, conditions)
        found[key] = _merged(found[key], effect) if key in found else effect
    return found


def _of_all_slots(table: Counts, k: int, conditions: Sequence[Condition]) -> Effect:
    """All slots of a node become groups of their own (groups x slots)."""
    found = judged(table, k, conditions)
    flat = Judged(
        found.sizes.reshape(-1, 1), found.broken.reshape(-1, 1), [one.reshape(-1, 1) for one in found.figures]
    )
    return _effect(flat, np.any((found.sizes > 0) & ~found.broken, axis=0))


def _of_each_slot(table: Counts, k: int, conditions: Sequence[Condition]) -> Effect:
    """Each slot is separated from all others, where it is occupied."""
    there = table > 0 if not conditions else table.any(axis=-1, keepdims=True)
    rest = np.where(there, table.sum(axis=1, keepdims=True) - table, 0)
    found = judged(np.concatenate([table, rest]), k, conditions)
    slots = slice(0, len(table))
    return _effect(found, np.any((found.sizes[slots] > 0) & ~found.broken[slots], axis=0))


def _effect(found: Judged, kept: Flags) -> Effect:
    """Of cells x candidates."""
    sizes, broken, figure = found
    worst = np.array([one.max(axis=0, initial=-np.inf) for one in figure]).reshape(len(figure), sizes.shape[1])
    at = [
        np.where(one == most, sizes, NOBODY).min(axis=0, initial=NOBODY)
        for one, most in zip(figure, worst, strict=True)
    ]
    return Effect(
        np.where(sizes > 0, sizes, NOBODY).min(axis=0, initial=NOBODY),
        np.where(broken, sizes, 0).sum(axis=0),
        kept,
        worst,
        np.array(at, np.int64).reshape(worst.shape),
    )


def _merged(left: Effect, right: Effect) -> Effect:
    at = np.where(left.worst > right.worst, left.at, right.at)
    return Effect(
        np.minimum(left.smallest, right.smallest),
        left.lost + right.lost,
        left.kept | right.kept,
        np.maximum(left.worst, right.worst),
        np.where(left.worst == right.worst, np.minimum(left.at, right.at), at),
    )


def merge_effects(left: Effects, right: Effects) -> Effects:
    """The effects on the groups of both."""
    both = left.keys() & right.keys()
    return {**left, **right, **{key: _merged(left[key], right[key]) for key in both}}
