"""Torra (2020), "Fuzzy clustering-based microaggregation ... for data with constraints": what is printed."""

import numpy as np

from dpmask.kernels.fuzzy.center_sums import center_sums
from dpmask.kernels.projection import feasible_set, project

TABLE_1 = """
15 23 42.01
12 43 59.93
64 229 319.27
12 45 62.07
28 39 74.21
71 102 191.50
23 64 95.16
25 102 138.14
48 230 301.78
32 50 90.62
90 200 318.40
13 100 125.56
"""
TABLE_2 = """
16.91695 26.67021 41.37696
15.48220 42.61481 60.60212
65.86964 228.47892 318.70371
12.97750 45.84617 60.80475
25.93508 38.55444 75.96227
72.14286 103.34332 191.54478
24.43550 65.84895 96.49401
24.56774 101.54299 137.49281
47.97780 226.75840 302.78913
28.43727 48.02995 89.97244
91.86226 197.98087 318.96431
11.64466 100.13359 127.12980
"""
TABLE_3 = {
    "original": [
        [13.44075, 37.16236, 55.35500],
        [67.32890, 219.64071, 313.11708],
        [27.59963, 52.64698, 88.34783],
        [37.11288, 101.71213, 151.88292],
    ],
    "0.5 free": [
        [14.77033, 37.46462, 55.53745],
        [67.66607, 219.68178, 313.78662],
        [28.25678, 52.81140, 88.66240],
        [37.37631, 101.05854, 153.25147],
    ],
    "0.5 constrained": [
        [14.21093, 36.94862, 56.01970],
        [67.74399, 219.75366, 313.71945],
        [28.04952, 52.62022, 88.84108],
        [37.96198, 101.59877, 152.74659],
    ],
    "1.0 free": [
        [13.35356, 37.43389, 55.51220],
        [68.10518, 219.87425, 313.35174],
        [28.32082, 52.62483, 87.69683],
        [36.05573, 102.03179, 152.27787],
    ],
    "1.0 constrained": [
        [13.34286, 37.42402, 55.52142],
        [67.80086, 219.59354, 313.61408],
        [27.83433, 52.17608, 88.11623],
        [36.48085, 102.42393, 151.91139],
    ],
    "1.5 free": [
        [15.38410, 38.46154, 54.85374],
        [68.56108, 217.71406, 313.44706],
        [26.27168, 52.15607, 88.81411],
        [36.43006, 101.70231, 152.30233],
    ],
    "1.5 constrained": [
        [14.00637, 37.19070, 56.04144],
        [68.88084, 218.00900, 313.17140],
        [27.11313, 52.93224, 88.08872],
        [36.83617, 102.07690, 151.95224],
    ],
}
TABLE_4 = {
    "0.5 free": [1.3756566, 0.75078064, 0.7468825, 1.5393139],
    "0.5 constrained": [1.0395613, 0.74021727, 0.6681398, 1.2164527],
    "1.0 free": [0.3256416, 0.8439299, 0.97180617, 1.1729174],
    "1.0 constrained": [0.3251812, 0.6870117, 0.57486784, 0.95232975],
    "1.5 free": [2.3907604, 2.3106573, 1.4905896, 0.8013973],
    "1.5 constrained": [0.8899032, 2.25254, 0.6206389, 0.4630664],
}
V0 = np.array([[13, 37, 54.67], [67.333, 219.667, 313.15], [27.667, 51, 86.663], [37.333, 101.333, 151.733]])
CONSTRAINT = feasible_set(np.array([[1.16, 1.07, -1.0]]), np.zeros(1))  # 1.16 v1 + 1.07 v2 = v3


def block(text: str) -> np.ndarray:
    """A printed table, columns x records."""
    return np.ascontiguousarray(np.array([line.split() for line in text.split("\n") if line], float).T)


def corrected() -> np.ndarray:
    """Table 1 with record 12 as the constraint has it: 16 for 13."""
    table = block(TABLE_1)
    table[0, 11] = 16.0
    return table


def one_step(table: np.ndarray) -> np.ndarray:
    """One membership step and one centre step from V0, m = 1.5, in raw units."""
    return center_sums(table, V0[None], fuzziness=1.5).centers(V0[None])[0]


def original_centroids() -> np.ndarray:
    """Those of Table 3's "Original", by our own steps."""
    return project(one_step(block(TABLE_1)), CONSTRAINT)


def centroids(data: str) -> np.ndarray:
    """Ours for a part of Table 3; where its data are not printed, from the printed centroids without constraint."""
    if data == "original":
        return original_centroids()
    noise, kind = data.split()
    free = one_step(block(TABLE_2)) if noise == "1.5" else np.array(TABLE_3[f"{noise} free"])
    return project(free, CONSTRAINT) if kind == "constrained" else free
