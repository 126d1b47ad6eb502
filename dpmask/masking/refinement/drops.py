"""Top-down refinement that may drop some records to keep the others finer.

Groups of fewer than k records are dropped, and those that this makes too small, until all that are left are large
enough. A refinement is valid while no more records are dropped than allowed. Its score is the usual one, where a group
that would be dropped counts as one of nobody: A(QID) would fall to 0 (eq. 1). It must tell records apart that are left.
What is dropped only grows with every refinement, so what is invalid stays so.

A round counts the cells of all groups, without the records dropped so far, which say of each candidate how many it
would cost at least. The best one is tried: passes that count groups alone find what would be left; if that is too
little, the candidate is given up. Where the groups of a pass outgrow the budget of cells, it is done in parts. Dropped
groups travel with every task as keys of 16 bytes, sorted once.

What only dropped records have is hidden again in the end: values without a tree, intervals, and bounds of intervals,
which become the lowest value left above them. A refinement that then tells nobody apart is not told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple, TypeVar

from dpmask.engine import progress
from dpmask.engine.passes import reduce_blocks
from dpmask.errors import DpmaskError
from dpmask.kernels.keys import RowKeys
from dpmask.kernels.refinement.cells import NOBODY, Cells
from dpmask.kernels.refinement.dropped import (
    Prospects,
    Sizes,
    joined_keys,
    merge_prospects,
    no_keys,
    prospects,
    sorted_keys,
)
from dpmask.kernels.refinement.information import TIE
from dpmask.masking.refinement import rounds as refinement_rounds
from dpmask.masking.refinement.attributes import Attribute, Candidate, Refined
from dpmask.masking.refinement.blocks import Coded, Order, merge
from dpmask.masking.refinement.drop_blocks import (
    Drops,
    Part,
    group_cells,
    group_sizes,
    merge_group_sizes,
)
from dpmask.masking.refinement.rounds import Choice, Outcome, Quasi, Step

_Found = TypeVar("_Found")

_MOST_PARTS = 256
_LABEL = "refinement: drop"


class Solved(NamedTuple):
    """The refinements that were taken, the smallest group of each quasi-identifier, and what is dropped."""

    taken: tuple[_Taken, ...]
    smallest: tuple[int, ...]
    drops: Drops

    def outcome(self, attributes: Sequence[Attribute]) -> Outcome:
        """What may be told: refinements that only tell apart who is dropped are not among it."""
        steps = [
            Step(attributes[number].name, attributes[number].told(candidate), score, smallest)
            for (number, candidate, score), smallest in self.taken
            if attributes[number].tells(candidate)
        ]
        return Outcome(tuple(steps), self.smallest)


class _Taken(NamedTuple):
    choice: Choice
    smallest: int


def refine_dropping(
    coded: Coded, attributes: list[Attribute], quasis: Sequence[Quasi], rows: int, allowed: int, *, guided: bool
) -> Solved:
    """Refine the attributes, in place, until nothing more is valid with so many records dropped."""
    search = _Search(coded, attributes, quasis, rows, allowed, guided)
    taken: list[_Taken] = []
    while (choice := search.best()) is not None:
        if search.take(choice):
            taken.append(_Taken(choice, min(search.smallest)))
            name = attributes[choice.attribute].name
            progress.note(f"refinement {len(taken)}: {name}, {search.drops.records} records dropped")
    return Solved(tuple(taken), search.checked(), search.drops)


class _Look(NamedTuple):
    """The groups of one quasi-identifier: records left, the smallest of k or more, and what is in smaller ones."""

    left: int
    smallest: int
    small: RowKeys
    lost: int

    def plus(self, other: _Look) -> _Look:
        return _Look(
            self.left + other.left,
            min(self.smallest, other.smallest),
            joined_keys(self.small, other.small),
            self.lost + other.lost,
        )


class _Search:
    """The rounds: scoring, trying, counting what is left."""

    def __init__(
        self,
        coded: Coded,
        attributes: list[Attribute],
        quasis: Sequence[Quasi],
        rows: int,
        allowed: int,
        guided: bool,
    ) -> None:
        self.coded, self.attributes, self.quasis = coded, attributes, quasis
        self.rows, self.allowed, self.guided = rows, allowed, guided
        self.versions, self.smallest = [0] * len(quasis), [rows] * len(quasis)
        self.drops = Drops(tuple(no_keys() for _ in quasis), 0)
        self.parts = 1
        self.prospects = self._prospects(self._orders(attributes))

    def best(self) -> Choice | None:
        """The candidate with the best score; ties go by attribute, then by place in the cut."""
        best: Choice | None = None
        for number, attribute in enumerate(self.attributes):
            for candidate in attribute.candidates():
                score = self._score(number, candidate)
                if score is None:
                    attribute.finish(candidate)
                elif score > (-math.inf if best is None else best.score + TIE):
                    best = Choice(number, candidate, score)
        return best

    def _score(self, number: int, candidate: Candidate) -> float | None:
        """None for what will never do: it tells nobody who is left, or costs too much; -inf for what does not now."""
        apart, slot = self.attributes[number].apart, candidate.slot
        lost, falls, tells = 0, [], True
        for place, quasi in enumerate(self.quasis):
            if number not in quasi.attributes:
                continue
            found = self.prospects[place].get((quasi.attributes.index(number), candidate.node))
            if found is None or (apart and not found.told[slot]):
                return None
            cost, smallest = int(found.lost[slot]), int(found.smallest[slot])
            lost = max(lost, cost)
            falls.append(self.smallest[place] - (0 if cost else min(self.smallest[place], smallest)))
            tells = tells and (apart or not cost or int(found.told.sum()) > 1)
        if self.drops.records + lost > self.allowed:
            return None
        if not tells:  # one part alone is not worth records; but these may yet be dropped for something else
            return -math.inf
        return candidate.gain / (sum(falls) / len(falls) + 1.0) if self.guided else float(candidate.records - lost)

    def take(self, choice: Choice) -> bool:
        """Refine a candidate, unless more records would have to go than may."""
        refined = self.attributes[choice.attribute].copied()
        what = refined.refine(choice.candidate)
        attributes = [*self.attributes]
        attributes[choice.attribute] = refined
        orders = self._orders(attributes, choice.attribute, what)
        settled = self._settled(orders)
        if settled is None:
            self.attributes[choice.attribute].finish(choice.candidate)
            return False
        self.attributes[choice.attribute] = refined
        self.drops, self.smallest = settled
        self.versions = [order.version for order in orders]
        self.prospects = self._prospects(orders)
        return True

    def checked(self) -> tuple[int, ...]:
        """The smallest group of every quasi-identifier, all of them counted once more."""
        looks = self._looks(self._orders(self.attributes), self.drops)
        gone = self.drops.records
        if gone > self.allowed or any(look.lost or self.rows - look.left != gone for look in looks):
            raise DpmaskError(
                "TopDownRefinement: the last count of all groups found some that are too small, or not the records "
                "that were to be left. Nothing is released; please report this."
            )
        return tuple(look.smallest for look in looks)

    def _settled(self, orders: Sequence[Order]) -> tuple[Drops, list[int]] | None:
        """What is dropped in the end, and the smallest groups then; None where that is too much."""
        drops = Drops(tuple(no_keys() for _ in orders), 0)
        while True:
            looks = self._looks(orders, drops)
            gone = self.rows - looks[0].left
            lost = max(look.lost for look in looks)
            if gone + lost > self.allowed:
                return None
            keys = tuple(
                sorted_keys(joined_keys(known, look.small)) for known, look in zip(drops.keys, looks, strict=True)
            )
            drops = Drops(keys, gone + lost)
            if not lost or len(orders) == 1:  # of one quasi-identifier, groups do not shrink others
                return drops, [look.smallest for look in looks]

    def _orders(
        self, attributes: Sequence[Attribute], chosen: int | None = None, refined: Refined | None = None
    ) -> list[Order]:
        """What blocks are told: the values of now, and which of them are new."""
        orders = []
        for number, (version, quasi) in enumerate(zip(self.versions, self.quasis, strict=True)):
            concerned = chosen in quasi.attributes
            place = quasi.attributes.index(chosen) if concerned and chosen is not None else 0
            values = tuple(attributes[attribute].values for attribute in quasi.attributes)
            new = refined if concerned else None
            orders.append(Order(number, version + concerned, quasi.attributes, values, place, new, 0))
        return orders

    @property
    def _budget(self) -> int:
        return refinement_rounds.CELL_BUDGET if self.parts < _MOST_PARTS else NOBODY

    def _prospects(self, orders: Sequence[Order]) -> list[Prospects]:
        """What every candidate would do, by quasi-identifier."""
        parts = self._in_parts(orders, partial(group_cells, self.drops), merge, self._prospects_of)
        return [reduce(merge_prospects, of_quasi) for of_quasi in zip(*parts, strict=True)]

    def _prospects_of(self, orders: Sequence[Order], cells: dict[int, Cells]) -> list[Prospects]:
        return [
            prospects(cells[order.number], order.values, quasi.k)
            for order, quasi in zip(orders, self.quasis, strict=True)
        ]

    def _looks(self, orders: Sequence[Order], drops: Drops) -> list[_Look]:
        """The sizes of all groups, by quasi-identifier."""
        parts = self._in_parts(orders, partial(group_sizes, drops), merge_group_sizes, self._looks_of)
        return [reduce(_Look.plus, of_quasi) for of_quasi in zip(*parts, strict=True)]

    def _looks_of(self, orders: Sequence[Order], counted: dict[int, Sizes]) -> list[_Look]:
        return [_look(counted[order.number], quasi.k) for order, quasi in zip(orders, self.quasis, strict=True)]

    def _in_parts(
        self,
        orders: Sequence[Order],
        task: Callable[..., Any],
        merged: Callable[..., Any],
        finish: Callable[..., list[_Found]],
    ) -> list[list[_Found]]:
        """A pass for each part of the groups, in as many parts as the budget asks for; what became of each."""
        found: list[list[_Found]] = []
        while len(found) < self.parts:
            told = [order._replace(budget=self._budget) for order in orders]
            one_pass = partial(task, told, Part(len(found), self.parts), self.coded.read)
            counted = reduce_blocks(one_pass, partial(merged, told), self.coded.blocks, _LABEL)
            if any(one is None for one in counted.values()):
                self.parts, found = 2 * self.parts, []
            else:
                found.append(finish(told, counted))
        return found


def _look(counted: Sizes, k: int) -> _Look:
    small = counted.counts < k
    smallest = int(counted.counts[~small].min(initial=NOBODY))
    return _Look(int(counted.counts.sum()), smallest, counted.keys.at(small), int(counted.counts[small].sum()))
