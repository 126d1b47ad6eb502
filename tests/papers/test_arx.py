"""ARX's own results for Adult, k = 5, as its repository states them, beside ours, all counted by ARX's loss.

arx-deidentifier/arx, src/test/java/org/deidentifier/arx/test/TestAnonymizationHeuristic.java (commit 8cdf3db): nine quasi-identifiers of
the 30,162 complete records of UCI's training file, by ARX's trees. Each case has the level of every column and the loss.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpmask
from dpmask.table.taxonomy import read_taxonomy

COLUMNS = [
    *("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation"),
    "salary-class",
]


@pytest.fixture(scope="module")
def adult(reference):
    frame = pd.read_parquet(reference / "adult.parquet").iloc[:32561].astype(str)
    return frame[(frame != "?").all(axis=1)].reset_index(drop=True).rename(columns={"class": "salary-class"})[COLUMNS]


@pytest.fixture(scope="module")
def trees(reference):
    return {name: str(reference / f"taxonomies/arx/adult_hierarchy_{name}.csv") for name in COLUMNS}


def losses(shares, leaves):
    """ARX's loss, and the normalised certainty penalty: of each cell the share of all values that it stands for."""
    own = [(shares[name].mean() - 1 / leaves[name]) / (1 - 1 / leaves[name]) for name in COLUMNS]
    penalty = [shares[name].where(shares[name] * leaves[name] > 1.5, 0.0).mean() for name in COLUMNS]
    return np.exp(np.log1p(own).mean()) - 1, np.mean(penalty)


def discernibility(table, dropped, rows):
    return int((table.groupby(COLUMNS).size() ** 2).sum()) + dropped * rows


@pytest.mark.parametrize(
    ("levels", "published", "suppressed", "penalty", "discerned"),
    [
        ((0, 3, 0, 0, 2, 1, 1, 1, 0), 0.22041192847984292, 2553, 0.2486, 84_094_395),
        ((0, 3, 0, 1, 1, 1, 1, 2, 0), 0.26611081915757495, 1178, 0.3191, 53_291_920),
    ],
)
def test_losses_that_arx_states(adult, trees, levels, published, suppressed, penalty, discerned):
    """Counted from its levels alone, its loss comes out: so both are counted alike. Records in groups below 5 lose all."""
    released, shares, leaves = {}, {}, {}
    for name, level in zip(COLUMNS, levels, strict=True):
        rows = [line.split(";") for line in Path(trees[name]).read_text(encoding="utf-8").splitlines()]
        leaves[name] = len(rows)
        released[name] = adult[name].map({row[0]: row[level] for row in rows})
        shares[name] = released[name].map(pd.Series([row[level] for row in rows]).value_counts() / len(rows))
    released = pd.DataFrame(released)
    gone = released.groupby(COLUMNS)["sex"].transform("size") < 5
    found = losses(pd.DataFrame(shares).mask(gone, 1.0), leaves)
    assert found[0] == pytest.approx(published, rel=1e-8)
    assert (int(gone.sum()), round(found[1], 4)) == (suppressed, penalty)
    assert discernibility(released[~gone], suppressed, len(adult)) == discerned


@pytest.mark.filterwarnings("ignore:TopDownRefinement")
@pytest.mark.parametrize(
    ("search", "loss", "penalty", "discerned"),
    [("one_cut", 0.7145, 0.7778, 11_341_568), ("mondrian", 0.1200, 0.1340, 498_014)],
)
def test_ours_with_the_same_trees(adult, trees, search, loss, penalty, discerned):
    """No record is left out. Regions lose half of what ARX's best levels do; one cut without drops loses three times it."""
    asked = dpmask.TopDownRefinement(requirements=[(COLUMNS, 5)], taxonomies=trees, search=search)
    fitted = asked.fit(adult, seed=1)
    masked = fitted.mask(adult)
    nodes = {name: {node.value: node.leaves for node in read_taxonomy(trees[name], "").nodes()} for name in COLUMNS}
    leaves = {name: max(nodes[name].values()) for name in COLUMNS}
    shares = pd.DataFrame({name: masked[name].map(nodes[name]) / leaves[name] for name in COLUMNS})
    found = losses(shares, leaves)
    assert found == pytest.approx((loss, penalty), abs=5e-5)
    assert fitted.figures.loss == pytest.approx(found[1], rel=1e-9)
    assert masked.groupby(COLUMNS).size().min() >= 5
    assert discernibility(masked, 0, len(adult)) == discerned
