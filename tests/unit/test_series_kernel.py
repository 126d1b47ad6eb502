"""BCF-anonymity: the closed forms against matchings by brute force, and where they would not hold."""

import numpy as np
import pytest
from series_reference import jointly, node_of, random_cut, random_tree, true_sizes

from dpmask.kernels.series import PastGroups, PastRelease, SeriesPeople, Touched, nested


def lows(cut, codes):
    found = np.empty(codes, np.int64)
    for low, high in cut:
        found[low:high] = low
    return found


class Random:
    """A random table that grows, and releases of it that are cuts of the same trees."""

    def __init__(self, seed, releases):
        rng = np.random.default_rng(seed)
        columns, self.values = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        sizes = rng.integers(2, 6, columns)
        grown = np.sort(rng.integers(1, 12, releases))  # equal sizes are versions of one table
        self.people = int(grown[-1])
        self.codes = np.array([rng.integers(0, size, self.people) for size in sizes])
        self.value = rng.integers(0, self.values, self.people)
        self.held = grown.tolist()
        trees = [random_tree(rng, 0, int(size)) for size in sizes]
        share = rng.random()
        self.cuts = [
            [random_cut(rng, tree, (0, int(size)), share) for tree, size in zip(trees, sizes, strict=True)]
            for _ in range(releases)
        ]
        self.lows = [[lows(cut, int(size)) for cut, size in zip(cuts, sizes, strict=True)] for cuts in self.cuts]

    def released(self, number):
        """(row, value) of each person who is held."""
        return [
            (tuple(node_of(None, cut, self.codes[c, n]) for c, cut in enumerate(self.cuts[number])), int(self.value[n]))
            for n in range(self.held[number])
        ]

    def past(self):
        """All but the last release, as the kernel takes them; every person is a block."""
        blocks = np.arange(self.people)
        people = SeriesPeople(
            self.codes.astype(np.uint16), self.value, self.values, blocks, np.ones(self.people, np.int64)
        )
        releases = [
            PastRelease(blocks < held, tuple(cut)) for held, cut in zip(self.held[:-1], self.lows[:-1], strict=True)
        ]
        return PastGroups(people, range(len(self.codes)), releases)


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_pairs_as_by_matchings(first):
    for seed in range(first, first + 50):
        random = Random(seed, 2)
        found = {(one.release, one.new): one.least for one in random.past().sizes(random.lows[-1], pairs=True)}
        forward, cross, backward = true_sizes(random.released(0), random.released(1), random.held[0])
        assert found[0, False] == found[None, False] == forward == cross
        assert found.get((0, True)) == backward


@pytest.mark.parametrize("first", range(1000, 1200, 50))
def test_triples_as_by_matchings(first):
    for seed in range(first, first + 50):
        random = Random(seed, 3)
        found = {(one.release, one.new): one.least for one in random.past().sizes(random.lows[-1], pairs=True)}
        for number in range(2):
            pair = true_sizes(random.released(number), random.released(2), random.held[number])
            assert (found[number, False], found.get((number, True))) == (pair[0], pair[2])
        releases = [random.released(n) + [None] * (random.people - random.held[n]) for n in range(3)]
        assert found[None, False] == jointly(releases, random.held[1])


def test_a_touched_node_says_what_all_groups_would():
    """The least over all groups is that of touched groups, or was there before: what makes trials of refinements quick."""
    tried = 0
    for seed in range(100):
        random = Random(seed, 3)
        past, now = random.past(), [np.zeros_like(one) for one in random.lows[-1]]
        whole = min(one.least for one in past.sizes(now))
        for column, cut in enumerate(random.cuts[-1]):
            finer = [*now]
            finer[column] = random.lows[-1][column]
            touched = min(one.least for one in past.sizes(finer, Touched(column, 0, cut[-1][1])))
            assert min(whole, touched) == min(one.least for one in past.sizes(finer))
            tried += 1
        for column, cut in enumerate(random.cuts[-1]):  # below a node of the last release, the others being finer
            low, high = cut[0]
            if high - low < 2:
                continue
            finer = [*random.lows[-1]]
            finer[column] = np.where(
                (finer[column] == low) & (np.arange(len(finer[column])) > low), low + 1, finer[column]
            )
            before = min(one.least for one in past.sizes(random.lows[-1]))
            if not all(nested(finer[column], one[column]) for one in random.lows[:-1]):
                continue
            touched = min((one.least for one in past.sizes(finer, Touched(column, low, high))), default=before)
            assert min(before, touched) == min(one.least for one in past.sizes(finer))
            tried += 1
    assert tried > 200


def test_cuts_that_overlap_do_not_nest_and_would_be_judged_too_well():
    one, other = lows([(0, 2), (2, 4)], 4), lows([(0, 1), (1, 3), (3, 4)], 4)
    assert not nested(one, other)
    assert nested(one, lows([(0, 4)], 4))
    assert nested(one, lows([(0, 1), (1, 2), (2, 4)], 4))
    wrong = 0
    for seed in range(60):
        random = Random(seed, 2)
        rng = np.random.default_rng(seed)
        sizes = [len(one) for one in random.lows[0]]
        random.cuts[1] = [random_cut(rng, random_tree(rng, 0, size), (0, size), 0.8) for size in sizes]
        random.lows[1] = [lows(cut, size) for cut, size in zip(random.cuts[1], sizes, strict=True)]
        if all(nested(a, b) for a, b in zip(*random.lows, strict=True)):
            continue
        found = {(one.release, one.new): one.least for one in random.past().sizes(random.lows[1], pairs=True)}
        try:
            forward, _, backward = true_sizes(random.released(0), random.released(1), random.held[0])
        except AssertionError:  # two intervals that only overlap are not comparable
            wrong += 1
            continue
        wrong += found[0, False] > forward or (backward is not None and found[0, True] > backward)
    assert wrong
