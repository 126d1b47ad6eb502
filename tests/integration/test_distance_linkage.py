"""Distance-based record linkage: against all pairs, by hand, in any number of partitions, on a lake."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from conftest import people, write_lake
from linkage_reference import linkage, mahalanobis, mahalanobis_with_missing, ridge

import dpmask
from dpmask.errors import InputError, JobError

LINK = dpmask.risk.distance_linkage
SETS = {"job": {"office": ["clerk", "teacher"], "any": ["clerk", "teacher", "smith", "farmer"]}}


def mixed(rows=240, seed=0):
    """Numbers, coarse ones with ties, categories, and what a mask made of them."""
    rng = np.random.default_rng(seed)
    jobs = np.array(["clerk", "teacher", "smith", "farmer"])
    original = pd.DataFrame(
        {
            "income": rng.lognormal(8, 1, rows),
            "age": rng.integers(0, 90, rows),
            "job": jobs[rng.integers(0, 4, rows)],
            "member": rng.random(rows) < 0.5,
            "children": rng.integers(0, 4, rows),
        },
        index=rng.permutation(rows) * 3,
    )
    tens = original["age"] // 20 * 20
    masked = original.assign(
        income=original["income"] * np.exp(0.2 * rng.normal(size=rows)),
        age=[f"[{low}, {low + 20})" for low in tens],
        job=original["job"].map({"clerk": "office", "teacher": "office", "smith": "any", "farmer": "farmer"}),
        member=original["member"] ^ (rng.random(rows) < 0.1),
        children=np.maximum(original["children"] + rng.integers(-1, 2, rows), 0),
    )
    return original, masked.iloc[rng.permutation(rows)]


def noisy(frame, scale, seed=1):
    numbers = frame.astype(float)
    return dpmask.NoiseAddition(columns=list(frame.columns), scale=scale).fit(numbers, seed=seed).mask(numbers)


@pytest.fixture(scope="module")
def census_frame(reference):
    return pd.read_csv(reference / "census.csv")


@pytest.mark.parametrize(
    "columns",
    [
        ["income"],
        ["children"],
        ["job"],
        ["age", "job"],
        ["member", "children", "age"],
        ["income", "age", "job", "member", "children"],
    ],
)
@pytest.mark.parametrize("drop", [0, 25])
def test_every_column_type_against_all_pairs(columns, drop):
    original, masked = mixed()
    masked = masked.iloc[drop:]
    found = LINK(original, masked, columns=columns, sets=SETS if "job" in columns else None)
    expected = linkage(original, masked, columns, SETS)
    assert found.known == pytest.approx(expected, abs=1e-12)
    assert found.euclidean == found.known[-1]
    assert found.rate >= max(found.euclidean, found.mahalanobis, found.joint, *found.known)
    assert found.by_known == pytest.approx(np.mean(expected))
    assert found.attacked == len(original)
    assert found.interval == (found.rate, found.rate)
    assert found.guessing == pytest.approx(1 / len(original))


def test_by_hand():
    """Standardised by their own means and deviations, both columns are -1, 1, -1, 1 and -1, 1, 1, -1 (masked: 0 on the right)."""
    original = pd.DataFrame({"a": [10.0, 12, 10, 12], "b": [1.0, 1, 3, 3]})
    masked = pd.DataFrame({"a": [5.0, 7, 5, 7], "b": [2.0, 2, 2, 2]})
    found = LINK(original, masked, columns=["a", "b"])
    # the constant b tells nothing: each record ties with the other one of its a
    assert found.known == (0.5, 0.5)
    assert found.euclidean == 0.5
    swapped = masked.assign(a=[7.0, 5, 7, 5])
    assert LINK(original, swapped, columns=["a", "b"]).euclidean == 0.0
    assert LINK(original, masked.iloc[:2], columns=["a"]).euclidean == 0.5  # two dropped, two linked for sure


def test_a_table_with_itself(census_frame):
    columns = list(census_frame.columns)
    found = LINK(census_frame, census_frame, columns=columns)
    assert (found.rate, found.by_known, found.mahalanobis) == (1.0, 1.0, 1.0)
    twice = pd.concat([census_frame, census_frame], ignore_index=True)
    found = LINK(twice, twice, columns=columns)
    assert (found.rate, found.by_known, found.mahalanobis) == (0.5, 0.5, 0.5)


def test_an_independent_table_is_linked_as_by_guessing():
    rng = np.random.default_rng(0)
    frames = [pd.DataFrame(rng.normal(size=(1000, 5)), columns=list("abcde")) for _ in range(2)]
    found = LINK(*frames, columns=list("abcde"))
    for rate in (found.rate, found.mahalanobis):
        # 1000 chances of 1 in 1000 are Poisson with mean 1: more than 6 right ones come up 1 time in 12,000
        assert 0 <= rate <= 6 * found.guessing


def test_risk_falls_with_noise(census_frame):
    columns = list(census_frame.columns)
    found = [LINK(census_frame, noisy(census_frame, scale), columns=columns) for scale in (0.05, 0.2, 0.5, 1.0)]
    for field in LINK(census_frame, census_frame, columns=columns[:1]).judged:
        rates = [getattr(one, field) for one in found]
        assert rates == sorted(rates, reverse=True)
        assert rates[0] > 0.7
        assert rates[-1] < (0.15 if field in {"rate", "assignment"} else 0.1)
    known = noisy(census_frame, 0.2)
    assert found[1].known == pytest.approx(linkage(census_frame, known, columns)[:7], abs=1e-12)
    assert found[1].euclidean == pytest.approx(linkage(census_frame, known, columns)[-1], abs=1e-12)


def test_mahalanobis_is_that_of_all_pairs_and_of_a_ridge(census_frame):
    """With a column left as it is, S is singular: a pseudo-inverse leaves out what gives the records away."""
    columns = list(census_frame.columns)
    masked = noisy(census_frame, 1.0)
    found = LINK(census_frame, masked, columns=columns)
    assert found.mahalanobis == pytest.approx(mahalanobis(census_frame, masked, columns, ridge), abs=2 / 1080)
    masked = masked.assign(AFNLWGT=census_frame["AFNLWGT"])
    found = LINK(census_frame, masked, columns=columns)
    assert found.mahalanobis == pytest.approx(mahalanobis(census_frame, masked, columns, ridge), abs=2 / 1080)
    assert found.mahalanobis > 0.85
    assert found.euclidean < 0.15
    assert found.rate >= found.mahalanobis
    assert mahalanobis(census_frame, masked, columns, np.linalg.pinv) < 0.15


def test_mahalanobis_weighs_categories_by_how_often_they_change():
    """A category that is kept, among numbers that are noise: who knows that does not look at the numbers."""
    rng = np.random.default_rng(2)
    original = pd.DataFrame({"a": rng.normal(size=300), "b": [f"b{n}" for n in range(300)]})
    masked = original.assign(a=rng.normal(size=300))
    found = LINK(original, masked, columns=["a", "b"])
    assert (found.mahalanobis, found.joint) == (1.0, 1.0)
    assert found.euclidean < 0.9


def test_partitions_do_not_matter(partitions):
    """With an empty partition among them, masked rows in another order and some dropped; sampled, too."""
    original, masked = mixed()
    masked = masked.iloc[10:]
    columns = ["income", "age", "job", "member", "children"]
    lazy = []
    for frame, cuts in ((original, partitions), (masked, max(partitions - 1, 1))):
        pieces = [frame.iloc[:0], *(frame.iloc[part] for part in np.array_split(np.arange(len(frame)), cuts))]
        lazy.append(dd.concat([dd.from_pandas(piece, npartitions=1, sort=False) for piece in pieces]))
    for options in ({"sample": 60, "seed": 3}, *([{}] if partitions == 3 else [])):
        found = LINK(*lazy, columns=columns, sets=SETS, **options)
        alone = LINK(original, masked, columns=columns, sets=SETS, **options)
        assert found.known == pytest.approx(alone.known, abs=1e-9)
        assert found.mahalanobis == pytest.approx(alone.mahalanobis, abs=1e-9)
        for name in ("rate", "joint", "assignment", "contributions", "worst_sets"):
            assert getattr(found, name) == pytest.approx(getattr(alone, name), abs=1e-9), name
        assert found.intervals["by_known"] == pytest.approx(alone.intervals["by_known"], abs=1e-9)
        assert (found.attacked, found.guessing) == (alone.attacked, pytest.approx(alone.guessing))


@pytest.mark.parametrize("kind", ["embedded", "cluster"])
def test_lakes_pair_by_position(tmp_path, request, kind, limit):
    if kind == "cluster":
        request.getfixturevalue("client")
    columns = ["income", "age", "region", "rate", "children", "member", "money", "name"]
    frame = people(600).to_pandas().astype({"money": float})
    lake = dpmask.read_lake(str(write_lake(tmp_path / "lake", people(600), files=3)), block_rows=110)
    step = dpmask.NoiseAddition(columns=["income", "age", "rate"], scale=0.3).fit(lake, seed=7)
    masked = lake.masked_by(step).to_dask().compute().astype({"money": float})
    alone = LINK(frame, masked, columns=columns)
    together = LINK(lake, lake.masked_by(step), columns=columns)
    assert together.known == pytest.approx(alone.known, abs=1e-9)
    limit(attacked_records=100)  # block by block
    apart = LINK(lake, lake.masked_by(step), columns=columns)
    assert apart.known == pytest.approx(alone.known, abs=1e-9)
    assert apart.mahalanobis == pytest.approx(alone.mahalanobis, abs=1e-9)


def test_a_sample_is_near_the_whole_and_told_so(census_frame):
    columns = list(census_frame.columns)[:6]
    masked = noisy(census_frame, 0.3)
    whole = LINK(census_frame, masked, columns=columns)
    held = 0
    for seed in range(10):
        found = LINK(census_frame, masked, columns=columns, sample=300, seed=seed)
        assert found.attacked == 300
        for field in found.judged:
            low, high = found.intervals[field]
            assert low < getattr(found, field) < high
            held += low <= getattr(whole, field) <= high
    # 95 % of 30, and more: 300 of 1080 vary less than 300 of many
    assert held >= 27
    by_limit = LINK(census_frame, masked, columns=columns, limit=500, seed=4)
    assert by_limit.attacked == len(census_frame)  # the sample above a limit is larger than this table
    assert LINK(census_frame, masked, columns=columns, sample=5000) == whole


def test_missing_values_are_a_value_of_their_own():
    original = pd.DataFrame({"a": [1.0, 2, np.nan, 4], "b": ["x", None, "y", None]})
    kept = original.assign(a=[1.1, 2.1, np.nan, 3.9])
    found = LINK(original, kept, columns=["a", "b"])
    assert found.known == (1.0, 1.0)
    lost = original.assign(a=[np.nan, 2.0, 3.0, 4.0], b=["x", None, None, None])
    # b: x is found, each None is one of three, y is as far from all four. With a, the first x and the last None are told
    # apart from all others; 2 is nearer to 2 than to 3 and 4, and nothing stands for y
    found = LINK(original, lost, columns=["b", "a"])
    assert found.known[0] == pytest.approx((1 + 1 / 3 + 1 / 4 + 1 / 3) / 4)


@pytest.mark.parametrize("kept", [True, False], ids=["missing stays missing", "missing moves"])
def test_mahalanobis_with_missing_values_is_as_the_guide_defines_it(census_frame, kept):
    frame = census_frame.iloc[:300, :5].astype(float)
    masked = noisy(frame, 0.3)
    rng = np.random.default_rng(2)
    for column in frame.columns[[1, 3]]:
        holes = rng.random(300) < 0.2
        frame.loc[holes, column] = np.nan
        masked.loc[holes if kept else rng.random(300) < 0.2, column] = np.nan
    found = dpmask.risk.distance_linkage(frame, masked, columns=list(frame))
    assert found.mahalanobis == pytest.approx(mahalanobis_with_missing(frame, masked, list(frame)), abs=1e-9)


def test_open_ends_are_outside():
    """40 is in [40, 60) and not in [20, 40)."""
    original = pd.DataFrame({"age": [20.0, 39.5, 40.0, 41.0]})
    masked = pd.DataFrame({"age": ["[20, 40)", "[20, 40)", "[40, 60)", "[40, 60)"]})
    assert LINK(original, masked, columns=["age"]).euclidean == 0.5
    closed = pd.DataFrame({"age": ["[20, 40]", "[20, 40]", "(40, 60]", "(40, 60]"]})
    assert LINK(original, closed, columns=["age"]).known == pytest.approx([(0.5 + 0.5 + 0 + 0.5) / 4])


def test_what_it_says():
    original, masked = mixed(60)
    found = LINK(original, masked, columns=["income", "children"], sample=30)
    assert "larger means more risk" in found.explain()
    assert "95 % interval" in found.explain()
    said = found.to_dict()
    assert said["interval"] == list(found.interval) == said["intervals"]["rate"]
    assert set(found.judged) <= set(said)
    assert not found.public
    assert found.seconds > 0


UNICODE = pd.DataFrame({"größe": [1.0, 2, 3]})


@pytest.mark.parametrize(
    ("original", "masked", "options", "error", "text"),
    [
        (UNICODE, UNICODE, {"columns": []}, JobError, "columns must be a list of one or more column names"),
        (UNICODE, UNICODE, {"columns": "größe"}, JobError, "columns must be a list"),
        (UNICODE, UNICODE, {"columns": ["größe", "größe"]}, JobError, "größe twice"),
        (UNICODE, UNICODE, {"columns": ["grösse"]}, JobError, "no column 'grösse' in the table. Did you mean 'größe'"),
        (UNICODE, UNICODE, {"sample": 0}, JobError, "sample must be an integer >= 1; got 0"),
        (UNICODE, UNICODE, {"limit": 0.5}, JobError, "limit must be an integer >= 1; got 0.5"),
        (UNICODE, UNICODE, {"seed": "x"}, JobError, "seed must be an integer; got str"),
        (UNICODE, UNICODE, {"sets": {"a": {}}}, JobError, "sets name column 'a', which is not among columns"),
        (UNICODE, UNICODE.iloc[[0, 0, 1]], {}, JobError, "records pair by index, which must be unique"),
        (UNICODE, UNICODE.assign(größe=[1, np.inf, 3]), {}, InputError, "infinite values in 1 records"),
        (UNICODE.assign(größe=7.0), UNICODE, {}, InputError, "is constant"),
        (UNICODE.iloc[:1], UNICODE, {}, InputError, "has a value in one record only"),
        (UNICODE, UNICODE.astype(str).replace("3.0", "tall"), {}, InputError, "must be intervals such as"),
        (UNICODE.astype(str), UNICODE, {}, JobError, "must be a number, a date, text, or true or false in both"),
        (UNICODE, UNICODE.set_axis([7, 8, 9]), {}, InputError, "no record of the original is in the masked table"),
        (UNICODE, "release", {}, JobError, "must be a lake, a pandas or a Dask DataFrame, .*; got str"),
    ],
)
def test_bad_input(original, masked, options, error, text):
    with pytest.raises(error, match=text) as caught:
        LINK(original, masked, **{"columns": ["größe"], "sample": 2, **options})
    assert "tall" not in str(caught.value)


def test_sets_that_overlap_are_refused():
    original, masked = mixed(30)
    crossed = {"job": {"p": ["clerk", "smith"], "q": ["smith", "farmer"], "r": ["farmer", "clerk"]}}
    with pytest.raises(JobError, match="sets of column 'job' must be nested or disjoint"):
        LINK(original, masked, columns=["job"], sets=crossed)
    with pytest.raises(JobError, match="label 'p' stands for no value"):
        LINK(original, masked, columns=["job"], sets={"job": {"p": []}})


def test_a_masked_table_that_changes_is_told():
    rng = np.random.default_rng()
    original = pd.DataFrame({"a": np.arange(50.0)})
    moving = dd.from_pandas(original, npartitions=2).map_partitions(
        lambda part: part + 1e-3 * rng.random(part.shape), meta=original
    )
    with pytest.raises(InputError, match="the masked table changed while it was read"):
        LINK(original, moving, columns=["a"])
