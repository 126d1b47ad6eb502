"""Parts of scipy that are loaded by themselves are those of the package."""

import subprocess
import sys

import numpy as np
from scipy.optimize import linear_sum_assignment, nnls

from dpmask.kernels import scipy_parts
from dpmask.kernels.scipy_parts import assign, non_negative_fit

RNG = np.random.default_rng(0)
WITHOUT_THE_PACKAGE = """
import sys, numpy
from dpmask.kernels.scipy_parts import assign, non_negative_fit
assign(numpy.eye(2)), non_negative_fit(numpy.eye(2), numpy.arange(2.0))
sys.exit("scipy.optimize" in sys.modules)
"""


def test_an_assignment_is_scipys():
    for size in (1, 2, 40):
        costs = RNG.normal(size=(size, size)).round(1)
        assert all(
            (ours == theirs).all() for ours, theirs in zip(assign(costs), linear_sum_assignment(costs), strict=True)
        )


def test_a_non_negative_fit_is_scipys_to_the_bit():
    for rows, columns in ((1, 1), (3, 2), (5, 7), (20, 20)):
        matrix, values = RNG.normal(size=(rows, columns)), RNG.normal(size=rows)
        (fit, left), (theirs, rest) = non_negative_fit(matrix, values), nnls(matrix, values)
        assert (fit == theirs).all()
        assert left == rest


def test_of_a_scipy_that_keeps_them_elsewhere(monkeypatch):
    costs = RNG.normal(size=(5, 5))
    found = lambda: (assign(costs)[1], non_negative_fit(costs, costs[0])[0])  # noqa: E731
    here = found()
    monkeypatch.setattr(scipy_parts.PathFinder, "find_spec", lambda *_: None)
    scipy_parts._extension.cache_clear()
    assert all((one == other).all() for one, other in zip(here, found(), strict=True))


def test_the_package_is_not_imported():
    assert subprocess.run([sys.executable, "-c", WITHOUT_THE_PACKAGE], check=False).returncode == 0
