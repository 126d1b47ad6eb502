"""The search ``mondrian``: regions of all records, each a box of its own (LeFevre, DeWitt and Ramakrishnan 2006, 2008).

Every region meets every requirement by itself, and so does any union of regions: records that share labels are whole
regions. Requirements that share no column, directly or through others, have regions of their own.

Large regions are cut by passes that count codes over all blocks, a level at a time; once a region has no more records
than a shard may, its rows meet in one place and are cut there to the end. Both go by the same counts, so the regions
are the same for any blocks. What travels are counts and trees of regions: 10 bytes a part, about 20 a region.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine import progress
from dpmask.engine.limits import current_limits
from dpmask.engine.tasks import Position
from dpmask.errors import InputError
from dpmask.kernels.arrays import Counts, Floats
from dpmask.kernels.models import judged
from dpmask.kernels.refinement.cells import Sensitive
from dpmask.kernels.refinement.growth import Check, Grown, Leaves, Rules, grow
from dpmask.kernels.refinement.region_cuts import Proposals, propose_counted
from dpmask.kernels.refinement.region_records import Level, RegionRecords, RowRecords
from dpmask.kernels.refinement.regions import (
    LEAF,
    Codes,
    RegionParts,
    RegionTree,
    Trees,
    regions_of,
    top,
)
from dpmask.masking.refinement.blocks import CodedTable
from dpmask.masking.refinement.columns import WHO, MaskedColumn
from dpmask.masking.refinement.requests import CodedBlock
from dpmask.masking.refinement.solution import Quasi
from dpmask.masking.refinement.trees import Labelled, ReleasedRegions, released_regions, rules_of, trees_of


class Partition(NamedTuple):
    """The regions of some columns, by number, and what they come to.

    ``worst``: of each quasi-identifier that these columns belong to, by number, the worst figures.
    """

    columns: tuple[int, ...]
    released: ReleasedRegions
    leaves: Leaves
    worst: Mapping[int, Floats]

    def losses(self, rows: int) -> dict[int, float]:
        """What each column lost, by number: the mean over all records."""
        return dict(zip(self.columns, (self.leaves.lost / rows).tolist(), strict=True))


def partitions(
    table: CodedTable, columns: Sequence[MaskedColumn], quasis: Sequence[Quasi], importance: Sequence[float], many: int
) -> list[Partition]:
    """The regions of all columns; ``many`` is the number of the guide's classes."""
    return [_partition(table, columns, numbers, quasis, importance, many) for numbers in _connected(quasis)]


def _connected(quasis: Sequence[Quasi]) -> list[list[int]]:
    """The quasi-identifiers that share columns, directly or through others, by number."""
    found: list[tuple[set[int], list[int]]] = []
    for number, quasi in enumerate(quasis):
        met = [one for one in found if one[0] & set(quasi.attributes)]
        columns = set(quasi.attributes).union(*(one[0] for one in met))
        found = [one for one in found if one not in met] + [(columns, [n for one in met for n in one[1]] + [number])]
    return [sorted(numbers) for _, numbers in found]


def _partition(
    table: CodedTable,
    columns: Sequence[MaskedColumn],
    numbers: Sequence[int],
    quasis: Sequence[Quasi],
    importance: Sequence[float],
    many: int,
) -> Partition:
    attributes = sorted({column for number in numbers for column in quasis[number].attributes})
    sensitive = sorted({column for number in numbers for column in quasis[number].sensitive.columns})
    taken, places = (*attributes, *sensitive), dict[int, slice]()
    checks: dict[object, tuple[Check, slice]] = {}
    for number in numbers:
        quasi = quasis[number]
        beside = quasi.sensitive._replace(columns=tuple(map(taken.index, quasi.sensitive.columns)))
        begin = sum(len(one.conditions) for one, _ in checks.values())
        new = Check(beside, quasi.conditions), slice(begin, begin + len(quasi.conditions))
        same = number if quasi.among is None else ("any of", quasi.among)  # sets of one requirement ask the same
        places[number] = (checks.setdefault(same, new) if quasi.conditions else new)[1]
    masked = tuple(columns[number] for number in attributes)
    labelled, k = trees_of(masked), max(quasis[number].k for number in numbers)
    asked = tuple(one for one, _ in checks.values())
    rules = rules_of(masked, labelled, [importance[number] for number in attributes], k, asked)
    tree, leaves = _grown(table, taken, labelled, rules, many)
    if leaves.broken:
        names = ", ".join(one.encoder.column for one in masked if one.kept)
        raise InputError(
            f"{WHO}: with {names} kept as declared {leaves.broken} records are in regions that break a requirement. "
            "Keep less, or lower it."
        )
    worst = {number: leaves.worst[places[number]] for number in numbers}
    return Partition(tuple(attributes), released_regions(masked, labelled, tree), leaves, worst)


def _grown(
    table: CodedTable, columns: tuple[int, ...], labelled: Labelled, rules: Rules, many: int
) -> tuple[RegionTree, Leaves]:
    """All regions: the large ones by passes, the others in shards."""
    trees, limit = labelled.trees, current_limits().refinement_shard_rows
    records = _PassRecords(table, columns, trees, many)
    whole = Level(
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        np.array([table.rows]),
        top(trees),
        np.ones((1, len(trees.roots)), np.bool_),
        np.array([[*_whole_figures(table, columns, rules)]]),
    )
    found = grow(records, whole, rules, until=limit)
    waiting = found.waiting
    if not len(waiting.ids):
        return found.tree, found.leaves
    shard_of = (np.cumsum(waiting.sizes) - 1) // limit
    shard_of = np.unique(shard_of, return_inverse=True)[1]
    shards = int(shard_of.max()) + 1
    place = np.full(len(found.tree.first), -1, np.int64)
    place[waiting.ids] = np.arange(len(waiting.ids))
    progress.step(f"mondrian: {len(waiting.ids)} regions in {shards} shards")
    size = table.rows * (2 * len(columns) + 6)
    split = partial(_split_rows, columns, len(trees.roots), found.tree, place, shard_of, shards)
    rows = table.records.exchange(split, _joined_rows, shards, "mondrian: exchange", size=size)
    levels = [waiting.at(np.flatnonzero(shard_of == shard)) for shard in range(shards)]
    rest = rules._replace(kept=())
    grown = rows.with_positions().map(partial(_grow_shard, levels, trees, rest, many), "mondrian: regions")
    return _attached(found, levels, grown)


def _whole_figures(table: CodedTable, columns: tuple[int, ...], rules: Rules) -> list[float]:
    """The figures of the whole table."""
    figures: list[float] = []
    for sensitive, conditions in rules.checks:
        counts = table.records.reduce(partial(_sensitive_counts, columns, sensitive), np.add, "mondrian: whole table")
        figures += [float(one[0]) for one in judged(counts, 1, conditions).figures]
    return figures


def _sensitive_counts(columns: tuple[int, ...], sensitive: Sensitive, block: CodedBlock) -> Counts:
    parts = np.zeros(block.codes.shape[1], np.int64)
    return _counted(block.codes[list(columns)], sensitive, parts, 1)


def _counted(codes: Codes, sensitive: Sensitive, parts: Counts, count: int) -> Counts:
    """How many rows of each part have each sensitive code."""
    found = np.zeros(count * sensitive.width, np.int64)
    for column, offset in zip(sensitive.columns, sensitive.offsets, strict=True):
        found += np.bincount(parts * sensitive.width + offset + codes[column], minlength=len(found))
    return found.reshape(count, sensitive.width)


class _Shard(NamedTuple):
    """The rows of some regions: codes, classes, and the region of each, by number."""

    codes: Codes
    classes: NDArray[np.uint16]
    regions: NDArray[np.int32]


def _split_rows(
    columns: tuple[int, ...],
    attributes: int,
    tree: RegionTree,
    place: Counts,
    shard_of: Counts,
    shards: int,
    block: CodedBlock,
) -> list[_Shard]:
    assert block.classes is not None
    codes = block.codes[list(columns)]
    regions = place[regions_of(codes[:attributes], tree)].astype(np.int32)
    shard = np.where(regions >= 0, shard_of[regions], -1)
    rows = [np.flatnonzero(shard == number) for number in range(shards)]
    return [_Shard(codes[:, some], block.classes[some], regions[some]) for some in rows]


def _joined_rows(parts: list[_Shard]) -> _Shard:
    codes, classes, regions = zip(*parts, strict=True)
    return _Shard(np.concatenate(codes, axis=1), np.concatenate(classes), np.concatenate(regions))


def _grow_shard(
    levels: list[Level], trees: Trees, rules: Rules, many: int, shard: _Shard, position: Position
) -> tuple[RegionTree, Leaves]:
    """The regions of one shard, each numbered as its first."""
    level = levels[position.number]
    begins = np.cumsum(level.sizes) - level.sizes
    start = level._replace(ids=np.arange(len(level.ids)), begins=begins)
    records = RowRecords(shard.codes, shard.classes, many, shard.regions, trees)
    found = grow(records, start, rules)
    return found.tree, found.leaves


def _attached(
    found: Grown, levels: Sequence[Level], grown: Sequence[tuple[RegionTree, Leaves]]
) -> tuple[RegionTree, Leaves]:
    """The regions of all shards below those that waited."""
    trees, leaves = [found.tree], found.leaves
    size = len(found.tree.first)
    attribute, first, _ = found.tree
    for level, (below, own) in zip(levels, grown, strict=True):
        roots = len(level.ids)
        moved = below.first + np.int32(size - roots)
        attribute[level.ids], first[level.ids] = below.attribute[:roots], moved[:roots]
        trees.append(RegionTree(below.attribute[roots:], moved[roots:], below.until[roots:]))
        size += len(below.first) - roots
        leaves = leaves.plus(own)
    return RegionTree(*(np.concatenate(one) for one in zip(*trees, strict=True))), leaves


class _PassRecords(RegionRecords):
    """All records of the table, counted by passes over its blocks; ``columns`` are those of the regions."""

    def __init__(self, table: CodedTable, columns: tuple[int, ...], trees: Trees, many: int) -> None:
        self.table, self.columns, self.trees, self.many = table, columns, trees, many
        self.sizes = trees.high[trees.roots]
        self.ends = np.cumsum(self.sizes)
        self.found: dict[int, Counts] = {}

    def begin(self, level: Level, tree: Callable[[], RegionTree]) -> None:
        """Count the codes and classes of all attributes in each region, some regions at a time."""
        self.tree, self.found = tree(), {}
        most = max(1, current_limits().refinement_cells // int(self.ends[-1] * self.many))
        for low in range(0, len(level.ids), most):
            ids = level.ids[low : low + most]
            counts = self.table.records.reduce(self._task(ids), np.add, "mondrian: count")
            self.found |= dict(zip(ids.tolist(), counts, strict=True))
        progress.step(f"mondrian: {len(level.ids)} large regions")

    def _task(self, ids: Counts) -> Callable[[CodedBlock], Counts]:
        return partial(_count_codes, self.columns[: len(self.sizes)], self.tree, ids, tuple(self.sizes), self.many)

    def _counts(self, region: int, attribute: int) -> Counts:
        """Of codes x classes."""
        end = self.ends[attribute]
        return self.found[region][end - self.sizes[attribute] : end]

    def propose(self, level: Level, attributes: Counts, k: int) -> Proposals:
        """By the counts."""
        pairs = zip(level.ids.tolist(), attributes.tolist(), strict=True)
        nodes = level.boxes.nodes[np.arange(len(attributes)), attributes].tolist()
        found = [
            propose_counted(self._counts(*pair), node, self.trees, k) for pair, node in zip(pairs, nodes, strict=True)
        ]
        return Proposals(np.array([cut for cut, _ in found]), np.array([gain for _, gain in found]))

    def divide(self, level: Level, attributes: Counts, parts: RegionParts) -> Counts:
        """By the counts."""
        sizes = [np.empty(0, np.int64)]
        for number, (region, attribute) in enumerate(zip(level.ids.tolist(), attributes.tolist(), strict=True)):
            before = np.concatenate([[0], np.cumsum(self._counts(region, attribute).sum(axis=1))])
            sizes.append(np.diff(before[parts.ends[parts.starts[number] : parts.starts[number + 1]]], prepend=0))
        self.divided = level.ids, attributes, parts
        return np.concatenate(sizes)

    def counts(self, sensitive: Sensitive, level: Level, sizes: Counts) -> Counts:
        """By one pass more, over the tree with these parts."""
        ids, attributes, parts = self.divided
        some = np.isin(ids, level.ids)
        leaves, new = np.full(len(parts.ends), LEAF, np.int16), np.zeros(len(parts.ends), np.int32)
        tree = RegionTree(
            np.concatenate([self.tree.attribute, leaves]),
            np.concatenate([self.tree.first, new]),
            np.concatenate([self.tree.until, parts.ends.astype(np.int32)]),
        )
        tree.attribute[ids], tree.first[ids] = attributes, len(self.tree.first) + parts.starts[:-1]
        wanted = np.flatnonzero(np.repeat(some, np.diff(parts.starts)))
        place = np.full(len(tree.first), -1)
        place[len(self.tree.first) + wanted] = np.arange(len(wanted))
        count = partial(_count_sensitive, self.columns, len(self.sizes), tree, place, sensitive, len(wanted))
        return self.table.records.reduce(count, np.add, "mondrian: models")


def _count_codes(
    columns: tuple[int, ...], tree: RegionTree, ids: Counts, sizes: tuple[int, ...], many: int, block: CodedBlock
) -> Counts:
    """For each region how often each code of each attribute occurs with each class."""
    assert block.classes is not None
    codes = block.codes[list(columns)]
    place = np.full(len(tree.first), -1)
    place[ids] = np.arange(len(ids))
    regions = place[regions_of(codes, tree)]
    here = np.flatnonzero(regions >= 0)
    regions, classes = regions[here], block.classes[here]
    found = []
    for number, size in enumerate(sizes):
        keys = (regions * size + codes[number, here]) * many + classes
        found.append(np.bincount(keys, minlength=len(ids) * size * many).reshape(len(ids), size, many))
    return np.concatenate(found, axis=1)


def _count_sensitive(
    columns: tuple[int, ...],
    attributes: int,
    tree: RegionTree,
    place: Counts,
    sensitive: Sensitive,
    count: int,
    block: CodedBlock,
) -> Counts:
    codes = block.codes[list(columns)]
    parts = place[regions_of(codes[:attributes], tree)]
    here = np.flatnonzero(parts >= 0)
    return _counted(codes[:, here], sensitive, parts[here], count)
