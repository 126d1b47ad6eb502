"""A learned attack: known pairs teach how much each column tells, by a logistic regression of true against random pairs.

After Abril, Navarro-Arribas and Torra 2012, who learn the weights of a distance from known links. The intruder knows the
rows of some people and finds the others with what these taught.
"""

import numpy as np
from intruder import label_distances, links, numbers, numeric_columns

KNOWN, STRANGERS, STEPS = 300, 20, 40


def attack(release, register, truth, known=KNOWN):
    rng = np.random.default_rng(0)
    some = rng.permutation(np.flatnonzero(truth >= 0))[:known]
    columns = numeric_columns(release, register)
    ours, theirs = numbers(release, register, columns)
    rows = rng.integers(0, len(theirs), (known, STRANGERS))
    true = (ours[some] - theirs[truth[some]]) ** 2
    strangers = ((ours[some][:, None] - theirs[rows]) ** 2).reshape(-1, len(columns))
    weights = np.maximum(_logistic(true, strangers), 0.0)
    distances = label_distances(release, register)
    for column, weight in enumerate(weights):
        distances += weight * np.subtract.outer(ours[:, column], theirs[:, column]) ** 2
    return links(distances, truth, np.setdiff1d(np.arange(len(truth)), some))


def _logistic(true, strangers):
    """The weight of each column: Newton's method with a small ridge, the constant last and left out."""
    design = np.column_stack([np.vstack([true, strangers]), np.ones(len(true) + len(strangers))])
    target = np.r_[np.zeros(len(true)), np.ones(len(strangers))]
    weights = np.zeros(design.shape[1])
    for _ in range(STEPS):
        share = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        curve = (design * (share * (1 - share))[:, None]).T @ design + 1e-3 * np.eye(len(weights))
        weights = weights + np.linalg.solve(curve, design.T @ (target - share) - 1e-3 * weights)
    return weights[:-1]
