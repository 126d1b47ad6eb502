"""Two functions of scipy.optimize without the rest of it: importing all of it takes as long as many a run."""

from __future__ import annotations

from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpmask.kernels.arrays import Floats, Integers

_SOLVED = 1  # what nnls returns then


def assign(costs: NDArray[Any]) -> tuple[Integers, Integers]:
    """``scipy.optimize.linear_sum_assignment``: rows and the columns they get, so that costs add up to the least."""
    try:
        rows, columns = _extension("_lsap").linear_sum_assignment(costs)
    except (ImportError, AttributeError):  # a scipy that keeps it elsewhere
        from scipy.optimize import linear_sum_assignment

        rows, columns = linear_sum_assignment(costs)
    return rows, columns


def non_negative_fit(matrix: Floats, values: Floats) -> tuple[Floats, float]:
    """``scipy.optimize.nnls``: the numbers >= 0 by which a matrix comes nearest to the values, and how near."""
    try:
        fit, left, state = _extension("_slsqplib").nnls(np.ascontiguousarray(matrix), values, 3 * matrix.shape[1])
    except (ImportError, AttributeError, TypeError, ValueError):
        state = None
    if state != _SOLVED:  # by another scipy, or not at all, and then it says so
        from scipy.optimize import nnls

        fit, left = nnls(matrix, values)
    return fit, float(left)


@cache
def _extension(name: str) -> Any:
    """A compiled module of scipy.optimize by itself. It needs nothing of the package."""
    spec = PathFinder.find_spec(name, [str(Path(scipy.__file__).parent / "optimize")])
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
