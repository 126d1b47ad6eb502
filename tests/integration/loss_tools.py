"""What the tests of information loss share: a table and its masked one, and the passes that measuring makes."""

import numpy as np
import pandas as pd

import dpmask
from dpmask.engine.progress import listening

NUMBERS = ["smooth", "tied", "holes", "far"]
PIL = dpmask.utility.probabilistic_information_loss


def numbers(rng, rows):
    """A column that is smooth, one with ties and one with missing values."""
    return {
        "smooth": rng.lognormal(size=rows),
        "tied": rng.integers(0, 12, rows),
        "holes": np.where(rng.random(rows) < 0.2, np.nan, rng.normal(size=rows)),
    }


def table(rows, seed=0):
    """A table of such numbers, ones far from zero and a category; and the same masked."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            **numbers(rng, rows),
            "far": 1e7 + rng.normal(size=rows).round(3),
            "région": rng.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1]),
        }
    )
    masked = frame.assign(
        smooth=frame["smooth"] + 0.1 * rng.normal(size=rows),
        tied=(frame["tied"] + rng.normal(size=rows)).round(),
        holes=frame["holes"].where(rng.random(rows) < 0.9) + 0.1 * rng.normal(size=rows),
        far=frame["far"] + 0.05 * rng.normal(size=rows),
    )
    masked["région"] = frame["région"].where(rng.random(rows) < 0.8, "d")
    return frame, masked


def small_samples(limit):
    """Samples so small that a small table is too large for them: all passes are made."""
    limit(quantile_sample=60)


def passes_of(function):
    labels = []
    with listening(lambda label, done, total: labels.append(label) if total and not done else None):
        result = function()
    return result, labels
