"""How much larger groups should be where too many records are linked."""

from types import SimpleNamespace

import pytest

from dpmask.job.advice import larger_groups
from dpmask.masking.of_households import method_of_step

QUASI = ["age", "sex"]
LABELS = {"method": "refinement", "requirements": [{"columns": QUASI, "k": 2000}], "domains": {"age": [0, 120]}}
MEANS = {"method": "microaggregation", "columns": ["net"], "k": 20}
CENTRES = {"method": "fuzzy_microaggregation", "columns": ["net"], "k": 500, "minimum_size": 20}


def job(*mask):
    methods = [method_of_step(one["method"], {name: one[name] for name in one if name != "method"}) for one in mask]
    return SimpleNamespace(file=SimpleNamespace(mask=mask, measure=[]), methods=methods)


def test_each_k_is_raised_but_those_that_a_later_step_replaces():
    alike, change = larger_groups(job(LABELS, MEANS, CENTRES), 1_000_000, 0.114, 0.05)
    assert "of 2,000 and 500 records: about 1 of 1,000,000 records are alike in all columns" in alike
    assert "mask[0].requirements[0].k from 2,000 to 4,100, mask[2].k from 500 to 1,100;" in change
    assert "mask[1]" not in change


def test_one_step_alone_needs_more():
    (change,) = larger_groups(job(MEANS), 10_000, 0.1, 0.05)
    assert "mask[0].k from 20 to 65" in change


@pytest.mark.parametrize("mask", [[], [{"method": "noise", "columns": ["net"], "scale": 0.1}]])
def test_without_groups_nothing_is_said(mask):
    assert larger_groups(job(*mask), 1000, 0.2, 0.05) == []


def test_a_k_is_no_more_than_half_of_the_table():
    assert "to 50;" in larger_groups(job(MEANS), 100, 1.0, 0.05)[0]
    assert larger_groups(job(MEANS | {"k": 50}), 100, 1.0, 0.05) == []
