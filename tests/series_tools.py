"""A table of people that grows, released again and again: as a series, or each time for itself."""

import numpy as np
import pandas as pd

from dpmask import TopDownRefinement
from dpmask.engine.draws import make_key
from dpmask.masking.earlier_releases import EarlierRelease, EarlierReleases
from dpmask.table.people import known_people, people_of
from dpmask.table.table import as_table

REGIONS = {f"land {a}": {f"district {a}{b}": [f"town {a}{b}{c}" for c in range(3)] for b in range(2)} for a in range(3)}
TOWNS = [town for land in REGIONS.values() for district in land.values() for town in district]
ILLNESSES = ["none", "flu", "cough", "asthma", "cancer"]
QUASI, BESIDE = ["age", "town", "sex"], ["illness"]


def population(rows, seed=0):
    """People in the order in which they come."""
    rng = np.random.default_rng(seed)
    towns = rng.choice(len(TOWNS), rows, p=np.arange(1, len(TOWNS) + 1) / np.arange(1, len(TOWNS) + 1).sum())
    return pd.DataFrame(
        {
            "id": np.arange(rows),
            "age": np.clip(rng.normal(42, 22, rows), 0, 99).astype(int),
            "town": np.array(TOWNS)[towns],
            "sex": rng.choice(["f", "m"], rows),
            "illness": rng.choice(ILLNESSES, rows, p=[0.6, 0.2, 0.1, 0.08, 0.02]),
        }
    )


def method(k):
    return TopDownRefinement(
        requirements=[(QUASI, k)],
        taxonomies={"town": {"*": REGIONS}, "sex": {"any": ["f", "m"]}},
        domains={"age": [0, 100]},
    )


class Monthly:
    """Releases of a series, as a ledger would have them."""

    def __init__(self, k):
        self.method, self.k, self.releases, self.blocks = method(k), k, [], []

    def series(self, frame):
        """What the next release is bound to, and who is new in it."""
        known = known_people(make_key("series", seed=1), ["id"], [*QUASI, *BESIDE], self.blocks)
        return EarlierReleases(tuple(self.releases), known, tuple(BESIDE)), people_of(
            as_table(frame, "series"), known
        ).new

    def fit(self, frame):
        """The next release's refinement."""
        series, new = self.series(frame)
        fitted = self.method.after(series).fit(frame, seed=1)
        self.blocks.append(new)
        holds = frozenset(range(len(self.blocks)))
        number = len(self.releases) + 1
        self.releases.append(EarlierRelease(number, holds, fitted.frozen, ((tuple(QUASI), self.k),)))
        return fitted
