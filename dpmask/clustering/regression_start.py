"""Where fuzzy c-regression starts from: fuzzy c-means of independents and dependents together, on a sample of records.

Cano and Torra 2009 start from fuzzy c-means with m = 2. Where so many columns let its centres fall together a sharper
one is taken, as equal starts stay equal. A start need neither come to rest nor see all records: tables of more than
50,000 are sampled by their records' own draws, once for all groups of dependents, in one pass over the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from dpmask.clustering.base import sample_share
from dpmask.clustering.design import Design, Units
from dpmask.clustering.iteration import ClusterModel, Records, first_centers, solve, start_draws
from dpmask.engine.collection import Collection
from dpmask.engine.draws import Subkey, record_uniforms
from dpmask.engine.tasks import Position
from dpmask.errors import InputError
from dpmask.kernels.arrays import Floats
from dpmask.kernels.fuzzy.center_sums import memberships
from dpmask.kernels.regression.gram import ModelSums, start_sums
from dpmask.lake.reading import Rows
from dpmask.table.table import Table

_STARTS = 5
_SHIFT, _PASSES = 1e-3, 100
_FUZZINESS = (2.0, 1.5, 1.25, 1.1)
_APART = 1e-2


class Start(NamedTuple):
    """A fuzzy partition of the records: centres over some rows of z and y, in units of the regression."""

    inputs: list[int]
    centers: Floats
    fuzziness: float

    def sums(self, units: Units, fuzziness: float) -> ModelSums:
        """The sums of a block's first models; ``fuzziness`` is that of the regression."""
        values = np.concatenate([units.z[self.inputs], units.y])
        shares = memberships(values, self.centers, fuzziness=self.fuzziness)
        return start_sums(units.z, units.y, shares, fuzziness, units.weights)


def find_starts(clusters: int, table: Table, design: Design, groups: Sequence[list[int]], key: Subkey) -> list[Start]:
    """A start for each group of dependents (their places)."""
    records = design.counted.records
    if not records:
        raise InputError(f"{design.who}: there is no record without missing values.")
    if records < clusters:
        which = "without missing values" if design.weight is None else "without missing values and with a weight"
        raise InputError(f"{design.who}: {clusters} models need as many records {which}; there are {records}.")
    share = sample_share(records)
    rows, task = table.select(design.all_columns), partial(_sampled, design, key.subkey("sample"), share)
    sample = rows.with_positions().persist_joined(task, _joined, f"{design.who}: sample")
    return [_start(clusters, sample, design, group, key.subkey(f"start {group}")) for group in groups]


def _start(clusters: int, sample: Collection[Units], design: Design, group: list[int], key: Subkey) -> Start:
    """The start of a group, from the sample."""
    varied = (design.seen.low < design.seen.high) & (design.seen.sd > 0.0)
    inputs = [1 + place for place in design.numeric if varied[place]]
    draws = start_draws(key, _STARTS, clusters)
    (start,) = sample.map(partial(_solved, inputs, group, draws), f"{design.who}: start")
    return start


def _sampled(design: Design, key: Subkey, share: float, rows: Rows, position: Position) -> Units:
    """A block's complete records, each with this probability by its own draw: the same ones for any partitioning."""
    units = design.weighted(rows)
    chosen = units.counted
    if share < 1.0:
        chosen &= record_uniforms(key, position.first, len(chosen)) < share
    return units.of(chosen)


def _joined(parts: Sequence[Units]) -> Units:
    z, y, weights = zip(*parts, strict=True)
    whole = None if weights[0] is None else np.concatenate(weights)
    return Units(np.concatenate(z, axis=1), np.concatenate(y, axis=1), whole)


def _solved(inputs: list[int], group: list[int], draws: Floats, sample: Units) -> Start:
    """Fuzzy c-means of the sample, sharper and sharper until its centres lie apart."""
    values = np.concatenate([sample.z[inputs], sample.y[group]])
    records = Records(values, sample.weights, None)
    for fuzziness in _FUZZINESS:
        model = ClusterModel(fuzziness, None, None, partial=False, feasible=None)
        centers = solve(model, records, first_centers(model, records, draws), _SHIFT, _PASSES).centers
        if _all_apart(centers):
            break
    return Start(inputs, centers, fuzziness)


def _all_apart(centers: Floats) -> bool:
    gaps = np.abs(centers[:, None] - centers[None]).max(axis=2)
    return bool((gaps + np.diag(np.full(len(centers), np.inf)) > _APART).all())
