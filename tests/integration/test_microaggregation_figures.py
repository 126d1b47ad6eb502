"""What microaggregation says of itself: shares of records, rows on records, advice, and which columns it is about."""

import warnings

import numpy as np
import pandas as pd
import pytest

import dpmask

pytestmark = pytest.mark.filterwarnings("ignore:Microaggregation. .* lie on a real record")


@pytest.fixture(scope="module")
def incomes():
    """A third of the people have no income at all, the others one of their own."""
    rng = np.random.default_rng(0)
    income = np.where(np.arange(300) % 3 == 0, 0.0, rng.lognormal(8, 1, 300))
    return pd.DataFrame(
        {"income": income, "tax": 0.3 * income, "hours": np.where(income > 0, rng.normal(35, 5, 300), 0)}
    )


def test_one_record_is_at_most_one_of_k(incomes):
    figures = dpmask.Microaggregation(columns=["income", "tax"], k=5).fit(incomes, seed=1).figures
    assert figures.groups[0].largest_weight_share == pytest.approx(1 / 5)
    assert figures.dominated == 0


def rows_on_records(original, masked, groups):
    """By a loop: how many released rows lie on a record, and on one that they show: no other is near or it is the same
    to the last digit, and fewer than a group are equal.
    """
    x, y = ((one - original.mean()) / original.std(ddof=0) for one in (original, masked))
    near = 0.05 * np.sqrt(((x - y) ** 2).sum(axis=1).mean())
    found = []
    for row in y.drop_duplicates().to_numpy():
        away = np.sqrt(((x.to_numpy() - row) ** 2).sum(axis=1))
        twins = (x.to_numpy() == x.to_numpy()[away.argmin()]).all(axis=1).sum()
        shown = ((away < near).sum() == twins or away.min() < 1e-9) and twins < len(x) / groups
        found.append((away.min() < near, away.min() < near and shown))
    return np.sum(found, axis=0)


def test_rows_on_zeros_that_many_have_show_nobody(incomes):
    """A hundred zeros make twenty rows that lie on a record each, and on a hundred."""
    columns = ["income", "hours"]
    fitted = dpmask.Microaggregation(columns=columns, k=5).fit(incomes, seed=1)
    masked = fitted.mask(incomes)
    assert (masked["income"] == 0).sum() == 100
    groups = 60
    near, shown = rows_on_records(incomes[columns], masked[columns], groups)
    assert fitted.figures.on_records * groups == pytest.approx(shown)
    assert shown < near  # the zeros
    alone = dpmask.Microaggregation(columns=["income"], k=3).fit(_one_in_the_middle(), seed=1)
    assert alone.figures.on_records == pytest.approx(1 / 2)


def test_a_row_with_all_values_of_a_record_shows_it_in_any_crowd():
    """The mean of three is the one in the middle, to the last digit; others lie nearer than a twentieth of the way."""
    people = pd.DataFrame({"income": [9.9, 10.0, 10.1, 990.0, 1000.0, 1010.0]})
    assert dpmask.Microaggregation(columns=["income"], k=3).fit(people, seed=1).figures.on_records == 1.0
    people.loc[1, "income"] = 10.04
    figures = dpmask.Microaggregation(columns=["income"], k=3).fit(people, seed=1).figures
    assert figures.on_records == pytest.approx(1 / 2)


@pytest.mark.parametrize("largest", [100, 1_000_000])
def test_a_whole_table_counts_as_cells_do(largest, limit):
    """Centres lie on zeros that half the people have, and on one person who is far from all others."""
    limit(largest_cell=largest)
    rng = np.random.default_rng(1)
    income = np.concatenate([np.zeros(150), rng.normal(1000, 100, 149), [90_000.0]])
    people = pd.DataFrame({"income": income})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = dpmask.FuzzyMicroaggregation(columns=["income"], k=75, fuzziness=1.1, zeros="mask").fit(people, seed=1)
    assert (type(fitted.parts[0]).__name__ == "WholeTableGroup") == (largest == 100)
    masked = fitted.mask(people)
    near, shown = rows_on_records(people, masked, masked["income"].nunique())
    assert near > shown
    assert fitted.figures.on_records * masked["income"].nunique() == pytest.approx(shown)


def _one_in_the_middle():
    """Two groups of three: the mean of the first is the record in its middle, that of the second is not."""
    return pd.DataFrame({"income": [0.0, 10.0, 20.0, 1000.0, 1001.0, 1020.0]})


def test_advice_names_only_what_the_method_has():
    line = pd.DataFrame({"income": np.arange(30.0)})
    with pytest.warns(UserWarning, match=r"lie on a real record\. Take a larger k\.$"):
        dpmask.Microaggregation(columns=["income"], k=3).fit(line, seed=1)


def test_columns_masked_by_themselves_are_named(incomes):
    columns = ["income", "hours"]
    apart = dpmask.Microaggregation(groups=[[name] for name in columns], k=10).fit(incomes, seed=1)
    assert "Every released row of income; or of hours, each by itself, is shared by at least" in apart.figures.explain()
    assert "may be one record's alone" in apart.statement()
    assert [claim["columns"] for claim in apart.claims()] == [["income"], ["hours"]]
    sizes = apart.mask(incomes).groupby(columns).size()
    assert sizes.min() < 10  # as the statement says
    together = dpmask.Microaggregation(columns=columns, k=10).fit(incomes, seed=1)
    assert "by itself" not in together.statement() + together.figures.explain()
