"""What the search of a refinement knows of its requirements, and how it weighs what a candidate would do to them.

``Impact`` is where all conditions of validity are checked; ``score_of`` weighs a gain, times the attribute's
importance, against it (eq. 1). Quasi-identifiers that share no attribute, directly or through others, are components of
their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Floats
from dpmask.kernels.refinement.effects import Effect, Effects
from dpmask.kernels.refinement.information import TIE
from dpmask.masking.refinement.attributes import Candidate
from dpmask.masking.refinement.solution import Quasi, RefinementSolution, TakenRefinement


@dataclass
class QuasiState:
    """What is known of one quasi-identifier: A(QID), the worst figure of each limit, the effects of all candidates."""

    quasi: Quasi
    smallest: int
    worst: Floats
    version: int
    effects: Effects = field(default_factory=dict)

    def loss(self, effect: Effect, slot: int) -> float:
        """What is lost if a candidate is refined and costs no record: the fall of A, the rise of each confidence."""
        fall: float = self.smallest - min(self.smallest, int(effect.smallest[slot]))
        for number, limit in enumerate(self.quasi.limits):
            if limit.condition.kind == "confidence":
                fall += self.smallest * max(float(effect.worst[number, slot] - self.worst[number]), 0.0)
        return fall

    def take(self, attribute: int, candidate: Candidate) -> None:
        """What is left once the candidate is refined, and costs no record."""
        effect = self.effects[self.quasi.attributes.index(attribute), candidate.node]
        self.smallest = min(self.smallest, int(effect.smallest[candidate.slot]))
        self.worst = np.maximum(self.worst, effect.worst[:, candidate.slot])


@dataclass(eq=False)
class Component:
    """Quasi-identifiers that are refined jointly, by number, and all their attributes."""

    states: dict[int, QuasiState]
    attributes: list[int]
    taken: list[TakenRefinement] = field(default_factory=list)

    @property
    def smallest(self) -> int:
        """The smallest group of any."""
        return min(state.smallest for state in self.states.values())


class Impact(NamedTuple):
    """What a candidate would do to the requirements that contain its attribute.

    ``lost``: records in groups that would be broken, at least. ``falls``: the loss of each requirement.
    ``separates``: it leaves more than one part of the node, or costs nothing.
    """

    lost: int
    falls: list[float]
    separates: bool


def impact_of(states: Sequence[QuasiState], number: int, candidate: Candidate, *, apart: bool) -> Impact | None:
    """The impact of a candidate; None where no record remains that it would separate."""
    lost, falls, separates = 0, list[float](), True
    for state in (one for one in states if not one.quasi.of_households):
        effect = state.effects.get((state.quasi.attributes.index(number), candidate.node))
        if effect is None or (apart and not effect.kept[candidate.slot]):
            return None
        cost = int(effect.lost[candidate.slot])
        lost = max(lost, cost)
        falls.append(state.smallest if cost else state.loss(effect, candidate.slot))
        separates = separates and (apart or not cost or int(effect.kept.sum()) > 1)
    return Impact(lost, falls, separates)


def score_of(candidate: Candidate, impact: Impact, importance: float, *, guided: bool) -> float:
    """InfoGain / (AnonyLoss + 1) (eqs. 1, 4), or the records refined; -inf for what is not worth records now."""
    if not impact.separates:
        return -math.inf
    if not guided:
        return importance * float(candidate.records - impact.lost)
    return importance * (candidate.gain / (sum(impact.falls) / max(len(impact.falls), 1) + 1.0))


def components_of(quasis: Sequence[Quasi], start: RefinementSolution, version: int, *, joint: bool) -> list[Component]:
    """The components of quasi-identifiers at a solution; all of them are one where they are refined jointly."""
    found: list[Component] = []
    for number, quasi in enumerate(quasis):
        met = [one for one in found if joint or set(one.attributes) & set(quasi.attributes)]
        states = {n: state for one in met for n, state in one.states.items()} | {
            number: QuasiState(quasi, start.smallest[number], start.worst[number], version)
        }
        members = {attribute for one in met for attribute in one.attributes} | set(quasi.attributes)
        found = [one for one in found if one not in met] + [Component(states, sorted(members))]
    return found


def in_order(components: Sequence[Component], firsts: Sequence[int]) -> list[TakenRefinement]:
    """The refinements of all components as one search takes them: always the best of what each would do next.

    ``firsts``: the smallest group of each at first.
    """
    places, smallest = [0] * len(components), [*firsts]
    steps = []
    while waiting := [n for n, one in enumerate(components) if places[n] < len(one.taken)]:
        heads = {n: components[n].taken[places[n]] for n in waiting}
        best = max(head.choice.score for head in heads.values())
        ties = [n for n in waiting if heads[n].choice.score >= best - TIE]
        number = min(ties, key=lambda n: heads[n].choice.attribute)
        places[number], smallest[number] = places[number] + 1, heads[number].smallest
        steps.append(TakenRefinement(heads[number].choice, min(smallest)))
    return steps
