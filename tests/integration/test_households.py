"""Households: columns masked once for all members, pseudonyms, and what an intruder finds who knows all members."""

from collections import Counter

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpmask
from dpmask.errors import InputError, JobError
from dpmask.table.table import as_table

ROWS, HOMES = 900, 400


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(2)
    home = rng.permutation(np.concatenate([np.arange(HOMES), rng.integers(0, HOMES, ROWS - HOMES)]))
    rent = (rng.gamma(2.0, 300.0, HOMES) + 100).round(2)
    return pd.DataFrame(
        {
            "home": home + 7_000_000,
            "rent": rent[home],
            "pay": rng.gamma(2.0, 1000.0, ROWS).round(2),
            "sex": rng.choice(["f", "m"], ROWS),
            "town": rng.choice(list("abc"), HOMES)[home],
        }
    )


METHODS = {
    "noise": dpmask.NoiseAddition(columns=["rent"], scale=0.3),
    "swapping": dpmask.RankSwapping(columns=["rent"], window=0.2, share=1.0),
    "microaggregation": dpmask.Microaggregation(columns=["rent"], k=5),
    "fuzzy": dpmask.FuzzyMicroaggregation(columns=["rent"], k=40),
}


@pytest.mark.parametrize("name", METHODS)
def test_each_household_is_masked_once(people, name):
    """As the method masks the table of first members; and the same in any partitions."""
    method = dpmask.OfHouseholds(method=METHODS[name], household="home")
    fitted = method.fit(people, seed=3)
    masked = fitted.mask(people)
    heads = people.drop_duplicates("home")
    alone = METHODS[name].fit_table(as_table(heads.reset_index(drop=True), name), fitted.key)
    expected = alone.mask(heads.reset_index(drop=True)).set_index("home")["rent"]
    np.testing.assert_allclose(masked["rent"], expected.loc[people["home"]].to_numpy(), rtol=1e-9)
    assert (masked["rent"] != people["rent"]).any()
    pd.testing.assert_frame_equal(masked.drop(columns="rent"), people.drop(columns="rent"))
    split = dd.from_pandas(people, npartitions=4)
    np.testing.assert_allclose(method.fit(split, seed=3).mask(split).compute()["rent"], masked["rent"], rtol=1e-9)
    assert "masked once" in fitted.statement()


def test_what_is_no_column_of_households_is_refused(people):
    noise = dpmask.NoiseAddition(columns=["pay"], scale=0.3)
    with pytest.raises(InputError, match="no column of households"):
        dpmask.OfHouseholds(method=noise, household="home").fit(people, seed=1)
    with pytest.raises(JobError, match="for methods that change numbers"):
        dpmask.OfHouseholds(method=dpmask.Pseudonyms(columns=["home"]), household="home")


def test_pseudonyms_say_who_belongs_together_and_no_more(people):
    method = dpmask.Pseudonyms(columns=["home"])
    names = method.fit(people, seed=1).mask(people)["home"]
    assert (names.groupby(people["home"]).nunique() == 1).all()
    assert names.nunique() == people["home"].nunique()
    others = method.fit(people.assign(home=people["home"] + 1), seed=1).mask(people)["home"]
    assert not set(names) & set(others), "the key is bound to the content"
    assert not {str(one) for one in people["home"]} & set(names)
    gaps = people.assign(home=people["home"].astype(float).where(people["sex"] == "f"))
    assert (method.fit(gaps, seed=1).mask(gaps)["home"].isna() == gaps["home"].isna()).all()


def compositions(table, homes, columns):
    return Counter(tuple(sorted(map(tuple, rows.values.tolist()))) for _, rows in table[columns].groupby(homes))


def test_labels_against_the_definition(people):
    """Compositions, uniques and the risk of a household, counted with pandas; some records are dropped."""
    masked = people.assign(town=people["town"].replace({"b": "c"}))[["sex", "town"]].drop(index=range(5, 40))
    sets = {"town": {"a": ["a"], "c": ["b", "c"]}}
    found = dpmask.risk.households(people, masked, household="home", columns=["sex", "town"], sets=sets)
    homes = people["home"].loc[masked.index]
    alike = compositions(masked, homes, ["sex", "town"])
    several = {rows: count for rows, count in alike.items() if len(rows) > 1}
    assert found.smallest == min(alike.values())
    assert found.prosecutor == pytest.approx(len(alike) / homes.nunique())
    assert found.uniques == pytest.approx(sum(one == 1 for one in several.values()) / sum(several.values()))
    shared = 1 - 1 / masked.groupby(["sex", "town"])["sex"].transform("size")
    assert found.risk == pytest.approx((1 - shared.groupby(homes).prod()).mean())
    assert found.households == homes.nunique()


def test_nobody_finds_more_than_is_reported(people):
    """An intruder who tries all pairings of two members, with labels that must fit, finds no more households."""
    pairs = people[people.groupby("home")["home"].transform("size") == 2]
    noise = dpmask.NoiseAddition(columns=["pay"], scale=0.1).fit(pairs, seed=5)
    masked = noise.mask(pairs)
    found = dpmask.risk.households(pairs, masked, household="home", columns=["town", "pay"])
    order = pairs.sort_values(["home"]).index
    known, seen = (table.loc[order, "pay"].to_numpy().reshape(-1, 2) for table in (pairs, masked))
    towns = pairs.loc[order, "town"].to_numpy().reshape(-1, 2)[:, 0]
    gaps = [((known[:, None] - seen[None][:, :, way]) ** 2).sum(axis=2) for way in ([0, 1], [1, 0])]
    best = np.where(towns[:, None] == towns[None], np.minimum(*gaps), np.inf).argmin(axis=1)
    hits = (best == np.arange(len(best))).mean()
    assert 0.3 < hits <= found.rate + 0.02
    assert found.rate > dpmask.risk.distance_linkage(pairs, masked, columns=["town", "pay"]).rate


def test_a_job_of_households(place):
    """Weights masked once, the number dropped, or released as a name; and then all members are attacked at once."""
    from dpmask.lake.generate import generate_lake

    generate_lake(str(place.folder / "lake"), rows=1000, files=2, seed=1, nulls=False)
    roles = {"identifier": ["person_id"], "household": ["household_id"], "weight": ["weight"]}
    roles["plain"] = ["age", "sex", "education", "occupation", "region", "hours", "net", "tax", "gross"]
    step = {"method": "microaggregation", "columns": ["weight"], "k": 5, "of": "households"}
    original = pa.table(pd.read_parquet(place.folder / "lake"))
    homes = original["household_id"].to_numpy()
    job = place.job(columns=roles, mask=[step], measure=[], policy=[], block_rows=1000)
    planned = place.dpmask("plan", job, "--json").json
    homes_of = original.to_pandas().groupby("weight")["household_id"].nunique()
    alone = int((homes_of.loc[original["weight"].to_numpy()] == 1).sum())
    expected = {"name": "weight", "records": 1000, "distinct": len(homes_of), "alone": alone}
    assert planned["weights"] == [expected | {"masked_by": ["microaggregation"], "of_households": True}]
    assert alone > 0
    hidden, pseudonyms = (
        {"column": "household_id", "release": False},
        {"method": "pseudonyms", "columns": ["household_id"]},
    )
    twice = place.run(columns=roles | {"household": hidden}, mask=[step, pseudonyms], measure=[], policy=[])
    assert twice.code == 2
    assert "mask[1]: masks household_id, which columns.household drops by release: false" in twice.err
    for household, shown in ((hidden, False), ("household_id", True)):
        ended = place.run("--overwrite", columns=roles | {"household": household}, mask=[step], measure=[], policy=[])
        assert ended.code == 0, ended.err
        released = place.by_original(original).to_pandas()
        weights = released.groupby(homes)["weight"]
        assert (weights.nunique() == 1).all()
        assert weights.first().value_counts().min() >= 5
        assert ("household_id" in released) == shown == ("households" in place.measured())
    assert released["household_id"].nunique() == len(np.unique(homes))
    again = place.run(columns=roles, mask=[step, pseudonyms], measure=[], policy=[])
    assert again.code == 0  # the step that releases it may be written, or not: it is the same release
