"""Likelihood ratio: columns count by how little masking moved them, which the intruder estimates from his own links.

He links by plain distances, takes the spread of the differences in each column as the error of masking there, links
again by them, and so on: normal errors, independent between columns, no true pair is needed.
"""

import numpy as np
from intruder import label_distances, links, numbers, numeric_columns, squared

ROUNDS = 4


def attack(release, register, truth):
    columns = numeric_columns(release, register)
    ours, theirs = numbers(release, register, columns)
    labels, scale = label_distances(release, register), np.ones(len(columns))
    for _ in range(ROUNDS):
        distances = squared(ours / scale, theirs / scale) + labels
        residual = theirs[distances.argmin(axis=1)] - ours
        scale = np.maximum(1.4826 * np.median(np.abs(residual), axis=0), 1e-3)
    return links(squared(ours / scale, theirs / scale) + labels, truth)
