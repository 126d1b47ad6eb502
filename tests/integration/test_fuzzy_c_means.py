"""Fuzzy c-means on frames, lakes and a real cluster: the same centres everywhere, and a fixed point of all the data."""

import itertools
import threading

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import write_lake
from servers import kill_a_worker

import dpmask
from dpmask.errors import InputError, JobError
from dpmask.kernels.fuzzy.center_sums import center_sums

COLUMNS = ["net", "tax", "gross"]


def incomes(rows=4000, seed=0):
    """Three groups of people whose net + tax is not quite their gross."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, rows)
    gross = np.array([20.0, 50, 120])[group] * np.exp(0.15 * rng.normal(size=rows))
    tax = gross * np.array([0.1, 0.25, 0.4])[group] * np.exp(0.1 * rng.normal(size=rows))
    return pd.DataFrame(
        {"net": gross - tax + rng.normal(size=rows), "tax": tax, "gross": gross, "w": rng.integers(1, 4, rows)}
    )


@pytest.fixture
def small_sample(limit):
    """Tables above 500 records count as large: passes over all the data, not a sample that is the data."""
    limit(clustering_sample=500)


def fit(table, **options):
    method = dpmask.FuzzyCMeans(**{"clusters": 3, "fuzziness": 1.5, "starts": 5, "shift": 1e-10} | options)
    return method.fit(table, columns=COLUMNS, seed=1)


def in_order(centers):
    return centers[np.argsort(centers[:, 2])]


def partitioned(frame, partitions):
    """Partitions of unequal size, an empty one among them."""
    cuts = [0, 0, *np.sort(np.random.default_rng(partitions).integers(0, len(frame), partitions - 1)), len(frame)]
    pieces = [frame.iloc[a:b] for a, b in itertools.pairwise(cuts)]
    return dd.concat([dd.from_pandas(piece, npartitions=1) for piece in pieces])


def test_centers_do_not_depend_on_partitions(small_sample, partitions):
    frame = incomes()
    one = fit(frame)
    other = fit(partitioned(frame, partitions))
    np.testing.assert_allclose(other.centers, one.centers, rtol=1e-9)
    assert other.objective == pytest.approx(one.objective, rel=1e-9)


def test_small_tables_too(client):
    frame = incomes(1000)
    one = fit(frame)
    for partitions in (3, 7):
        np.testing.assert_allclose(fit(partitioned(frame, partitions)).centers, one.centers, rtol=1e-9)


@pytest.mark.parametrize("options", [{}, {"two_grid": False}, {"two_grid": False, "accelerate": False}])
def test_the_result_is_a_fixed_point_and_a_minimum_of_all_the_data(small_sample, options):
    frame = incomes()
    fitted = fit(frame, shift=1e-8, **options)
    assert fitted.converged
    values = frame[COLUMNS].to_numpy().T
    scaled = np.ascontiguousarray((values - values.mean(1, keepdims=True)) / values.std(1, keepdims=True))
    centers = fitted.preparation.scale.to_units(fitted.centers)
    sums = center_sums(scaled, centers[None], fuzziness=1.5)
    assert np.abs(sums.centers(centers[None])[0] - centers).max() < 1e-8
    assert sums.objective[0] == pytest.approx(fitted.objective, rel=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(50):
        nearby = centers + 1e-3 * rng.normal(size=centers.shape)
        assert center_sums(scaled, nearby[None], fuzziness=1.5).objective[0] > fitted.objective


def test_two_grids_take_fewer_passes_to_the_same_optimum(small_sample):
    frame = incomes(20_000)
    few, many = fit(frame, shift=1e-8), fit(frame, shift=1e-8, two_grid=False, accelerate=False)
    np.testing.assert_allclose(in_order(few.centers), in_order(many.centers), rtol=1e-6)
    assert few.passes < many.passes
    assert few.passes <= 12


@pytest.mark.parametrize("kind", ["embedded", "cluster"])
def test_persisted_and_read_again_give_the_same_bits(small_sample, limit, tmp_path, request, kind):
    if kind == "cluster":
        request.getfixturevalue("client")
    write_lake(tmp_path / "lake", pa.Table.from_pandas(incomes()), files=3, row_group_size=300)
    lake = dpmask.read_lake(str(tmp_path / "lake"), block_rows=400)
    persisted = fit(lake)
    limit(memory_share=0.0)
    again = fit(lake)
    assert np.array_equal(persisted.centers, again.centers)
    assert persisted.history == again.history


@pytest.mark.machine
def test_after_a_killed_worker(small_sample, tmp_path):
    from distributed import Client, LocalCluster

    write_lake(tmp_path / "lake", pa.Table.from_pandas(incomes(5000)), files=4, row_group_size=250)
    lake = dpmask.read_lake(str(tmp_path / "lake"), block_rows=250)
    options = {"shift": 1e-9, "two_grid": False, "accelerate": False}
    undisturbed = fit(lake, **options)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster.scheduler_address),
    ):
        seen = threading.Event()

        def kill(label, done, total):
            if not total and "pass 3," in label and not seen.is_set():
                seen.set()
                kill_a_worker(cluster)

        from dpmask.engine.progress import listening

        with listening(kill):
            disturbed = fit(lake, **options)
    assert seen.is_set()
    assert np.array_equal(disturbed.centers, undisturbed.centers)
    assert disturbed.history == undisturbed.history


def test_weights_count_records_more_than_once(small_sample):
    frame = incomes(1500)
    repeated = frame.loc[frame.index.repeat(frame["w"])].reset_index(drop=True)
    for options in ({"fuzziness": 1.5}, {"fuzziness": None, "entropy": 2.0}):
        method = dpmask.FuzzyCMeans(**{"clusters": 3, "starts": 5, "shift": 1e-10} | options)
        weighted = method.fit(frame, columns=COLUMNS, weight="w", seed=1)
        plain = method.fit(repeated, columns=COLUMNS, seed=1)
        np.testing.assert_allclose(in_order(weighted.centers), in_order(plain.centers), rtol=1e-7)
        assert weighted.objective == pytest.approx(plain.objective, rel=1e-9)


COMBINATIONS = [
    {**model, **tolerance, **constraints}
    for model in ({"fuzziness": 1.5}, {"fuzziness": 1.3}, {"fuzziness": 1}, {"fuzziness": None, "entropy": 3.0})
    for tolerance in ({}, {"tolerance": 0.1}, {"tolerance": "kappa"})
    for constraints in (
        {},
        {"constraints": ["net + tax = gross"]},
        {"constraints": ["net + tax = gross", "tax = 0.3*gross"]},
    )
]


@pytest.mark.parametrize("options", COMBINATIONS, ids=str)
def test_every_combination_descends_and_holds_its_constraints(options):
    frame = incomes(800).assign(kappa=0.1)
    fitted = fit(frame, **{"starts": 2, "two_grid": False, "accelerate": False, "shift": 1e-7, **options})
    net, tax, gross = fitted.centers.T
    if "constraints" in options:
        np.testing.assert_allclose(net + tax, gross, rtol=1e-14)
    if len(options.get("constraints", ())) == 2:
        np.testing.assert_allclose(tax, 0.3 * gross, rtol=1e-14)
    objectives = np.array([step.objective for step in fitted.history])
    assert (np.diff(objectives) <= 1e-9 * np.abs(objectives[:-1])).all()
    if options.get("tolerance") == "kappa":
        same = fit(
            frame, **{"starts": 2, "two_grid": False, "accelerate": False, "shift": 1e-7, **options, "tolerance": 0.1}
        )
        np.testing.assert_allclose(fitted.centers, same.centers, rtol=1e-12)


def test_bounds_are_held_by_every_center():
    fitted = fit(incomes(800), constraints=["net + tax = gross", "tax >= 10", "net <= 60"])
    net, tax, gross = fitted.centers.T
    assert (tax >= 10).all()
    assert (net <= 60).all()
    np.testing.assert_allclose(net + tax, gross, rtol=1e-14)
    assert np.isclose(tax, 10).any()


def test_nulls_by_policy():
    frame = incomes(800)
    frame.loc[::9, "tax"] = np.nan
    with pytest.raises(InputError, match=r"column 'tax' is missing in 89 records. nulls='drop'"):
        fit(frame)
    dropped = fit(frame, nulls="drop")
    partial = fit(frame, nulls="partial")
    np.testing.assert_allclose(in_order(partial.centers), in_order(dropped.centers), rtol=0.05)
    shares = dropped.memberships(frame)
    assert shares.isna().all(axis=1).equals(frame["tax"].isna())
    assert (dropped.labels(frame) == -1).equals(frame["tax"].isna())
    assert np.allclose(partial.memberships(frame).sum(axis=1), 1)
    with_constraints = fit(frame, nulls="partial", constraints=["net + tax = gross"])
    net, tax, gross = with_constraints.centers.T
    np.testing.assert_allclose(net + tax, gross, rtol=1e-14)


def test_memberships_and_labels_come_in_the_kind_of_frame_that_was_given(tmp_path):
    frame = incomes(600).set_index(np.arange(600) + 7)
    fitted = fit(frame)
    shares, labels = fitted.memberships(frame), fitted.labels(frame)
    assert shares.index.equals(frame.index)
    assert np.allclose(shares.sum(axis=1), 1)
    assert (shares.to_numpy().argmax(axis=1) == labels).all()
    lazy = dd.from_pandas(frame, npartitions=3)
    pd.testing.assert_frame_equal(fitted.memberships(lazy).compute(), shares)
    assert isinstance(fitted.labels(lazy), dd.Series)
    write_lake(tmp_path / "lake", pa.Table.from_pandas(frame, preserve_index=False))
    found = fitted.labels(dpmask.read_lake(str(tmp_path / "lake"))).compute()
    assert found.tolist() == labels.tolist()


def test_entropy_below_the_threshold_collapses_and_says_so():
    frame = incomes(800)
    good = fit(frame, fuzziness=None, entropy="auto")
    assert good.model.entropy == pytest.approx(10 * good.threshold)
    covariance = np.corrcoef(frame[COLUMNS].T)
    assert good.threshold == pytest.approx(1 / (2 * np.linalg.eigvalsh(covariance)[-1]))
    assert good.coincident == 0
    with pytest.warns(UserWarning, match="is not above"):
        collapsed = fit(frame, fuzziness=None, entropy=0.9 * good.threshold, shift=1e-8)
    np.testing.assert_allclose(collapsed.centers, np.tile(frame[COLUMNS].mean(), (3, 1)), rtol=1e-3)


def test_fewer_different_records_than_clusters_is_said():
    frame = pd.DataFrame({"net": [1.0, 2, 3] * 10, "tax": [1.0, 5, 2] * 10, "gross": [2.0, 3, 9] * 10})
    with pytest.warns(UserWarning, match="centres lie on another one"):
        fitted = fit(frame, clusters=5)
    assert np.isfinite(fitted.centers).all()


def test_a_pass_limit_is_said():
    with pytest.warns(UserWarning, match="after 2 passes the centres still move"):
        fitted = fit(incomes(500), max_passes=2, starts=1)
    assert not fitted.converged


def test_initial_centers_are_taken(small_sample):
    frame = incomes(500)
    best = fit(frame)
    again = fit(frame, initial=best.centers)
    assert again.passes == 1
    np.testing.assert_allclose(again.centers, best.centers, rtol=1e-8)


def test_progress_shows_pass_objective_and_shift():
    from dpmask.engine.progress import listening

    lines = []
    with listening(lambda label, done, total: lines.append(label) if not total else None):
        fit(incomes(500))
    assert "fuzzy c-means: pass " in lines[-1]
    assert "objective" in lines[-1]
    assert "shift" in lines[-1]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"clusters": 0}, "clusters must be an integer >= 1; got 0"),
        ({"clusters": 2.5}, "clusters must be an integer >= 1; got 2.5"),
        ({"fuzziness": 0.5}, "fuzziness must be a number >= 1"),
        ({"fuzziness": 1e6}, "fuzziness must be a number >= 1 and <= 607"),
        ({"entropy": 1.0}, "either fuzziness or entropy, not both"),
        ({"fuzziness": None, "entropy": 0}, "entropy must be a number > 0"),
        ({"fuzziness": None, "entropy": "much"}, "entropy must be a number > 0"),
        ({"tolerance": -1}, "tolerance must be a number >= 0"),
        ({"tolerance": "kapa"}, "there is no column 'kapa'"),
        ({"nulls": "ignore"}, "nulls must be 'refuse' or 'drop' or 'partial'"),
        ({"initial": [[1, 2, 3]]}, r"initial must be 3 x 3 finite numbers; got \(1, 3\)"),
        ({"constraints": ["net + tax = gros"]}, "gros"),
        ({"constraints": ["net * tax = gross"]}, "net"),
        (
            {"constraints": ["net + tax = gross", "net + tax = gross + 1"]},
            "'net . tax = gross . 1': this equality contradicts",
        ),
        ({"constraints": ["net >= 5", "net <= 4"]}, "net <= 4"),
    ],
)
def test_bad_parameters(options, text):
    with pytest.raises(JobError, match=text):
        fit(incomes(100), **options)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"tax": np.inf}, "column 'tax' holds infinite values in 100 records"),
        ({"tax": 1.0}, "column 'tax' is constant"),
        ({"tax": np.nan}, "column 'tax' has no value"),
    ],
)
def test_bad_data(change, text):
    with pytest.raises(InputError, match=text):
        fit(incomes(100).assign(**change))


def test_more_clusters_than_records_and_bad_weights():
    with pytest.raises(InputError, match="200 clusters need at least as many records; there are 100"):
        fit(incomes(100), clusters=200)
    with pytest.raises(InputError, match="column 'w' must hold a number >= 0 in every record"):
        dpmask.FuzzyCMeans(clusters=2).fit(incomes(100).assign(w=-1.0), columns=COLUMNS, weight="w")
    one = incomes(100).assign(w=lambda frame: (frame.index == 3).astype(float))
    with pytest.raises(InputError, match="column 'net' is constant"):
        dpmask.FuzzyCMeans(clusters=2).fit(one, columns=COLUMNS, weight="w")


def test_without_columns_all_numeric_ones_are_clustered():
    frame = incomes(200).assign(name="x")
    assert dpmask.FuzzyCMeans(clusters=2).fit(frame, weight="w").columns == ("net", "tax", "gross")
    raw = dpmask.FuzzyCMeans(clusters=2, standardise=False).fit(frame, columns=COLUMNS)
    assert raw.objective > 100


def test_cluster_distance_of_a_table_with_itself_is_zero():
    frame = incomes(500)
    found = dpmask.utility.cluster_distance(frame, frame, columns=COLUMNS, clusters=3, fuzziness=1.5, starts=3)
    assert found.value == pytest.approx(0, abs=1e-12)
    assert found.parts["d1_warm_optimal"] == pytest.approx(0, abs=1e-5)
    assert "0 means the same clusters" in found.explain()


def test_each_cluster_distance_has_its_own_assignment(reference):
    """The best one-to-one pairing for d1 is not the best one for its squares or for d2: compared with all of them."""
    census = pd.read_csv(reference / "census.csv").iloc[:300, :6].astype(float)
    rng = np.random.default_rng(0)
    masked = census.apply(rng.permutation)
    options = {"clusters": 6, "fuzziness": 1.5, "starts": 3}
    found = dpmask.utility.cluster_distance(census, masked, columns=list(census), **options)
    before = dpmask.FuzzyCMeans(**options).fit(census, seed=0)
    after = dpmask.FuzzyCMeans(**options, initial=before.centers).fit(masked, seed=0)
    gaps = np.linalg.norm(before.solution.centers[:, None] - after.solution.centers[None], axis=2)
    shares = [one.memberships(table).to_numpy().T for one, table in ((before, census), (after, masked))]
    squares = ((shares[0][:, None] - shares[1][None]) ** 2).sum(axis=2)
    pairings = np.array(list(itertools.permutations(range(6))))
    totals = {name: costs[np.arange(6), pairings].sum(axis=1) for name, costs in (("d1", gaps), ("d2", squares))}
    totals["d1_squared"] = (gaps**2)[np.arange(6), pairings].sum(axis=1)
    assert len({int(np.argmin(total)) for total in totals.values()}) == 3
    for name, total in totals.items():
        assert found.parts[f"{name}_warm_optimal"] == pytest.approx(total.min(), rel=1e-9)


def test_cluster_distance_with_a_tolerance_for_each_table():
    """kappa1 and kappa2 of the paper's table 1."""
    frame = incomes(300)
    options = {"columns": COLUMNS, "clusters": 3, "fuzziness": 1.5, "starts": 2}
    plain, both = (dpmask.utility.cluster_distance(frame, frame, **options, tolerance=k) for k in (0.0, 0.3))
    mixed = dpmask.utility.cluster_distance(frame, frame, **options, tolerance=0.0, masked_tolerance=0.3)
    assert both.value == pytest.approx(0, abs=1e-12)
    assert mixed.value > 0.001
    assert mixed.histories["original"] == plain.histories["original"]
    assert mixed.histories["cold"] == both.histories["cold"]


def test_cluster_distance_in_a_job(place):
    table = pa.Table.from_pandas(incomes(1000)[COLUMNS], preserve_index=False)
    place.lake(table)
    measure = [{"measure": "cluster_distance", "columns": COLUMNS, "clusters": 3, "fuzziness": 1.5, "starts": 3}]
    mask = [{"method": "noise", "columns": COLUMNS, "scale": 0.3}]
    ended = place.run(
        columns={"sensitive": COLUMNS},
        mask=mask,
        measure=measure,
        policy=["cluster_distance.value <= 1"],
        order="input",
    )
    assert ended.code == 0, ended.err
    assert "fuzzy c-means: pass" in ended.err
    _, released = place.released()
    alone = dpmask.utility.cluster_distance(
        table.to_pandas(), released.to_pandas(), columns=COLUMNS, clusters=3, fuzziness=1.5, starts=3
    )
    assert place.measured()["cluster_distance"]["value"] == pytest.approx(alone.value, rel=1e-9)
