"""Groups of records that share their masked values, in one block.

A block is small codes, attributes x rows. A masked value is a node of its attribute's tree, a group the rows with equal
nodes in all attributes of one quasi-identifier. Groups of different blocks are the same when their keys are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Flags, Words
from dpmask.kernels.compile import compiled, read_only
from dpmask.kernels.keys import LANES, ROUNDS, RowKeys, grouped, new_keys, with_word

Codes = NDArray[np.uint16]
Integers = NDArray[np.int32]


class Values(NamedTuple):
    """One attribute as it is masked now: for each code its node and slot, for each node how many slots it has.

    A node that cannot be refined has none. An ``apart`` attribute (suppression) has one candidate for each slot of a
    node, which takes that slot from all others; otherwise a node has one candidate, all slots.
    """

    nodes: NDArray[np.int32]
    slots: NDArray[np.int32]
    widths: NDArray[np.int64]
    apart: bool


class Grouped(NamedTuple):
    """The groups of one block: each row's number, -1 for none, and (groups x attributes) what they are masked to.

    No group is without rows.
    """

    rows: Integers
    nodes: Integers


def group_rows(codes: Codes, columns: Sequence[int], values: Sequence[Values]) -> Grouped:
    """The groups of a block, from nothing but codes and the nodes they are masked to."""
    several = [place for place, one in enumerate(values) if (one.nodes != one.nodes[:1]).any()]
    if several:
        found = grouped(keys_of([values[place].nodes[codes[columns[place]]] for place in several], codes.shape[1]))
        firsts, numbers = found.firsts, found.numbers().astype(np.int32)
    else:
        firsts, numbers = np.arange(min(codes.shape[1], 1)), np.zeros(codes.shape[1], np.int32)
    table = np.empty((len(firsts), len(values)), np.int32)
    for place, one in enumerate(values):
        table[:, place] = one.nodes[codes[columns[place], firsts]]
    return Grouped(numbers, table)


def split_groups(
    groups: Grouped, column: Codes, place: int, node: int, children: Sequence[int], now: Values
) -> Grouped:
    """The groups after one attribute's ``node`` was refined to its children; ``column`` has the attribute's codes.

    The child of a group that is met first gets its number, the others new ones.
    """
    affected = groups.nodes[:, place] == node
    if not affected.any():
        return groups
    child = np.zeros(len(now.widths), np.int32)
    child[list(children)] = np.arange(len(children))
    numbers = np.repeat(np.arange(len(affected), dtype=np.int32)[:, None], len(children), axis=1)
    numbers[affected] = -1
    rows = np.empty_like(groups.rows)
    count = _split(read_only(groups.rows), read_only(column), child[now.nodes], affected.copy(), numbers, rows)
    nodes = np.empty((count, groups.nodes.shape[1]), np.int32)
    nodes[: len(affected)] = groups.nodes
    parents, kinds = np.nonzero((numbers >= 0) & affected[:, None])
    nodes[numbers[parents, kinds]] = groups.nodes[parents]
    nodes[numbers[parents, kinds], place] = np.asarray(children)[kinds]
    return Grouped(rows, nodes)


@compiled(reassociate=False, contract=False)
def _split(rows: Integers, column: Codes, child: Integers, whole: Flags, numbers: Integers, new: Integers) -> int:
    """Number the children of groups as they are met; ``whole``: a group whose number no child has yet. How many."""
    count = len(numbers)
    for k in range(len(rows)):
        group, kind = np.uint64(rows[k]), np.uint64(child[np.uint64(column[k])])
        number = numbers[group, kind]
        if number < 0:
            number = count
            if whole[group]:
                number, whole[group] = rows[k], False
            else:
                count += 1
            numbers[group, kind] = number
        new[k] = number
    return count


def node_keys(nodes: Integers) -> RowKeys:
    """The keys of groups, the same in any block: those of ``keys_of``."""
    keys = new_keys(len(nodes))
    _keys(read_only(nodes), np.array(LANES, np.uint64), np.array(ROUNDS, np.uint64), *keys)
    return keys


@compiled(reassociate=False, contract=False)
def _keys(nodes: Integers, lanes: Words, rounds: Words, first: Words, second: Words) -> None:
    for group in range(len(nodes)):
        one, other = np.uint64(0), np.uint64(0)
        for a in range(nodes.shape[1]):
            word = np.uint64(nodes[group, a])
            one = _mixed((one + lanes[0, 0]) ^ _mixed(word * lanes[0, 1] + lanes[0, 0], rounds), rounds)
            other = _mixed((other + lanes[1, 0]) ^ _mixed(word * lanes[1, 1] + lanes[1, 0], rounds), rounds)
        first[group], second[group] = one, other


@compiled(part=True, reassociate=False, contract=False)
def _mixed(word: np.uint64, rounds: Words) -> np.uint64:
    """The finaliser of keys.py."""
    for n in range(len(rounds)):
        word = (word ^ (word >> rounds[n, 0])) * rounds[n, 1]
    return word ^ (word >> np.uint64(31))


def keys_of(nodes: Sequence[Integers], rows: int) -> RowKeys:
    """A key for each row of some attributes' nodes."""
    keys = new_keys(rows)
    for each in nodes:
        keys = with_word(keys, each.astype(np.uint64))
    return keys
