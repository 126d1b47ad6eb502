"""The search of top-down refinement (Fung et al. 2009, Algorithm 1): one for all requirements, with or without drops.

A round chooses the valid candidate with the best score, and counts what its refinement left (blocks.py). What decides
is in two places: ``Impact`` is what a candidate would do to the requirements that contain its attribute, where all
conditions of validity are checked; ``_score`` weighs its gain against that (eq. 1).

Up to ``allowed`` records may be dropped: groups of fewer than k records, and those that this makes too small, until all
that remain are large enough. A group that would be dropped counts as one of nobody: A(QID) would fall to 0. Such a
refinement must separate records that remain. Dropped records only increase with every refinement, so what is invalid
stays so. The cells give the records that a candidate costs at least; if there are any, or some are dropped already,
it is on trial: passes that count groups alone find what would remain. With ``allowed`` = 0 there is no trial,
cells of groups that did not change stay known, and quasi-identifiers that share no attribute, directly or through
others, do not affect each other: such components are refined in the same passes, and their refinements are put in the
order in which one search over all would have taken them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dpmask.engine import progress
from dpmask.errors import DpmaskError
from dpmask.kernels.keys import new_keys
from dpmask.kernels.refinement.dropped import Drops, GroupSummary, sorted_keys
from dpmask.kernels.refinement.effects import Effects, merge_effects
from dpmask.kernels.refinement.information import TIE
from dpmask.masking.refinement.attributes import Attribute, Candidate, Refined
from dpmask.masking.refinement.blocks import CodedTable, Request


class Quasi(NamedTuple):
    """A quasi-identifier: the numbers of its attributes, and how many records must share each row of it."""

    attributes: tuple[int, ...]
    k: int


class RefinementStep(NamedTuple):
    """One refinement: of which attribute and value, its score, and the smallest group of any requirement after it."""

    attribute: str
    value: str
    score: float
    smallest: int


class Choice(NamedTuple):
    """A candidate, its score, and the records it costs at least."""

    attribute: int
    candidate: Candidate
    score: float
    lost: int


class Taken(NamedTuple):
    """A refinement that was taken, and the smallest group after it."""

    choice: Choice
    smallest: int


class Solution(NamedTuple):
    """The refinements in their order, the smallest group of each quasi-identifier, and what is dropped."""

    taken: tuple[Taken, ...]
    smallest: tuple[int, ...]
    drops: Drops

    def steps(self, attributes: Sequence[Attribute]) -> tuple[RefinementStep, ...]:
        """What may be shown: refinements that only separate dropped records are left out."""
        found = [(attributes[choice.attribute], choice, smallest) for choice, smallest in self.taken]
        return tuple(
            RefinementStep(attribute.name, attribute.label_of(choice.candidate), choice.score, smallest)
            for attribute, choice, smallest in found
            if attribute.separates(choice.candidate)
        )


@dataclass
class _State:
    """What is known of one quasi-identifier: A(QID), and the effects of all candidates."""

    quasi: Quasi
    smallest: int
    effects: Effects = field(default_factory=dict)
    version: int = 0

    def after(self, attribute: int, candidate: Candidate) -> int:
        """A(QID) if the candidate were refined and cost no record."""
        effect = self.effects[self.quasi.attributes.index(attribute), candidate.node]
        return min(self.smallest, int(effect.smallest[candidate.slot]))


@dataclass(eq=False)
class _Component:
    """Quasi-identifiers that are refined jointly, by number, and all their attributes."""

    states: dict[int, _State]
    attributes: list[int]
    taken: list[Taken] = field(default_factory=list)

    @property
    def smallest(self) -> int:
        return min(state.smallest for state in self.states.values())


class Impact(NamedTuple):
    """What a candidate would do to the requirements that contain its attribute.

    ``lost``: records in groups that would be too small, at least. ``falls``: the loss of A(QID) of each requirement.
    ``separates``: it leaves more than one part of the node, or costs nothing.
    """

    lost: int
    falls: list[int]
    separates: bool


def _impact(states: Sequence[_State], number: int, candidate: Candidate, *, apart: bool) -> Impact | None:
    """The impact of a candidate; None where no record remains that it would separate."""
    lost, falls, separates = 0, [], True
    for state in states:
        effect = state.effects.get((state.quasi.attributes.index(number), candidate.node))
        if effect is None or (apart and not effect.kept[candidate.slot]):
            return None
        cost = int(effect.lost[candidate.slot])
        lost = max(lost, cost)
        falls.append(state.smallest - (0 if cost else state.after(number, candidate)))
        separates = separates and (apart or not cost or int(effect.kept.sum()) > 1)
    return Impact(lost, falls, separates)


def _score(candidate: Candidate, impact: Impact, *, guided: bool) -> float:
    """InfoGain / (AnonyLoss + 1) (eqs. 1, 4), or the records refined; -inf for what is not worth records now."""
    if not impact.separates:
        return -math.inf
    if not guided:
        return float(candidate.records - impact.lost)
    return candidate.gain / (sum(impact.falls) / len(impact.falls) + 1.0)


def refine(
    table: CodedTable, attributes: list[Attribute], quasis: Sequence[Quasi], allowed: int, *, guided: bool
) -> Solution:
    """Refine the attributes, in place, until nothing more is valid with so many records dropped.

    ``guided``: by information gain for the loss of anonymity, otherwise by the number of records refined.
    """
    components = _components(quasis, table.rows, joint=allowed > 0)
    search = _Search(table, attributes, components, allowed, guided)
    chosen: dict[int, Refined] = {}
    while True:
        search.count(chosen)
        chosen = dict(found for one in components if (found := search.refine_best(one)) is not None)
        if not chosen:
            break
    return Solution(tuple(_in_order(components, table.rows)), search.final_sizes(), search.drops)


def _components(quasis: Sequence[Quasi], rows: int, *, joint: bool) -> list[_Component]:
    found: list[_Component] = []
    for number, quasi in enumerate(quasis):
        met = [one for one in found if joint or set(one.attributes) & set(quasi.attributes)]
        states = {n: state for one in met for n, state in one.states.items()} | {number: _State(quasi, rows)}
        members = {attribute for one in met for attribute in one.attributes} | set(quasi.attributes)
        found = [one for one in found if one not in met] + [_Component(states, sorted(members))]
    return found


def _in_order(components: Sequence[_Component], rows: int) -> list[Taken]:
    """The refinements of all components as one search takes them: always the best of what each would do next."""
    places, smallest = [0] * len(components), [rows] * len(components)
    steps = []
    while waiting := [n for n, one in enumerate(components) if places[n] < len(one.taken)]:
        heads = {n: components[n].taken[places[n]] for n in waiting}
        best = max(head.choice.score for head in heads.values())
        ties = [n for n in waiting if heads[n].choice.score >= best - TIE]
        number = min(ties, key=lambda n: heads[n].choice.attribute)
        places[number], smallest[number] = places[number] + 1, heads[number].smallest
        steps.append(Taken(heads[number].choice, min(smallest)))
    return steps


class _Search:
    """The rounds: choosing, trying, counting."""

    def __init__(
        self,
        table: CodedTable,
        attributes: list[Attribute],
        components: Sequence[_Component],
        allowed: int,
        guided: bool,
    ) -> None:
        self.table, self.attributes, self.allowed, self.guided = table, attributes, allowed, guided
        states = {number: state for one in components for number, state in one.states.items()}
        self.states = [states[number] for number in range(len(states))]
        self.drops = Drops()

    def count(self, chosen: Mapping[int, Refined]) -> None:
        """Count the effects of all candidates that the last refinements, by attribute, changed."""
        requests = self._requests(self.attributes, chosen)
        if chosen and not self.allowed:
            requests = [one for one in requests if one.refined is not None]
        for number, effects in self.table.effects(requests, self.drops).items():
            state = self.states[number]
            state.effects = effects if self.allowed else merge_effects(state.effects, effects)
        for one in requests:
            self.states[one.number].version = one.version

    def _requests(self, attributes: Sequence[Attribute], chosen: Mapping[int, Refined]) -> list[Request]:
        found = []
        for number, state in enumerate(self.states):
            columns = state.quasi.attributes
            values = tuple(attributes[attribute].values for attribute in columns)
            place, refined = next(((place, chosen[a]) for place, a in enumerate(columns) if a in chosen), (0, None))
            version = state.version + (refined is not None)
            found.append(Request(number, state.quasi.k, version, columns, values, place, refined))
        return found

    def refine_best(self, component: _Component) -> tuple[int, Refined] | None:
        """Take the best candidate that is valid: its attribute, and what became of its node."""
        while (choice := self._best(component)) is not None:
            twin = self.attributes[choice.attribute].copied()
            refined = twin.refine(choice.candidate)
            if not self._accept(component, choice, twin, refined):
                self.attributes[choice.attribute].finish(choice.candidate)
                continue
            self.attributes[choice.attribute] = twin
            component.taken.append(Taken(choice, component.smallest))
            progress.note(
                f"refinement {len(component.taken)}: {twin.name}, smallest group {component.smallest}"
                + (f", {self.drops.records} records dropped" if self.drops.records else "")
            )
            return choice.attribute, refined
        return None

    def _best(self, component: _Component) -> Choice | None:
        """The candidate with the best score; ties go by attribute, then by place in the cut."""
        best: Choice | None = None
        for number in component.attributes:
            attribute = self.attributes[number]
            concerned = [state for state in component.states.values() if number in state.quasi.attributes]
            for candidate in attribute.candidates():
                impact = _impact(concerned, number, candidate, apart=attribute.apart)
                if impact is None or self.drops.records + impact.lost > self.allowed:
                    attribute.finish(candidate)  # what is invalid stays so: groups only shrink
                    continue
                score = _score(candidate, impact, guided=self.guided)
                if score > (-math.inf if best is None else best.score + TIE):
                    best = Choice(number, candidate, score, impact.lost)
        return best

    def _accept(self, component: _Component, choice: Choice, twin: Attribute, refined: Refined) -> bool:
        """Whether the requirements are met with the refinement; if so, what is dropped and the smallest groups."""
        if not self.drops.records + choice.lost:
            for state in component.states.values():
                if choice.attribute in state.quasi.attributes:
                    state.smallest = state.after(choice.attribute, choice.candidate)
            return True
        attributes = [*self.attributes]
        attributes[choice.attribute] = twin
        settled = self._settled(self._requests(attributes, {choice.attribute: refined}))
        if settled is None:
            return False
        self.drops, summaries = settled
        for state, summary in zip(self.states, summaries, strict=True):
            state.smallest = summary.smallest
        return True

    def _settled(self, requests: Sequence[Request]) -> tuple[Drops, list[GroupSummary]] | None:
        """What is dropped in the end, and the groups then; None where that is too much."""
        drops = Drops(tuple(new_keys(0) for _ in requests))
        while True:
            found = self.table.summaries(requests, drops)
            lost = max(one.lost for one in found)
            gone = self.table.rows - found[0].records + lost
            if gone > self.allowed:
                return None
            keys = (sorted_keys(known, one.small) for known, one in zip(drops.keys, found, strict=True))
            drops = Drops(tuple(keys), gone)
            if not lost or len(requests) == 1:  # of one quasi-identifier, groups do not shrink others
                return drops, found

    def final_sizes(self) -> tuple[int, ...]:
        """The smallest group of every quasi-identifier; where records may be dropped, all are counted once more."""
        if not self.allowed:
            return tuple(state.smallest for state in self.states)
        gone, found = self.drops.records, self.table.summaries(self._requests(self.attributes, {}), self.drops)
        if gone > self.allowed or any(one.lost or self.table.rows - one.records != gone for one in found):
            raise DpmaskError(
                "TopDownRefinement: the last count of all groups found some that are too small, or not the records "
                "that should remain. Nothing is released; please report this."
            )
        return tuple(one.smallest for one in found)
