"""The search of top-down refinement (Fung et al. 2009, Algorithm 1): one for all requirements, with or without drops.

A round chooses the valid candidate with the best score, and counts what its refinement left (blocks.py). What decides
is in two places (scores.py): ``Impact`` is what a candidate would do to the requirements that contain its attribute,
where all conditions of validity are checked; ``score_of`` weighs its gain, times the attribute's importance, against
that (eq. 1). The loss of a requirement is the fall of A(QID) (eq. 4); a limit of a confidence adds A times the rise of
the largest share, so that both count people of one group. A requirement may also have models, which only get worse when
groups are split, as sizes do: a refinement that breaks one once does so for ever.

Up to ``allowed`` records may be dropped: groups of fewer than k records or with a broken model, and those that this
makes too small, until all that remain hold. A group that would be dropped counts as one of nobody: A(QID) would fall
to 0. Such a refinement must separate records that remain. Dropped records only increase with every refinement, so what
is invalid stays so. The cells give the records that a candidate costs at least; if there are any, or some are dropped
already, it is on trial: passes that count groups alone find what would remain. With ``allowed`` = 0 there is no trial,
cells of groups that did not change stay known, and quasi-identifiers that share no attribute, directly or through
others, do not affect each other: such components are refined in the same passes, and their refinements are put in the
order in which one search over all would have taken them.

A requirement of households has no cells: a candidate that is best is on trial for it, too (households.py).

Where records may be dropped there are two ways: to drop from the beginning, or to refine as far as it goes without,
and then on with drops. The second refines every column at least as far as a search without drops does; the first is
taken where it ends with less loss in all, and with more in no column than without drops. So records are never dropped
for a coarser result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpmask.engine import progress
from dpmask.errors import DpmaskError, InputError
from dpmask.kernels.arrays import Floats
from dpmask.kernels.keys import new_keys
from dpmask.kernels.models import is_broken
from dpmask.kernels.refinement.dropped import Drops, GroupSummary, sorted_keys
from dpmask.kernels.refinement.effects import merge_effects
from dpmask.kernels.refinement.information import TIE
from dpmask.masking.refinement.attributes import Attribute, Refined
from dpmask.masking.refinement.blocks import CodedTable
from dpmask.masking.refinement.columns import WHO
from dpmask.masking.refinement.households import HouseholdCount
from dpmask.masking.refinement.requests import Request
from dpmask.masking.refinement.scores import Component, components_of, impact_of, in_order, score_of
from dpmask.masking.refinement.solution import Choice, Quasi, RefinementSolution, SplitHouseholds, TakenRefinement

if TYPE_CHECKING:
    from dpmask.masking.refinement.series import SeriesCondition


def refine(
    table: CodedTable,
    attributes: Sequence[Attribute],
    quasis: Sequence[Quasi],
    allowed: int,
    *,
    guided: bool,
    series: SeriesCondition | None = None,
) -> RefinementSolution:
    """Refine the attributes until nothing more is valid with so many records dropped.

    ``guided``: by information gain for the loss of anonymity, otherwise by the number of records refined. ``series``:
    what earlier releases of the same people add to validity, where nothing is dropped.
    """
    start = RefinementSolution(
        (), list(attributes), (table.rows,) * len(quasis), tuple(map(_top_figures, quasis)), (), Drops()
    )
    if not allowed:
        return _refined(table, start, quasis, 0, guided=guided, series=series)
    without = _refined(table.without_drops(), start, quasis, 0, guided=guided)
    onward = refine_onward(table, without, quasis, allowed, guided=guided)
    at_once = _refined(table, start, quasis, allowed, guided=guided)
    table.first_version()  # what blocks cache is of the last search, and may not be of the better one
    coarser = any(one > other + TIE for one, other in zip(at_once.losses, without.losses, strict=True))
    return onward if coarser or sum(at_once.losses) >= sum(onward.losses) - TIE else at_once


def refine_onward(
    table: CodedTable, found: RefinementSolution, quasis: Sequence[Quasi], allowed: int, *, guided: bool
) -> RefinementSolution:
    """Go on from a solution without drops, with so many records dropped."""
    reopened = found._replace(attributes=[one.reopened() for one in found.attributes])
    return _refined(table, reopened, quasis, allowed, guided=guided)


def _refined(
    table: CodedTable,
    start: RefinementSolution,
    quasis: Sequence[Quasi],
    allowed: int,
    *,
    guided: bool,
    series: SeriesCondition | None = None,
) -> RefinementSolution:
    """One search, from a solution on."""
    dropping = allowed > 0 or (table.households is not None and table.households.allowed > 0)
    components = components_of(quasis, start, table.first_version(), joint=dropping)
    search = _Refining(table, [one.copied() for one in start.attributes], components, allowed, guided, series)
    if not start.taken:
        search.begin()
    firsts = [one.smallest for one in components]
    chosen: dict[int, Refined] = {}
    while True:
        search.count(chosen)
        chosen = dict(found for one in components if (found := search.refine_best(one)) is not None)
        if not chosen:
            break
    taken = (*start.taken, *in_order(components, firsts))
    effects = tuple(state.effects for state in search.states)
    gone = search.gone if search.gone.lost else None
    return RefinementSolution(
        taken, search.attributes, *search.final_groups(), effects, search.drops, search.split, gone
    )


def _top_figures(quasi: Quasi) -> Floats:
    """The worst figures that are possible: those of a whole table are at most as bad."""
    return np.full(len(quasi.limits), -np.inf)


class _Refining:
    """The rounds: choosing, trying, counting."""

    def __init__(
        self,
        table: CodedTable,
        attributes: list[Attribute],
        components: Sequence[Component],
        allowed: int,
        guided: bool,
        series: SeriesCondition | None,
    ) -> None:
        self.table, self.attributes, self.allowed, self.guided = table, attributes, allowed, guided
        self.series = series
        states = {number: state for one in components for number, state in one.states.items()}
        self.states = [states[number] for number in range(len(states))]
        self.drops = Drops()
        self.split: dict[tuple[int, int, int], SplitHouseholds] = {}
        self.gone = HouseholdCount(0, 0, 0, new_keys(0))

    def begin(self) -> None:
        """Count the groups as they are at first, where they may be broken: by a model, a series, or kept columns.

        Households may be so by their numbers of members, which nothing masks.
        """
        if self.series is not None:
            self.series.require(self.attributes)
        self._begin_households()
        if not any(state.quasi.limits for state in self.states) and not any(one.nodes.any() for one in self.attributes):
            return
        requests = self._requests(self.attributes, {})
        summaries = self.table.summaries(requests, self.drops, keep=True)
        for state, summary in zip((self.states[one.number] for one in requests), summaries, strict=True):
            if summary.lost:
                raise InputError(self._broken_at_first(state.quasi, summary))
            state.smallest, state.worst = summary.smallest, summary.worst

    def _begin_households(self) -> None:
        for state in (one for one in self.states if one.quasi.of_households):
            found = self._households(state.quasi, self.attributes)
            if found.lost > self._allowed_households:
                raise InputError(self._households_at_first(state.quasi, found))
            state.smallest, self.gone = found.smallest, found

    @property
    def _allowed_households(self) -> int:
        """How many records may be dropped with their households."""
        return 0 if self.table.households is None else self.table.households.allowed

    def _households(self, quasi: Quasi, attributes: Sequence[Attribute]) -> HouseholdCount:
        assert self.table.households is not None
        return self.table.households.count(quasi.attributes, attributes, quasi.k)

    def _households_at_first(self, quasi: Quasi, found: HouseholdCount) -> str:
        kept = [self.attributes[number].name for number in quasi.attributes if self.attributes[number].nodes.any()]
        what = f"the number of their members and {', '.join(kept)}" if kept else "the number of their members"
        share = math.ceil(1000 * found.lost / self.table.rows) / 1000
        return (
            f"{WHO}: {found.lost:,} of {self.table.rows:,} records are in households that share {what} with fewer than "
            f"k = {quasi.k}, before anything is refined. Set suppress_records: {share:g} or more to leave them out, or "
            "lower k."
        )

    def _broken_at_first(self, quasi: Quasi, summary: GroupSummary) -> str:
        """What is broken before anything is refined, with the figure found."""
        columns = ", ".join(self.attributes[number].name for number in quasi.attributes)
        kept = [self.attributes[number].name for number in quasi.attributes if self.attributes[number].nodes.any()]
        who = f"{WHO}: with {', '.join(kept)} kept as declared" if kept else f"{WHO}: the whole table"
        for limit, found in zip(quasi.limits, summary.found, strict=True):
            figure = limit.condition.sign * found
            if is_broken(np.array([figure]), limit.condition)[0]:
                return (
                    f"{who} breaks a requirement of {columns} before anything is refined: {limit.name} is "
                    f"{figure:.6g}, the limit is {limit.condition.limit:g}. Take another limit."
                )
        return (
            f"{who} leaves {summary.lost} records in groups of fewer than k = {quasi.k} of {columns}. Keep less, or "
            "lower k."
        )

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
            if state.quasi.of_households:
                continue
            columns = state.quasi.attributes
            values = tuple(attributes[attribute].values for attribute in columns)
            place, refined = next(((place, chosen[a]) for place, a in enumerate(columns) if a in chosen), (0, None))
            version = state.version + (refined is not None)
            asked = state.quasi.k, state.quasi.sensitive, state.quasi.conditions
            many = state.quasi.among is not None
            found.append(Request(number, *asked, version, columns, values, place, refined, many))
        return found

    def refine_best(self, component: Component) -> tuple[int, Refined] | None:
        """Take the best candidate that is valid: its attribute, and what became of its node."""
        while (choice := self._best(component)) is not None:
            twin = self.attributes[choice.attribute].copied()
            refined = twin.refine(choice.candidate)
            if not self._accept(component, choice, twin, refined):
                self.attributes[choice.attribute].finish(choice.candidate)
                continue
            self.attributes[choice.attribute] = twin
            component.taken.append(TakenRefinement(choice, component.smallest))
            progress.step(
                f"refinement {len(component.taken)}: {twin.name}, smallest group {component.smallest}"
                + (f", {self.drops.records} records in broken groups" if self.drops.records else "")
            )
            return choice.attribute, refined
        return None

    def _best(self, component: Component) -> Choice | None:
        """The candidate with the best score; ties go by attribute, then by place in the cut."""
        best: Choice | None = None
        for number in component.attributes:
            attribute = self.attributes[number]
            concerned = [state for state in component.states.values() if number in state.quasi.attributes]
            for candidate in attribute.candidates():
                impact = impact_of(concerned, number, candidate, apart=attribute.apart)
                if impact is None or self.drops.records + impact.lost > self.allowed:
                    attribute.finish(candidate)  # what is invalid stays so: groups only shrink
                    continue
                score = score_of(candidate, impact, attribute.importance, guided=self.guided)
                if score > (-math.inf if best is None else best.score + TIE):
                    best = Choice(number, candidate, score, impact.lost)
        return best

    def _accept(self, component: Component, choice: Choice, twin: Attribute, refined: Refined) -> bool:
        """Whether the requirements are met with the refinement; if so, what is dropped and the smallest groups."""
        if self.series is not None:
            then = [*self.attributes]
            then[choice.attribute] = twin
            if not self.series.allows(then, choice.attribute, choice.candidate):
                return False
        fewest = self._accept_households(component, choice, twin)
        if fewest is None:
            return False
        if not self.drops.records + choice.lost:
            for state in component.states.values():
                if choice.attribute in state.quasi.attributes and not state.quasi.of_households:
                    state.take(choice.attribute, choice.candidate)
        else:
            attributes = [*self.attributes]
            attributes[choice.attribute] = twin
            requests = self._requests(attributes, {choice.attribute: refined})
            settled = self._settled(requests)
            if settled is None:
                return False
            self.drops, summaries = settled
            for one, summary in zip(requests, summaries, strict=True):
                state = self.states[one.number]
                state.smallest, state.worst = summary.smallest, summary.worst
        for number, size in fewest.items():
            self.states[number].smallest = size
        return True

    def _accept_households(self, component: Component, choice: Choice, twin: Attribute) -> dict[int, int] | None:
        """The fewest households, or records, that stay alike where households matter; None where they are too few."""
        attributes, gone, fewest = [*self.attributes], self.gone, dict[int, int]()
        attributes[choice.attribute] = twin
        states = component.states.items()
        broken: tuple[int, int] | None = None
        for number, state in states:
            if state.quasi.of_households and choice.attribute in state.quasi.attributes and broken is None:
                gone = self._households(state.quasi, attributes)
                fewest[number] = gone.smallest
                broken = (number, gone.fewest) if gone.lost > self._allowed_households else None
        if broken is None and gone.lost:
            fewest |= self._without_dropped(attributes, gone)
            short = [number for number, size in fewest.items() if size < self.states[number].quasi.k]
            broken = (short[0], fewest[short[0]]) if short else None
        if broken is not None:
            self.split[choice.attribute, choice.candidate.node, choice.candidate.slot] = SplitHouseholds(*broken)
            return None
        self.gone = gone
        return fewest

    def _without_dropped(self, attributes: Sequence[Attribute], gone: HouseholdCount) -> dict[int, int]:
        """The smallest group of each requirement of records, without the households that are dropped."""
        homes, other = self.table.households, next(one.quasi for one in self.states if one.quasi.of_households)
        assert homes is not None
        return {
            number: homes.smallest_left(state.quasi.attributes, attributes, other.attributes, gone.broken)
            for number, state in enumerate(self.states)
            if not state.quasi.of_households
        }

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

    def final_groups(self) -> tuple[tuple[int, ...], tuple[Floats, ...]]:
        """The smallest group and the worst figures of every quasi-identifier; counted once more if records may drop."""
        if not self.allowed:
            return tuple(state.smallest for state in self.states), tuple(state.worst for state in self.states)
        requests = self._requests(self.attributes, {})
        gone, found = self.drops.records, self.table.summaries(requests, self.drops)
        if gone > self.allowed or any(one.lost or self.table.rows - one.records != gone for one in found):
            raise DpmaskError(
                "TopDownRefinement: the last count of all groups found some that are too small, or not the records "
                "that should remain. Nothing is released; please report this."
            )
        homes = self.states[len(requests) :]  # those of households come last, and drop nobody here
        pairs = [*((one.smallest, one.worst) for one in found), *((one.smallest, one.worst) for one in homes)]
        return tuple(size for size, _ in pairs), tuple(worst for _, worst in pairs)
