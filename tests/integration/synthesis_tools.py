"""What the tests of synthetic dependents share: people of two kinds, and the methods."""

import numpy as np
import pandas as pd

import dpmask

COLUMNS = {"dependents": ["y", "k"], "independents": ["x", "g", "b"]}


def people(rows=1500, seed=0):
    """Two kinds of people with lines of their own, a category and a flag that shift them."""
    rng = np.random.default_rng(seed)
    x, kind = rng.normal(size=rows), rng.random(rows) < 0.5
    g, b = rng.choice(["a", "é", "c"], rows, p=[0.5, 0.3, 0.2]), rng.random(rows) < 0.4
    y = np.where(kind, 2 * x, 5 - x) + 1.5 * (g == "é") + b + 0.2 * rng.normal(size=rows)
    k = np.rint(500 + 100 * x + 40 * kind + 5 * rng.normal(size=rows)).astype(np.int64)
    w = rng.integers(1, 4, rows)
    return pd.DataFrame({"x": x, "g": g, "b": b, "y": y, "k": k, "w": w, "other": np.arange(rows)})


def models(**options):
    return dpmask.RegressionSynthesis(**COLUMNS | {"clusters": 3} | options)


METHODS = {
    "each": models(),
    "joint": models(joint=True, residual_noise=True, weight="w"),
    "ipso": dpmask.IPSO(variant="C", **COLUMNS),
}
