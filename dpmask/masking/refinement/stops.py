"""Why a refinement ended: what blocks the next refinement of each column, and the nearest changes that would allow one.

All groups are counted once more with the candidates that were given up. What each of them would leave says which
requirement it breaks, and in a group of how many records; the same cells say what would hold with k - 1, and, put
together over a column's values, without that column. Nothing is known of what a second refinement would need.

Where cells are set to missing, small groups are no obstacle by themselves: a stop then says in how many records cells
would have to be missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dpmask.kernels.models import is_broken
from dpmask.kernels.refinement.cells import Cells, without_place
from dpmask.kernels.refinement.effects import Effect, Effects
from dpmask.masking.refinement.attributes import Attribute, Candidate
from dpmask.masking.refinement.blocks import CodedTable
from dpmask.masking.refinement.solution import Quasi, RefinementSolution

_SHOWN = 10
_COUNTED = 20


class Stop(NamedTuple):
    """What blocks the next refinement of a column: the requirement, in a group of how many records, and what of it."""

    column: str
    value: str
    requirement: str
    group: int
    blocked_by: str

    def __str__(self) -> str:
        return f"{self.column}: '{self.value}' stays as it is: of {self.requirement} {self.blocked_by}."


class Alternative(NamedTuple):
    """A change of the requirements that would allow one refinement more, and what that gains."""

    change: str
    column: str
    value: str
    gain: float


class Stops(NamedTuple):
    """For each column what blocks it, and the nearest alternatives, the best first."""

    stops: tuple[Stop, ...] = ()
    alternatives: tuple[Alternative, ...] = ()


class _Blocked(NamedTuple):
    """A candidate that was given up, its worth, and its effects on the quasi-identifiers that contain it."""

    attribute: Attribute
    number: int
    candidate: Candidate
    gain: float

    def effect(self, quasi: Quasi, effects: Effects) -> Effect | None:
        """The effect on one quasi-identifier; None where no record is concerned."""
        return effects.get((quasi.attributes.index(self.number), self.candidate.node))

    @property
    def key(self) -> tuple[int, int, int]:
        """Its attribute, node and slot."""
        return self.number, self.candidate.node, self.candidate.slot

    def is_allowed(self, quasis: Sequence[Quasi], effects: Sequence[Effects]) -> bool:
        """Whether it would leave no broken group."""
        concerned = [(one, found) for one, found in zip(quasis, effects, strict=True) if self.number in one.attributes]
        hits = [self.effect(one, found) for one, found in concerned]
        return all(one is None or not one.lost[self.candidate.slot] for one in hits)


class _Split(NamedTuple):
    """The requirement that a candidate would break where households count, its k, and the fewest it would leave."""

    name: str
    quasi: Quasi
    fewest: int

    @property
    def text(self) -> str:
        if self.quasi.of_households:
            return f"members of {self.fewest} households only would have the same rows, k is {self.quasi.k}"
        return f"a group of {self.fewest} would be left without dropped households, k is {self.quasi.k}"


class _Ending:
    """The groups in the end, with the candidates that were given up."""

    def __init__(
        self,
        attributes: Sequence[Attribute],
        quasis: Sequence[Quasi],
        names: Sequence[str],
        split: Mapping[tuple[int, int, int], _Split],
        guided: bool,
        repaired: bool,
    ) -> None:
        self.attributes = [one.reopened() for one in attributes]
        self.quasis, self.names, self.split, self.repaired = quasis, names, split, repaired
        self.blocked = [
            _Blocked(one, number, candidate, one.importance * (candidate.gain if guided else candidate.records))
            for number, one in enumerate(self.attributes)
            for candidate in one.candidates()
        ]
        self.blocked.sort(key=lambda one: -one.gain)
        self.requests = [quasi.whole(number, self.attributes) for number, quasi in enumerate(quasis)]

    def leave_out_allowed(self, effects: Sequence[Effects]) -> None:
        """Leave out candidates that break nothing: they would only separate records that are dropped."""
        self.blocked = [
            one for one in self.blocked if one.key in self.split or not one.is_allowed(self.quasis, effects)
        ]

    def stops(self, effects: Sequence[Effects]) -> Iterator[Stop]:
        """The best candidate of each column, and what it would break."""
        seen = set[int]()
        for one in self.blocked:
            if one.number not in seen:
                seen.add(one.number)
                yield self._stop(one, effects)

    def _stop(self, one: _Blocked, effects: Sequence[Effects]) -> Stop:
        slot = one.candidate.slot
        for quasi, name, found in zip(self.quasis, self.names, effects, strict=True):
            effect = one.effect(quasi, found) if one.number in quasi.attributes else None
            if effect is None or not effect.lost[slot]:
                continue
            label, size = one.attribute.label_of(one.candidate), int(effect.smallest[slot])
            if self.repaired:
                lost = int(effect.lost[slot])
                text = f"{lost:,} records would need missing cells, more than suppress_cells or cell_limits allow"
                return Stop(one.attribute.name, label, name, lost, text)
            if size < quasi.k:
                text = f"a group of {size} would be left, k is {quasi.k}"
                return Stop(one.attribute.name, label, name, size, text)
            for limit, worst, at in zip(quasi.limits, effect.worst[:, slot], effect.at[:, slot], strict=True):
                figure = limit.condition.sign * float(worst)
                if is_broken(np.array([figure]), limit.condition)[0]:
                    text = (
                        f"{limit.name} would be {figure:.4g} in a group of {at}, the limit is {limit.condition.limit:g}"
                    )
                    return Stop(one.attribute.name, label, name, int(at), text)
        split, label = self.split[one.key], one.attribute.label_of(one.candidate)
        return Stop(one.attribute.name, label, split.name, split.fewest, split.text)

    def alternatives(self, cells: Mapping[int, Cells | None], effects: Sequence[Effects]) -> Iterator[Alternative]:
        """The best refinement that each change allows."""
        for name, k in dict.fromkeys(zip(self.names, (one.k for one in self.quasis), strict=True)):
            changed = [*effects]
            for number, request in enumerate(self.requests):
                found = cells.get(number)
                if self.names[number] == name and request.k == k and found is not None:
                    changed[number] = request._replace(k=k - 1).effects(found)
            if k > 1:
                yield from self._first(f"k = {k - 1} for {name}", self.quasis, changed)
        for number, attribute in enumerate(self.attributes):
            pairs = [self._without(number, n, cells.get(n), effects[n]) for n in range(len(self.quasis))]
            if all(one is not None for one in pairs):
                kept = [one for one in pairs if one]
                quasis, changed = [one[0] for one in kept], [one[1] for one in kept]
                yield from self._first(f"without column {attribute.name}", quasis, changed, number)
        for one in self.blocked:
            if one.key in self.split and self.split[one.key].fewest:
                yield self._row(f"k = {self.split[one.key].fewest} for {self.split[one.key].name}", one)
        records = [one for one in self.blocked if one.key not in self.split]
        fewest = sorted(records, key=lambda one: self._lost(one, effects))[:1]
        for one in [*records[:1], *fewest]:
            lost = self._lost(one, effects)
            yield self._row(f"{lost} record{'s' if lost > 1 else ''} dropped, or more", one)

    def _first(
        self, change: str, quasis: Sequence[Quasi], effects: Sequence[Effects], without: int | None = None
    ) -> Iterator[Alternative]:
        found = [
            one
            for one in self.blocked
            if one.number != without and one.key not in self.split and one.is_allowed(quasis, effects)
        ]
        yield from (self._row(change, one) for one in found[:1])

    def _row(self, change: str, one: _Blocked) -> Alternative:
        return Alternative(change, one.attribute.name, one.attribute.label_of(one.candidate), one.gain)

    def _lost(self, one: _Blocked, effects: Sequence[Effects]) -> int:
        pairs = zip(self.quasis, effects, strict=True)
        hits = [one.effect(quasi, found) for quasi, found in pairs if one.number in quasi.attributes]
        return max(int(effect.lost[one.candidate.slot]) for effect in hits if effect is not None)

    def _without(
        self, column: int, number: int, cells: Cells | None, effects: Effects
    ) -> tuple[Quasi, Effects] | tuple[()] | None:
        """One quasi-identifier without a column; empty where it is gone, None where its cells are not known."""
        quasi, request = self.quasis[number], self.requests[number]
        if column not in quasi.attributes:
            return quasi, effects
        if quasi.among is not None or len(quasi.attributes) == 1:
            return ()
        if cells is None:
            return None
        place = quasi.attributes.index(column)
        left = quasi.attributes[:place] + quasi.attributes[place + 1 :]
        values = request.values[:place] + request.values[place + 1 :]
        fewer = without_place(cells, request.values, place)
        return quasi._replace(attributes=left), request._replace(values=values, columns=left).effects(fewer)


def explained(
    table: CodedTable,
    attributes: Sequence[Attribute],
    quasis: Sequence[Quasi],
    names: Sequence[str],
    solution: RefinementSolution,
    *,
    guided: bool,
    repaired: bool = False,
) -> Stops:
    """What blocks each column and what would help; one pass over the codes.

    ``repaired``: cells are set to missing, so that only too many of them block a column; there are no alternatives.

    For very many sets of known columns there is none: stops are as candidates were given up, without alternatives.
    """
    split = {key: _Split(names[one.quasi], quasis[one.quasi], one.fewest) for key, one in solution.split.items()}
    quasis = [one for one in quasis if not one.of_households]  # these come first
    ending = _Ending(attributes, quasis, names[: len(quasis)], split, guided, repaired)
    if not ending.blocked:
        return Stops()
    if len(quasis) > _COUNTED:
        ending.leave_out_allowed(solution.effects[: len(quasis)])
        return Stops(tuple(ending.stops(solution.effects[: len(quasis)])))
    cells, effects = table.ending(ending.requests, solution.drops) if quasis else ({}, [])
    ending.leave_out_allowed(effects)
    if repaired:
        return Stops(tuple(ending.stops(effects)))
    found = {one.change: one for one in reversed(list(ending.alternatives(cells, effects)))}
    best = sorted(found.values(), key=lambda one: -one.gain)[:_SHOWN]
    return Stops(tuple(ending.stops(effects)), tuple(best))
