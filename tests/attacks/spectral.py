"""A spectral filter for noise: the covariance of the release less that of the noise, whose size is public (Wiener)."""

import numpy as np
from intruder import links, numbers, squared, whitened


def filtered(release, register):
    """The register's numbers, what the filter makes of the released ones, and the covariance of what is left."""
    step = release.step("noise")["parameters"]
    ours, theirs = numbers(release, register, step["columns"])
    covariance = np.atleast_2d(np.cov(theirs.T))
    share = step["scale"] ** 2 / (1 + step["scale"] ** 2)
    noise = share * (covariance if step["correlated"] else np.diag(np.diag(covariance)))
    signal = covariance - noise
    left = signal - signal @ np.linalg.solve(covariance, signal) + 1e-9 * np.eye(len(signal))
    return ours, theirs @ np.linalg.solve(covariance, signal), left


def attack(release, register, truth):
    return links(squared(*whitened(*filtered(release, register))), truth)


def error(release, register, truth):
    """The root mean square error of the filtered values, in standard deviations; ``truth`` only scores."""
    ours, found, _ = filtered(release, register)
    return float(np.sqrt(np.mean((found[truth] - ours) ** 2)))
