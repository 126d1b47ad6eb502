"""Which thread compares in which metrics: each metric once, and those of one tree together."""

import numpy as np
import pytest

from dpmask.kernels.linkage.nearest import Metric
from dpmask.measures.risk.linkage_attack import metric_shares

NONE = np.empty(0)
PLAIN = [Metric(points, None, NONE, NONE, NONE) for points in (1, 2, 3)]
TURNED = [Metric(3, np.eye(3), NONE, NONE, NONE)] * 4


@pytest.mark.parametrize("metrics", [PLAIN, TURNED, PLAIN + TURNED, PLAIN + TURNED[:1]])
@pytest.mark.parametrize("most", [1, 2, 3, 4, 16])
def test_every_metric_is_in_one_share(metrics, most):
    shares = metric_shares(metrics, most)
    assert sorted(at for share in shares for at in share) == list(range(len(metrics)))
    assert len(shares) <= most
    plain = {at for at, metric in enumerate(metrics) if metric.as_it_is}
    assert sum(bool(plain.intersection(share)) for share in shares) == bool(plain)


def test_two_threads_have_both_something_to_do():
    assert metric_shares(PLAIN + TURNED, 2) == [(0, 1, 2), (3, 4, 5, 6)]
    assert metric_shares(PLAIN + TURNED, 3) == [(0, 1, 2), (3, 5), (4, 6)]
