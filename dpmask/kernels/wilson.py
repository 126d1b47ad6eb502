"""The interval of a share that was measured on a sample."""

from __future__ import annotations

import math

_NORMAL = 1.959963984540054  # the 97.5 % point of the normal distribution


def wilson(share: float, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval (1927) for a mean of ``count`` scores between 0 and 1.

    Made for scores of 0 and 1; scores between them vary less, so that the interval is then a little too wide.
    """
    squared = _NORMAL**2 / count
    center = (share + squared / 2) / (1 + squared)
    half = math.sqrt(share * (1 - share) * squared + squared**2 / 4) / (1 + squared)
    return max(center - half, 0.0), min(center + half, 1.0)
