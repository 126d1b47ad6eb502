"""Memberships, rotations, swapping and correlated noise: on frames, lakes and a real cluster, and through a job."""

import json
import warnings

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import people, write_lake
from parts import in_parts

import dpmask
from dpmask.engine import exchange
from dpmask.errors import InputError, JobError
from dpmask.job.model import understood
from dpmask.job.prepare import prepare
from dpmask.job.reading import JobText
from dpmask.job.stages import _fit
from dpmask.lake.table import as_table
from dpmask.masking import swapping

NUMBERS = ["age", "children", "income", "rate", "money"]
COMPLETE = ["age", "income"]


@pytest.fixture(scope="module")
def table():
    """With integers and decimals that a double cannot hold."""
    rng = np.random.default_rng(1)
    whole = pa.array(2**62 + rng.permutation(1000))
    exact = pa.array([f"{n:03d}45678901234567890.{n:03d}" for n in rng.integers(100, 999, 1000)])
    return people().append_column("whole", whole).append_column("exact", exact.cast(pa.decimal128(30, 3)))


@pytest.fixture(scope="module")
def frame():
    return people().to_pandas()


def make_small(patch):
    """Hundreds of values count as many: several shards, and windows dealt to several of them."""
    patch.setattr(swapping, "_SHARD", 200)
    patch.setattr(swapping, "_MOST_SHARDS", 100)


@pytest.fixture
def small_shards(monkeypatch):
    make_small(monkeypatch)


METHODS = {
    "s": dpmask.MembershipTransform(columns=["age", "income", "rate"], function="s"),
    "gaussian": dpmask.MembershipTransform(columns=["age", "income", "rate"], function="gaussian"),
    "rotation": dpmask.RandomRotation(columns=COMPLETE),
    "correlated": dpmask.NoiseAddition(columns=["income", "rate"], scale=0.3, correlated=True),
    "small windows": dpmask.RankSwapping(columns=["age", "rate"], share=0.8, window=0.02),
    "large windows": dpmask.RankSwapping(columns=["rate"], share=0.8, window=0.4),
}


@pytest.fixture(scope="module")
def alone(frame):
    """What each method makes of the whole frame in this process; made before a test connects to the cluster."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make_small(patch)
        return {name: method.fit(frame, seed=7).mask(frame) for name, method in METHODS.items()}


@pytest.mark.parametrize("partitions", [1, 3, 7, 20])
@pytest.mark.filterwarnings("ignore:RandomRotation. standard deviations")
def test_results_do_not_depend_on_partitions(frame, alone, small_shards, client, partitions):
    given = in_parts(frame[["age", "income", "rate", "name"]], partitions)
    masked = {name: method.fit(given, seed=7).mask(given) for name, method in METHODS.items()}
    for (name, method), found in zip(METHODS.items(), dask.compute(*masked.values()), strict=True):
        assert found.index.equals(frame.index)
        assert (found.dtypes == masked[name].dtypes).all()
        for column in method.columns:
            if isinstance(method, dpmask.RankSwapping):
                assert found[column].equals(alone[name][column]), (name, column)
            else:
                np.testing.assert_allclose(found[column], alone[name][column], rtol=1e-9, atol=1e-12)


def test_memberships_are_doubles_from_0_to_1(frame):
    fitted = dpmask.MembershipTransform(columns=NUMBERS[:4], function="s").fit(frame, seed=1)
    masked = fitted.mask(frame)
    assert set(masked[NUMBERS[:4]].dtypes.astype(str)) == {"float64"}
    for column in NUMBERS[:4]:
        assert masked[column].isna().equals(frame[column].isna())
        assert (masked[column].min(), masked[column].max()) == (0.0, 1.0)
        assert masked[column].rank().equals(frame[column].rank())
    assert "84" not in repr(fitted)  # the oldest, or any other value
    pd.testing.assert_frame_equal(masked.drop(columns=NUMBERS), frame.drop(columns=NUMBERS), check_like=True)


def test_bounds_that_are_given(frame):
    method = dpmask.MembershipTransform(columns=["age"], function="z", bounds={"age": [0, 50]})
    with pytest.warns(UserWarning, match="'age' has values outside its bounds"):
        masked = method.fit(frame, seed=1).mask(frame)
    assert (masked["age"][frame["age"] >= 50] == 0).all()
    assert masked["age"][frame["age"] == 25].iloc[0] == 0.5
    wide = dpmask.MembershipTransform(columns=["age"], function="gaussian", bounds={"age": [30, 10]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        masked = wide.fit(frame, seed=1).mask(frame)
    assert masked["age"][frame["age"] == 40].iloc[0] == pytest.approx(np.exp(-0.5))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"function": "t"}, "function must be 's' or 'z' or 'triangular' or 'gaussian'; got 't'"),
        ({"bounds": {"agee": [0, 1]}}, "bounds speak of 'agee'. Did you mean 'age'"),
        ({"bounds": {"age": [1, 1]}}, r"bounds of 'age' must be \[low, high\], low < high; got \[1, 1\]"),
        ({"bounds": {"age": [0, 1, 2]}}, r"bounds of 'age' must be \[low, high\]"),
        ({"bounds": {"age": 3}}, r"bounds of 'age' must be \[low, high\]"),
        ({"bounds": {"age": [0, np.inf]}}, r"bounds of 'age' must be \[low, high\]"),
        ({"bounds": [0, 1]}, "bounds must name columns"),
        ({"function": "triangular", "bounds": {"age": [0, 3, 2]}}, "low < peak < high"),
        ({"function": "gaussian", "bounds": {"age": [0, 0]}}, "the latter > 0"),
    ],
)
def test_bad_memberships(options, text):
    with pytest.raises(JobError, match=text):
        dpmask.MembershipTransform(**{"columns": ["age"], "function": "s"} | options)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: dpmask.RandomRotation(columns=["age"]), "columns must be two or more"),
        (lambda: dpmask.RankSwapping(columns=["age"], share=0, window=0.1), "share must be a number > 0 and <= 1"),
        (lambda: dpmask.RankSwapping(columns=["age"], share=1, window=1.5), "window must be a number > 0 and <= 1"),
        (lambda: dpmask.NoiseAddition(columns=["age"], scale=1, correlated="yes"), "correlated must be true or false"),
        (lambda: dpmask.KMeans(clusters=0), "KMeans: clusters must be an integer >= 1; got 0"),
        (lambda: dpmask.KMeans(clusters=2, nulls="keep"), "KMeans: nulls must be"),
    ],
)
def test_bad_parameters(make, text):
    with pytest.raises(JobError, match=text):
        make()


WHOLE = [
    dpmask.MembershipTransform(columns=["income", "größe"], function="s"),
    dpmask.RandomRotation(columns=["income", "größe"]),
    dpmask.RankSwapping(columns=["income", "größe"], share=0.5, window=0.5),
    dpmask.NoiseAddition(columns=["income", "größe"], scale=0.5, correlated=True),
]


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda f: f.assign(income=np.where(f.index == 3, np.inf, 1.0)), InputError, "infinite values in 1 records"),
        (lambda f: f.assign(income=1.0), InputError, "is constant"),
        (lambda f: f.assign(income=np.nan), InputError, "has no value in any record"),
        (lambda f: f.iloc[:1], InputError, "has a value in one record only"),
        (lambda f: f.iloc[:0], InputError, "has no value in any record"),
        (lambda f: f.assign(income="a"), JobError, "must be numeric; it is"),
        (lambda f: f.drop(columns="income"), JobError, "there is no column 'income'"),
        (lambda f: pd.concat([f, f[["income"]]], axis=1), InputError, "more than one column 'income'"),
    ],
)
@pytest.mark.parametrize("method", WHOLE, ids=lambda method: type(method).__name__)
def test_bad_frames(frame, method, change, error, text):
    given = frame[["income", "age"]].rename(columns={"age": "größe"})
    with pytest.raises(error, match=text):
        method.fit(change(given), seed=1)
    with pytest.raises(JobError, match=r"give either key= .a secret. or seed="):
        method.fit(given)


def test_a_rotation_refuses_missing_values(frame):
    with pytest.raises(InputError, match=r"column 'rate' is missing in \d+ records, which cannot be rotated"):
        dpmask.RandomRotation(columns=["age", "rate"]).fit(frame, seed=1)
    complete = frame[["age"]].assign(other=np.sin(frame["age"]) + frame["age"])
    fitted = dpmask.RandomRotation(columns=["age", "other"]).fit(complete, seed=1)
    with pytest.raises(InputError, match="missing or infinite values, which cannot be rotated"):
        fitted.mask(complete.assign(age=complete["age"].where(complete["age"] > 20)))


def test_a_rotation_is_of_the_table_and_the_key(frame):
    method = dpmask.RandomRotation(columns=COMPLETE)
    with pytest.warns(UserWarning, match="differ by more than a factor of 10"):
        fitted = method.fit(frame, seed=1)
    np.testing.assert_allclose(fitted.matrix @ fitted.matrix.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(fitted.mask(frame)[COMPLETE], frame[COMPLETE] @ fitted.matrix, rtol=1e-12)
    assert str(fitted.matrix[0, 0])[:6] not in repr(fitted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        others = [method.fit(frame, seed=2), method.fit(frame.iloc[1:], seed=1)]
    assert all(np.abs(one.matrix - fitted.matrix).max() > 1e-3 for one in others)


def swap(table, columns, **options):
    method = dpmask.RankSwapping(columns=columns, **{"share": 0.8, "window": 0.1} | options)
    return as_table(table, "test").masked_by(method.fit(table, seed=3))


@pytest.mark.parametrize("window", [0.02, 0.3, 1.0])
def test_swapping_keeps_every_column_to_the_last_digit(tmp_path, table, small_shards, window):
    write_lake(tmp_path / "lake", table, files=3)
    lake = dpmask.read_lake(str(tmp_path / "lake"), block_rows=150)
    columns = [*NUMBERS, "whole", "exact"]
    masked = swap(lake, columns, window=window)
    rows = pa.concat_tables(masked.map(columns, lambda rows, span: rows, "read"))
    for name in columns:
        before, after = table[name].to_pylist(), rows[name].to_pylist()
        assert rows.schema.field(name).type == table.schema.field(name).type
        assert [value is None for value in after] == [value is None for value in before], name
        kept = [(one, two) for one, two in zip(before, after, strict=True) if one is not None]
        assert sorted(one for one, _ in kept) == sorted(two for _, two in kept), name
        assert after != before
    moved = np.mean(
        [one != two for one, two in zip(table["whole"].to_pylist(), rows["whole"].to_pylist(), strict=True)]
    )
    assert 0.7 < moved <= 0.85


@pytest.mark.parametrize("window", [0.02, 0.1, 0.4])
def test_no_more_values_than_the_window_lie_between_the_swapped(frame, small_shards, window):
    """Also where many are equal: between a value and what came in its place."""
    for name in ("age", "income", "children"):
        masked = dpmask.RankSwapping(columns=[name], share=1.0, window=window).fit(frame, seed=1).mask(frame)
        before, after = frame[name].dropna().to_numpy(float), masked[name].dropna().to_numpy(float)
        ordered = np.sort(before)
        low, high = np.minimum(before, after), np.maximum(before, after)
        between = np.searchsorted(ordered, high, "left") - np.searchsorted(ordered, low, "right")
        assert between.max() < window * len(before)


def test_swapping_in_files_is_the_same(frame, small_shards, monkeypatch):
    one = swap(frame, NUMBERS[:4]).to_dask().compute()
    monkeypatch.setattr(exchange, "fits_in_memory", lambda size: False)
    pd.testing.assert_frame_equal(swap(frame, NUMBERS[:4]).to_dask().compute(), one)


def test_swapping_says_what_it_cannot_do(frame):
    with pytest.raises(InputError, match=r"a window of 0.001 of the 1,000 values of 'age' holds no two of them"):
        dpmask.RankSwapping(columns=["age"], share=1, window=0.001).fit(frame, seed=1)
    with pytest.warns(UserWarning, match="many find no partner"):
        dpmask.RankSwapping(columns=["age"], share=0.1, window=0.01).fit(frame, seed=1)


def test_correlated_noise_keeps_correlations():
    rng = np.random.default_rng(0)
    net = rng.lognormal(9, 1, 20_000)
    tax = 0.3 * net + rng.lognormal(7, 1, 20_000)
    given = pd.DataFrame({"net": net, "tax": tax, "gross": net + tax})
    found = {}
    for correlated in (False, True):
        method = dpmask.NoiseAddition(columns=list(given), scale=0.5, correlated=correlated)
        fitted = method.fit(given, seed=1)
        found[correlated] = fitted.mask(given)
        np.testing.assert_allclose(found[correlated].var() / given.var(), 1.25, rtol=0.03)
        assert "larger by the factor 1.25" in fitted.statement()
    before = given.corr().to_numpy()
    np.testing.assert_allclose(found[True].corr(), before, atol=0.01)
    assert np.abs(found[False].corr().to_numpy() - before).max() > 0.1
    np.testing.assert_allclose(found[True].eval("net + tax"), found[True]["gross"], rtol=1e-6)
    assert "which are kept" in fitted.statement()
    holes = given.assign(tax=given["tax"].where(given.index == 0))
    with pytest.raises(InputError, match="column 'tax' has a value in one record only"):
        method.fit(holes, seed=1)
    apart = given.assign(tax=given["tax"].where(given.index % 2 == 0), net=given["net"].where(given.index % 2 == 1))
    with pytest.raises(InputError, match="needs at least 2 complete records"):
        method.fit(apart, seed=1)


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


HYBRID = [
    {"method": "membership_transform", "columns": COMPLETE, "function": "z", "bounds": {"age": [0, 123]}},
    {"method": "rotation", "columns": COMPLETE},
]


def test_a_job_with_the_hybrid(place):
    place.lake()
    ended = place.run(
        mask=HYBRID,
        measure=[
            {"measure": "misclassification", "columns": COMPLETE, "clusters": 3, "standardise": False},
            {"measure": "known_records", "columns": COMPLETE, "known": 4},
        ],
        order="input",
    )
    assert ended.code == 0, ended.err
    manifest, released = place.released()
    kinds = {column["name"]: column["type"] for column in manifest["schema"]}
    assert (kinds["age"], kinds["income"], kinds["children"]) == ("double", "double", "int8")
    assert str(released.schema.field("age").type) == "double"
    assert place.dpmask("verify", "release").code == 0
    told = json.dumps(manifest) + (place.folder / "release" / manifest["documents"][0]["path"]).read_text()
    assert "123" not in json.dumps(manifest["steps"])
    assert "bounds" not in manifest["steps"][0]["parameters"]
    for extreme in (released["income"], people()["income"]):
        assert str(max(extreme.to_pylist())) not in told
    # the rotation was of memberships: lengths are those of memberships, and squares of these are at most 1 each
    lengths = np.hypot(released["age"].to_numpy(), released["income"].to_numpy())
    assert lengths.max() <= np.sqrt(2)
    report = next((place.folder / "private").rglob("report.html")).read_text()
    assert "undo the rotation" in report
    assert "known_records" in report


def test_a_rotation_of_memberships_is_of_the_table(place, monkeypatch):
    """With one key, another table of as many records has another matrix, though the rotation sees no original."""
    monkeypatch.chdir(place.folder)
    matrices = []
    for seed in (0, 1, 0):
        place.lake(people(seed=seed))
        prepared = prepare(understood(JobText(place.job(mask=HYBRID))), overwrite=True)
        _, (_, rotation) = _fit(prepared)
        matrices.append(rotation.matrix)
    assert np.array_equal(matrices[0], matrices[2])
    assert np.abs(matrices[0] - matrices[1]).max() > 1e-3


def test_a_job_that_does_not_measure_the_attack_is_warned(place):
    place.lake()
    ended = place.run(mask=HYBRID[:1], order="input")
    assert "may undo membership_transform, and the job does not measure it. Add measure: known_records" in ended.out
    measured = [{"measure": "known_records", "columns": COMPLETE, "known": 4}]
    ended = place.run("--json", "--overwrite", mask=HYBRID[:1], measure=measured, order="input")
    assert not any("may undo" in warning for warning in ended.json["warnings"])
    assert ended.json["measures"][0]["values"]["parts"]["membership: rate"] == 1.0


def test_steps_are_checked_against_the_types_before_them(place):
    """Columns that a later step takes are those the earlier ones leave: footers of the source no longer count."""
    table = people()
    place.lake(table.set_column(1, "age", pa.array(np.full(1000, 7, np.int32))))
    noisy = {"method": "noise", "columns": ["age"], "scale": 0.1}
    ended = place.dpmask("plan", place.job(mask=[HYBRID[1] | {"columns": ["age", "income"]}]))
    assert ended.code == 4
    assert "column 'age' is constant" in ended.err
    place.lake(table)
    ended = place.dpmask("plan", place.job(mask=[*HYBRID, noisy]))
    assert ended.code == 0, ended.err
    ended = place.dpmask("plan", place.job(mask=[*HYBRID, noisy | {"columns": ["name"]}]))
    assert ended.code == 2
    assert "column 'name' must be numeric" in ended.err


def test_a_job_with_noise_then_swapping(place):
    place.lake()
    steps = [
        {"method": "noise", "columns": NUMBERS, "scale": 0.2},
        {"method": "swapping", "columns": NUMBERS, "share": 0.5, "window": 0.1},
    ]
    assert place.run(mask=steps[:1], target="noisy", private="p1", order="input").code == 0
    ended = place.run(mask=steps, order="input")
    assert ended.code == 0, ended.err
    assert place.dpmask("verify", "release").code == 0
    _, released = place.released()
    for name in NUMBERS:
        assert released[name].null_count == people()[name].null_count
    manifest, _ = place.released()
    assert "changed places" in json.dumps(manifest["steps"])
    first = place.bytes()
    assert place.run(mask=steps, order="input", target="again", private="p2").code == 0
    data = {path: content for path, content in first.items() if path.startswith("data")}
    assert data == {path: content for path, content in place.bytes("again").items() if path.startswith("data")}


def test_a_lake_in_a_dask_frame_out_with_new_types(tmp_path, frame):
    write_lake(tmp_path / "lake", people(), files=2)
    lake = dpmask.read_lake(str(tmp_path / "lake"), block_rows=300)
    transform = dpmask.MembershipTransform(columns=["age", "children", "money"], function="s")
    masked = transform.fit(lake, seed=1).mask(lake)
    assert isinstance(masked, dd.DataFrame)
    found = masked.compute()
    assert (found.dtypes == masked.dtypes).all()
    assert set(found[["age", "children", "money"]].dtypes.astype(str)) == {"float64"}
    assert found["money"].isna().sum() == people()["money"].null_count
    alone = dpmask.MembershipTransform(columns=["age", "children"], function="s").fit(frame, seed=1).mask(frame)
    np.testing.assert_allclose(found["children"], alone["children"], rtol=1e-12)
