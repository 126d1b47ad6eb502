"""Grids have round edges, counts are exact, bars of two tables share their edges, small counts are pooled."""

import numpy as np
import pytest

from dpmask.kernels.comoments import comoments, merge_comoments
from dpmask.kernels.order.histogram import Grid, common_bars, even_grid, grid_counts, pooled, round_step


@pytest.mark.parametrize(
    ("least", "step"), [(1.0, 1.0), (1.1, 2.0), (2.1, 5.0), (6.0, 10.0), (0.03, 0.05), (1e-9, 1e-9)]
)
def test_round_step(least, step):
    assert round_step(least) == pytest.approx(step)


@pytest.mark.parametrize(("low", "high", "whole"), [(0, 99, True), (-3.7, 1e6, False), (5, 5, False), (0, 0, False), (7, 7, True), (-1e308, 1e308, False), (1e-300, 2e-300, False)])  # fmt: skip
def test_a_grid_covers_its_range(low, high, whole):
    grid = even_grid(low, high, 2048, whole)
    assert grid.cells <= 2050
    counts = grid_counts(np.array([low, high, np.nan, np.inf, -np.inf], float), grid)
    assert counts[0] == 1
    assert counts[-2:].tolist() == [1, 1]
    assert counts[1:-2].sum() == 2


def test_counts_against_numpy():
    values = np.random.default_rng(1).lognormal(3, 1, 50_000)
    grid = Grid(2.0, 5, 40, 0.0)
    counts = grid_counts(np.append(values, [np.nan] * 7), grid)
    edges = [grid.edge(cell) for cell in range(5, 46)]
    assert counts[1:-2].tolist() == np.histogram(values, edges)[0].tolist()
    assert counts[0] == (values < 10).sum()
    assert counts[-2:].tolist() == [(values >= 90).sum(), 7]


def test_whole_numbers_lie_inside_their_cells():
    counts = grid_counts(np.array([0.0, 1, 1, 2, 3]), even_grid(0, 3, 2048, True))
    assert counts.tolist() == [0, 1, 2, 1, 1, 0, 0]


def test_bars_hold_all_values_of_both_tables():
    rng = np.random.default_rng(2)
    tables = rng.lognormal(9, 1, 30_000), rng.lognormal(9, 1.2, 30_000)
    grid = even_grid(0, max(map(np.max, tables)), 2048, False)
    bars = common_bars(grid, [grid_counts(table, grid) for table in tables], 32, 0.005)
    assert 12 <= len(bars.edges) - 1 <= 32
    for number, table in enumerate(tables):
        assert bars.counts[number] == np.histogram(table, bars.edges)[0].tolist()
        assert bars.below[number] == (table < bars.edges[0]).sum()
        assert bars.above[number] == (table >= bars.edges[-1]).sum() <= 0.01 * len(table)


def test_bars_at_the_ends_of_a_grid_hold_what_their_edges_say():
    """A table that goes on beyond the grid, whose ends lie inside of bars."""
    values = np.random.default_rng(3).normal(0, 1.5, 3000)
    grid = even_grid(-1.97, 2.03, 1024, False)
    bars = common_bars(grid, [grid_counts(values, grid)], 32, 0.005)
    assert bars.counts[0] == np.histogram(values, bars.edges)[0].tolist()
    assert bars.below == ((values < bars.edges[0]).sum(),)
    assert bars.above == ((values >= bars.edges[-1]).sum(),)


def test_one_value_makes_one_bar():
    grid = even_grid(3.0, 3.0, 2048, False)
    counts = [grid_counts(np.full(5, 3.0), grid)] * 2
    assert common_bars(grid, counts, 32, 0.005).counts == ([5], [5])


def test_small_counts_are_pooled_with_their_neighbours():
    assert pooled([3, 4, 5, 20, 0, 0, 9, 30, 2], 10) == [(0, 3, 12), (3, 4, 20), (4, 9, 41)]
    assert pooled([1, 2, 3], 10) == []
    assert pooled([], 10) == []
    assert pooled([10, 3], 10) == [(0, 2, 13)]


def test_counts_of_every_form_of_array():
    values = np.linspace(-5, 25, 301)
    grid = Grid(2.0, 0, 10, 0.0)
    expected = grid_counts(values, grid).tolist()
    alone = values.copy()
    alone.flags.writeable = False
    for form in (alone, np.repeat(values, 2)[::2], np.frombuffer(values.tobytes())):
        assert grid_counts(form, grid).tolist() == expected


@pytest.mark.parametrize("parts", [1, 3, 7, 20])
def test_correlations_against_pandas(parts):
    import pandas as pd

    rng = np.random.default_rng(3)
    values = rng.normal(size=(4, 1000)) + rng.normal(size=1000) + 1e6
    values[0, rng.random(1000) < 0.1] = np.nan
    values[1, rng.random(1000) < 0.2] = np.nan
    values[2, 5] = np.inf
    blocks = [comoments(list(part), 2) for part in [np.empty((4, 0)), *np.array_split(values, parts, axis=1)]]
    total = blocks[0]
    for block in blocks[1:]:
        total = merge_comoments(total, block)
    values[2, 5] = np.nan
    assert total.correlation == pytest.approx(pd.DataFrame(values.T).corr().to_numpy(), abs=1e-9)


def test_a_constant_has_no_correlation():
    found = comoments([np.full(10, 0.1), np.arange(10.0)], 2).correlation
    assert np.isnan(found).tolist() == [[True, True], [True, False]]


@pytest.mark.parametrize(("count", "constant"), [(3, 0.1), (7, 7.7), (11, 12345.678), (13, 1 / 3), (3, 1e6 + 0.1)])
def test_a_constant_where_both_have_values_has_no_correlation(count, constant):
    """The column varies, but not in the records that have the other value, too; and rounding is no variance."""
    rng = np.random.default_rng(6)
    one, two = rng.normal(0.1, 3, 3000), rng.normal(size=3000)
    one[:count], two[count:] = constant, np.nan
    parts = [comoments([one[some], two[some]], 2) for some in (slice(0, 1500), slice(1500, None))]
    assert np.isnan(merge_comoments(*parts).correlation).tolist() == [[False, True], [True, False]]
