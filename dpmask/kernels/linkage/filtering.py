"""Taking noise out again: the best linear estimate of originals from noisy values, if the noise's size is known.

With y = x + e, Cov(x) = Cov(y) - N where N = Cov(e). The Wiener filter x^ = mean + G (y - mean), G = Cov(x) Cov(y)^-1,
has the error covariance E = Cov(x) - G Cov(x) (Kargupta, Datta, Wang and Sivakumar 2003; Huang, Du and Chen 2005).
Where columns depend on each other, the noise of each is averaged away with the help of the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Floats

_RIDGE = 1e-6


class NoiseFilter(NamedTuple):
    """x^ = mean + gain (y - mean), and what turns differences from x into units of their error.

    ``turn`` is a matrix, or its diagonal.
    """

    mean: Floats
    gain: Floats
    turn: Floats

    def estimates(self, masked: Floats) -> Floats:
        """Originals estimated from noisy values, columns x records."""
        return self.mean[:, None] + self.gain @ (masked - self.mean[:, None])

    def turned(self, values: Floats) -> Floats:
        """Values in a space in which the filter errs alike in all directions."""
        if self.turn.ndim == 1:
            return self.turn[:, None] * (values - self.mean[:, None])
        return self.turn @ (values - self.mean[:, None])


def noise_covariance(released: Floats, scale: float, correlated: bool) -> Floats:
    """The covariance of noise of ``scale`` standard deviations, from that of the noisy values."""
    part = scale**2 / (1.0 + scale**2)
    return part * (released if correlated else np.diag(np.diag(released)))


def wiener(mean: Floats, released: Floats, noise: Floats) -> NoiseFilter:
    """The filter, from the mean and the covariance of noisy values and the covariance of the noise.

    Where a sample says that some variance is negative it is taken for nothing.
    """
    sd = np.sqrt(np.maximum(np.diag(released), np.finfo(float).tiny))
    unit = np.outer(sd, sd)
    before = _positive((released - noise) / unit)
    gain = before @ np.linalg.pinv(released / unit, rcond=1e-10, hermitian=True)
    error = _positive(before - gain @ before)
    ridge = _RIDGE * max(float(np.trace(error)) / len(sd), _RIDGE)
    turn = np.linalg.inv(np.linalg.cholesky(error + ridge * np.eye(len(sd))))
    return NoiseFilter(mean, gain * np.outer(sd, 1.0 / sd), turn / sd)


def unfiltered(mean: Floats, noise: Floats) -> NoiseFilter:
    """No filter: noisy values as they are, and distances in units of the noise."""
    sd = np.sqrt(np.maximum(np.diag(noise), np.finfo(float).tiny))
    return NoiseFilter(mean, np.eye(len(mean)), 1.0 / sd)


def _positive(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
    kept: Floats = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return kept
