"""Twelve monthly releases of a table that grows: each 10-anonymous for itself, or as a series, against who has them all."""

import numpy as np
import series as intruder
from parts import in_parts
from series_tools import BESIDE, QUASI, Monthly, method, population

from dpmask.table.taxonomy import read_taxonomy

K, MONTHS, FIRST, JOINING = 10, 12, 1500, 60


def sets_of(refinement):
    """What a row of labels stands for."""
    trees = {
        name: intruder.meanings(read_taxonomy(tree, "test").to_dict()) for name, tree in refinement.taxonomies.items()
    }

    def sets(row):
        return [intruder.age_set(row[0]), *(trees[name][label] for name, label in zip(QUASI[1:], row[1:], strict=True))]

    return sets


def attacked(fits):
    """For each month the least number of records that anybody is left among, and how many people are below k."""
    everybody = population(FIRST + (MONTHS - 1) * JOINING)
    comparable, releases, found = intruder.comparing(sets_of(method(K))), [], []
    since = [0 if n < FIRST else 1 + (n - FIRST) // JOINING for n in range(len(everybody))]
    for month in range(MONTHS):
        table = everybody[: FIRST + month * JOINING]
        masked = fits(table).mask(table)
        assert masked.groupby(QUASI).size().min() >= K
        releases.append(list(masked[QUASI + BESIDE].itertuples(index=False, name=None)))
        left = np.array(intruder.left(releases, since[: len(table)], comparable))
        found.append((int(left.min()), int((left < K).sum())))
    return found


def test_twelve_monthly_releases():
    """Nobody is below k in the series; of releases that do not know of each other many are."""
    naive = attacked(lambda table: method(K).fit(table, seed=1))
    series = attacked(Monthly(K).fit)
    for month, (one, other) in enumerate(zip(series, naive, strict=True), 1):
        print(f"month {month}: series least {one[0]}, below k {one[1]}; naive least {other[0]}, below k {other[1]}")
    assert naive[0][1] == series[0][1] == 0, "a first release is what it is"
    assert all(least >= K and not below for least, below in series)
    assert max(below for _, below in naive) > 50
    assert min(least for least, _ in naive) < K / 2


def test_the_series_is_refined():
    """It is not safe by being empty: intervals are cut, and more than once as the table grows."""
    monthly, everybody = Monthly(K), population(3000)
    cuts = [monthly.fit(everybody[:rows]).cuts for rows in (1500, 3000)]
    assert all(len(one["age"]) > 3 for one in cuts)
    assert set(cuts[0]["age"]) <= set(cuts[1]["age"]) or set(cuts[1]["age"]) <= set(cuts[0]["age"])


def test_the_same_for_any_partitions():
    """Cuts, figures and who is new, also with an empty partition."""
    everybody = population(1600)
    found = []
    for cut in (lambda table: table, lambda table: in_parts(table, 5)):
        monthly = Monthly(K)
        fitted = [monthly.fit(cut(everybody[:rows])) for rows in (1500, 1600)]
        found.append(
            ([one.cuts for one in fitted], fitted[-1].figures.series, [block.tolist() for block in monthly.blocks])
        )
    assert found[0] == found[1]
    assert found[0][1]
