"""BCF-anonymity by its definition: records of one release are matched to those of the other, in every way there is.

A record of the first release is one of the second, comparable to it: the same value, and in every column one node
contains the other. The most records of g1 that can be in g2 at once are found by an assignment (a maximum flow of least
cost); those that never can be are cracked. Nothing here uses codes, joins or closed forms.
"""

from itertools import groupby

import numpy as np
from scipy.optimize import linear_sum_assignment

FORBIDDEN = 10**6


def comparable(one, other):
    """Rows of (low, high) nodes."""
    return all((a <= c and b >= d) or (c <= a and d >= b) for (a, b), (c, d) in zip(one, other, strict=True))


def matched(first, second, cost):
    """The least cost of giving every record of the first release one of the second; ``cost`` of a pair."""
    costs = np.array([[cost(a, b) if comparable(a, b) else FORBIDDEN for b in second] for a in first])
    rows, columns = linear_sum_assignment(costs)
    found = int(costs[rows, columns].sum())
    assert found < FORBIDDEN, "some record of the first release is not in the second"
    return found


def true_sizes(first, second, old):
    """The least sizes that forward, cross and backward attacks leave: FA, CA, BA (None without new people).

    ``first`` and ``second``: (row, value) of each released record, the old ones in the same order in both.
    """
    by_value = [
        ([row for row, v in first if v == value], [row for row, v in second if v == value])
        for value in {value for _, value in second}
    ]
    forward = [_of_old(q1, q2, by_value) for q1, q2 in {(first[n][0], second[n][0]) for n in range(old)}]
    backward = [_of_new(q2, by_value) for q2 in {row for row, _ in second[old:]}]
    return min(one for one, _ in forward), min(one for _, one in forward), min(backward, default=None)


def _of_old(q1, q2, by_value):
    """The sizes of q1 and of q2, less what is cracked of them."""
    sizes, cracked = [0, 0], [0, 0]
    for ones, others in by_value:
        found = ones.count(q1), others.count(q2)
        both = -matched(ones, others, lambda a, b: -(a == q1 and b == q2)) if all(found) else 0
        for side in range(2):
            sizes[side] += found[side]
            cracked[side] += found[side] - both
    return sizes[0] - cracked[0], sizes[1] - cracked[1]


def _of_new(q2, by_value):
    """The size of q2, less the records that must be old."""
    size = cracked = 0
    for ones, others in by_value:
        size += others.count(q2)
        cracked += matched(ones, others, lambda a, b: int(b == q2)) if ones and q2 in others else 0
    return size - cracked


def jointly(releases, held):
    """The bound of several releases: for each person, the sum over values of the least count; its minimum.

    ``releases``: (row, value) of each person in each release, None where it does not hold the person.
    """
    counts = [
        {key: len(list(same)) for key, same in groupby(sorted(one for one in release if one is not None))}
        for release in releases
    ]
    found = []
    for person in range(held):
        rows = [(release[person][0], count) for release, count in zip(releases, counts, strict=True) if release[person]]
        values = {value for _, value in releases[-1]}
        found.append(sum(min(count.get((row, value), 0) for row, count in rows) for value in values))
    return min(found)


def node_of(tree, cut, code):
    """The (low, high) of a cut's node that holds a code."""
    return next((low, high) for low, high in cut if low <= code < high)


def random_tree(rng, low, high):
    """All nodes of a random binary tree over codes, as {node: children}."""
    if high - low < 2:
        return {}
    at = int(rng.integers(low + 1, high))
    return {(low, high): ((low, at), (at, high))} | random_tree(rng, low, at) | random_tree(rng, at, high)


def random_cut(rng, tree, node, share):
    """A cut of a tree: each node is refined with this chance."""
    if node not in tree or rng.random() > share:
        return [node]
    return [leaf for child in tree[node] for leaf in random_cut(rng, tree, child, share)]
