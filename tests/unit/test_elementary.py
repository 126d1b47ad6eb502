"""Elementary functions: the C library's bits, whatever numpy has of its own."""

import re
from pathlib import Path

import numpy as np
import pytest

import dpmask
from dpmask.kernels import elementary

SOME = np.concatenate(
    [np.random.default_rng(1).normal(size=500) * 50, [0.0, -0.0, np.nan, np.inf, -np.inf, 800.0, 5e-324]]
)
CALLS = {
    "exp": lambda: elementary.exp(SOME),
    "exp of little": lambda: elementary.exp(-np.abs(SOME) * 10),
    "log": lambda: elementary.log(SOME),
    "log2": lambda: elementary.log2(np.abs(SOME).reshape(3, -1)),
    "log1p": lambda: elementary.log1p(SOME / 60),
    "power": lambda: elementary.power(SOME, 1.7),
    "powers": lambda: elementary.power(0.3, np.arange(40)),
    "cubes": lambda: elementary.power(SOME, 3),
    "squares": lambda: elementary.power(SOME, 2),
    "one number": lambda: elementary.exp(1.3),
    "logs of shares": lambda: elementary.log_where_positive(np.abs(SOME[:500]).clip(0, 1)),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_bits_are_the_c_librarys_without_numpys_own(name, monkeypatch):
    """One by one they are what numpy has from the C library, bit by bit."""
    monkeypatch.setattr(elementary, "own_instructions", lambda: False)
    plain = CALLS[name]()
    monkeypatch.setattr(elementary, "own_instructions", lambda: True)
    found = CALLS[name]()
    assert np.shape(found) == np.shape(plain)
    assert np.asarray(found).tobytes() == np.asarray(plain).tobytes()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numpys_own_bits_are_replaced(monkeypatch):
    exp = np.exp
    monkeypatch.setattr(elementary.np, "exp", lambda values: np.nextafter(exp(values), np.inf))
    monkeypatch.setattr(elementary, "own_instructions", lambda: True)
    found = elementary.exp(SOME[:500])
    assert (found == exp(SOME[:500])).all()


DISPATCHED = re.compile(r"np\.(exp|exp2|expm1|log|log2|log10|log1p|sin|cos|tan|tanh|power|cbrt|geomspace|logspace)\(")
COMPILED = {"region_cuts.py", "elementary.py"}


def test_nothing_else_calls_numpys_own():
    package = Path(dpmask.__file__).parent
    found = [path.name for path in package.rglob("*.py") if DISPATCHED.search(path.read_text(encoding="utf-8"))]
    assert set(found) <= COMPILED, found
