"""What fuzzy c-means does with blocks of records: starts on a sample, passes over the data, checks of the result."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from dpmask.clustering.iteration import (
    TRAPPING,
    ClusterModel,
    HistoryPoint,
    Records,
    Solution,
    corrected,
    first_centers,
    solve,
)
from dpmask.clustering.scaling import Preparation
from dpmask.engine import progress
from dpmask.engine.collection import Collection
from dpmask.kernels.arrays import Floats
from dpmask.kernels.fuzzy.center_sums import merge
from dpmask.kernels.fuzzy.draws import Closeness, closeness, merge_closeness
from dpmask.kernels.fuzzy.settled import count_unsettled
from dpmask.table.table import Table

_MOST = 0.5


def best_start(
    model: ClusterModel,
    initial: Floats | None,
    draws: Floats,
    shift: float,
    passes: int,
    accelerate: bool,
    records: Records,
) -> Solution:
    """A sample clustered from the given centres, or from the best of several starts."""
    starts = first_centers(model, records, draws) if initial is None else initial[None]
    return solve(model, records, starts, shift, passes, accelerate=accelerate)


def full_pass(model: ClusterModel, records: Collection[Records], centers: Floats) -> tuple[Floats, float]:
    """The next centres, and the objective at these."""
    sums = records.reduce(partial(model.sums, centers=centers[None]), merge, "fuzzy c-means")
    return model.image(sums, centers[None])[0], float(sums.objective[0])


def correct_on(model: ClusterModel, sample: Collection[Records], sweeps: int, point: Floats, image: Floats) -> Floats:
    """A two-grid correction, on the sample."""
    (better,) = sample.map(partial(corrected, model, point, image, sweeps), "two grids")
    return better


def report_step(step: HistoryPoint) -> None:
    """Show a pass."""
    progress.step(f"fuzzy c-means: pass {step.number}, objective {step.objective:.8g}, shift {step.shift:.2g}")


def count_trapped(source: Table, preparation: Preparation, model: ClusterModel, centers: Floats) -> int:
    """How many centres owe most of their weight to one record, where fuzziness is too large for them to leave it."""
    if model.fuzziness is None or model.fuzziness <= TRAPPING:
        return 0
    task = partial(_closeness, model, preparation, centers)
    found = source.reduce(preparation.inputs.names, task, merge_closeness, "fuzzy c-means: centres on records")
    return int((found.share > _MOST).sum())


def _closeness(model: ClusterModel, preparation: Preparation, centers: Floats, columns: Sequence[Floats]) -> Closeness:
    values = preparation._replace(drop=True).records(columns).values
    return closeness(values, centers, fuzziness=model.fuzziness)


def count_moving(source: Table, preparation: Preparation, model: ClusterModel, centers: Floats) -> int:
    """How many records a tolerance has not brought to rest."""
    if model.tolerance is None and preparation.inputs.tolerance is None:
        return 0
    moving = partial(_moving, model, preparation, centers)
    return source.reduce(preparation.inputs.names, moving, int.__add__, "fuzzy c-means: tolerance")


def _moving(model: ClusterModel, preparation: Preparation, centers: Floats, columns: Sequence[Floats]) -> int:
    records = preparation.records(columns)
    tolerance = records.tolerances if records.tolerances is not None else np.array(model.tolerance)
    return count_unsettled(
        records.values,
        centers,
        tolerance,
        fuzziness=model.fuzziness,
        entropy=model.entropy,
        partial=model.partial,
    )
