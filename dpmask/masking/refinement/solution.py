"""What top-down refinement is asked for, and what its search (search.py) finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dpmask.kernels.arrays import Floats
from dpmask.kernels.models import Condition
from dpmask.kernels.refinement.cells import NOTHING_SENSITIVE, Sensitive
from dpmask.kernels.refinement.dropped import Drops
from dpmask.kernels.refinement.effects import Effects
from dpmask.masking.refinement.attributes import Attribute, Candidate
from dpmask.masking.refinement.households import HouseholdCount
from dpmask.masking.refinement.requests import Request
from dpmask.table.sensitive import Limit


class Quasi(NamedTuple):
    """A quasi-identifier: its attributes, by number, how many records must share each row of it, what models ask.

    ``among``: the number of the requirement, if this is one of its sets of known columns. ``of_households``: so many
    households must have members with the same rows.
    """

    attributes: tuple[int, ...]
    k: int
    sensitive: Sensitive = NOTHING_SENSITIVE
    limits: tuple[Limit, ...] = ()
    among: int | None = None
    of_households: bool = False

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What models ask of each group."""
        return tuple(one.condition for one in self.limits)

    def whole(self, number: int, attributes: Sequence[Attribute]) -> Request:
        """What to count of it as the attributes are now, whatever was counted before."""
        values = tuple(attributes[one].values for one in self.attributes)
        asked = self.k, self.sensitive, self.conditions
        return Request(number, *asked, -1, self.attributes, values, 0, None, self.among is not None)


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


class TakenRefinement(NamedTuple):
    """A refinement that was taken, and the smallest group after it."""

    choice: Choice
    smallest: int


class SplitHouseholds(NamedTuple):
    """The requirement that a refinement was given up for, where households count, and the fewest it would leave."""

    quasi: int
    fewest: int


class RefinementSolution(NamedTuple):
    """The refinements in their order and what they made of the attributes.

    ``smallest`` and ``worst``: the smallest group and the worst figures of each quasi-identifier. ``split``: what was
    given up for households, by attribute, node and slot.
    """

    taken: tuple[TakenRefinement, ...]
    attributes: list[Attribute]
    smallest: tuple[int, ...]
    worst: tuple[Floats, ...]
    effects: tuple[Effects, ...]
    drops: Drops
    split: Mapping[tuple[int, int, int], SplitHouseholds] = {}
    gone: HouseholdCount | None = None
    """The households that are dropped, if any."""

    @property
    def losses(self) -> list[float]:
        """The loss of each attribute, from 0 to 1; dropped records count like others, so that it compares cuts."""
        return [one.loss() for one in self.attributes]

    def steps(self) -> tuple[RefinementStep, ...]:
        """What may be shown: refinements that only separate dropped records are left out."""
        found = [(self.attributes[choice.attribute], choice, smallest) for choice, smallest in self.taken]
        return tuple(
            RefinementStep(attribute.name, attribute.label_of(choice.candidate), choice.score, smallest)
            for attribute, choice, smallest in found
            if attribute.separates(choice.candidate)
        )
