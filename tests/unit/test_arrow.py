"""Arrow arrays from buffers are those that Arrow makes itself, and pandas is not imported for them."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dpmask.lake.arrow import array_of, filled, numbers_of, texts_of

FLAGS = np.array([True, False, False] * 7)
WITHOUT_PANDAS = """
import sys, numpy as np
from dpmask.lake.arrow import array_of, filled, numbers_of, texts_of
some = array_of(np.arange(3), np.array([True, False, False]))
numbers_of(filled(some, 7)), texts_of(["a", None]).take(array_of(np.array([0])))
sys.exit("pandas" in sys.modules)
"""


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int32, np.int64, np.uint64, np.float32, np.float64, np.bool_])
@pytest.mark.parametrize("missing", [None, FLAGS, FLAGS[:0]])
def test_an_array_is_arrows(kind, missing):
    values = np.arange(21 if missing is None else len(missing)).astype(kind)
    assert array_of(values, missing).equals(pa.array(values, mask=missing))
    assert array_of(values[::2]).equals(pa.array(values[::2]))  # which lies in pieces


@pytest.mark.parametrize("texts", [[], ["a"], ["a", None, "", "žluťoučký", "\U0001f600"] * 5])
def test_texts_are_arrows(texts):
    assert texts_of(texts).equals(pa.array(texts, pa.string()))


def test_what_is_missing_is_filled_and_the_rest_not_copied():
    some = pa.array([1, None, 3], pa.int16())
    assert filled(some, 7).equals(pc.fill_null(some, 7))
    assert filled(some.slice(2), 7).equals(some.slice(2))
    assert np.isnan(filled(pa.array([None, 1.0]), np.nan)[0].as_py())


def test_numbers_of_a_slice():
    assert numbers_of(pa.array([1, 2, 3], pa.uint8()).slice(1)).tolist() == [2, 3]


def test_pandas_is_not_imported():
    assert subprocess.run([sys.executable, "-c", WITHOUT_PANDAS], check=False).returncode == 0
