"""Torra (2020), "Fuzzy clustering-based microaggregation ... for data with constraints": Tables 3 and 4.

The printed centroids are one membership step and one centre step from V0 with m = 1.5 in raw units. Record 12 of Table 1
breaks the paper's own constraint (1.16*13 + 1.07*100 = 122.08, not 125.56); with 16 for 13 it holds. "Original" was
computed from the table as printed and then projected, the converged objectives use the corrected record.
"""

import numpy as np
import pytest
from simple_loop import cluster, plus_plus
from torra_2020.printed import (
    CONSTRAINT,
    TABLE_1,
    TABLE_2,
    TABLE_3,
    TABLE_4,
    V0,
    block,
    centroids,
    corrected,
    original_centroids,
)

from dpmask.kernels.projection import project

PRINTED = 2e-5  # five decimals, rounded once in the paper and once more through V0's three decimals


def test_table_1_breaks_the_constraint_in_record_12_only():
    """Projecting the records onto the constraint moves that one alone, and none once it is corrected."""
    printed, right = (
        np.abs(project(table.T, CONSTRAINT) - table.T).max(axis=1) for table in (block(TABLE_1), corrected())
    )
    assert np.flatnonzero(printed > 1e-9).tolist() == [11]
    assert right.max() < 1e-9


@pytest.mark.parametrize("data", list(TABLE_3))
def test_table_3_centroids(data):
    """From the data where they are printed (the original, noise 1.5); else what is constrained, from what is printed as free."""
    found = centroids(data)
    np.testing.assert_allclose(found, TABLE_3[data], rtol=0, atol=PRINTED)
    if "constrained" in data:
        np.testing.assert_allclose(found @ [1.16, 1.07, -1.0], 0.0, atol=1e-12)


@pytest.mark.parametrize("data", list(TABLE_4))
def test_table_4_distances_to_the_original_centroids(data):
    found = np.linalg.norm(centroids(data) - original_centroids(), axis=1)
    np.testing.assert_allclose(found, TABLE_4[data], rtol=0, atol=PRINTED)


@pytest.mark.parametrize(
    ("table", "feasible", "best", "from_v0"),
    [
        (corrected(), None, 5000.39746, 6801.99921),
        (corrected(), CONSTRAINT, 5000.39746, 6801.99921),  # Prop. 5: data that keep the constraint need no projection
        (block(TABLE_2), None, 4891.96350, 7020.76743),
        (block(TABLE_2), CONSTRAINT, 4901.69640, 7032.65664),
    ],
)
def test_converged_objectives(table, feasible, best, from_v0):
    """The best of many starts; the paper's own start V0 leads to a local minimum."""
    found = cluster(table, plus_plus(table, 4, 20, seed=0), feasible=feasible, fuzziness=1.5)
    assert found.objective.min() == pytest.approx(best, abs=1e-5)
    local = cluster(table, V0[None].copy(), feasible=feasible, fuzziness=1.5)
    assert local.objective[0] == pytest.approx(from_v0, abs=1e-5)
    if feasible is not None:
        np.testing.assert_allclose(found.centers @ [1.16, 1.07, -1.0], 0.0, atol=1e-11)
