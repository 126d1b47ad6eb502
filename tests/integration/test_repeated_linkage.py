"""Linkage by who masks the originals again: against an intruder of a few lines, and against masking again indeed."""

import numpy as np
import pandas as pd
import pytest
from linkage_reference import linked, standardised

import dpmask
from dpmask.errors import JobError

NUMBERS = ["income", "tax", "hours"]


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(5)
    mixed = rng.normal(size=(600, 3)) @ rng.normal(size=(3, 3))
    town = rng.choice(["north", "south", "west"], 600)
    return pd.DataFrame(np.exp(mixed), columns=NUMBERS).assign(weight=rng.lognormal(5, 0.5, 600), town=town)


@pytest.fixture(scope="module")
def masked(people):
    """Groups of twenty, and weights with noise."""
    grouped = dpmask.Microaggregation(columns=NUMBERS, k=20).fit(people, seed=7).mask(people)
    return dpmask.NoiseAddition(columns=["weight"], scale=0.3).fit(grouped, seed=7).mask(grouped)


def test_who_knows_all_that_was_released_finds_one_of_each_group(people, masked):
    found = dpmask.risk.repeated_linkage(people, masked, columns=NUMBERS, repeated=NUMBERS)
    assert found.nearest == pytest.approx(len(masked[NUMBERS].drop_duplicates()) / len(masked))
    assert found.rate == found.nearest == found.assignment
    assert found.rate > 1.2 * dpmask.risk.distance_linkage(people, masked, columns=NUMBERS).euclidean
    assert found.interval == (found.rate, found.rate), "all were attacked"


def the_intruder(people, masked):
    """The weight that is nearest among the rows that are equal in all repeated columns."""
    weights = [standardised(frame["weight"].to_numpy()) for frame in (people, masked)]
    groups = masked.groupby([*NUMBERS, "town"]).ngroup().to_numpy()
    apart = np.where(groups[:, None] == groups[None, :], np.subtract.outer(*weights) ** 2, np.inf)
    return linked(apart, np.arange(len(people))).mean()


def test_what_was_drawn_distinguishes_equal_rows(people, masked):
    columns = [*NUMBERS, "town", "weight"]
    found = dpmask.risk.repeated_linkage(people, masked, columns=columns, repeated=[*NUMBERS, "town"])
    assert found.nearest == pytest.approx(the_intruder(people, masked), abs=1e-12)
    assert found.assignment >= found.nearest
    assert found.rate == max(found.nearest, found.assignment)


def test_a_sample_is_near_all(people, masked):
    known = {"columns": [*NUMBERS, "weight"], "repeated": NUMBERS}
    whole = dpmask.risk.repeated_linkage(people, masked, **known)
    some = dpmask.risk.repeated_linkage(people, masked, **known, sample=300)
    assert some.attacked == 300
    low, high = some.intervals["nearest"]
    assert low < whole.nearest < high


def test_only_groups_of_those_attacked_are_compared():
    """The same of a sample of a larger table, whose other groups are left out, as of all of it."""
    rng = np.random.default_rng(6)
    people = pd.DataFrame({"income": rng.lognormal(9, 1, 3000), "weight": rng.lognormal(5, 1, 3000)})
    masked = people.assign(income=np.round(people["income"], -3), weight=people["weight"] * rng.normal(1, 0.1, 3000))
    known = {"columns": list(people), "repeated": ["income"]}
    whole = dpmask.risk.repeated_linkage(people, masked, **known)
    some = dpmask.risk.repeated_linkage(people, masked, **known, sample=1500)
    assert some.sampled
    assert not whole.sampled
    for name in ("nearest", "assignment"):
        low, high = some.intervals[name]
        assert low < getattr(whole, name) < high
    assert whole.nearest > 3 * masked["income"].nunique() / 3000, "weights distinguish"


def test_masking_again_links_no_more(people, masked):
    """Another key, and the row of each person there: nobody links more by it than is reported."""
    again = dpmask.Microaggregation(columns=NUMBERS, k=20).fit(people, seed=8).mask(people)
    apart = sum(np.subtract.outer(again[name].to_numpy(), masked[name].to_numpy()) ** 2 for name in NUMBERS)
    achieved = linked(apart, np.arange(len(people))).mean()
    found = dpmask.risk.repeated_linkage(people, masked, columns=NUMBERS, repeated=NUMBERS)
    assert achieved <= found.rate + 1e-12
    assert achieved > 0.9 * found.rate


def test_missing_values_and_dropped_records(people):
    """A gap is known as it was released, and whoever was dropped is not linked."""
    masked = people[["income"]].round(-1).mask(people["income"] > 3).iloc[:450]
    found = dpmask.risk.repeated_linkage(people, masked, columns=["income"], repeated=["income"])
    assert found.nearest == pytest.approx(masked["income"].nunique(dropna=False) / len(people))


@pytest.mark.parametrize("repeated", [[], "income", ["hours"]])
def test_repeated_columns_are_among_those_known(people, masked, repeated):
    with pytest.raises(JobError, match="repeated_linkage: repeated"):
        dpmask.risk.repeated_linkage(people, masked, columns=["income"], repeated=repeated)
