"""The digits that a release shows."""

import pandas as pd
import pytest

from dpmask.measures.utility.il1s import StandardisedLoss
from dpmask.measures.utility.kolmogorov_smirnov import KolmogorovSmirnov
from dpmask.measures.utility.probabilistic_information_loss import ProbabilisticLoss
from dpmask.report.comparison import compare
from dpmask.report.public_numbers import public_loss, public_number, public_share
from dpmask.table.table import as_table


@pytest.mark.parametrize(
    ("value", "rows", "shown"),
    [
        (0.0734567, 1000, 0.1),
        (0.0234567, 1000, 0.0),
        (0.0734567, 10_000, 0.07),
        (0.0734567, 100_000, 0.073),
        (0.0734567, 10**8, 0.073),
        (-0.0734567, 10**8, -0.073),
        (734.567, 1000, 700.0),
        (734.567, 10**8, 730.0),
        (1234567.0, 10, 0.0),
        (0.0, 1000, 0.0),
        (99.96, 10**8, 100.0),
        (1e300, 10**8, 1e300),
        (5e-324, 10**8, 0.0),
    ],
)
def test_the_rule(value, rows, shown):
    assert public_number(value, 1 / rows) == shown


def test_one_record_moves_no_digit():
    """A number that moves by what a record at 5 standard deviations moves a variance stays the same nearly always."""
    rows = 10_000
    moved = sum(public_number(x / 997, 1 / rows) != public_number(x / 997 + 25 / rows, 1 / rows) for x in range(997))
    assert moved / 997 < 0.26  # 25 / 10,000 of a step of 0.01


def test_all_numbers_of_a_loss_are_rounded_and_so_is_its_explanation():
    found = StandardisedLoss(value=0.0734567, parts={"net": 0.0123456, "tax": 0.123456})
    shown = public_loss(found, 10_000)
    assert (shown.value, shown.parts) == (0.07, {"net": 0.01, "tax": 0.12})
    assert "734" not in shown.explain()


def test_a_statistic_compared_with_its_own_error_has_fewer_digits():
    found = ProbabilisticLoss(value=34.5678, parts={}, at_reference=2.345678, n_ref=1000)
    shown = public_loss(found, 10**6)
    assert (shown.value, shown.at_reference, shown.n_ref) == (30.0, 2.3, 1000)


def test_the_farthest_record_takes_digits_and_then_the_number():
    found = StandardisedLoss(value=0.0734567, parts={"net": 0.0123456})
    assert [public_loss(found, 10**6, share).value for share in (1e-6, 1e-3, 0.019, 0.19)] == [0.073, 0.073, 0.07, 0.1]
    assert public_loss(found, 10**6, 0.21) is None
    assert public_loss(found, 499) is None, "50 records of so few weigh as much"
    shares = KolmogorovSmirnov(value=0.0734567, upper=0.08, parts={})
    assert public_loss(shares, 10**6, 1.0).value == 0.073, "one record is one record in a share"


def test_leverages_are_those_of_plain_numpy():
    values = {
        "one": [1.0, 2.0, 3.0, 50.0],
        "gaps": [1.0, None, 1.5, -9.0],
        "same": [2.0] * 4,
        "far": [1e300, -1e300, 0, 0],
    }
    for names in (list(values), ["one"]):
        frame = pd.DataFrame({name: values[name] for name in names})
        table = as_table(frame, "test")
        found = compare(table, table, names, names).leverages
        for name in names:
            spread = (frame[name] - frame[name].mean()) ** 2
            expected = {"same": 0.0, "far": 1.0}.get(name, (spread / spread.sum()).max())
            assert found[name] == pytest.approx(expected, rel=5e-3)


def test_shares_of_released_records_are_exact_to_one_record():
    assert public_share(123, 1000) == 0.123
    assert public_share(1, 3) == 0.0
    assert public_share(333_333, 1_000_000) == 0.333333
