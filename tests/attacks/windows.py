"""Window intersection for rank swapping: a person's row lies within the window of ranks in every swapped column.

Where values were swapped in strata, or zeros stayed, that is public, too: ranks are those in the stratum, of which a
row's own columns tell which it is.
"""

import numpy as np
from intruder import links


def attack(release, register, truth):
    step = release.step("swapping")["parameters"]
    outside, apart = (np.zeros((len(register), len(release.rows))) for _ in range(2))
    for name in step["columns"]:
        (line, rank, size), (other, place, _) = (_ranks(frame, name, step) for frame in (register, release.rows))
        distance = np.abs(rank[:, None] - place[None, :])
        outside += (distance > step["window"] + 0.5 / size[:, None]) | (line[:, None] != other[None, :])
        apart += distance
    return links(outside + apart / (10 * len(step["columns"])), truth)


def _ranks(frame, name, step):
    """The stratum of each value, its rank there as a share, and how many values that has."""
    line = strata(frame, step) + np.where((frame[name] == 0) & (step.get("zeros") == "keep"), " zero", "")
    groups = frame[name].astype(float).groupby(line)
    size = groups.transform("size").to_numpy()
    return line, groups.rank().to_numpy() / size, size


def strata(frame, step):
    """The stratum of each row, by columns that are classes, or bands of numbers."""
    found = np.full(len(frame), "", object)
    for one in step.get("by") or []:
        ((column, edges),) = one.items() if isinstance(one, dict) else [(one, None)]
        classes = frame[column] if edges is None else np.searchsorted(edges, frame[column], side="right")
        found = found + "|" + np.asarray(classes).astype(str)
    return found
