"""Fuzzy clustering of one array in memory: the shortest loop over the kernels, for tests."""

from typing import NamedTuple

import numpy as np

from dpmask.kernels.fuzzy.acceleration import Anderson
from dpmask.kernels.fuzzy.center_sums import center_sums
from dpmask.kernels.projection import project


class Result(NamedTuple):
    centers: np.ndarray  # starts x clusters x columns
    objective: np.ndarray  # starts
    passes: int


def cluster(block, starts, *, feasible=None, shift=1e-9, passes=2000, accelerate=True, **options):
    """Iterate all starts to `shift`; those that have converged wait for the others."""
    points = starts if feasible is None else project(starts, feasible)
    loops = [Anderson() if accelerate else None for _ in starts]
    centers, objective = np.empty_like(starts), np.full(len(starts), np.inf)
    active = np.arange(len(starts))
    for count in range(1, passes + 1):
        sums = center_sums(block, points[active], **options)
        images = sums.centers(points[active])
        if feasible is not None:
            weight = sums.weight if sums.weight.ndim == 3 else None
            images = project(images, feasible, weight)
        done = np.abs(images - points[active]).max(axis=(1, 2)) < shift
        for place, start in enumerate(active):
            if done[place]:
                centers[start], objective[start] = images[place], sums.objective[place]
            elif accelerate:
                points[start] = loops[start].propose(points[start], images[place], sums.objective[place])
            else:
                points[start] = images[place]
        active = active[~done]
        if not len(active):
            return Result(centers, objective, count)
    raise AssertionError(f"{len(active)} starts did not converge in {passes} passes")


def plus_plus(block, clusters, starts, seed):
    """k-means++ starts."""
    rng, result = np.random.default_rng(seed), []
    for _ in range(starts):
        chosen = [rng.integers(block.shape[1])]
        nearest = np.full(block.shape[1], np.inf)
        while len(chosen) < clusters:
            nearest = np.minimum(nearest, ((block - block[:, chosen[-1:]]) ** 2).sum(axis=0))
            chosen.append(rng.choice(block.shape[1], p=nearest / nearest.sum()))
        result.append(block[:, chosen].T)
    return np.array(result)
