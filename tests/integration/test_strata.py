"""Zeros, missing values, strata and edit rules: in every numeric method, for any partitioning, on real and made data."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import write_lake

import dpmask
from dpmask.errors import InputError, JobError
from dpmask.testing.tables import in_partitions

AMOUNTS = ["wage", "rent"]
BANDS = [15, 30, 65]
BY = ["sex", {"age": BANDS}]
pytestmark = pytest.mark.filterwarnings("ignore")


def taxpayers(rows=3000, seed=1):
    """People of whom children earn nothing and single ones have no spouse's wage; some values are missing."""
    rng = np.random.default_rng(seed)
    people = pd.DataFrame(
        {
            "wage": rng.gamma(1, 1000, rows).round(),
            "spouse": rng.gamma(2, 500, rows).round(),
            "rent": rng.gamma(1, 300, rows).round(1),
            "sex": rng.choice(["man", "woman"], rows),
            "status": rng.choice(["single", "married"], rows),
            "age": rng.integers(0, 90, rows),
        }
    )
    people.loc[(people["age"] < 15) | (rng.random(rows) < 0.2), "wage"] = 0
    people.loc[(people["status"] == "single"), "spouse"] = 0
    people.loc[rng.random(rows) < 0.3, "rent"] = 0
    people.loc[rng.random(rows) < 0.03, "rent"] = np.nan
    people["income"] = people["wage"] + people["spouse"]
    return people.astype({"wage": "int64", "spouse": "int64", "income": "int64"})


def stratum(people):
    return [people["sex"], np.searchsorted(BANDS, people["age"], side="right")]


METHODS = {
    "microaggregation": dpmask.Microaggregation(columns=AMOUNTS, k=5, by=BY, zeros="keep", cell_size=200),
    "fuzzy": dpmask.FuzzyMicroaggregation(
        columns=AMOUNTS, k=10, minimum_size=5, by=BY, zeros="keep", cell_size=200, constraints=["rent >= 0"]
    ),
    "noise": dpmask.NoiseAddition(columns=AMOUNTS, scale=0.2, by=BY, zeros="keep", bounds={"rent": [0, None]}),
    "swapping": dpmask.RankSwapping(columns=AMOUNTS, window=0.1, by=BY, zeros="keep"),
}


@pytest.fixture(scope="module")
def people():
    return taxpayers()


@pytest.mark.parametrize("name", METHODS)
def test_the_same_however_the_table_is_cut_and_on_a_cluster(name, people, client, limit):
    method = METHODS[name]
    alone = method.fit(people, seed=1).mask(people)[AMOUNTS]
    for partitions in (2, 7):
        cut = in_partitions(people, partitions)
        masked = method.fit(cut, seed=1).mask(cut).compute()[AMOUNTS]
        pd.testing.assert_frame_equal(masked, alone, check_dtype=False, rtol=1e-9)
    assert not alone.equals(people[AMOUNTS])
    limit(cells_per_shard=1, swap_shard_values=100)  # parts of several shards
    small = method.fit(people, seed=1).mask(people)[AMOUNTS]
    cut = in_partitions(people, 4)
    pd.testing.assert_frame_equal(
        method.fit(cut, seed=1).mask(cut).compute()[AMOUNTS], small, check_dtype=False, rtol=1e-9
    )


@pytest.mark.parametrize("name", METHODS)
def test_zeros_and_missing_values_stay_where_they_are(name, people):
    masked = METHODS[name].fit(people, seed=1).mask(people)
    found = dpmask.utility.consistency(people, masked, columns=AMOUNTS, rules=["if age < 15 then wage = 0"])
    assert found.zeros_lost == found.missing_lost == found.rules_broken == 0
    if "micro" in name or name == "fuzzy":
        report = METHODS[name].fit(people, seed=1).figures.groups[0]
        assert (found.zeros_new, found.missing_new) == (report.values_to_zero, report.values_to_missing)
    else:
        assert found.missing_new == 0
        assert found.zeros_new <= 3, "a small wage may be rounded to 0"


def test_at_least_k_records_of_a_stratum_share_a_row(people):
    fitted = METHODS["microaggregation"].fit(people, seed=1)
    masked = fitted.mask(people)
    report = fitted.figures.groups[0]
    assert masked.groupby([*stratum(people), masked["wage"], masked["rent"]]).size().min() >= 5
    over_strata = masked.groupby(AMOUNTS, dropna=False).size().min()
    assert over_strata == fitted.figures.smallest >= 5, "those who lack a rent are too few in some strata"
    assert 0 < report.records_across <= masked["rent"].isna().sum()
    assert (report.strata, report.strata_joined) == (8, 0)
    counts = (
        people[AMOUNTS]
        .map(lambda x: 2 if np.isnan(x) else int(x == 0))
        .groupby([*stratum(people), *(people[c].map(lambda x: 2 if np.isnan(x) else int(x == 0)) for c in AMOUNTS)])
    )
    in_strata = counts.size()
    assert report.patterns == len(in_strata)
    assert (report.patterns_merged, report.records_merged) == ((in_strata < 5).sum(), in_strata[in_strata < 5].sum())
    assert report.records_merged > 0


def test_microaggregation_is_that_of_each_part_by_itself(people):
    """Plain MDAV of every stratum's records with one pattern gives the same rows, in the table's own units."""
    people = people[people["rent"] > 0].reset_index(drop=True)
    people.loc[::2, "wage"] = 0
    people.loc[1::2, "wage"] += 1
    masked = dpmask.Microaggregation(columns=AMOUNTS, k=3, by=["sex"], zeros="keep").fit(people, seed=1).mask(people)
    from dpmask.kernels.microaggregation import mdav

    units = (people[AMOUNTS] - people[AMOUNTS].mean()) / people[AMOUNTS].std(ddof=0)
    for _, part in people.groupby(["sex", people["wage"] == 0]):
        groups = mdav(np.ascontiguousarray(units.loc[part.index].to_numpy().T), 3)
        means = part.groupby(groups)[AMOUNTS].transform("mean")
        np.testing.assert_allclose(masked.loc[part.index, "rent"], means["rent"], rtol=1e-9)
        np.testing.assert_array_equal(masked.loc[part.index, "wage"], np.rint(means["wage"]))


def test_sums_and_conditional_rules_hold_in_microaggregation(people):
    """Rounding means of integers by themselves breaks sums; single people had a spouse's wage."""
    columns, single = ["wage", "spouse", "income"], "if status = single then spouse = 0"
    rules = ["wage + spouse = income", single, "wage >= 0"]
    plain = dpmask.Microaggregation(columns=columns, k=5).fit(people, seed=1).mask(people)
    before = dpmask.utility.consistency(people, plain, columns=columns, rules=rules)
    assert before.rules[0].broken_after > 0
    for method in (
        dpmask.Microaggregation(columns=columns, k=5, constraints=rules),
        dpmask.FuzzyMicroaggregation(columns=columns, k=10, constraints=rules),
        dpmask.Microaggregation(columns=columns, k=5, constraints=rules, zeros="keep", by=["sex"]),
    ):
        found = dpmask.utility.consistency(
            people, method.fit(people, seed=1).mask(people), columns=columns, rules=rules
        )
        assert [one.broken_after for one in found.rules] == [0, 0, 0]
        assert found.rules[1].records == (people["status"] == "single").sum()


def test_a_condition_on_a_masked_column_is_refused():
    with pytest.raises(JobError, match="its condition is on 'wage', which this step masks"):
        dpmask.Microaggregation(columns=["wage", "rent"], k=5, constraints=["if wage = 0 then rent = 0"])
    with pytest.raises(JobError, match="by: column 'wage' is masked by this step"):
        dpmask.NoiseAddition(columns=["wage"], scale=0.1, by=["wage"])
    with pytest.raises(JobError, match="zeros must be 'keep' or 'mask' or 'auto'"):
        dpmask.RankSwapping(columns=["wage"], window=0.1, zeros="all")


def test_another_table_with_a_new_stratum_or_pattern_is_refused(people):
    fitted = dpmask.Microaggregation(columns=AMOUNTS, k=5, by=["sex"]).fit(people, seed=1)
    with pytest.raises(InputError, match="Fit to this table"):
        fitted.mask(people.assign(sex="neither"))


def test_small_strata_are_joined_to_the_nearest_band(people):
    people = people.assign(age=np.where(np.arange(len(people)) < 8, 80, people["age"] % 60))
    fitted = dpmask.Microaggregation(columns=["wage"], k=5, by=[{"age": [15, 30, 65]}]).fit(people, seed=1)
    report = fitted.figures.groups[0]
    assert (report.strata, report.strata_joined, report.records_joined) == (4, 1, 8)
    noise = dpmask.NoiseAddition(columns=["wage"], scale=0.1, by=[{"age": [15, 30, 65]}], zeros="keep")
    assert any("joined to the nearest" in one for one in noise.fit(people, seed=1).warnings())


def test_noise_is_a_share_of_its_stratums_deviation(people):
    """Three times the noise where values spread three times as much; none on zeros."""
    people = people[people["wage"] > 0].assign(
        wage=lambda t: np.where(t["sex"] == "man", 3.0, 1.0) * t["rent"].fillna(9)
    )
    people = people[people["wage"] > 0]
    masked = (
        dpmask.NoiseAddition(columns=["wage"], scale=0.5, by=["sex"], zeros="keep").fit(people, seed=1).mask(people)
    )
    for _, part in people.groupby("sex"):
        noise = masked.loc[part.index, "wage"] - part["wage"]
        assert noise.std() / part["wage"].std() == pytest.approx(0.5, rel=0.1)


def test_reflected_noise_stays_inside_and_its_bias_is_as_stated(people):
    """Nothing piles up at the bound: clipping would leave a sixth of the values on it."""
    column, method = people[["wage"]].astype(float), {"columns": ["wage"], "scale": 0.3, "zeros": "mask"}
    fitted = dpmask.NoiseAddition(**method, bounds={"wage": [0, None]}).fit(column, seed=1)
    masked = fitted.mask(column)["wage"]
    assert masked.min() >= 0
    assert (masked == 0).mean() < 0.001
    free = dpmask.NoiseAddition(**method).fit(column, seed=1).mask(column)["wage"]
    assert (free < 0).mean() > 0.1
    moved = (masked - column["wage"]).mean() / column["wage"].std(ddof=0)
    assert moved == pytest.approx(fitted.bias["wage"], abs=4 * 0.3 / np.sqrt(len(column)))
    assert fitted.bias["wage"] > 0.02
    assert f"{fitted.bias['wage']:+.2g} standard deviations" in fitted.statement()


@pytest.mark.parametrize(
    ("bounds", "error", "message"),
    [
        ({"rent": [0, None]}, JobError, "bounds name 'rent'"),
        ({"wage": [0]}, JobError, "must be .smallest, largest., null for none"),
        ({"wage": [500, None]}, InputError, "values outside its bounds"),
        ({"wage": [0, 1e9]}, None, ""),
    ],
)
def test_bounds_that_do_not_fit(people, bounds, error, message):
    if error is None:
        dpmask.NoiseAddition(columns=["wage"], scale=0.1, bounds=bounds).fit(people, seed=1)
        return
    with pytest.raises(error, match=message):
        dpmask.NoiseAddition(columns=["wage"], scale=0.1, bounds=bounds).fit(people, seed=1)


def test_values_are_swapped_within_their_stratum_only(people):
    masked = dpmask.RankSwapping(columns=["wage"], window=0.1, by=BY, zeros="keep").fit(people, seed=1).mask(people)
    assert (masked["wage"] != people["wage"]).mean() > 0.3
    for _, part in people.groupby(stratum(people)):
        assert sorted(part["wage"]) == sorted(masked.loc[part.index, "wage"])


def test_declared_codes_are_missing(tmp_path):
    table = pa.table(
        {
            "job": pa.array(["clerk", "?", "NA", "smith"] * 10),
            "class": pa.array(["a", "?", "b", "a"] * 10).dictionary_encode(),
            "pay": pa.array([100, 9999, 120, 130] * 10, pa.int32()),
        }
    )
    write_lake(tmp_path / "lake", table, files=2)
    source = str(tmp_path / "lake")
    lake = dpmask.read_lake(source, missing={"job": ["?", "NA"], "class": ["?"], "pay": [9999]}, block_rows=7)
    read = lake.to_dask().compute()
    assert read.isna().sum().tolist() == [20, 10, 10]
    masked = dpmask.Microaggregation(columns=["pay"], k=5).fit(lake, seed=1).mask(lake).compute()
    assert masked["pay"].isna().sum() == 10
    assert masked["pay"].max() == 130
    with pytest.raises(JobError, match=r"missing: codes of 'pay' must be of its type, int32; got \['NA'\]"):
        dpmask.read_lake(source, missing={"pay": ["NA"]})
    with pytest.raises(JobError, match="no column 'pai'"):
        dpmask.read_lake(source, missing={"pai": ["NA"]})


def test_a_job_reports_zeros_missing_values_and_rules(place, people):
    """Every job does, whether it asks or not, and a policy may name it."""
    table = pa.Table.from_pandas(people.assign(status=people["status"].replace("married", "?")))
    write_lake(place.folder / "lake", table)
    job = {
        "columns": {"quasi": ["age", "sex", "status"], "sensitive": ["wage", "spouse", "rent", "income"]},
        "missing": {"status": ["?"]},
        "mask": [
            {
                "method": "microaggregation",
                "groups": [["wage", "spouse", "income"], ["rent"]],
                "k": 5,
                "by": BY,
                "zeros": "keep",
                "constraints": ["wage + spouse = income", "if status = single then spouse = 0"],
            }
        ],
        "policy": ["consistency.zeros_lost <= 0", "consistency.rules_broken <= 0", "consistency.missing_new < 0"],
    }
    refused = place.run("--json", **job)
    assert refused.code == 3
    assert "consistency.missing_new < 0: it is 0" in refused.err
    assert "consistency.rules_broken" not in refused.err
    ended = place.run("--json", **job | {"policy": job["policy"][:2]})
    assert ended.code == 0, ended.err
    (found,) = [one for one in ended.json["measures"] if one["name"] == "consistency"]
    assert found["judged"]["zeros_lost"] == found["judged"]["missing_lost"] == 0
    assert [(one["broken_before"], one["broken_after"]) for one in found["values"]["rules"]] == [(0, 0), (0, 0)]
    assert (
        "if status = single then spouse = 0" in (place.folder / "private").rglob("report.html").__next__().read_text()
    )
    swapped = [{"method": "refinement", "requirements": [{"columns": ["status"], "k": 5}]}]
    planned = place.dpmask("plan", place.job(**job | {"mask": swapped}))
    assert planned.code == 2
    assert (
        "policy[0]: 'consistency.zeros_lost <= 0' is about numbers that steps mask, and no step masks any"
        in planned.err
    )


def test_keeping_zeros_loses_less_on_the_generated_census(tmp_path):
    """Means that mix zeros and incomes are far from both; and a quarter of the incomes are zero."""
    from dpmask.lake.generate import generate_lake

    generate_lake(str(tmp_path / "lake"), rows=20_000, files=2, seed=1, nulls=False)
    lake = dpmask.read_lake(str(tmp_path / "lake"))
    method = {"columns": ["net", "tax", "gross", "hours"], "k": 5, "cell_size": 2000}
    mixed, kept = (dpmask.Microaggregation(**method, zeros=zeros).fit(lake, seed=1) for zeros in ("mask", "keep"))
    assert kept.figures.loss < mixed.figures.loss
    assert kept.figures.smallest >= 5
    assert kept.figures.groups[0].values_to_zero == 0


def test_small_strata_are_joined_within_the_domains_of_totals():
    """Two of each race have an amount, six of each domain: with those of another sex no mean would do for both."""
    cells = [(sex, region, race) for sex in "fm" for region in ("north", "south") for race in "abc"]
    people = pd.DataFrame([cell for cell in cells for _ in range(40)], columns=["sex", "region", "race"])
    some = np.arange(len(people)) % 40 < 2
    size = people.groupby(["sex", "region"]).ngroup()[::-1].to_numpy()
    people["gain"] = np.where(some, 10.0**size * (10 + np.arange(len(people)) % 7), 0.0)
    for by in (["race", "region", "sex"], ["sex", "race", "region"]):
        fitted = dpmask.Microaggregation(columns=["gain"], k=5, by=by, totals=["sex", "region"]).fit(people, seed=1)
        assert fitted.figures.totals_off < 1e-9
        domains = [people["sex"], people["region"]]
        pd.testing.assert_series_equal(
            fitted.mask(people)["gain"].groupby(domains).sum(), people["gain"].groupby(domains).sum()
        )
    apart = dpmask.Microaggregation(columns=["gain"], k=5, by=["race"], totals=["sex", "region"]).fit(people, seed=1)
    assert any("Name sex, region in by, too." in warning for warning in apart.warnings())


def test_census_income_of_the_reference_data(reference):
    """k = 5 of all amounts by sex and age band: zeros, gaps and rules stay, rows are shared in every stratum."""
    amounts = ["wage_per_hour", "capital_gains", "capital_losses", "dividends_from_stocks"]
    bands = [15, 25, 35, 45, 55, 65]
    rule = "if age < 15 then wage_per_hour = 0"
    source = str(reference / "census_income_kdd.parquet")
    lake = dpmask.read_lake(source, columns=["age", "sex", "education", "instance_weight", *amounts])
    people = lake.to_dask().compute()
    method = dpmask.Microaggregation(
        groups=[[name] for name in amounts],
        k=5,
        by=["sex", {"age": bands}],
        constraints=[rule, *(f"{name} >= 0" for name in amounts)],
        weight="instance_weight",
        totals=["sex", "education"],
    )
    fitted = method.fit(lake, seed=1)
    masked = fitted.mask(lake).compute()
    found = dpmask.utility.consistency(people, masked, columns=amounts, rules=[rule, "dividends_from_stocks >= 0"])
    assert found.value == 0, "every zero and every missing value is where it was"
    assert found.rules_broken == 0
    found = dpmask.utility.totals(
        people, masked, columns=amounts, by=["sex", "education"], weight="instance_weight", fewest=500
    )
    assert (len(found.domains), found.small) == (136, 0)
    assert found.median < 1e-4
    moved = {(one.column, one.domain) for one in found.domains if abs(one.change) >= 0.01}
    assert moved <= {(amounts[3], one.domain) for one in found.domains if "Less than 1st grade" in one.domain}, (
        "weighted totals by sex and education, of domains of 500 or more, but two that are mostly one person's"
    )
    assert fitted.figures.totals_off < 2e-4, "those that at least five people contribute to, and none dominates"
    assert [one.totals_left for one in fitted.figures.groups] == [0, 0, 1, 0]
    assert [one.totals_sensitive for one in fitted.figures.groups] == [0, 0, 0, 2]
    amount = (people[amounts[3]] * people["instance_weight"])[people["education"] == "Less than 1st grade"]
    for _, some in amount.groupby(people["sex"]):
        first, *rest = some.nlargest(len(some))
        assert sum(rest[1:]) + 0.01 * some.sum() < 0.1 * first, "within 1 %, the total would show the largest to 10 %"
    strata = [people["sex"], pd.Series(np.searchsorted(bands, people["age"], side="right"), people.index)]
    for name in amounts:
        assert masked.groupby([*strata, masked[name]], observed=True).size().min() >= 5
