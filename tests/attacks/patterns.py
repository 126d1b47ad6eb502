"""Zeros and missing values that stay where they are, and ranks: what the numbers of a skewed column say of most people.

Where a step keeps zeros, a row with another pattern of them is not a person's. Among the others the nearest is taken by
ranks: masking leaves the order of values about as it was, and who earns little is told apart as well as who earns much.
"""

import numpy as np
from intruder import CERTAIN, label_distances, links, numeric_columns, squared


def attack(release, register, truth):
    columns = numeric_columns(release, register)
    ours, theirs = (_ranks(frame[columns]) for frame in (register, release.rows))
    return links(squared(ours, theirs) + _other_patterns(release, register) + label_distances(release, register), truth)


def _ranks(frame):
    """Each column's values by their rank, in standard deviations; missing ones in the middle."""
    ranks = frame.rank(pct=True).to_numpy()
    return np.nan_to_num((ranks - np.nanmean(ranks, axis=0)) / np.nanstd(ranks, axis=0))


def _other_patterns(release, register):
    """What is far away because its zeros or missing values are others."""
    far = np.zeros((len(register), len(release.rows)))
    for step in release.manifest["steps"]:
        if step["parameters"].get("zeros") != "keep":
            continue
        for name in step["parameters"]["columns"]:
            ours, theirs = (frame[name].to_numpy(float) for frame in (register, release.rows))
            for state in (np.isnan, lambda values: values == 0):
                far += CERTAIN * (state(ours)[:, None] != state(theirs)[None, :])
    return far
