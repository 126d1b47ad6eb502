"""Top-down refinement over blocks: each round tells the blocks what was refined and gets back what that left.

Blocks hold small codes. A round's task brings its groups up to date and returns the cells of the groups that changed;
these add up over blocks, and the sums decide what is next. What travels to a block is the masked values of now, never
groups: a block numbers its groups for itself, keeps them beside its codes while these stay in a worker's memory, and
makes them anew from the codes wherever they are not at hand. So a lost worker costs time, and nothing grows from round
to round. Where cells outgrow their budget the rows of that quasi-identifier meet by group, once; then every group is
in one place and only the smallest cells travel.

Quasi-identifiers that share no attribute, directly or through others, do not touch each other: such components go on
in the same passes, and their refinements are put in the order in which one search over all would have taken them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine import progress
from dpmask.engine.exchange import Source, exchange_blocks
from dpmask.engine.passes import Blocks, Span, reduce_blocks
from dpmask.kernels.information import TIE
from dpmask.kernels.refinement import (
    Cells,
    Grouped,
    Minima,
    Values,
    cell_starts,
    count_cells,
    group_rows,
    merge_cells,
    merge_minima,
    node_keys,
    smallest_cells,
    split_groups,
)
from dpmask.masking.refinement_attributes import Attribute, Candidate, Refined

Codes = NDArray[np.uint16]

CELL_BUDGET = 1 << 22
"""Cells that one round of one quasi-identifier may bring to the driver."""
_SHARD_ROWS = 1_000_000
_LABEL = "refinement: count"


class CodedBlock:
    """A block's codes (rows x attributes) and classes; the groups of its rows are kept here, but never travel."""

    def __init__(self, codes: Codes, classes: NDArray[np.uint16] | None = None) -> None:
        self.codes, self.classes = codes, classes
        self.groups: dict[int, tuple[int, Grouped]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"codes": self.codes, "classes": self.classes, "groups": {}}

    def __repr__(self) -> str:
        return f"<CodedBlock: {len(self.codes)} rows>"

    def __sizeof__(self) -> int:
        return self.codes.nbytes + 4 * len(self.codes) + (0 if self.classes is None else self.classes.nbytes)


class Step(NamedTuple):
    """One refinement: of which attribute and value, its score, and the smallest group of any requirement after it."""

    attribute: str
    value: str
    score: float
    smallest: int


class Outcome(NamedTuple):
    """The refinements in their order, and the smallest group of each quasi-identifier at the end."""

    steps: tuple[Step, ...]
    smallest: tuple[int, ...]


class Quasi(NamedTuple):
    """A quasi-identifier: the numbers of its attributes, and how many records must share each row of it."""

    attributes: tuple[int, ...]
    k: int


class _Order(NamedTuple):
    """What a block is told of one quasi-identifier: its version is how often it was refined."""

    number: int
    version: int
    columns: tuple[int, ...]
    values: tuple[Values, ...]
    place: int
    refined: Refined | None
    budget: int


@dataclass
class _Tally:
    """What is known of one quasi-identifier: A, and the smallest cell of each candidate so far."""

    quasi: Quasi
    smallest: int
    minima: dict[tuple[int, int], NDArray[np.int64]] = field(default_factory=dict)
    version: int = 0
    shards: Blocks | None = None

    def after(self, attribute: int, candidate: Candidate) -> int:
        """A(QID) if the candidate were refined."""
        cells = self.minima.get((self.quasi.attributes.index(attribute), candidate.node))
        return self.smallest if cells is None else min(self.smallest, int(cells[candidate.slot]))

    def learn(self, found: Minima) -> None:
        """Smallest cells only fall: those of groups that did not change still hold."""
        for key, cells in found.items():
            known = self.minima.get(key)
            self.minima[key] = cells if known is None else np.minimum(known, cells)


class _Choice(NamedTuple):
    attribute: int
    candidate: Candidate
    score: float


class _Taken(NamedTuple):
    """A refinement of one component, before its place among those of the others is known."""

    attribute: int
    told: str
    score: float
    smallest: int


@dataclass(eq=False)
class _Component:
    """Quasi-identifiers that share attributes, directly or through others."""

    tallies: dict[int, _Tally]
    attributes: list[int]
    taken: list[_Taken] = field(default_factory=list)

    @property
    def smallest(self) -> int:
        return min(tally.smallest for tally in self.tallies.values())


_Read = Callable[[Any, Span], CodedBlock]


class Coded(NamedTuple):
    """A table as codes: blocks, and what makes a CodedBlock of each: nothing, where that is what they hold."""

    blocks: Blocks
    read: _Read


def as_held(content: CodedBlock, span: Span) -> CodedBlock:
    """A block that is coded already."""
    return content


def refine(
    coded: Coded, attributes: Sequence[Attribute], quasis: Sequence[Quasi], rows: int, *, guided: bool
) -> Outcome:
    """Refine the attributes, in place, until nothing more is valid.

    ``guided``: by information gain for the loss of anonymity (eq. 1), otherwise by the number of records refined.
    """
    components = _components(quasis, rows)
    search = _Search(coded, attributes, rows, guided)
    first = {number: None for component in components for number in component.tallies}
    search.count(components, first)
    while chosen := search.choose(components):
        search.count(components, chosen)
    tallies = {number: tally for component in components for number, tally in component.tallies.items()}
    smallest = tuple(tallies[number].smallest for number in range(len(quasis)))
    return Outcome(tuple(_in_order(components, attributes, rows)), smallest)


def _components(quasis: Sequence[Quasi], rows: int) -> list[_Component]:
    found: list[_Component] = []
    for number, quasi in enumerate(quasis):
        met = [one for one in found if set(one.attributes) & set(quasi.attributes)]
        tallies = {n: tally for one in met for n, tally in one.tallies.items()} | {number: _Tally(quasi, rows)}
        members = {attribute for one in met for attribute in one.attributes} | set(quasi.attributes)
        found = [one for one in found if one not in met] + [_Component(tallies, sorted(members))]
    return found


def _in_order(components: Sequence[_Component], attributes: Sequence[Attribute], rows: int) -> list[Step]:
    """The refinements of all components as one search takes them: always the best of what each would do next."""
    places, smallest = [0] * len(components), [rows] * len(components)
    steps = []
    while waiting := [n for n, one in enumerate(components) if places[n] < len(one.taken)]:
        heads = {n: components[n].taken[places[n]] for n in waiting}
        best = max(head.score for head in heads.values())
        number = min((n for n in waiting if heads[n].score >= best - TIE), key=lambda n: heads[n].attribute)
        head = heads[number]
        places[number], smallest[number] = places[number] + 1, head.smallest
        steps.append(Step(attributes[head.attribute].name, head.told, head.score, min(smallest)))
    return steps


class _Search:
    """The rounds: choosing, telling the blocks, learning from their cells."""

    def __init__(self, coded: Coded, attributes: Sequence[Attribute], rows: int, guided: bool) -> None:
        self.coded, self.attributes, self.rows, self.guided = coded, attributes, rows, guided

    def choose(self, components: Sequence[_Component]) -> dict[int, tuple[int, Refined]]:
        """Refine the best candidate of every component; for each quasi-identifier concerned what was refined."""
        chosen: dict[int, tuple[int, Refined]] = {}
        for component in components:
            best = self._best(component)
            if best is None:
                continue
            attribute = self.attributes[best.attribute]
            told = attribute.told(best.candidate)
            refined = attribute.refine(best.candidate)
            for number, tally in component.tallies.items():
                if best.attribute in tally.quasi.attributes:
                    tally.smallest = tally.after(best.attribute, best.candidate)
                    tally.version += 1
                    chosen[number] = best.attribute, refined
            component.taken.append(_Taken(best.attribute, told, best.score, component.smallest))
            progress.note(f"refinement {len(component.taken)}: {attribute.name}, smallest group {component.smallest}")
        return chosen

    def _best(self, component: _Component) -> _Choice | None:
        """The valid candidate with the best score; ties go by attribute, then by place in the cut."""
        best: _Choice | None = None
        for number in component.attributes:
            concerned = [tally for tally in component.tallies.values() if number in tally.quasi.attributes]
            for candidate in self.attributes[number].candidates():
                after = [tally.after(number, candidate) for tally in concerned]
                if any(size < tally.quasi.k for size, tally in zip(after, concerned, strict=True)):
                    self.attributes[number].finish(candidate)  # what is invalid stays so: groups only shrink
                    continue
                lost = sum(tally.smallest - size for size, tally in zip(after, concerned, strict=True)) / len(after)
                score = candidate.gain / (lost + 1.0) if self.guided else float(candidate.records)  # eqs. 1, 4
                if best is None or score > best.score + TIE:
                    best = _Choice(number, candidate, score)
        return best

    def count(self, components: Sequence[_Component], chosen: Mapping[int, tuple[int, Refined] | None]) -> None:
        """Have the blocks count what changed, and learn from it."""
        tallies = {n: tally for component in components for n, tally in component.tallies.items() if n in chosen}
        orders = {n: self._order(n, tally, chosen[n]) for n, tally in tallies.items()}
        shared = tuple(order for n, order in orders.items() if tallies[n].shards is None)
        blocks, read = self.coded
        found = reduce_blocks(partial(_count, shared, read), partial(_merge, shared), blocks, _LABEL) if shared else {}
        for number, order in orders.items():
            cells = found.get(number)
            if cells is not None:
                tallies[number].learn(smallest_cells(cells, order.values))
                continue
            if tallies[number].shards is None:
                tallies[number].shards = self._exchanged(order)
            tallies[number].learn(_owned_minima(tallies[number].shards, order))

    def _order(self, number: int, tally: _Tally, chosen: tuple[int, Refined] | None) -> _Order:
        columns = tally.quasi.attributes
        values = tuple(self.attributes[attribute].values for attribute in columns)
        place, refined = (columns.index(chosen[0]), chosen[1]) if chosen is not None else (0, None)
        return _Order(number, tally.version, columns, values, place, refined, CELL_BUDGET)

    def _exchanged(self, order: _Order) -> Blocks:
        """The codes of one quasi-identifier, all records of a group in one place."""
        shards = max(2, -(-self.rows // _SHARD_ROWS))
        source = Source(partial(_split_rows, order, shards, self.coded.read), self.coded.blocks)
        size = 2 * self.rows * len(order.columns)
        return exchange_blocks([source], _joined, shards, "refinement: exchange", size=size)


def _groups(block: CodedBlock, columns: Sequence[int], order: _Order) -> Grouped:
    """The groups of a block: one refinement further than those kept, or made anew."""
    version, groups = block.groups.get(order.number, (-1, None))
    if groups is None or version not in {order.version, order.version - 1} or order.refined is None:
        groups = group_rows(block.codes, columns, order.values)
    elif version == order.version - 1:
        column = block.codes[:, columns[order.place]]
        groups = split_groups(groups, column, order.place, *order.refined, order.values[order.place])
    block.groups[order.number] = order.version, groups
    return groups


def _changed(groups: Grouped, order: _Order) -> NDArray[np.intp]:
    """The groups to count: those that hold what a refined value became."""
    if order.refined is None:
        return np.arange(len(groups.nodes))
    return np.flatnonzero(np.isin(groups.nodes[:, order.place], order.refined.children))


def _count(orders: Sequence[_Order], read: _Read, content: Any, span: Span) -> dict[int, Cells | None]:
    """The cells that changed, by quasi-identifier; none where they are more than the budget allows."""
    block = read(content, span)
    found: dict[int, Cells | None] = {}
    for order in orders:
        groups = _groups(block, order.columns, order)
        changed = _changed(groups, order)
        _, size = cell_starts(groups.nodes[changed], order.values)
        found[order.number] = (
            None if size > order.budget else count_cells(block.codes, order.columns, groups, changed, order.values)
        )
    return found


def _merge(
    orders: Sequence[_Order], left: dict[int, Cells | None], right: dict[int, Cells | None]
) -> dict[int, Cells | None]:
    return {order.number: _merged(order, left[order.number], right[order.number]) for order in orders}


def _merged(order: _Order, left: Cells | None, right: Cells | None) -> Cells | None:
    if left is None or right is None:
        return None
    both = merge_cells(left, right, order.values)
    return both if len(both.counts) <= order.budget else None


def _split_rows(order: _Order, shards: int, read: _Read, content: Any, span: Span) -> list[tuple[Codes]]:
    """A block's rows by the owner of their group."""
    block = read(content, span)
    groups = group_rows(block.codes, order.columns, order.values)
    owner = (node_keys(groups.nodes).first % np.uint64(shards)).astype(np.int64)[groups.rows]
    codes = block.codes[:, list(order.columns)]
    return [(codes[owner == shard],) for shard in range(shards)]


def _joined(parts: list[tuple[Codes]]) -> CodedBlock:
    return CodedBlock(np.concatenate([codes for (codes,) in parts]))


def _owned_minima(shards: Blocks | None, order: _Order) -> Minima:
    assert shards is not None
    return reduce_blocks(partial(_count_owned, order), merge_minima, shards, _LABEL)


def _count_owned(order: _Order, block: CodedBlock, span: Span) -> Minima:
    """The smallest cells of groups that are all here, some groups at a time."""
    columns = range(len(order.columns))
    groups = _groups(block, columns, order)
    changed = _changed(groups, order)
    _, size = cell_starts(groups.nodes[changed], order.values)
    parts = max(1, min(-(-size // order.budget), len(changed)))
    found: Minima = {}
    for part in np.array_split(changed, parts):
        cells = count_cells(block.codes, columns, groups, part, order.values)
        found = merge_minima(found, smallest_cells(cells, order.values))
    return found
