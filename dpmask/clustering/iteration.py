"""Bringing centres to a fixed point v = F(v) in few passes over the data.

A sample is clustered first, from several k-means++ starts, in one task; single centres of the best are then moved to
far records as long as that leads to a better one. Then, with two grids, each pass over all the
data gives F(v) and the defect F(v) - F_sample(v), and the sample is solved again with that defect added, which costs no
pass. Where the objective rises the plain step is taken instead, and after two failures accelerated plain steps go on
alone: on skewed columns, with many clusters, corrections can fail without end. The last step is a plain pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from dpmask.engine.draws import Subkey, record_uniforms
from dpmask.kernels.arrays import Floats
from dpmask.kernels.fuzzy.acceleration import Anderson
from dpmask.kernels.fuzzy.center_sums import CenterSums, center_sums
from dpmask.kernels.fuzzy.starts import candidates, spread_out
from dpmask.kernels.projection import Feasible, project

TRAPPING = 3.0
"""The fuzziness above which centres that start on records are trapped there."""
_ROUNDING = 1e-13
_COARSE = 1e-4
"""Starts are compared when their centres move less than this: which optimum each goes to is clear by then."""
_SHARE = 0.01
"""The sample is solved to this share of the step of the last pass over all data."""
_FAILURES = 2
"""Two-grid corrections that may fail before they are given up."""
_GAIN = 1 / 3
"""A correction that does not bring the shift below this share of the last one has failed, too."""


_SWAPPED, _ROUNDS, _IN_VAIN = 3, 20, 3
"""So many clusters have other optima worth a search; the most rounds of it, and of those in a row without success."""
_LOOK, _FURTHER = 4, 4
"""Passes after which the trials of a round are compared, and the share of them, one in so many, that goes on."""
_BETTER = 1e-7
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
"""Its multiples, modulo 1, fill the interval evenly."""


class Records(NamedTuple):
    """A block in clustering units: columns x rows, with weights and tolerances where there are any."""

    values: Floats
    weights: Floats | None
    tolerances: Floats | None


class ClusterModel(NamedTuple):
    """What a pass computes: memberships, distances, and the set the centres must lie in."""

    fuzziness: float | None
    entropy: float | None
    tolerance: float | None
    partial: bool
    feasible: Feasible | None

    def sums(self, records: Records, centers: Floats) -> CenterSums:
        """One pass over a block, for all starts."""
        tolerance = self.tolerance if records.tolerances is None else records.tolerances
        return center_sums(
            records.values,
            centers,
            fuzziness=self.fuzziness,
            entropy=self.entropy,
            weights=records.weights,
            tolerance=tolerance,
            partial=self.partial,
        )

    def image(self, sums: CenterSums, centers: Floats) -> Floats:
        """F(centers): the next centres, in the feasible set, nearest in the metric of the clusters' column weights."""
        image = sums.centers(centers)
        if self.feasible is None:
            return image
        return project(image, self.feasible, sums.weight if self.partial else None)


class HistoryPoint(NamedTuple):
    """One line of a history: the objective at the centres of a pass, and how far the pass moved them."""

    number: int
    objective: float
    shift: float


class Solution(NamedTuple):
    """Centres in clustering units, the objective, and how they came about."""

    centers: Floats
    objective: float
    history: tuple[HistoryPoint, ...]  # of the points that were kept
    converged: bool
    passes: int  # all of them


def start_draws(key: Subkey, starts: int, clusters: int) -> Floats:
    """Uniforms for greedy k-means++: starts x clusters x candidates."""
    shape = (starts, clusters, candidates(clusters))
    return record_uniforms(key, 0, math.prod(shape)).reshape(shape)


def first_centers(model: ClusterModel, records: Records, draws: Floats) -> Floats:
    """Greedy k-means++ starts, one for each of the ``start_draws``; a missing value counts as the mean, 0.

    Above a fuzziness of 3 they lie halfway between these records and the mean: a centre on a record has all of that
    one's membership, next to none of the others', and would stay there.
    """
    values = np.nan_to_num(records.values)
    weight = np.ones(values.shape[1]) if records.weights is None else records.weights
    starts = [values[:, spread_out(values, weight, uniforms).records].T for uniforms in draws]
    return off_records(model, values, weight, starts)


def off_records(model: ClusterModel, values: Floats, weight: Floats, starts: Sequence[Floats]) -> Floats:
    """Starts that may lie on records of a block (columns x rows); above that fuzziness from halfway to its mean."""
    points = np.array(starts)
    if model.fuzziness is None or model.fuzziness <= TRAPPING:
        return points
    return (points + (values @ weight) / weight.sum()) / 2.0


def solve(
    model: ClusterModel,
    records: Records,
    starts: Floats,
    shift: float,
    passes: int,
    *,
    accelerate: bool = True,
    decrease: float = 0.0,
) -> Solution:
    """The best of several starts on one block: all of them until it is clear where each goes, then the best one on."""
    point = _feasible(model, starts[0])
    if len(starts) > 1:
        near = partial(_nearest_optima, model, records, shift=max(shift, _COARSE), passes=passes)
        point = _swap(model, records, *near(starts), near, len(starts))
    one_pass = partial(_one_pass, model, records)
    return descend(one_pass, point, shift, passes, accelerate=accelerate, decrease=decrease)


def _swap(
    model: ClusterModel,
    records: Records,
    best: Floats,
    lowest: float,
    near: Callable[[Floats], tuple[Floats, float]],
    trials: int,
) -> Floats:
    """Leave an optimum for a better one: in each trial a centre jumps to a far record; those that do best go on.

    Fränti (2018), "Efficiency of random swap clustering"; instead of drawn, records and centres are taken evenly, the
    records by their squared distances to the nearest centre.
    """
    if len(best) < _SWAPPED:
        return best
    values, in_vain = np.nan_to_num(records.values), 0
    for number in range(_ROUNDS):
        mass = np.cumsum(_nearest(values, best) * (1.0 if records.weights is None else records.weights))
        places = np.arange(number * trials, (number + 1) * trials)
        far = np.searchsorted(mass, places * _GOLDEN % 1.0 * mass[-1], side="right").clip(max=len(mass) - 1)
        swapped = np.repeat(best[None], trials, axis=0)
        swapped[np.arange(trials), places % len(best)] = off_records(
            model, values, np.ones(len(mass)), [values[:, far].T]
        )[0]
        points, objectives = _all_starts(model, records, _feasible(model, swapped), _COARSE, _LOOK)
        found, objective = near(points[np.argsort(objectives, kind="stable")[: max(trials // _FURTHER, 1)]])
        in_vain += 1
        if objective < lowest * (1.0 - _BETTER):
            best, lowest, in_vain = found, objective, 0
        if in_vain == _IN_VAIN:
            break
    return best


def _nearest(values: Floats, centers: Floats) -> Floats:
    """Each record's squared distance to its nearest centre."""
    found = np.full(values.shape[1], np.inf)
    for center in centers:
        np.minimum(found, ((values - center[:, None]) ** 2).sum(axis=0), out=found)
    return found


def _nearest_optima(
    model: ClusterModel, records: Records, starts: Floats, shift: float, passes: int
) -> tuple[Floats, float]:
    """The best of the points near optima that these starts come to, and its objective."""
    points, objectives = _all_starts(model, records, _feasible(model, starts), shift, passes)
    best = int(np.argmin(objectives))
    return points[best], float(objectives[best])


def _all_starts(
    model: ClusterModel, records: Records, points: Floats, shift: float, passes: int
) -> tuple[Floats, Floats]:
    """Every start brought near its optimum; those that have arrived wait for the others."""
    loops = [Anderson() for _ in points]
    objectives = np.full(len(points), np.inf)
    active = np.arange(len(points))
    for _ in range(passes):
        sums = model.sums(records, points[active])
        images = model.image(sums, points[active])
        arrived = np.abs(images - points[active]).max(axis=(1, 2)) < shift
        for place, start in enumerate(active):
            objectives[start] = sums.objective[place]
            proposal = loops[start].propose(points[start], images[place], float(sums.objective[place]))
            points[start] = images[place] if arrived[place] else _feasible(model, proposal)
        active = active[~arrived]
        if not len(active):
            break
    return points, objectives


def _feasible(model: ClusterModel, centers: Floats) -> Floats:
    return centers if model.feasible is None else project(centers, model.feasible)


def _one_pass(model: ClusterModel, records: Records, centers: Floats) -> tuple[Floats, float]:
    sums = model.sums(records, centers[None])
    return model.image(sums, centers[None])[0], float(sums.objective[0])


def descend(
    one_pass: Callable[[Floats], tuple[Floats, float]],
    start: Floats,
    shift: float,
    passes: int,
    *,
    better: Callable[[Floats, Floats], Floats] | None = None,
    accelerate: bool = True,
    decrease: float = 0.0,
    report: Callable[[HistoryPoint], None] = lambda step: None,
) -> Solution:
    """Iterate one pass to a fixed point; an objective that falls in plain steps falls from one step to the next.

    ``better`` makes of v and F(v) a better next point than F(v), without a pass; acceleration works on top of either. A
    point where the objective has risen is given up for the plain step from the last one, F(v). ``better`` is given up
    for good when it has failed twice: the objective rose, or the shift did not fall to a third. With ``decrease`` the
    iteration also ends with a pass that lowers the objective by less than this share of it.

    Where the objective rises in a plain step it is no guide: with a tolerance, records that begin where they are may
    come to a worse rest with the next centres. From there on the length of the step F(v) - v has to fall instead, and
    ``better`` fails where that rises.
    """
    history: list[HistoryPoint] = []
    anderson, point, plain, lowest, failures, guided = Anderson(), start, start, np.inf, 0, True
    for number in range(1, passes + 1):
        image, objective = one_pass(point)
        step = HistoryPoint(number, objective, float(np.abs(image - point).max()))
        report(step)
        merit = objective if guided else float(np.linalg.norm(image - point))
        if merit > lowest + _ROUNDING * abs(lowest):
            if not np.array_equal(point, plain):
                anderson, point, failures = Anderson(), plain, failures + 1
                continue
            anderson = Anderson()
            if guided:
                guided, failures, merit = False, 0, float(np.linalg.norm(image - point))
        failures += guided and bool(history) and step.shift > _GAIN * history[-1].shift
        gain = history[-1].objective - objective if history else np.inf
        plain, lowest = image, merit
        history.append(step)
        if step.shift < shift or (decrease > 0.0 and gain < decrease * objective):
            break
        if better is not None and failures >= _FAILURES:
            anderson, better = Anderson(), None
        target = image if better is None else better(point, image)
        point = anderson.propose(point, target, merit) if accelerate else target
    return Solution(plain, history[-1].objective, tuple(history), history[-1].shift < shift, number)


def corrected(model: ClusterModel, point: Floats, image: Floats, passes: int, records: Records) -> Floats:
    """The fixed point of F_sample + defect, where the defect is what F_sample lacks of F at ``point``.

    Anderson acceleration here goes by the residual, as F_sample + defect descends no objective of its own.
    """
    defect = image - _one_pass(model, records, point)[0]
    goal = _SHARE * float(np.abs(image - point).max())
    anderson, now = Anderson(), image
    for _ in range(passes):
        step = _feasible(model, _one_pass(model, records, now)[0] + defect)
        residual = float(np.linalg.norm(step - now))
        if np.abs(step - now).max() < goal:
            break
        now = _feasible(model, anderson.propose(now, step, residual))
    return step
