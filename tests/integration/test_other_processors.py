"""The same bits whatever processors the environment speaks of; tests/other_processors.py compares all there is."""

import os
import subprocess
import sys

import pytest
from other_processors import OTHERS, ROOT, machine_code, python, released


def test_machine_code_is_the_same_on_hosts_with_and_without_avx_512():
    """What runs follows from the target only, byte for byte, whichever processor compiles it."""
    names = ("histogram", "small groups", "rotation")
    made = [machine_code(names, host) for host in OTHERS.values()]
    assert len(made[0]) == 3
    assert all(one == made[0] for one in made)


def test_a_ready_job_releases_the_same_bytes(tmp_path):
    lake = tmp_path / "lake"
    python("import sys; dpmask.cli.main(['generate', sys.argv[1], '--rows', '2e4'])", lake)
    own = released("household_income", lake, {})
    assert any(name.endswith(".parquet") for name in own)
    assert released("household_income", lake, OTHERS["without AVX2"]) == own


BITS = """
import hashlib, numpy
some = numpy.sqrt(numpy.arange(1.0, 4001.0)).reshape(40, 100)
print(hashlib.sha256((some @ some.T).tobytes() + numpy.linalg.inv(some[:, :40]).tobytes()).hexdigest())
"""


def bits(first, **environment):
    """What BLAS computes in a process that begins like this, and what it writes besides."""
    given = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    ended = subprocess.run([sys.executable, "-c", first + BITS], env=given, capture_output=True, text=True, check=True)
    return ended.stdout, ended.stderr


def test_the_environment_would_change_bits():
    """Of a process that has nothing of ours: so these variables do stand for other processors."""
    assert bits("", OPENBLAS_CORETYPE="Haswell") != bits("", OPENBLAS_CORETYPE="Nehalem")


@pytest.mark.parametrize("first", ["import dpmask", "import dpmask.kernels", "import dpmask.cli"])
@pytest.mark.parametrize("before", ["", "import numpy\n", "import pandas, scipy.linalg\n"])
def test_blas_is_the_same_whatever_is_imported_first(first, before):
    own = bits("", OPENBLAS_CORETYPE="Haswell", OPENBLAS_NUM_THREADS="1")
    assert bits(before + first, OPENBLAS_CORETYPE="Nehalem") == own


def test_synthetic_values_have_the_same_bits_if_numpy_came_first():
    """All threads of BLAS, its kernels of another processor, and numpy's exponentials by another way."""
    code = """
from dpmask.kernels import elementary
elementary.own_instructions = lambda: {own}
import dpmask, pandas, numpy
people = pandas.DataFrame(numpy.random.default_rng(1).gamma(2.0, size=(3000, 3)), columns=list("abc"))
method = dpmask.RegressionSynthesis(dependents=["a"], independents=["b", "c"], clusters=3)
print(pandas.util.hash_pandas_object(method.fit(people, seed=1).mask(people)).sum())
"""
    found = [
        python(code.format(own=False)),
        python(code.format(own=True), first="import numpy, scipy.linalg", OPENBLAS_CORETYPE="Nehalem"),
    ]
    assert found[0] == found[1]
