"""Cuts of Mondrian's regions, judged by how often each code occurs with each class in one.

A cut makes children of a node, or two parts of a range, of at least k records each. Of a range it is the one with the
largest information gain, the lowest of several; where none has any, the one that leaves both parts most alike in size.
The gain is in bits (information.py); all follows from counts, so that it is the same whether rows or counts of blocks
are at hand.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Counts, Floats
from dpmask.kernels.compile import compiled, read_only
from dpmask.kernels.refinement.information import TIE
from dpmask.kernels.refinement.regions import Boxes, Codes, Integers, Trees

INVALID = -1


class Proposals(NamedTuple):
    """For each pair of a region and an attribute the code that the second part begins with, and the gain.

    A node's children are 0; INVALID is what cannot be cut. The gain is infinite where all records are in one child.
    """

    cuts: Counts
    gains: Floats


@compiled(part=True, reassociate=False, contract=False)
def _bits(count: int) -> float:
    return count * np.log2(count) if count > 0 else 0.0


@compiled(part=True, reassociate=False, contract=False)
def _judged(
    keys: Counts,
    used: int,
    counts: Counts,
    many: int,
    size: int,
    k: int,
    first: int,
    children: int,
    highs: Counts,
    below: Counts,
    above: Counts,
) -> tuple[int, float]:
    """The gain of the children of a node, or the best cut; of ``used`` codes x classes that occur, in order."""
    for c in range(many):
        below[c], above[c] = 0, 0
    for i in range(used):
        above[keys[i] % many] += counts[keys[i]]
    inside = 0.0
    for c in range(many):
        inside += _bits(above[c])
    if children > 0:
        return _judged_children(keys, used, counts, many, size, k, first, children, highs, below, inside)
    return _best_cut(keys, used, counts, many, size, k, below, above, inside)


@compiled(part=True, reassociate=False, contract=False)
def _judged_children(
    keys: Counts,
    used: int,
    counts: Counts,
    many: int,
    size: int,
    k: int,
    first: int,
    children: int,
    highs: Counts,
    below: Counts,
    whole: float,
) -> tuple[int, float]:
    inside, occupied, valid, i = 0.0, 0, True, 0
    for child in range(first, first + children):
        there = 0
        for c in range(many):
            below[c] = 0
        while i < used and keys[i] // many < highs[child]:
            below[keys[i] % many] += counts[keys[i]]
            there += counts[keys[i]]
            i += 1
        if there > 0:
            occupied += 1
            valid = valid and there >= k
            inside += _bits(there)
            for c in range(many):
                inside -= _bits(below[c])
    if occupied == 1:
        return 0, np.inf
    return (0 if valid else INVALID), (_bits(size) - whole - inside) / size


@compiled(part=True, reassociate=False, contract=False)
def _best_cut(
    keys: Counts,
    used: int,
    counts: Counts,
    many: int,
    size: int,
    k: int,
    below: Counts,
    above: Counts,
    whole: float,
) -> tuple[int, float]:
    inside_below, inside_above, left = 0.0, whole, 0
    cut, best, even, least = INVALID, 0.0, INVALID, size + 1
    for i in range(used):
        code = keys[i] // many
        if i > 0 and code != keys[i - 1] // many and left >= k and size - left >= k:
            uneven = abs(2 * left - size)
            if uneven < least:
                even, least = code, uneven
            if many > 1:
                inside = _bits(left) - inside_below + _bits(size - left) - inside_above
                gain = (_bits(size) - whole - inside) / size
                if gain > best + TIE:
                    cut, best = code, gain
        c, n = keys[i] % many, counts[keys[i]]
        inside_below += _bits(below[c] + n) - _bits(below[c])
        inside_above += _bits(above[c] - n) - _bits(above[c])
        below[c] += n
        above[c] -= n
        left += n
    return (cut, best) if cut != INVALID else (even, 0.0)


@compiled(allocates=True, reassociate=False, contract=False)
def _propose(
    codes: Codes,
    classes: Codes,
    many: int,
    order: Integers,
    begins: Counts,
    sizes: Counts,
    attributes: Counts,
    ranges: Counts,
    k: int,
    firsts: Counts,
    children: Counts,
    highs: Counts,
    scratch: tuple[Counts, Counts, Counts, Counts],
    cuts: Counts,
    gains: Floats,
) -> None:
    """Judge pairs of a region and an attribute by the region's rows; ``ranges``: the codes from and to of each."""
    counts, keys, below, above = scratch
    for p in range(len(begins)):
        used = 0
        column = codes[attributes[p]]
        for at in range(begins[p], begins[p] + sizes[p]):
            key = column[order[at]] * many + classes[order[at]]
            if counts[key] == 0:
                keys[used] = key
                used += 1
            counts[key] += 1
        low, high = ranges[p, 0] * many, ranges[p, 1] * many
        if used * 8 < high - low:
            keys[:used].sort()
        else:
            used = 0
            for key in range(low, high):
                if counts[key] > 0:
                    keys[used] = key
                    used += 1
        cuts[p], gains[p] = _judged(keys, used, counts, many, sizes[p], k, firsts[p], children[p], highs, below, above)
        for i in range(used):
            counts[keys[i]] = 0


@compiled(allocates=True, reassociate=False, contract=False)
def _propose_counted(
    counts: Counts,
    keys: Counts,
    used: int,
    many: int,
    size: int,
    k: int,
    first: int,
    children: int,
    highs: Counts,
    cuts: Counts,
    gains: Floats,
) -> None:
    """The same of one pair by its counts of codes x classes."""
    below, above = np.empty(many, np.int64), np.empty(many, np.int64)
    cuts[0], gains[0] = _judged(keys, used, counts, many, size, k, first, children, highs, below, above)


def propose(
    codes: Codes,
    classes: Codes,
    many: int,
    order: Integers,
    begins: Counts,
    sizes: Counts,
    attributes: Counts,
    boxes: Boxes,
    trees: Trees,
    k: int,
) -> Proposals:
    """What becomes of each region (its rows in ``order``) by one attribute; ``boxes`` are theirs."""
    pairs = np.arange(len(begins))
    nodes = boxes.nodes[pairs, attributes]
    ranges = np.stack([boxes.low[pairs, attributes], boxes.high[pairs, attributes]], axis=1)
    cuts, gains = np.empty(len(begins), np.int64), np.empty(len(begins))
    width = int(trees.high.max()) * many
    codes_seen, classes_seen = np.zeros((2, width), np.int64), np.zeros((2, many), np.int64)
    scratch = codes_seen[0], codes_seen[1], classes_seen[0], classes_seen[1]
    inputs = read_only(codes), read_only(classes), many, read_only(order), begins, sizes, attributes, ranges, k
    children = np.where(trees.cut, 0, trees.children)
    _propose(*inputs, trees.first[nodes], children[nodes], read_only(trees.high), scratch, cuts, gains)
    return Proposals(cuts, gains)


def propose_counted(counts: Counts, node: int, trees: Trees, k: int) -> tuple[int, float]:
    """The same for one region and attribute, by its counts of codes x classes."""
    flat, cuts, gains = np.ascontiguousarray(counts.ravel()), np.empty(1, np.int64), np.empty(1)
    keys, children = np.flatnonzero(flat), 0 if trees.cut[node] else int(trees.children[node])
    of = len(keys), counts.shape[1], int(flat.sum()), k, int(trees.first[node]), children, read_only(trees.high)
    _propose_counted(flat, keys, *of, cuts, gains)
    return int(cuts[0]), float(gains[0])
