"""Top-down refinement that may drop some records to keep the others finer.

Groups of fewer than k records are dropped, and those that this makes too small, until all that are left are large
enough. A refinement is valid while no more records are dropped than allowed. Its score is the usual one, where a group
that would be dropped counts as one of nobody: A(QID) would fall to 0 (eq. 1). It must tell records apart that are left.
What is dropped only grows with every refinement, so what is invalid stays so.

A round counts the cells of all groups, without the records dropped so far, which say of each candidate how many it
would cost at least. The best one is tried: passes that count groups alone find what would be left; if that is too
little, the candidate is given up. Where the groups of a pass outgrow the budget of cells, it is done in parts. A value
without a tree that only dropped records have is hidden again in the end: nobody else is to learn of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmask.engine import progress
from dpmask.engine.passes import reduce_blocks
from dpmask.kernels.information import TIE
from dpmask.kernels.keys import RowKeys, new_keys, with_word
from dpmask.kernels.refinement import NOBODY, Cells
from dpmask.kernels.refinement_drops import (
    Flags,
    Prospects,
    Sizes,
    among,
    joined_keys,
    merge_prospects,
    no_keys,
    prospects,
)
from dpmask.lake.coding import Coding
from dpmask.lake.columns import Rows
from dpmask.masking import refinement_rounds
from dpmask.masking.refinement_attributes import SUPPRESSED, Attribute, Candidate, Refined
from dpmask.masking.refinement_blocks import Coded, Order, merge
from dpmask.masking.refinement_drop_blocks import (
    Drops,
    Part,
    codes_left,
    group_cells,
    group_sizes,
    merge_codes,
    merge_group_sizes,
)
from dpmask.masking.refinement_rounds import Outcome, Quasi, Step

_Found = TypeVar("_Found")

_MOST_PARTS = 256
_LABEL = "refinement: drop"


@dataclass(frozen=True, repr=False)
class DroppedGroups:
    """Which rows of a block are dropped, by their codes and the nodes these are masked to."""

    codings: tuple[Coding, ...]
    nodes: tuple[NDArray[np.int32], ...]
    quasis: tuple[Quasi, ...]
    drops: Drops

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that decide."""
        return tuple(one.column for one in self.codings)

    def of(self, rows: Rows) -> Flags:
        """Whether each row is dropped. A value that is not known is masked by its column, or refused there."""
        words = [
            np.append(nodes, 0)[coding.codes(rows)].astype(np.uint64)
            for coding, nodes in zip(self.codings, self.nodes, strict=True)
        ]
        found = np.zeros(rows.num_rows, np.bool_)
        for quasi, dropped in zip(self.quasis, self.drops.keys, strict=True):
            keys = reduce(with_word, [words[number] for number in quasi.attributes], new_keys(rows.num_rows))
            found |= among(keys, dropped)
        return found


class Solved(NamedTuple):
    """The refinements, what is dropped for them, and for each attribute the nodes of its codes that say so."""

    outcome: Outcome
    drops: Drops
    nodes: tuple[NDArray[np.int32], ...]


def refine_dropping(
    coded: Coded, attributes: list[Attribute], quasis: Sequence[Quasi], rows: int, allowed: int, *, guided: bool
) -> Solved:
    """Refine the attributes, in place, until nothing more is valid with so many records dropped."""
    search = _Search(coded, attributes, quasis, rows, allowed, guided)
    steps = []
    while (choice := search.best()) is not None:
        if search.take(choice):
            attribute = attributes[choice.attribute]
            steps.append(Step(attribute.name, attribute.told(choice.candidate), choice.score, min(search.smallest)))
            progress.note(f"refinement {len(steps)}: {attribute.name}, {search.drops.records} records dropped")
    smallest, nodes = search.checked(), tuple(one.nodes.copy() for one in attributes)
    forgotten = {
        (attribute.name, value)
        for attribute, left in zip(attributes, search.codes_left(), strict=True)
        for value in attribute.forget(left)
    }
    steps = [step._replace(value=SUPPRESSED) if step[:2] in forgotten else step for step in steps]
    return Solved(Outcome(tuple(steps), smallest), search.drops, nodes)


class _Choice(NamedTuple):
    attribute: int
    candidate: Candidate
    score: float


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

    def best(self) -> _Choice | None:
        """The candidate with the best score; ties go by attribute, then by place in the cut."""
        best: _Choice | None = None
        for number, attribute in enumerate(self.attributes):
            for candidate in attribute.candidates():
                score = self._score(number, candidate)
                if score is None:
                    attribute.finish(candidate)
                elif score > (-math.inf if best is None else best.score + TIE):
                    best = _Choice(number, candidate, score)
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

    def take(self, choice: _Choice) -> bool:
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

    def codes_left(self) -> list[Flags]:
        """For each attribute which codes records have that are left."""
        lengths = [len(one.nodes) for one in self.attributes]
        orders = self._orders(self.attributes)
        task = partial(codes_left, self.drops, orders, lengths, self.coded.read)
        return reduce_blocks(task, merge_codes, self.coded.blocks, _LABEL)

    def checked(self) -> tuple[int, ...]:
        """The smallest group of every quasi-identifier, all of them counted once more."""
        looks = self._looks(self._orders(self.attributes), self.drops)
        assert not any(look.lost for look in looks)
        assert all(self.rows - look.left == self.drops.records <= self.allowed for look in looks)
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
            keys = tuple(joined_keys(known, look.small) for known, look in zip(drops.keys, looks, strict=True))
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
