"""Cells: balanced, compact, and found again record by record wherever a record lies."""

import numpy as np
import pytest

from dpmask.kernels.cells import (
    count_gains,
    grow_tree,
    principal_direction,
    projections,
    route,
    share_by_counts,
    share_out,
)


def words_for(rows, seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, rows, np.uint64)


def with_mass(rows):
    """Two of three records are one point whose projections are never exact."""
    block = np.random.default_rng(1).normal(size=(3, rows))
    block[:, np.arange(rows) % 3 > 0] = [[0.1], [0.7], [-3.3]]
    return block


SHAPES = {
    "skewed": lambda rows: np.random.default_rng(0).lognormal(size=(5, rows)),
    "a mass point": with_mass,
    "all equal": lambda rows: np.repeat([[0.1], [0.7], [-3.3]], rows, axis=1),
    "zeros of both signs": lambda rows: np.where(np.random.default_rng(0).random((2, rows)) < 0.5, 0.0, -0.0),
    "one column constant": lambda rows: np.stack([np.full(rows, 0.3), np.random.default_rng(2).normal(size=rows)]),
    "one column": lambda rows: np.random.default_rng(3).normal(size=(1, rows)),
    "one column of few values": lambda rows: np.random.default_rng(4).integers(0, 3, (1, rows)) / 10,
    "far from zero": lambda rows: np.random.default_rng(5).normal(1e9, 1e-3, (4, rows)),
}


@pytest.fixture(params=SHAPES)
def shape(request):
    return SHAPES[request.param]


def plain_cells(block, words, cells, first=0):
    """The cells by halving again and again, every record carried along: what grow_tree did, without a tree."""
    rows = block.shape[1]
    if cells == 1:
        return np.full(rows, first)
    left = cells // 2
    order = np.lexsort((words, projections(block, principal_direction(block))))
    middle = round(rows * left / cells)
    result = np.empty(rows, int)
    for half, parts, start in ((order[:middle], left, first), (order[middle:], cells - left, first + left)):
        at = np.sort(half)
        result[at] = plain_cells(block[:, at], words[at], parts, start)
    return result


@pytest.mark.parametrize("cells", [1, 2, 7, 100])
def test_cells_are_balanced(shape, cells):
    block, words = shape(1003), words_for(1003)
    tree = grow_tree(block, words, cells)
    sizes = np.bincount(route(block, words, tree), minlength=cells)
    assert tree.cells == len(sizes) == cells
    assert sizes.sum() == 1003
    assert sizes.max() - sizes.min() <= 2


@pytest.mark.parametrize("cells", [1, 2, 7, 100])
def test_routing_finds_the_split_that_grew_the_tree(shape, cells):
    block, words = shape(1003), words_for(1003)
    found = route(block, words, grow_tree(block, words, cells))
    np.testing.assert_array_equal(found, plain_cells(block, words, cells))


@pytest.mark.parametrize("rows", [1, 2, 3, 10, 37])
def test_as_many_cells_as_records(shape, rows):
    block, words = shape(rows), words_for(rows)
    assert sorted(route(block, words, grow_tree(block, words, rows))) == list(range(rows))


@pytest.mark.parametrize("piece", [1, 3, 8, 501])
def test_a_cell_does_not_depend_on_the_block(shape, piece):
    block, words = shape(1003), words_for(1003)
    tree = grow_tree(block, words, 40)
    whole = route(block, words, tree)
    parts = [slice(start, start + piece) for start in range(0, 1003, piece)]
    np.testing.assert_array_equal(np.concatenate([route(block[:, part], words[part], tree) for part in parts]), whole)
    read_only = np.asfortranarray(block)
    read_only.flags.writeable = False
    np.testing.assert_array_equal(route(read_only, words, tree), whole)


@pytest.mark.parametrize("piece", [1, 3, 8, 501])
def test_projections_agree_bit_for_bit_in_any_block(shape, piece):
    block = shape(1003)
    direction = np.random.default_rng(9).normal(size=len(block))
    parts = [projections(block[:, start : start + piece], direction) for start in range(0, 1003, piece)]
    whole = projections(block, direction)
    assert np.concatenate(parts).tobytes() == whole.tobytes()
    in_order = sum(weight * column for weight, column in zip(direction, block, strict=True))
    np.testing.assert_array_equal(whole, in_order)


def test_other_records_find_a_cell_too():
    """A tree grown on a sample routes every record; those like the sample evenly."""
    rng = np.random.default_rng(0)
    block, words = rng.normal(size=(3, 20_000)), words_for(20_000)
    sizes = np.bincount(route(block, words, grow_tree(block[:, :5000], words[:5000], 10)), minlength=10)
    # a cell's share of the sample varies by sqrt(.1 .9 / 5000), its share of the rest by sqrt(.1 .9 / 15000)
    assert np.abs(sizes / 20_000 - 0.1).max() < 5 * np.sqrt(0.09 / 5000 + 0.09 / 15_000)
    assert len(route(block[:, :0], words[:0], grow_tree(block, words, 3))) == 0


def test_equal_records_are_divided_by_their_words():
    block, words = SHAPES["all equal"](1000), words_for(1000)
    cells = route(block, words, grow_tree(block, words, 8))
    by_word = cells[np.argsort(words)]
    assert (np.diff(by_word) >= 0).all()
    shuffled = np.random.default_rng(1).permutation(1000)
    tree = grow_tree(block, words[shuffled], 8)
    np.testing.assert_array_equal(route(block, words, tree), cells)


def within(block, cells):
    """The mean variance inside cells, columns together."""
    return sum(block[:, cells == cell].var(axis=1).sum() * (cells == cell).mean() for cell in np.unique(cells))


def test_cells_are_compact():
    rng = np.random.default_rng(0)
    block, words = rng.normal(size=(3, 6000)) * [[1.0], [2.0], [3.0]], words_for(6000)
    cells = route(block, words, grow_tree(block, words, 64))
    # 64 random cells keep 63/64 of the variance; 64 = 4^3 equal cubes of three uniforms would keep 1/16
    assert within(block, rng.permutation(cells)) > 0.95 * block.var(axis=1).sum()
    assert within(block, cells) < 0.15 * block.var(axis=1).sum()


@pytest.mark.parametrize(("columns", "rows"), [(1, 5), (2, 2), (3, 100), (13, 1000), (5, 3)])
@pytest.mark.parametrize("seed", range(5))
def test_the_direction_is_the_largest_eigenvector(columns, rows, seed):
    rng = np.random.default_rng(seed)
    block = rng.normal(size=(columns, columns)) @ rng.normal(size=(columns, rows)) + 100 * rng.normal(size=(columns, 1))
    expected = np.linalg.svd(block - block.mean(axis=1, keepdims=True))[0][:, 0]
    found = principal_direction(block)
    np.testing.assert_allclose(found * np.sign(found @ expected), expected, atol=1e-9)


def test_the_direction_where_nothing_varies():
    for rows in (1, 4):
        assert np.isfinite(principal_direction(np.full((3, rows), 0.5))).all()
        np.testing.assert_allclose(np.linalg.norm(principal_direction(np.full((3, rows), 0.1))), 1.0)
    np.testing.assert_array_equal(np.abs(principal_direction(np.array([[3.0, 3.0], [1.0, 2.0]]))), [0, 1])


def test_centers_go_where_they_gain_most():
    # one centre each; then gains 9, 5, 1 in the first cell, 6, 2 in the second and none in the third
    gains = [np.array([9.0, 5, 1]), np.array([6.0, 2]), np.array([])]
    assert [share_out(gains, total).tolist() for total in (1, 3, 4, 5, 6, 7, 99)] == [
        [1, 1, 1],
        [1, 1, 1],
        [2, 1, 1],
        [2, 2, 1],
        [3, 2, 1],
        [3, 3, 1],
        [4, 3, 1],
    ]


def test_cells_that_are_apart_share_centres_as_if_they_were_together():
    rng = np.random.default_rng(3)
    gains = [scale * np.sort(rng.random(39) ** 3)[::-1] for scale in (1.0, 1e-3, 1e6, 30.0, 0.0)]
    counts = np.array([count_gains(one) for one in gains])
    assert (counts.sum(axis=1) == 39).all()
    for centers in (0, 1, 50, 100, 195, 300):
        shares = share_by_counts(counts, centers)
        assert shares.sum() == min(centers, 195)
        np.testing.assert_allclose(shares, share_out(gains, centers + 5) - 1, atol=4)  # but for gains of the last class


def test_classes_of_gains_fall_and_halve_sixteen_times_to_an_octave():
    gains = np.array([0.0, -1.0, 5e-324, 1.0, 1.0 + 1 / 16, 2.0, 1e300])
    places = [int(np.flatnonzero(count_gains(np.array([gain])))[0]) for gain in gains]
    assert places[:2] == [2047, 2047]
    assert places[3] - places[4] == 1
    assert places[3] - places[5] == 16
    assert places == sorted(places, reverse=True)
