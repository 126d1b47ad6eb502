"""K-means over Dask, and the records that change their cluster."""

import json

import numpy as np
import pandas as pd
import pytest
from parts import in_parts

import dpmask
from dpmask.errors import InputError, JobError


def test_k_means_on_the_cluster(client):
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 600)
    frame = pd.DataFrame(rng.normal(size=(600, 2)) + 20 * group[:, None], columns=["a", "b"])
    fitted = dpmask.KMeans(clusters=3, starts=5, standardise=False).fit(in_parts(frame, 3), seed=1)
    means = frame.groupby(group).mean().to_numpy()
    np.testing.assert_allclose(fitted.centers[np.argsort(fitted.centers[:, 0])], means, rtol=1e-9)
    assert fitted.objective == pytest.approx(((frame - means[group]) ** 2).to_numpy().sum())
    labels = fitted.labels(frame)
    assert pd.crosstab(group, labels).gt(0).to_numpy().sum() == 3
    with pytest.raises(InputError, match="KMeans: column 'a' is missing in 1 records"):
        dpmask.KMeans(clusters=2).fit(frame.assign(a=frame["a"].where(frame.index > 0)))


def test_misclassification_by_hand():
    original = pd.DataFrame({"a": [0.0, 1, 2, 10, 11, 12, 13, np.nan]})
    masked = pd.DataFrame({"a": [10.0, 0, 1, 2, 11, 12, 13, 5]})
    found = dpmask.utility.misclassification(original, masked, columns=["a"], clusters=2, standardise=False, starts=5)
    # {0, 1, 2} and {10, ..., 13} before, records 1-3 and the others after: the first and the fourth changed cluster
    assert found.value == pytest.approx(2 / 7)
    assert found.sizes == 0.0
    assert (found.clusters, found.records) == (2, 7)
    assert found.parts["records_cold"] == pytest.approx(2 / 7)
    assert json.loads(json.dumps(found.to_dict()))["value"] == found.value
    assert "28.57% of 7 records changed cluster" in found.explain()
    same = dpmask.utility.misclassification(original, -3 * original, columns=["a"], clusters=2)
    assert (same.value, same.sizes) == (0.0, 0.0)
    holes = pd.DataFrame({"a": [1.0, np.nan, 2, np.nan]}), pd.DataFrame({"a": [np.nan, 1.0, np.nan, 2]})
    with pytest.raises(InputError, match="no record is complete in both tables"):
        dpmask.utility.misclassification(*holes, columns=["a"], clusters=2)
    with pytest.raises(JobError, match="there is no column 'b'"):
        dpmask.utility.misclassification(original, masked, columns=["b"], clusters=2)


@pytest.mark.parametrize("partitions", [1, 7])
def test_misclassification_does_not_depend_on_partitions(frame, client, partitions):
    columns = ["age", "income"]
    masked = dpmask.NoiseAddition(columns=columns, scale=0.8).fit(frame, seed=1).mask(frame)
    alone = dpmask.utility.misclassification(frame, masked, columns=columns, clusters=3, starts=3)
    pieces = [in_parts(one[columns], partitions) for one in (frame, masked)]
    found = dpmask.utility.misclassification(*pieces, columns=columns, clusters=3, starts=3)
    assert found.parts == pytest.approx(alone.parts, abs=1e-12)
    assert 0 < found.value < 0.5
