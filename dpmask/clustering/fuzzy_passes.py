"""What fuzzy c-means does with blocks of records: starts on a sample, passes over the data, checks of the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmask.clustering.iteration import TRAPPING, Model, Records, Solution, Step, corrected, first_centers, solve
from dpmask.clustering.scaling import Preparation
from dpmask.engine import progress
from dpmask.engine.passes import Blocks, Span, map_blocks, reduce_blocks
from dpmask.kernels.fuzzy.center_sums import CenterSums, merge
from dpmask.kernels.fuzzy.draws import Closeness, closeness, merge_closeness
from dpmask.kernels.fuzzy.settled import count_unsettled
from dpmask.table.table import Table

Floats = NDArray[np.float64]

_MOST = 0.5


def best_start(
    model: Model,
    initial: Floats | None,
    draws: Floats,
    shift: float,
    passes: int,
    accelerate: bool,
    records: Records,
    span: Span,
) -> Solution:
    """A sample clustered from the given centres, or from the best of several starts."""
    starts = first_centers(model, records, draws) if initial is None else initial[None]
    return solve(model, records, starts, shift, passes, accelerate=accelerate)


def full_pass(model: Model, read: Callable[..., Records], blocks: Blocks, centers: Floats) -> tuple[Floats, float]:
    """The next centres, and the objective at these."""
    sums = reduce_blocks(partial(_block_sums, model, read, centers[None]), merge, blocks, "fuzzy c-means")
    return model.image(sums, centers[None])[0], float(sums.objective[0])


def _block_sums(model: Model, read: Callable[..., Records], centers: Floats, content: Any, span: Span) -> CenterSums:
    return model.sums(read(content, span), centers)


def as_persisted(content: Records, span: Span) -> Records:
    """Records that are in memory already."""
    return content


def correct_on(model: Model, sample: Blocks, sweeps: int, point: Floats, image: Floats) -> Floats:
    """A two-grid correction, on the sample."""
    (better,) = map_blocks(partial(_correct, model, point, image, sweeps), sample, "two grids")
    return better


def _correct(model: Model, point: Floats, image: Floats, sweeps: int, records: Records, span: Span) -> Floats:
    return corrected(model, records, point, image, sweeps)


def report_step(step: Step) -> None:
    """Show a pass."""
    progress.note(f"fuzzy c-means: pass {step.number}, objective {step.objective:.8g}, shift {step.shift:.2g}")


def count_trapped(source: Table, preparation: Preparation, model: Model, centers: Floats) -> int:
    """How many centres owe most of their weight to one record, where fuzziness is too large for them to leave it."""
    if model.fuzziness is None or model.fuzziness <= TRAPPING:
        return 0
    near = source.on_floats(preparation.inputs.names, partial(_closeness, model, preparation, centers))
    found = reduce_blocks(near, merge_closeness, source.blocks, "fuzzy c-means: centres on records")
    return int((found.share > _MOST).sum())


def _closeness(
    model: Model, preparation: Preparation, centers: Floats, columns: Sequence[Floats], span: Span
) -> Closeness:
    values = preparation._replace(drop=True).records(columns, span).values
    return closeness(values, centers, fuzziness=model.fuzziness)


def count_moving(source: Table, preparation: Preparation, model: Model, centers: Floats) -> int:
    """How many records a tolerance has not brought to rest."""
    if model.tolerance is None and preparation.inputs.tolerance is None:
        return 0
    moving = source.on_floats(preparation.inputs.names, partial(_moving, model, preparation, centers))
    return reduce_blocks(moving, int.__add__, source.blocks, "fuzzy c-means: tolerance")


def _moving(model: Model, preparation: Preparation, centers: Floats, columns: Sequence[Floats], span: Span) -> int:
    records = preparation.records(columns, span)
    tolerance = records.tolerances if records.tolerances is not None else np.array(model.tolerance)
    return count_unsettled(
        records.values,
        centers,
        tolerance,
        fuzziness=model.fuzziness,
        entropy=model.entropy,
        partial=model.partial,
    )
