"""What every method's draws are bound to, pinned: another text would change every release of every user unnoticed."""

import warnings

import pytest
from method_examples import EXAMPLES, example, workers

PINNED = {
    "noise": "af3e9fdb7c39ebf6",
    "noise, correlated": "a934e2f4d7ff0e43",
    "swapping": "cb5bd090c88332ed",
    "rotation": "544246754164bc52",
    "membership_transform": "3b340f5ab25cf707",
    "microaggregation": "2b0e517ca03bfe97",
    "microaggregation, cells": "cf31570e0612d518",
    "fuzzy_microaggregation": "ef6e68e67681fb6b",
    "fuzzy_microaggregation, cells": "91c15e9725a6ce7a",
    "ipso": "b7cc70e995f6a747",
    "regression_synthesis": "cfcd4e6191bf9fd2",
    "refinement": "e8c3c9a7de84d8d5",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_draws_are_those_of_earlier_versions(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert example(name).fit(workers(), seed=7).key.fingerprint == PINNED[name]
