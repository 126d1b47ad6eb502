"""Top-down refinement over blocks: each round tells the blocks what was refined and gets back what that left.

Blocks hold small codes. A round's task brings its groups up to date and returns the cells of the groups that changed;
these add up over blocks (dpmask.masking.refinement.blocks), and the sums decide what is next. Where cells outgrow their
budget the rows of that quasi-identifier meet by group, once; then every group is in one place and only the smallest
cells travel.

Quasi-identifiers that share no attribute, directly or through others, do not touch each other: such components go on
in the same passes, and their refinements are put in the order in which one search over all would have taken them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine import progress
from dpmask.engine.exchange import Source, exchange_blocks
from dpmask.engine.passes import Blocks, reduce_blocks
from dpmask.kernels.refinement.cells import Minima, merge_minima, smallest_cells
from dpmask.kernels.refinement.information import TIE
from dpmask.masking.refinement.attributes import Attribute, Candidate, Refined
from dpmask.masking.refinement.blocks import Coded, Order, count, count_owned, joined, merge, split_rows

CELL_BUDGET = 1 << 22
"""Cells that one round of one quasi-identifier may bring to the driver."""
_SHARD_ROWS = 1_000_000
_LABEL = "refinement: count"


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


class Choice(NamedTuple):
    """The candidate that is best, and its score."""

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

    def _best(self, component: _Component) -> Choice | None:
        """The valid candidate with the best score; ties go by attribute, then by place in the cut."""
        best: Choice | None = None
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
                    best = Choice(number, candidate, score)
        return best

    def count(self, components: Sequence[_Component], chosen: Mapping[int, tuple[int, Refined] | None]) -> None:
        """Have the blocks count what changed, and learn from it."""
        tallies = {n: tally for component in components for n, tally in component.tallies.items() if n in chosen}
        orders = {n: self._order(n, tally, chosen[n]) for n, tally in tallies.items()}
        shared = tuple(order for n, order in orders.items() if tallies[n].shards is None)
        blocks, read = self.coded
        found = reduce_blocks(partial(count, shared, read), partial(merge, shared), blocks, _LABEL) if shared else {}
        for number, order in orders.items():
            cells = found.get(number)
            if cells is not None:
                tallies[number].learn(smallest_cells(cells, order.values))
                continue
            if tallies[number].shards is None:
                tallies[number].shards = self._exchanged(order)
            tallies[number].learn(_owned_minima(tallies[number].shards, order))

    def _order(self, number: int, tally: _Tally, chosen: tuple[int, Refined] | None) -> Order:
        columns = tally.quasi.attributes
        values = tuple(self.attributes[attribute].values for attribute in columns)
        place, refined = (columns.index(chosen[0]), chosen[1]) if chosen is not None else (0, None)
        return Order(number, tally.version, columns, values, place, refined, CELL_BUDGET)

    def _exchanged(self, order: Order) -> Blocks:
        """The codes of one quasi-identifier, all records of a group in one place."""
        shards = max(2, -(-self.rows // _SHARD_ROWS))
        source = Source(partial(split_rows, order, shards, self.coded.read), self.coded.blocks)
        size = 2 * self.rows * len(order.columns)
        return exchange_blocks([source], joined, shards, "refinement: exchange", size=size)


def _owned_minima(shards: Blocks | None, order: Order) -> Minima:
    assert shards is not None
    return reduce_blocks(partial(count_owned, order), merge_minima, shards, _LABEL)
