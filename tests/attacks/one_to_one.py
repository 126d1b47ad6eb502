"""Everybody gets a row of their own, so that all distances together are least: Euclidean, among rows whose labels fit."""

import numpy as np
from intruder import Links, label_distances, numbers, numeric_columns, squared
from scipy.optimize import linear_sum_assignment


def attack(release, register, truth):
    columns = numeric_columns(release, register)
    people, rows = linear_sum_assignment(
        squared(*numbers(release, register, columns)) + label_distances(release, register)
    )
    _, kinds, sizes = np.unique(release.rows.astype(str).to_numpy(str), axis=0, return_inverse=True, return_counts=True)
    kinds = kinds.reshape(-1)
    own = (truth[people] >= 0) & (kinds[rows] == kinds[truth[people]])
    return Links(float(np.sum(own / sizes[kinds[rows]]) / len(truth)), len(truth))
