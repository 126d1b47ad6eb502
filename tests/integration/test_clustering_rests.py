"""Clustering comes to rest: also on skewed columns full of zeros, with many clusters, and at any fuzziness."""

import dataclasses
import doctest
import inspect
import warnings

import numpy as np
import pandas as pd
import pytest

import dpmask
from dpmask.clustering import iteration

SKEWED = [
    "age",
    "wage_per_hour",
    "capital_gains",
    "capital_losses",
    "dividends_from_stocks",
    "num_persons_worked_for_employer",
    "weeks_worked_in_year",
    "instance_weight",
]


@pytest.fixture(scope="module")
def skewed(reference):
    """Columns of which up to 98 % are zeros, with long tails."""
    table = pd.read_parquet(reference / "census_income_kdd.parquet", columns=SKEWED)
    return table.astype(float).sample(14_000, random_state=0).reset_index(drop=True)


@pytest.fixture
def work(monkeypatch):
    """Records times starts that passes have looked at, over all the data or over a sample."""
    seen, sums = [], iteration.center_sums

    def counted(block, centers, **options):
        seen.append(block.shape[1] * len(centers))
        return sums(block, centers, **options)

    monkeypatch.setattr(iteration, "center_sums", counted)
    return seen


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("clusters", "fuzziness"), [(10, 2.0), (30, 2.0), (20, 3.0), (50, 1.1)])
def test_two_grids_never_stall(skewed, work, limit, clusters, fuzziness, seed):
    limit(clustering_sample=2000)
    options = {"clusters": clusters, "fuzziness": fuzziness, "starts": 2, "max_passes": 300}
    fitted, cost = {}, {}
    for two_grid in (False, True):
        work.clear()
        fitted[two_grid] = dpmask.FuzzyCMeans(**options, two_grid=two_grid).fit(skewed, seed=seed)
        cost[two_grid] = sum(work)
    assert cost[True] <= 2 * cost[False]
    assert fitted[True].objective <= 1.02 * fitted[False].objective
    for one in fitted.values():
        assert one.converged
        objectives = np.array([step.objective for step in one.history])
        assert (np.diff(objectives) <= 1e-12 * objectives[1:]).all()
        assert len(one.history) <= one.passes


@pytest.mark.parametrize(("clusters", "fuzziness", "best"), [(20, 2.0, 563.087), (6, 1.0, 4977.038)])
def test_the_best_optimum_is_found_about_always(reference, clusters, fuzziness, best):
    """From greedy starts alone 3 of these 8 seeds find it, in both cases."""
    frame = pd.read_csv(reference / "census.csv").astype(float)
    method = dpmask.FuzzyCMeans(clusters=clusters, fuzziness=fuzziness)
    found = np.array([method.fit(frame, seed=seed).objective for seed in range(8)])
    assert (found <= 1.00001 * best).sum() >= 6


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_fit_of_skewed_columns_is_far_from_the_best(reference, seed):
    """20 starts alone, plain or greedy, end 4 to 7 % above the best optimum known, 200 of them 3 %."""
    frame = pd.read_csv(reference / "tarragona.csv").astype(float)
    fitted = dpmask.FuzzyCMeans(clusters=30, fuzziness=2.0).fit(frame, seed=seed)
    assert fitted.objective <= 1.005 * 185.2128


@pytest.mark.parametrize(
    ("file", "clusters", "fuzziness", "objective"),
    [
        ("census.csv", 5, 20, 7.3226e-10),  # from records: 8.93e-10, where they stay after one pass
        ("census.csv", 10, 10, 1.38721e-5),
        ("iris.csv", 10, 7, 4.73047e-4),
        ("census.csv", 2, 50, 2.48846e-11),
    ],
)
def test_large_fuzziness_starts_off_the_records(reference, file, clusters, fuzziness, objective):
    """The objectives are those of starts at several distances from the records."""
    frame = pd.read_csv(reference / file).select_dtypes("number").astype(float)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fitted = dpmask.FuzzyCMeans(clusters=clusters, fuzziness=fuzziness).fit(frame, seed=1)
    assert fitted.objective == pytest.approx(objective, rel=1e-4)
    texts = [str(one.message) for one in told]
    on_records = [text for text in texts if "centres lie on a record" in text]
    assert fitted.converged == (not on_records)
    # iris is small: at its best optimum, too, records hold centres
    assert bool(fitted.trapped) == bool(on_records) == (file == "iris.csv")


def test_a_center_that_a_record_holds_is_not_settled(reference):
    frame = pd.read_csv(reference / "census.csv").astype(float)
    with pytest.warns(UserWarning, match="5 of 5 centres lie on a record: at fuzziness 20"):
        fitted = dpmask.FuzzyCMeans(clusters=5, fuzziness=20, initial=frame.iloc[[0, 200, 400, 600, 800]]).fit(frame)
    assert not fitted.converged
    np.testing.assert_allclose(fitted.centers[0], frame.iloc[0])


def test_records_that_a_tolerance_has_not_settled_are_counted():
    """A record just off the middle of two centres leaves it, at first by next to nothing in each round."""
    frame = pd.DataFrame({"x": [*np.tile([-1.0, 1.0], 50), 1e-7], "kappa": [*np.zeros(100), 0.9]})
    method = dpmask.FuzzyCMeans(clusters=2, entropy=0.74, starts=2, standardise=False, tolerance="kappa")
    with pytest.warns(UserWarning, match="1 records still moved after the 300 rounds"):
        fitted = method.fit(frame, seed=1)
    assert fitted.unsettled == 1
    assert method.fit(frame.assign(kappa=0.0), seed=1).unsettled == 0


def test_reprs_show_no_value_of_a_record(reference):
    frame = pd.DataFrame({"x": [10007.0, 1, 2, 3, 20011, 20012], "kind": list("aabbcc"), "y": [0.0, 1, 2, 3, 30013, 5]})
    fitted = [
        dpmask.FuzzyCMeans(clusters=2, initial=[[10007.0, 30013], [1, 2]]).fit(frame, columns=["x", "y"]),
        dpmask.KMeans(clusters=2).fit(frame, columns=["x", "kind"]),
        dpmask.BisectingKMeans(clusters=3).fit(frame),
        dpmask.FuzzyCRegression(clusters=1).fit(frame, dependents=["y"], independents=["x"]),
    ]
    for one in fitted:
        assert "clusters=" in repr(one)
        assert "<table>" in one._repr_html_()
        for text in (repr(one), one._repr_html_()):
            assert not any(value in text for value in ("10007", "10,007", "20011", "20012", "30013"))
            assert len(text) < 600


@pytest.mark.parametrize("name", ["FuzzyCMeans", "KMeans", "BisectingKMeans", "FuzzyCRegression"])
def test_every_parameter_is_described_and_the_example_runs(name):
    method = getattr(dpmask, name)
    lines = inspect.getdoc(method).splitlines()
    assert all(field.name in lines for field in dataclasses.fields(method))
    tests = doctest.DocTestFinder(recurse=False).find(method, name)
    assert tests[0].examples
    assert not any(doctest.DocTestRunner().run(test).failed for test in tests)
