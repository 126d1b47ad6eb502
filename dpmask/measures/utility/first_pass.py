"""The first pass over two tables, which looks at every value: moments, samples, counts of categories, distances."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Flag, auto
from functools import partial
from typing import NamedTuple

from dpmask.engine.passes import Span
from dpmask.kernels.comoments import CoMoments, comoments, merge_comoments
from dpmask.kernels.deviation import Gaps, gaps, merge_gaps
from dpmask.kernels.value_counts import ValueCounts, value_counts
from dpmask.lake.reading import Rows
from dpmask.measures.utility.table_pair import Sides
from dpmask.table.columns import floats
from dpmask.table.pairs import masked_name
from dpmask.table.quantiles import Sample, draw_samples, join_samples, sampled_share, sorted_samples
from dpmask.table.row_keys import row_keys

_FEWEST, _APART = 1 << 11, 1 << 13  # sampled values of a column: at least so many, and one in so many records
_SPLITTERS = 1 << 18  # those of all columns together, at most


class Need(Flag):
    """What a measure needs of the two tables."""

    MOMENTS = auto()  # means, variances and covariances
    HIGHER = auto()  # the original's moments up to order 4
    QUANTILES = auto()  # of both tables, and the original's density there
    STEPS = auto()  # both distribution functions at sampled values
    BINS = auto()  # how many values lie in each bin, and have each category
    DISTANCES = auto()  # between a record and its masked record


class Look(NamedTuple):
    """What the first pass finds in one table."""

    rows: int
    moments: CoMoments | None
    samples: list[Sample]
    value_counts: list[ValueCounts]


def passes_for(needs: Need) -> int:
    """How many passes over both tables that takes, as a rule: one for small tables, one more with bad luck."""
    if needs & (Need.QUANTILES | Need.BINS):
        return 3
    return 2 if needs & Need.STEPS else 1


def look(
    sides: Sides, numbers: Sequence[str], categories: Sequence[str], needs: Need, who: str
) -> tuple[tuple[Look, Look], Gaps | None]:
    """What is found in both tables, and in their records side by side."""
    orders = [4 if needs & Need.HIGHER else 2, 2] if needs & Need.MOMENTS else [0, 0]
    functions = [
        partial(_look, numbers, categories, order, share)
        for order, share in zip(orders, _shares(sides, len(numbers), needs), strict=True)
    ]
    names, label, distances = [*numbers, *categories], f"{who}: look", None
    if needs & Need.DISTANCES:
        found, distances = sides.reduce_beside(
            names, functions, _merge_looks, partial(_gaps, numbers), merge_gaps, label
        )
    else:
        found = sides.reduce(names, functions, _merge_looks, label)
    first, second = (one._replace(samples=sorted_samples(one.samples)) for one in found)
    return (first, second), distances


def _shares(sides: Sides, numbers: int, needs: Need) -> list[float]:
    """The share of each table's records to sample."""
    if not needs & (Need.QUANTILES | Need.STEPS | Need.BINS):
        return [0.0, 0.0]
    most = _SPLITTERS // max(numbers, 1)
    return [sampled_share(rows, min(max(rows // _APART, _FEWEST), most)) for rows in sides.rows]


def _look(numbers: Sequence[str], categories: Sequence[str], order: int, share: float, rows: Rows, span: Span) -> Look:
    columns = [floats(rows, name) for name in numbers]
    moments = comoments(columns, order) if order and columns else None
    sizes = (moments.values + moments.infinite).tolist() if moments else None
    return Look(
        rows.num_rows,
        moments,
        draw_samples(share, columns, span, sizes) if share and columns else [],
        [value_counts(row_keys(rows, [name]).first) for name in categories],
    )


def _merge_looks(left: Look, right: Look) -> Look:
    return Look(
        left.rows + right.rows,
        merge_comoments(left.moments, right.moments) if left.moments and right.moments else None,
        join_samples(left.samples, right.samples),
        [one.plus(two) for one, two in zip(left.value_counts, right.value_counts, strict=True)],
    )


def _gaps(numbers: Sequence[str], rows: Rows) -> Gaps:
    return gaps([floats(rows, name) for name in (*numbers, *map(masked_name, numbers))])
