"""Knots by which any task knows the ranks of a column's values, from two passes over it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from dpmask.engine.collection import Collection
from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.order.float_order import Keys, Positions, count_at, from_keys, merge_counts, order_keys
from dpmask.kernels.order.ranks import RankKnots
from dpmask.table.quantiles import (
    PlacedValues,
    QuantileSample,
    draw_samples,
    join_samples,
    placed_samples,
    sampled_share,
    value_positions,
)
from dpmask.table.table import Table

MOST_KNOTS = 8192


def rank_knots(table: Table, columns: Sequence[str], label: str) -> list[RankKnots]:
    """For each column some thousand values from all over it, and exact counts there: all of them, if it has no more.

    The values are sampled by the records' positions, so they are the same for any partitioning.
    """
    blocks, draw = table.floats(columns).with_positions(), partial(draw_samples, sampled_share(table.rows))
    samples: list[QuantileSample] = blocks.reduce(draw, join_samples, f"{label}: sample")
    values = [_spread_out(one) for one in samples]
    counted = value_positions(table, columns, values, f"{label}: ranks")
    each = zip(samples, values, counted, strict=True)
    return [RankKnots(sample.values, some, *places) for sample, some, places in each]


def rank_knots_of(blocks: Collection[list[tuple[Integers, Floats]]], rows: int, label: str) -> list[RankKnots]:
    """The same for lists of values, each with its places in the block: some columns' values by strata."""
    draw = partial(placed_samples, sampled_share(rows))
    samples: list[QuantileSample] = blocks.with_positions().reduce(draw, join_samples, f"{label}: sample")
    values = [_spread_out(one) for one in samples]
    keys = [order_keys(some) for some in values]
    counted = blocks.reduce(partial(_counted, keys), merge_counts, f"{label}: ranks")
    each = zip(samples, values, counted, strict=True)
    return [RankKnots(sample.values, some, *places) for sample, some, places in each]


def _counted(keys: Sequence[Keys], lists: PlacedValues) -> list[Positions]:
    return count_at(keys, [values for _, values in lists])


def _spread_out(sample: QuantileSample) -> Floats:
    """The different values of a sample, or as many of them as there may be knots, evenly by rank."""
    keys = np.unique(sample.keys)
    if len(keys) > MOST_KNOTS:
        ordered = np.sort(sample.keys)
        keys = np.unique(ordered[np.linspace(0, len(ordered) - 1, MOST_KNOTS).round().astype(np.int64)])
    return from_keys(keys)
