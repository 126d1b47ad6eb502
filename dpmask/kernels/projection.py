"""Centres that satisfy linear constraints: the nearest point of {v : M v = A, lower <= v <= upper} to each centre.

Equalities have a closed form, v - G^-1 M' (M G^-1 M')^+ (M v - A); with one row and G = I it is eq. 5 and eq. 11 of
Torra (2020; the sum over r in eq. 11 runs to t, not c). All rows are projected onto at once: one after another is
wrong. Bounds make it a small quadratic programme, solved exactly as a least distance problem (Lawson and Hanson 1974,
Solving Least Squares Problems, ch. 23); clipping would break the equalities. G is diagonal: I, or with partial
distances each cluster's column weights.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Floats
from dpmask.kernels.scipy_parts import non_negative_fit

_RANK = 1e-10  # relative: rows closer than this to a combination of others are redundant
_NOTHING = 1e-9  # a residual of least squares that is only rounding
_SLACK = 1e-9  # relative: constants closer than this agree, bounds further than this are broken


class InconsistentConstraintsError(ValueError):
    """No point satisfies all constraints; `row` is the first equality that contradicts those before it, if one does."""

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row


class Feasible(NamedTuple):
    """The points a centre may take: B v = b with orthonormal independent rows, and bounds."""

    rows: Floats  # rank x columns
    constants: Floats  # rank
    lower: Floats  # columns, -inf where free
    upper: Floats  # columns, inf where free

    @property
    def bounded(self) -> bool:
        """Whether any bound exists."""
        return bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())


def feasible_set(
    coefficients: Floats,
    constants: Floats,
    lower: Floats | None = None,
    upper: Floats | None = None,
    *,
    mean: Floats | float = 0.0,
    sd: Floats | float = 1.0,
) -> Feasible:
    """M v = A (M: rows x columns) and bounds, made independent; contradictions raise InconsistentConstraintsError.

    With `mean` and `sd` it is the set for z = (x - mean) / sd: M_z = M diag(sd), A_z = A - M mean. Rows are scaled to
    length 1 before redundant ones are dropped, so that a small unit is not mistaken for redundancy.
    """
    columns = coefficients.shape[1]
    low = np.full(columns, -np.inf) if lower is None else np.asarray(lower, np.float64)
    high = np.full(columns, np.inf) if upper is None else np.asarray(upper, np.float64)
    rows: list[Floats] = []
    values: list[float] = []
    shifted = constants - coefficients @ np.broadcast_to(mean, columns)
    for index, (row, constant) in enumerate(zip(coefficients * sd, shifted, strict=True)):
        _add_row(rows, values, row, constant, index)
    result = Feasible(np.array(rows).reshape(-1, columns), np.array(values), (low - mean) / sd, (high - mean) / sd)
    _require_a_point(result)
    return result


def _add_row(rows: list[Floats], values: list[float], row: Floats, constant: float, index: int) -> None:
    """Gram-Schmidt, twice for accuracy. A redundant row leaves nothing, and its constant must leave nothing, too."""
    length = float(np.linalg.norm(row))
    rest, left = (row / length, constant / length) if length > 0.0 else (row, constant)
    size = abs(left) + 1.0
    for _ in range(2):
        for earlier, value in zip(rows, values, strict=True):
            along = float(rest @ earlier)
            rest, left, size = rest - along * earlier, left - along * value, size + abs(along * value)
    remaining = float(np.linalg.norm(rest))
    if remaining > _RANK:
        rows.append(rest / remaining)
        values.append(float(left / remaining))
    elif abs(left) > _SLACK * size:
        raise InconsistentConstraintsError("this equality contradicts the ones before it", index)


def _require_a_point(feasible: Feasible) -> None:
    if (feasible.lower > feasible.upper).any():
        column = int(np.argmax(feasible.lower > feasible.upper))
        raise InconsistentConstraintsError(f"the lower bound of column {column} is above its upper bound")
    nearest = np.zeros((1, feasible.rows.shape[1]))  # of the equalities, to the means: mostly within the bounds
    nearest = _onto_equalities(nearest, feasible.rows, feasible.constants, np.ones(nearest.shape))
    if feasible.bounded and _outside(nearest, feasible).any():
        from scipy.optimize import linprog  # half a second to import

        free = np.zeros(feasible.rows.shape[1])
        equalities = (feasible.rows, feasible.constants) if len(feasible.rows) else (None, None)
        found = linprog(free, None, None, *equalities, bounds=np.stack([feasible.lower, feasible.upper], axis=1))
        if found.status == 2:  # noqa: PLR2004 - linprog's code for infeasible
            raise InconsistentConstraintsError("no point satisfies the equalities and the bounds together")


def project(centers: Floats, feasible: Feasible, metric: Floats | None = None) -> Floats:
    """The nearest feasible point to each centre (any axes x columns), in the distance sum_s metric_s (v_s - w_s)^2.

    `metric` broadcasts to the centres' shape; None is the Euclidean distance. Centres found in z = (x - mean) / sd are
    released by projecting once more in original units with metric 1/sd^2, so that no rounding is left.
    """
    points = centers.reshape(-1, centers.shape[-1])
    weights = np.ones(centers.shape) if metric is None else _positive(np.broadcast_to(metric, centers.shape))
    weights = weights.reshape(points.shape)
    result = _onto_equalities(points, feasible.rows, feasible.constants, weights)
    if feasible.bounded:
        of_set = [np.ascontiguousarray(part).tobytes() for part in feasible]
        for at in np.flatnonzero(_outside(result, feasible)):
            result[at] = _onto_bounds_once(result[at].tobytes(), weights[at].tobytes(), *of_set)
        result = np.clip(result, feasible.lower, feasible.upper)  # only rounding is left
    return result.reshape(centers.shape)


def _positive(metric: Floats) -> Floats:
    """A column nobody weighs on may move almost freely: a billionth of the smallest weight stands for 0."""
    smallest = np.min(metric, axis=-1, keepdims=True, where=metric > 0.0, initial=np.inf)
    smallest = np.where(np.isfinite(smallest), smallest, 1.0)
    return np.where(metric > 0.0, metric, 1e-9 * smallest)


def _onto_equalities(points: Floats, rows: Floats, constants: Floats, metric: Floats) -> Floats:
    """Eq. 5 for any number of rows. The second round removes what the first one rounded."""
    spread = rows / metric[:, None, :]  # B G^-1, for each point
    gram = spread @ rows.T
    for _ in range(2):
        multipliers = np.linalg.solve(gram, (points @ rows.T - constants)[..., None])
        points = points - (multipliers * spread).sum(axis=1)
    return points


def _outside(points: Floats, feasible: Feasible) -> NDArray[np.bool_]:
    slack = 4.0 * np.finfo(float).eps * (1.0 + np.abs(points))
    return np.any((points < feasible.lower - slack) | (points > feasible.upper + slack), axis=1)


@lru_cache(maxsize=1 << 14)
def _onto_bounds_once(point: bytes, metric: bytes, rows: bytes, constants: bytes, lower: bytes, upper: bytes) -> Floats:
    """The same by content: a centre is projected when it is fitted, and each time that it is released."""
    at, weights, b, low, high = (np.frombuffer(part).copy() for part in (point, metric, constants, lower, upper))
    feasible = Feasible(np.frombuffer(rows).copy().reshape(len(b), len(at)), b, low, high)
    return _onto_bounds(at, feasible, weights)


@lru_cache(maxsize=64)
def _directions(rows: bytes, columns: int) -> Floats:
    """What rows of equalities leave free; a column that they determine has none. To be read only."""
    found = _null_space(np.frombuffer(rows).copy().reshape(-1, columns)) if rows else np.eye(columns)
    found[np.linalg.norm(found, axis=1) < _RANK] = 0.0
    return found


def _onto_bounds(point: Floats, feasible: Feasible, metric: Floats) -> Floats:
    """From the projection onto the equalities to the nearest point that also keeps the bounds.

    In the coordinates G^1/2 v the equalities leave directions Z y; what remains is: minimise |y| subject to E y >= f.
    """
    root = np.sqrt(metric)
    directions = _directions((feasible.rows / root).tobytes(), len(point))
    low, high = np.isfinite(feasible.lower), np.isfinite(feasible.upper)
    low, high = low & directions.any(axis=1), high & directions.any(axis=1)
    if not (low | high).any():
        return point  # what the equalities determine is outside by rounding only
    inequalities = np.concatenate([directions[low], -directions[high]])
    needed = np.concatenate([((feasible.lower - point) * root)[low], ((point - feasible.upper) * root)[high]])
    bounds = np.concatenate([feasible.lower[low], feasible.upper[high]])
    columns = np.concatenate([np.flatnonzero(low), np.flatnonzero(high)])
    rounding = (np.abs(bounds) + np.abs(point[columns])) * root[columns]
    for slack in (0.0, 1e-12, 1e-10, _SLACK):  # a set without an inside, as in a + b = 0, a >= 0, b >= 0, needs some
        active = _least_distance(inequalities, needed - slack * rounding)
        if active is not None:
            return _with_fixed(point, feasible, metric, columns[active], bounds[active])
    raise InconsistentConstraintsError("no point satisfies the equalities and the bounds together")


def _null_space(rows: Floats) -> Floats:
    """Orthonormal columns that span what the rows leave free, as ``scipy.linalg.null_space`` does."""
    _, values, directions = np.linalg.svd(rows)
    rank = np.sum(values > values.max(initial=0.0) * np.finfo(float).eps * max(rows.shape))
    return directions[rank:].T.copy()


def _least_distance(inequalities: Floats, needed: Floats) -> NDArray[np.intp] | None:
    """Which rows of E y >= f hold with equality where |y| is least; None if no y satisfies them.

    They are the support of a non-negative least squares fit, whose residual vanishes when there is no such y.
    """
    scale = np.linalg.norm(inequalities, axis=1)
    rows, rights = inequalities / scale[:, None], needed / scale
    system = np.concatenate([rows.T, rights[None] / np.abs(rights).max()])
    multipliers, residual = non_negative_fit(system, np.append(np.zeros(rows.shape[1]), 1.0))
    return np.flatnonzero(multipliers > 0.0) if residual > _NOTHING else None


def _with_fixed(point: Floats, feasible: Feasible, metric: Floats, fixed: NDArray[np.intp], values: Floats) -> Floats:
    """The projection once the active bounds are known: these columns take their bound, the others keep B v = b."""
    result = point.copy()
    result[fixed] = values
    free = np.delete(np.arange(len(point)), fixed)
    if len(feasible.rows) and len(free):
        left = feasible.constants - feasible.rows[:, fixed] @ values
        step, *_ = np.linalg.lstsq(
            feasible.rows[:, free] / np.sqrt(metric[free]), left - feasible.rows[:, free] @ point[free], rcond=_RANK
        )
        result[free] = point[free] + step / np.sqrt(metric[free])
    return result
