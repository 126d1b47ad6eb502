"""What ``differencing`` reports of several releases is at least what programs achieve who have them and nothing of dpmask."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
import series as intruder
import several
from parts import in_parts
from series_tools import BESIDE, QUASI, population

import dpmask
from dpmask.errors import JobError
from dpmask.risk import differencing

K, PAY = 10, ["pay", "hours"]


def workers(rows, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"pay": rng.lognormal(8, 0.4, rows), "hours": rng.normal(38, 6, rows)})


def noisy(table, seed):
    return dpmask.NoiseAddition(columns=PAY, scale=0.5).fit(table, seed=seed).mask(table)


def test_releases_are_needed():
    with pytest.raises(JobError, match="needs earlier releases"):
        differencing(workers(10), workers(10), earlier=[], columns=PAY)


@pytest.mark.parametrize("releases", [2, 4])
def test_the_mean_of_releases(releases):
    """The intruder knows which rows belong together: values by their mean, or by a fit to a few known people."""
    table = workers(3000)
    masked = [noisy(table, seed) for seed in range(releases)]
    found = differencing(table, masked[-1], earlier=masked[:-1], columns=PAY)
    for column in PAY:
        achieved = several.attack([one[column].to_numpy() for one in masked], table[column].to_numpy())
        assert achieved <= found.parts[f"{column}: all"] + 2 * np.sqrt(achieved / len(table))
        assert found.parts[f"{column}: all"] - found.parts[f"{column}: newest alone"] <= found.gained
    assert (found.rate > 0.05) == (releases > 2), "the gate lets two through, not four"
    assert found.rate == found.gained


def test_releases_that_share_their_noise():
    table = workers(2000)
    noise = np.random.default_rng(1).normal(size=table.shape) * table.std().to_numpy()
    found = differencing(table, table + 0.5 * noise, earlier=[table + 0.3 * noise], columns=PAY)
    assert found.gained > 0.8


@pytest.mark.parametrize("new", [1, 2, 40])
def test_differences_of_totals(new):
    """Averages keep totals: those of one new person are the person's values; of forty they are nobody's."""
    table = workers(1000)
    average = dpmask.Microaggregation(columns=PAY, k=5)
    before, after = (average.fit(some, seed=1).mask(some) for some in (table[:-new], table))
    found = differencing(table, after, earlier=[before], columns=PAY)
    achieved = (after.sum() - before.sum()).to_numpy()
    assert np.allclose(achieved, table[-new:].sum())
    assert found.totals == (1.0 if new < 3 else 0.0)


def attack_groups(masked, since):
    """The share of people in several releases who are left among fewer than K, but not by any alone: by hand."""
    comparable = intruder.comparing(lambda row: [frozenset([one]) for one in row])
    rows = [list(one[QUASI + BESIDE].itertuples(index=False, name=None)) for one in masked]
    left = np.array(intruder.left(rows, since, comparable))
    old = np.array(since) == 0
    sizes = [one.groupby(QUASI)["id"].transform("size").to_numpy()[: old.sum()] for one in masked]
    return ((left[old] < K) & (np.min(sizes, axis=0) >= K)).mean()


def test_intersected_groups():
    """Three releases that do not know of each other: intervals of 20 years, each month from another age on."""
    table, masked = population(1800).assign(sex="any", illness=np.random.default_rng(2).integers(0, 200, 1800)), []
    for people, start in ((1500, 0), (1500, 7), (1800, 13)):
        ages = (table["age"][:people].clip(20, 66) + start) // 20
        masked.append(table[:people].assign(age=ages, town=table["town"].str[:7]))
    found = differencing(table, masked[2], earlier=masked[:2], labels=QUASI, beside=BESIDE, k=K)
    achieved = attack_groups(masked, [0] * 1500 + [2] * 300)
    assert achieved > 0.005
    assert found.intersected == pytest.approx(achieved)
    parts = differencing(
        in_parts(table, 4), in_parts(masked[2], 3), earlier=masked[:2], labels=QUASI, beside=BESIDE, k=K
    )
    assert parts.to_dict() | {"seconds": 0} == found.to_dict() | {"seconds": 0}


def test_rows_that_an_earlier_release_has_not():
    """The same groups in both, so that all that differs is who is new: three people, each alone in a group."""
    table = population(1503)
    labels = pd.DataFrame({"age": table["age"] // 25, "sex": table["sex"], "illness": table["illness"]})
    found = differencing(
        table.assign(**labels), labels, earlier=[labels[:1500]], labels=["age", "sex"], beside=BESIDE, k=K
    )
    rows = [Counter(one.itertuples(index=False, name=None)) for one in (labels[:1500], labels)]
    different = rows[1] - rows[0]
    among = [
        sum(count for row, count in different.items() if row[:2] == tuple(new))
        for new in labels[["age", "sex"]][1500:].to_numpy()
    ]
    assert all(0 < one < K for one in among)
    assert found.new == found.rate == 1.0
