"""What follows from a sample of pairs: what the joint intruder may learn of the mask, and attacks among few records.

The sample comes together in one task, in the order of positions, whatever the partitions were. Attacks in it are on a
crowd of its masked records, not on the whole table: they compare columns and ways to link, and are no rates of the
table unless the crowd is all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from dpmask.engine.collection import Collection
from dpmask.engine.limits import current_limits
from dpmask.kernels.arrays import Integers
from dpmask.kernels.covariance import CovarianceSums
from dpmask.kernels.linkage.nearest import Masked, Metric, as_close, true_radii
from dpmask.lake.reading import Rows
from dpmask.measures.risk.linkage_attack import Pairs, chosen_rows, pairs_of
from dpmask.measures.risk.linkage_metrics import Learnt, joint, learn
from dpmask.measures.risk.linkage_ranks import by_ranks
from dpmask.measures.risk.linkage_values import Values
from dpmask.table.columns import floats
from dpmask.table.pairs import POSITION

SAMPLE = 20_000
"""Pairs that are enough to learn from."""
CROWD = 5_000
"""Masked records among which columns are compared."""
_LARGEST_SET = 3
_WIDTH = 4  # sets of one size that are made larger
_COLUMNS = 10  # that small sets are made of
_MANY, _FEW = 500, 3
"""Of more columns than these the fewest that are left out: each such attack takes a second."""


class Crowd(NamedTuple):
    """Pairs, and their positions."""

    positions: Integers
    pairs: Pairs


class CrowdFindings(NamedTuple):
    """What a sample of pairs came to; rates are among ``crowd`` records."""

    learnt: Learnt
    joint: Metric  # over all columns
    ranks: Metric | None
    crowd: int
    rate: float
    without: dict[int, float]  # the rate without a column
    sets: tuple[tuple[tuple[int, ...], float], ...]  # the worst set of each size


def crowd_findings(
    values: Sequence[Values], moves: CovarianceSums, records: Collection[Rows], chosen: Integers | None
) -> CrowdFindings:
    """What follows from the chosen pairs, or from all."""
    limits = current_limits()
    attacked, work = limits.compared_by_few, limits.left_out_work

    def found() -> CrowdFindings:
        crowd = records.persist_joined(partial(crowd_part, values, chosen), joined_crowd, "linkage: sample")
        (findings,) = crowd.map(partial(_findings, values, moves, attacked, work), "linkage: few records")
        return findings

    return records.as_one_pass(found, "linkage: sample")


def crowd_part(values: Sequence[Values], chosen: Integers | None, rows: Rows) -> Crowd:
    """The chosen pairs of a block."""
    kept = chosen_rows(rows, chosen)
    return Crowd(floats(kept, POSITION).astype(np.int64), pairs_of(values, kept))


def joined_crowd(parts: Sequence[Crowd]) -> Crowd:
    """Those of all blocks, in the order of positions."""
    positions = np.concatenate([one.positions for one in parts])
    order = np.argsort(positions)
    points, ranges, masked = zip(*(one.pairs for one in parts), strict=True)
    if len(parts) == 1 and (np.diff(order) > 0).all():
        return parts[0]
    columns = [np.concatenate(some, axis=1)[:, order] for some in (points, ranges, *zip(*masked, strict=True))]
    return Crowd(positions[order], Pairs(columns[0], columns[1], Masked(*columns[2:])))


def some_pairs(pairs: Pairs, count: int) -> Pairs:
    """At most so many of the pairs, evenly spread."""
    rows = pairs.points.shape[1]
    kept = np.unique(np.linspace(0, rows - 1, min(count, rows)).astype(np.int64))
    return Pairs(pairs.points[:, kept], pairs.ranges[:, kept], Masked(*(part[:, kept] for part in pairs.masked)))


class _CrowdAttack(NamedTuple):
    """Some pairs, and the masked records that their own ones are among."""

    values: Sequence[Values]
    learnt: Learnt
    attacked: Pairs
    crowd: Masked

    def rate(self, columns: Sequence[int]) -> float:
        """The share of right links, these columns known."""
        return self.rate_of(joint(self.values, self.learnt, columns))

    def rate_of(self, metric: Metric) -> float:
        """The same in a metric."""
        known = metric.known(self.attacked.points, self.attacked.ranges)
        found = as_close(metric, known, true_radii(metric, known, self.attacked.masked), self.crowd)
        return float(np.where(found > 0, 1.0 / np.maximum(found, 1), 0.0).mean())


def _findings(
    values: Sequence[Values], moves: CovarianceSums, attacked: int, work: int, sample: Crowd
) -> CrowdFindings:
    learnt, every = learn(values, sample.pairs, moves), tuple(range(len(values)))
    crowd = some_pairs(sample.pairs, CROWD)
    attack = _CrowdAttack(values, learnt, some_pairs(crowd, attacked), crowd.masked)
    jointly = joint(values, learnt, every)
    rate = attack.rate_of(jointly)
    singles: dict[tuple[int, ...], float] = {(one,): rate if len(every) == 1 else attack.rate((one,)) for one in every}
    left_out = every if len(every) ** 3 <= work else _telling(singles, _left_out(len(every), work))
    without = {
        one: attack.rate([other for other in every if other != one]) if len(every) > 1 else 0.0 for one in left_out
    }
    by_rank = by_ranks(values, sample.pairs, moves, learnt)
    return CrowdFindings(learnt, jointly, by_rank, crowd.points.shape[1], rate, without, _worst_sets(attack, singles))


def _left_out(columns: int, work: int) -> int:
    """How many of many columns are left out, one at a time."""
    return max(_COLUMNS if columns <= _MANY else _FEW, work // columns**2)


def _worst_sets(
    attack: _CrowdAttack, singles: dict[tuple[int, ...], float]
) -> tuple[tuple[tuple[int, ...], float], ...]:
    """The worst set of 1, 2 and 3 columns: the worst ones of a size are made larger by each of the telling columns."""
    telling = _telling(singles, _COLUMNS)
    level, found = singles, [(_worst(singles)[0], max(singles.values()))]
    while len(found) < min(_LARGEST_SET, len(singles) - 1):
        larger = {tuple(sorted({*some, one})) for some in _worst(level)[:_WIDTH] for one in telling if one not in some}
        level = {some: attack.rate(some) for some in sorted(larger)}
        found.append((_worst(level)[0], max(level.values())))
    return tuple(found)


def _telling(singles: dict[tuple[int, ...], float], most: int) -> list[int]:
    """The columns that link most records alone, at most so many."""
    return [one for (one,) in _worst(singles)[:most]]


def _worst(rates: dict[tuple[int, ...], float]) -> list[tuple[int, ...]]:
    return sorted(rates, key=lambda some: (-rates[some], some))
