"""Which records a tolerance has not brought to rest: a pass lets each of them move 300 times at most.

A record is settled when one round more, in plain numpy, does not change its memberships. See tolerance.py.
"""

from __future__ import annotations

import numpy as np

from dpmask.kernels.arrays import Floats
from dpmask.kernels.elementary import power
from dpmask.kernels.fuzzy.center_sums import memberships

_SLICE = 1 << 12
_CHANGE = 1e-6


def count_unsettled(
    block: Floats,
    centers: Floats,
    tolerance: float | Floats,
    *,
    fuzziness: float | None = None,
    entropy: float | None = None,
    partial: bool = False,
) -> int:
    """How many records of a block (columns x rows) change a membership by 1e-6 or more in one more round."""
    kappas = np.broadcast_to(np.asarray(tolerance, dtype=np.float64), block.shape[1:])
    model = {"fuzziness": fuzziness, "entropy": entropy, "partial": partial}
    count = 0
    for start in range(0, block.shape[1], _SLICE):
        rows = slice(start, start + _SLICE)
        records, reach = np.ascontiguousarray(block[:, rows]), np.ascontiguousarray(kappas[rows])
        before = memberships(records, centers, tolerance=reach, **model)  # type: ignore[arg-type]
        moved = _one_round(records, centers, reach, before if fuzziness is None else power(before, fuzziness))
        after = memberships(moved, centers, **model)  # type: ignore[arg-type]
        count += int((np.abs(after - before).max(axis=0) >= _CHANGE).sum())
    return count


def _one_round(records: Floats, centers: Floats, reach: Floats, shares: Floats) -> Floats:
    """Moved to x + e with e = (p - x) min(1, kappa / |p - x|), p the mean of the centres by these shares."""
    away = (centers.T @ shares) / shares.sum(axis=0) - records
    distance = np.sqrt(np.nansum(away**2, axis=0))
    moved: Floats = records + away * np.minimum(1.0, reach / np.where(distance > 0.0, distance, np.inf))
    return moved
