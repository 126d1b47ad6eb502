"""One small table, and every masking method of the registry with parameters that fit it."""

import numpy as np
import pandas as pd

from dpmask.masking import METHODS, method_class

EXAMPLES = {
    "calibrated_weights": {
        "columns": ["hours"],
        "scale": 0.1,
        "margins": [["region"], [{"age": [30, 50]}]],
        "totals": ["income"],
    },
    "noise": {"columns": ["income", "age"], "scale": 0.2},
    "noise, correlated": {"columns": ["income", "hours"], "scale": 0.2, "correlated": True},
    "swapping": {"columns": ["income", "age"], "share": 0.8, "window": 0.2},
    "noise, strata": {"columns": ["income"], "scale": 0.2, "by": ["region"], "bounds": {"income": [0, None]}},
    "swapping, strata": {"columns": ["income"], "window": 0.2, "by": [{"age": [40]}], "zeros": "keep"},
    "rotation": {"columns": ["income", "hours"]},
    "membership_transform": {"columns": ["income", "age"], "function": "s", "bounds": {"age": [0, 120]}},
    "microaggregation": {"columns": ["income", "hours", "age"], "k": 4},
    "microaggregation, cells": {"groups": [["income", "hours"], ["age"]], "k": 3, "cell_size": 40},
    "microaggregation, strata": {
        "columns": ["income", "hours"],
        "k": 3,
        "by": ["region"],
        "zeros": "keep",
        "constraints": ["if region = north then hours >= 0"],
    },
    "microaggregation, totals": {"columns": ["income"], "k": 3, "weight": "hours", "totals": ["region"]},
    "fuzzy_microaggregation": {
        "columns": ["income", "hours"],
        "k": 5,
        "minimum_size": 3,
        "constraints": ["hours >= 0"],
    },
    "fuzzy_microaggregation, cells": {"columns": ["income", "hours"], "k": 5, "entropy": 2.0, "cell_size": 60},
    "ipso": {"variant": "C", "dependents": ["income"], "independents": ["age", "region"], "weight": "hours"},
    "regression_synthesis": {"dependents": ["income", "hours"], "independents": ["age", "region"], "clusters": 2},
    "pseudonyms": {"columns": ["region"]},
    "refinement": {
        "requirements": [{"columns": ["age", "region"], "k": 5}],
        "taxonomies": {"region": {"land": {"coast": ["north", "east"], "inland": ["south"]}}},
        "domains": {"age": [0, 120]},
    },
    "refinement, mondrian": {
        "requirements": [
            {"columns": ["age", "region"], "k": 5, "models": [{"model": "distinct_l", "column": "income", "l": 2}]}
        ],
        "domains": {"age": [0, 120]},
        "search": "mondrian",
    },
    "refinement, models": {
        "requirements": [
            {
                "columns": ["age", "region"],
                "k": 5,
                "models": [
                    {"model": "t_closeness", "column": "income", "t": 0.4, "distance": "ordered"},
                    {"model": "entropy_l", "column": "income", "l": 2},
                ],
            }
        ],
        "domains": {"age": [0, 120]},
    },
}


def example(name):
    """The method that stands in EXAMPLES under a name: the registry's, and what is particular after a comma."""
    return method_class(name.split(",")[0])(**EXAMPLES[name])


def workers(rows=240, seed=3):
    """People whose every number is recognisable: incomes have seven digits, no two alike."""
    rng = np.random.default_rng(seed)
    age = rng.integers(17, 80, rows)
    return pd.DataFrame(
        {
            "income": 1_000_000 + rng.permutation(10 * rows)[:rows] * 811 + age * 1e4 + 0.25,
            "age": age,
            "hours": (20 + rng.integers(0, 2000, rows) / 97).round(6),
            "region": np.array(["north", "south", "east"])[rng.integers(0, 3, rows)],
        }
    )


assert not set(METHODS) ^ {name.split(",")[0] for name in EXAMPLES}, "each method has an example here"
