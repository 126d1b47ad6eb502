"""The nearest centre where squares say nothing: records on several centres at once, huge, tiny and missing values."""

import numpy as np
import pytest

from dpmask.kernels.fuzzy.labels import _labels_by_scaled, _labels_of_extremes, labels


@pytest.mark.parametrize("columns", [1, 3, 5])
def test_records_on_centres_take_the_first_and_others_as_ever(columns):
    rng = np.random.default_rng(columns)
    centers = rng.normal(size=(300, columns))
    centers[100:200] = centers[:100]
    records = np.concatenate(
        [centers[:250], rng.normal(size=(50, columns)), 1e200 * rng.normal(size=(20, columns)), 1e-200 * centers[:20]]
    ).T.copy()
    records[0, 3], records[-1, 60] = np.nan, np.inf
    found = _labels_of_extremes(records, centers)
    np.testing.assert_array_equal(found, _labels_by_scaled(records, centers))
    whole = np.setdiff1d(np.arange(250), [3, 60])
    np.testing.assert_array_equal(found[whole], np.where(whole < 200, whole % 100, whole))
    np.testing.assert_array_equal(labels(records[:, whole], centers), found[whole])
