"""Linear models refitted to released dependents, as an intruder does who knows how these were synthesised."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from dpmask.clustering.design import Design, make_design
from dpmask.clustering.fuzzy_c_regression import FuzzyCRegression, fit_models
from dpmask.engine.limits import current_limits
from dpmask.engine.remembered import remembered
from dpmask.kernels.arrays import Floats
from dpmask.kernels.elementary import log, power
from dpmask.kernels.regression.gram import errors_at, gram_of, values_at
from dpmask.kernels.regression.least_squares import solve, solve_models
from dpmask.table.keyed_sample import stored_numbers

_WHO = "residual_linkage"
_RIDGE = 1e-6
_FUZZINESS = 1.5
_KEPT = 3
"""Refits that are linked by: no single one is the best by any sign that an intruder, or this measure, has before."""
_POLISHED = 50
_LEAST_ERRORS = (0.1, 1e-5)
_SAME = 1e-4


class RefittedModels(NamedTuple):
    """One regression of released dependents on z, several models of each group of them, and scales of what is left."""

    regression: Floats  # p x dependents
    groups: list[list[int]]  # places of the dependents that share their models
    models: list[Floats]  # of each group: models x p x its dependents
    low: Floats  # the range of released values: predictions are cut to it, as a bound of the method does
    high: Floats
    of_residuals: Floats  # turn what is left into units in which it spreads alike in all directions
    of_noise: Floats

    def expected(self, z: Floats) -> Floats:
        """What the one regression predicts, dependents x records."""
        return values_at(z, self.regression[None], np.zeros(z.shape[1], np.int64))

    def nearest(self, z: Floats, y: Floats) -> Floats:
        """What the model nearest to each record predicts for it: its released value, but for noise."""
        values: Floats = np.empty(y.shape)
        for group, models in zip(self.groups, self.models, strict=True):
            values[group] = values_at(z, models, errors_at(z, y[group], models).argmin(axis=0))
        return np.clip(values, self.low[:, None], self.high[:, None])

    def residual_points(self, y: Floats, expected: Floats) -> Floats:
        """What the regression leaves of values, by what it expects of them, in units of its spread."""
        return _turned(self.of_residuals, y - expected)

    def noise_points(self, y: Floats) -> Floats:
        """Values in units of the noise around the models."""
        return _turned(self.of_noise, y)


def refit(z: Floats, y: Floats, released: Floats, clusters: int, joint: bool, seed: int) -> list[RefittedModels]:
    """The models of records: z = (1, x), p x records, and dependents x records, known and released.

    Several models have many local optima, and which of them links most is not seen before it is tried: the best ones
    from several starts are all returned.
    """
    compute = partial(_refitted, z, y, released, clusters, joint, seed)
    return remembered(f"{_WHO} {clusters} {joint} {seed}", lambda: (z, y, released), compute)


def _refitted(z: Floats, y: Floats, released: Floats, clusters: int, joint: bool, seed: int) -> list[RefittedModels]:
    places = list(range(len(y)))
    groups = [places] if joint else [[place] for place in places]
    gram = gram_of(np.concatenate([z, released]))
    regression = solve(gram[: len(z), : len(z)], gram[: len(z), len(z) :])
    low, high, none = released.min(axis=1), released.max(axis=1), np.eye(len(y))
    alternatives = [[regression[None][:, :, group]] for group in groups]
    if clusters > 1 and (low < high).all():
        seeds = range(seed, seed + current_limits().refit_starts)
        starts = [_kept_several(z, one, groups, clusters, at) for at in seeds for one in (y, released)]
        alternatives = [_best(z, released[group], some) for group, *some in zip(groups, *starts, strict=True)]
    most = max(map(len, alternatives))
    each = [[some[min(number, len(some) - 1)] for some in alternatives] for number in range(most)]
    refits = [RefittedModels(regression, groups, models, low, high, none, none) for models in each]
    of_residuals = _whitening(y - refits[0].expected(z))
    return [
        one._replace(of_residuals=of_residuals, of_noise=_whitening(released - one.nearest(z, released)))
        for one in refits
    ]


def _best(z: Floats, released: Floats, starts: list[Floats]) -> list[Floats]:
    """Of the models from several starts the different ones whose planes most values lie near to, best first."""
    different: list[Floats] = []
    for models in starts:
        if not any(_same(models, other) for other in different):
            different.append(models)
    found = [_polished(z, released, models) for models in different]
    return sorted(found, key=lambda models: float(log(errors_at(z, released, models).min(axis=0)).mean()))[:_KEPT]


def _same(models: Floats, other: Floats) -> bool:
    """Whether both are the same optimum, in whatever order."""
    gaps = np.abs(models[:, None] - other[None]).max(axis=(2, 3))
    return bool((gaps.min(axis=1) < _SAME).all())


def _polished(z: Floats, released: Floats, models: Floats) -> Floats:
    """Models moved on to the planes of most released values that they are near to: least absolute deviations.

    By least squares with weights 1 / |error|, in which records of other planes count less and less.
    """
    p, both = len(z), np.concatenate([z, released])
    first, last = map(math.log10, _LEAST_ERRORS)
    for least in power(10.0, np.linspace(first, last, _POLISHED)):
        errors = errors_at(z, released, models)
        nearest, weight = errors.argmin(axis=0), 1.0 / np.maximum(np.sqrt(errors.min(axis=0)), least)
        own = [np.flatnonzero(nearest == number) for number in range(len(models))]
        grams = np.array([gram_of(both[:, some], weight[some]) for some in own])
        models = solve_models(grams[:, :p, :p], grams[:, :p, p:], models)
    return models


def _kept_several(z: Floats, y: Floats, groups: list[list[int]], clusters: int, seed: int) -> list[Floats]:
    """The same, once for the same values where somebody keeps it: those of the originals stay between moves."""
    compute = partial(_several, z, y, groups, clusters, seed)
    return remembered(f"{_WHO} {groups} {clusters} {seed}", lambda: (z, y), compute)


def _several(z: Floats, y: Floats, groups: list[list[int]], clusters: int, seed: int) -> list[Floats]:
    """Fuzzy c-regression, as the method does it, but for where it starts."""
    independents = [f"x{number}" for number in range(1, len(z))]
    dependents = [f"y{number}" for number in range(len(y))]
    table = stored_numbers([*independents, *dependents], [*z[1:], *y])
    method = FuzzyCRegression(clusters=clusters, fuzziness=_FUZZINESS)
    design = make_design(table, dependents, independents, _WHO)
    found = fit_models(method, table, design, groups, method.subkey(_WHO, None, seed))
    return [_in_original(design, one.models, group) for one, group in zip(found, groups, strict=True)]


def _in_original(design: Design, models: Floats, group: list[int]) -> Floats:
    whole = np.zeros((*models.shape[:2], len(design.dependents)))
    whole[:, :, group] = models
    return design.coefficients(whole)[:, :, group]


def _turned(turn: Floats, values: Floats) -> Floats:
    turned = np.zeros((len(turn), values.shape[1]))
    for number, weights in enumerate(turn):
        for weight, column in zip(weights, values, strict=True):
            turned[number] += weight * column  # no BLAS: equal records must stay equal wherever they lie
    return turned


def _whitening(rest: Floats) -> Floats:
    """W with W Cov W' = 1, about; what does not spread at all is left as it is."""
    covariance = rest @ rest.T / max(rest.shape[1], 1)
    ridge = _RIDGE * max(float(np.trace(covariance)) / len(rest), _RIDGE)
    root = np.linalg.cholesky(covariance + ridge * np.eye(len(rest)))
    return np.linalg.inv(root)
