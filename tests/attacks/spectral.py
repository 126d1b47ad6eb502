"""A spectral filter for noise: the covariance of the release less that of the noise, whose size is public (Wiener).

Noise that is a share of a stratum's deviation is filtered in each stratum; zeros that were kept tell rows apart.
"""

import numpy as np
from intruder import CERTAIN, links, numbers, squared, whitened
from windows import strata


def filtered(release, register, people=slice(None), rows=slice(None), columns=None):
    """The register's numbers, what the filter makes of the released ones, and the covariance of what is left."""
    step = release.step("noise")["parameters"]
    some = release._replace(rows=release.rows.iloc[rows])
    ours, theirs = numbers(some, register.iloc[people], columns or step["columns"])
    centre = theirs.mean(axis=0)
    covariance = np.atleast_2d(np.cov(theirs.T))
    share = step["scale"] ** 2 / (1 + step["scale"] ** 2)
    noise = share * (covariance if step["correlated"] else np.diag(np.diag(covariance)))
    signal = covariance - noise
    left = signal - signal @ np.linalg.solve(covariance, signal) + 1e-9 * np.eye(len(signal))
    return ours, centre + (theirs - centre) @ np.linalg.solve(covariance, signal), left


def attack(release, register, truth):
    step = release.step("noise")["parameters"]
    lines, others = (_classes(frame, step) for frame in (register, release.rows))
    far = np.full((len(register), len(release.rows)), CERTAIN)
    for line in np.unique(lines):
        people, rows = np.flatnonzero(lines == line), np.flatnonzero(others == line)
        columns = [name for name in step["columns"] if register[name].iloc[people].any()]
        if columns and len(rows) > 10 * len(columns):
            near = squared(*whitened(*filtered(release, register, people, rows, columns)))
            far[np.ix_(people, rows)] = np.minimum(near, CERTAIN)
    return links(far, truth)


def _classes(frame, step):
    """The stratum of each row, and which of its values are zeros that were kept."""
    kept = (frame[step["columns"]] == 0).to_numpy() & (step.get("zeros") == "keep")
    return strata(frame, step) + np.array(["".join(map(str, row)) for row in kept.astype(int)], object)


def error(release, register, truth):
    """The root mean square error of the filtered values, in standard deviations; ``truth`` only scores."""
    ours, found, _ = filtered(release, register)
    return float(np.sqrt(np.mean((found[truth] - ours) ** 2)))
