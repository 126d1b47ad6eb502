"""The first pass over two tables, which reads every value: moments, samples, counts of categories, distances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from dpmask.engine.tasks import Position
from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.comoments import CoMoments, comoments, merge_comoments
from dpmask.kernels.deviation import Gaps, gaps, merge_gaps
from dpmask.kernels.value_counts import ValueCounts, value_counts
from dpmask.lake.reading import Rows
from dpmask.measures.measure import Need
from dpmask.measures.utility.table_pair import TablePair
from dpmask.measures.utility.weights import Weights
from dpmask.table.columns import floats
from dpmask.table.pairs import masked_name
from dpmask.table.quantiles import QuantileSample, draw_samples, join_samples, sampled_share, sorted_samples
from dpmask.table.row_keys import row_keys

_FEWEST, _APART = 1 << 11, 1 << 13  # sampled values of a column: at least so many, and one in so many records
_SPLITTERS = 1 << 18  # those of all columns together, at most


class FirstPass(NamedTuple):
    """What the first pass finds in one table."""

    rows: int
    size: int  # the records, each counted as often as it weighs
    moments: CoMoments | None
    samples: list[QuantileSample]
    value_counts: list[ValueCounts]


def first_pass(
    tables: TablePair,
    numbers: Sequence[str],
    categories: Sequence[str],
    needs: Need,
    who: str,
    weights: Weights | None = None,
) -> tuple[tuple[FirstPass, FirstPass], Gaps | None]:
    """What is found in both tables, and in their records side by side."""
    orders = [4 if needs & Need.HIGHER else 2, 2] if needs & Need.MOMENTS else [0, 0]
    functions = [
        partial(_summed, numbers, categories, order, share, weighing)
        for order, share, weighing in zip(
            orders, _shares(tables, len(numbers), needs), weights.of_rows if weights else (None, None), strict=True
        )
    ]
    names, label, distances = [*numbers, *categories], f"{who}: look", None
    names = weights.beside(names) if weights else names
    if needs & Need.DISTANCES:
        found, distances = tables.reduce_with_pairs(
            names, functions, _merge, partial(_gaps, numbers), merge_gaps, label
        )
    else:
        found = tables.reduce(names, functions, _merge, label)
    first, second = (one._replace(samples=sorted_samples(one.samples)) for one in found)
    return (first, second), distances


def _shares(tables: TablePair, numbers: int, needs: Need) -> list[float]:
    """The share of each table's records to sample."""
    if not needs & (Need.QUANTILES | Need.STEPS | Need.BINS):
        return [0.0, 0.0]
    most = _SPLITTERS // max(numbers, 1)
    return [sampled_share(rows, min(max(rows // _APART, _FEWEST), most)) for rows in tables.rows]


def _summed(
    numbers: Sequence[str],
    categories: Sequence[str],
    order: int,
    share: float,
    weighing: Callable[[Rows], tuple[Floats, Integers]] | None,
    rows: Rows,
    position: Position,
) -> FirstPass:
    columns = [floats(rows, name) for name in numbers]
    weights, whole = weighing(rows) if weighing else (None, None)
    moments = comoments(columns, order, weights) if order and columns else None
    sizes = (moments.values + moments.infinite).tolist() if moments else None
    return FirstPass(
        rows.num_rows,
        rows.num_rows if whole is None else int(whole.sum()),
        moments,
        draw_samples(share, columns, position, sizes, whole) if share and columns else [],
        [value_counts(row_keys(rows, [name]).first, weights=whole) for name in categories],
    )


def _merge(left: FirstPass, right: FirstPass) -> FirstPass:
    return FirstPass(
        left.rows + right.rows,
        left.size + right.size,
        merge_comoments(left.moments, right.moments) if left.moments and right.moments else None,
        join_samples(left.samples, right.samples),
        [one.plus(two) for one, two in zip(left.value_counts, right.value_counts, strict=True)],
    )


def _gaps(numbers: Sequence[str], rows: Rows) -> Gaps:
    return gaps([floats(rows, name) for name in (*numbers, *map(masked_name, numbers))])
