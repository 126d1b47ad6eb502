"""k-means and bisecting k-means of numbers and categories, also where the table is larger than its sample."""

import numpy as np
import pandas as pd
import pytest
from parts import in_parts

import dpmask
from dpmask.clustering import partition

COLUMNS = ["x", "y", "kind"]


@pytest.fixture(scope="module")
def frame():
    """Four clouds, told apart by numbers and a category, and some records without a value."""
    rng = np.random.default_rng(3)
    cloud = rng.integers(0, 4, 6000)
    x = rng.normal(np.array([0, 0, 9, 9])[cloud], 1.0)
    x[rng.random(6000) < 0.02] = np.nan
    kind = np.where(rng.random(6000) < 0.9, np.array(list("abab"))[cloud], "c")
    return pd.DataFrame({"x": x, "y": rng.normal(np.array([0, 3, 0, 9])[cloud], 1.0), "kind": kind})


def features(fitted, frame):
    import pyarrow as pa

    return fitted.features.values(pa.Table.from_pandas(frame[COLUMNS]))


@pytest.mark.parametrize(
    "method", [dpmask.BisectingKMeans(clusters=4, starts=15), dpmask.KMeans(clusters=4, starts=15)]
)
def test_passes_over_all_data_go_on_from_a_sample(frame, method, client, limit):
    whole = method.fit(frame, columns=COLUMNS, seed=2)
    limit(clustering_sample=400)
    alone = method.fit(frame, columns=COLUMNS, seed=2)
    assert alone.objective == pytest.approx(whole.objective, rel=0.01)
    labels = alone.labels(frame)
    for partitions in (3, 7):
        parts = in_parts(frame, partitions)
        found = method.fit(parts, columns=COLUMNS, seed=2)
        np.testing.assert_allclose(found.centers, alone.centers, rtol=1e-9, atol=1e-9)
        assert found.labels(parts).compute().equals(labels)


def test_k_means_beyond_its_sample_stands_still(frame, limit):
    """Every centre is the mean of all records that are nearest to it: a fixed point of Lloyd's iteration."""
    limit(clustering_sample=400)
    fitted = dpmask.KMeans(clusters=4).fit(frame, columns=COLUMNS, seed=1)
    values = features(fitted, frame)
    nearest = ((values.T[:, None] - fitted.centers[None]) ** 2).sum(axis=2)
    labels = nearest.argmin(axis=1)
    assert np.array_equal(labels, fitted.labels(frame))
    means = np.array([values[:, labels == one].mean(axis=1) for one in range(4)])
    np.testing.assert_allclose(means, fitted.centers, atol=1e-5)
    assert fitted.objective == pytest.approx(nearest.min(axis=1).sum(), rel=1e-6)


def test_each_cut_of_bisecting_stands_still(frame, limit):
    """The two centres of a cut are the means of the parts it makes of one cluster, over all records."""
    limit(clustering_sample=400)
    fitted = dpmask.BisectingKMeans(clusters=4).fit(frame, columns=COLUMNS, seed=1)
    values = features(fitted, frame)
    for number, cut in enumerate(fitted.cuts, start=1):
        before = partition.cut_labels(values, fitted.cuts[: number - 1])
        after = partition.cut_labels(values, fitted.cuts[:number])
        members = before == cut.cluster
        stays, leaves = (values[:, members & (after == one)].mean(axis=1) for one in (cut.cluster, number))
        np.testing.assert_allclose([stays, leaves], cut.centers, atol=1e-5)
    spread = ((values - fitted.centers[fitted.labels(frame)].T) ** 2).sum()
    assert fitted.objective == pytest.approx(spread, rel=1e-9)
