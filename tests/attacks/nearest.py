"""Nearest neighbour over all released columns at once: Euclidean, and Mahalanobis by the register's covariance."""

import numpy as np
from intruder import label_distances, links, numbers, numeric_columns, squared, whitened


def euclidean(release, register, truth):
    ours, theirs = numbers(release, register, numeric_columns(release, register))
    return links(squared(ours, theirs) + label_distances(release, register), truth)


def mahalanobis(release, register, truth):
    columns = numeric_columns(release, register)
    if len(columns) < 2:
        return euclidean(release, register, truth)
    ours, theirs = numbers(release, register, columns)
    ours, theirs = whitened(ours, theirs, np.cov(ours.T))
    return links(squared(ours, theirs) + label_distances(release, register), truth)
