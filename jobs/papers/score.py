"""The classic score of a masked file: 0.5 PIL + 0.5 DR, DR = 0.25 DBRL + 0.25 PRL + 0.5 ID, all in per cent.

Domingo-Ferrer and Torra (2001); DBRL is the mean over intruders who know the first 1..7 columns.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import dpmask


class Score(NamedTuple):
    """The score and its parts, and what the strongest intruder links, which the score does not show."""

    loss: float
    risk: float
    score: float
    distance: float
    probabilistic: float
    interval: float
    linked: float


def score(original: Any, masked: Any, columns: Sequence[str]) -> Score:
    """The score over some columns."""
    names = list(columns)
    loss = dpmask.utility.probabilistic_information_loss(original, masked, columns=names).value
    distance = dpmask.risk.distance_linkage(original, masked, columns=names)
    agreed = 100 * dpmask.risk.probabilistic_linkage(original, masked, columns=names[:7]).rate
    interval = 100 * dpmask.risk.interval_disclosure(original, masked, columns=names).rate
    risk = 0.25 * 100 * distance.by_known + 0.25 * agreed + 0.5 * interval
    return Score(loss, risk, (loss + risk) / 2, 100 * distance.by_known, agreed, interval, 100 * distance.rate)
