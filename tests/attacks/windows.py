"""Window intersection for rank swapping: a person's row lies within the window of ranks in every swapped column."""

import numpy as np
from intruder import links
from scipy.stats import rankdata


def attack(release, register, truth):
    step = release.step("swapping")["parameters"]
    columns, window = step["columns"], step["window"] * len(register)
    outside, apart = (np.zeros((len(register), len(release.rows))) for _ in range(2))
    for name in columns:
        ours, theirs = (rankdata(frame[name].to_numpy(float)) for frame in (register, release.rows))
        distance = np.abs(ours[:, None] - theirs[None, :])
        outside += distance > window + 0.5
        apart += distance / len(register)
    return links(outside + apart / (10 * len(columns)), truth)
