"""Clustering units: what a table's columns are divided by, and records in these units."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.clustering.iteration import Records
from dpmask.constraints.sets import Constraints, parse_constraints
from dpmask.engine.draws import Subkey, record_uniforms
from dpmask.engine.tasks import Position
from dpmask.errors import JobError
from dpmask.kernels.arrays import Floats
from dpmask.kernels.covariance import CovarianceSums, covariance_sums, merge_covariance_sums
from dpmask.kernels.projection import Feasible, InconsistentConstraintsError, feasible_set, project
from dpmask.table.checks import require_weights
from dpmask.table.encoders.numeric import Scale
from dpmask.table.table import Table


class Inputs(NamedTuple):
    """The columns a clustering reads: those it clusters, then the weight and the tolerance, if there are any."""

    columns: tuple[str, ...]
    weight: str | None
    tolerance: str | None

    @property
    def names(self) -> list[str]:
        """All of them, each once."""
        return [*self.columns, *(name for name in (self.weight, self.tolerance) if name is not None)]

    def split(self, columns: Sequence[Floats], who: str) -> tuple[Sequence[Floats], Floats | None, Floats | None]:
        """A block's columns in the order of ``names``, taken apart."""
        rest = iter(columns[len(self.columns) :])
        weights = next(rest) if self.weight is not None else None
        tolerances = next(rest) if self.tolerance is not None else None
        for name, values in ((self.weight, weights), (self.tolerance, tolerances)):
            if name is not None and values is not None:
                require_weights(values, name, who)
        return columns[: len(self.columns)], weights, tolerances


def covariance_of(table: Table, inputs: Inputs, who: str) -> CovarianceSums:
    """Means, deviations and covariances of the clustered columns, in one pass."""
    return table.reduce(inputs.names, partial(_covariance, inputs, who), merge_covariance_sums, "spread")


def _covariance(inputs: Inputs, who: str, columns: Sequence[Floats]) -> CovarianceSums:
    values, weights, _ = inputs.split(columns, who)
    return covariance_sums(values, weights)


class Preparation(NamedTuple):
    """How a task turns a block's columns into records: scaled, and without incomplete ones when these are dropped."""

    inputs: Inputs
    scale: Scale
    drop: bool
    who: str

    def records(self, columns: Sequence[Floats]) -> Records:
        """All records of a block."""
        values, weights, tolerances = self.inputs.split(columns, self.who)
        block = np.array(values)
        block -= self.scale.mean[:, None]  # in place: a block is large
        block /= self.scale.sd[:, None]
        records = Records(block, weights, tolerances)
        return _kept(records, np.all(~np.isnan(block), axis=0)) if self.drop else records

    def sample(self, key: Subkey, share: float, columns: Sequence[Floats], position: Position) -> Records:
        """Each record of a block with this probability, by its own draw: the same records for any partitioning."""
        if share < 1.0:
            drawn = record_uniforms(key, position.first, len(columns[0])) < share
            columns = [column[drawn] for column in columns]
        return self.records(columns)


def _kept(records: Records, rows: NDArray[np.bool_]) -> Records:
    if rows.all():
        return records
    values, weights, tolerances = records
    return Records(
        np.ascontiguousarray(values[:, rows]),
        None if weights is None else weights[rows],
        None if tolerances is None else tolerances[rows],
    )


def joined(parts: Sequence[Records]) -> Records:
    """Records of several blocks as one."""
    values, weights, tolerances = zip(*parts, strict=True)
    return Records(
        np.concatenate(values, axis=1),
        None if weights[0] is None else np.concatenate(weights),
        None if tolerances[0] is None else np.concatenate(tolerances),
    )


class Constrained(NamedTuple):
    """Constraints as written, and the centres they allow in clustering units and in original ones."""

    written: Constraints
    units: Feasible
    original: Feasible

    def released(self, centers: Floats, scale: Scale) -> Floats:
        """Centres in original units that hold the constraints to the last digit."""
        return project(scale.to_original(centers), self.original, 1.0 / scale.sd**2)


def constrained(
    texts: Sequence[str],
    columns: Sequence[str],
    scale: Scale,
    who: str,
    *,
    lowest: Floats | float = -np.inf,
    highest: Floats | float = np.inf,
) -> Constrained | None:
    """The set the constraints leave to the centres; None without constraints, an error where it is empty.

    ``lowest`` and ``highest`` are what the columns' types can hold, where centres must be of these types.
    """
    if not texts:
        return None
    written = parse_constraints(texts, columns)
    lower, upper = np.maximum(written.lower, lowest), np.minimum(written.upper, highest)
    limits = (written.coefficients, written.constants, lower, upper)
    try:
        return Constrained(written, feasible_set(*limits, mean=scale.mean, sd=scale.sd), feasible_set(*limits))
    except InconsistentConstraintsError as error:
        which = f"'{written.texts[error.row]}'" if error.row is not None else ", ".join(f"'{text}'" for text in texts)
        raise JobError(f"{who}: constraints {which}: {error}.") from None


def collapse_threshold(covariance: Floats, feasible: Feasible | None) -> float:
    """The entropy weight below which all centres fall into one: 1 / (2 times the largest variance in any direction).

    With equalities only the directions that they leave free count.
    """
    if feasible is not None and len(feasible.rows):
        free = np.eye(len(covariance)) - feasible.rows.T @ feasible.rows
        covariance = free @ covariance @ free
    largest = float(np.linalg.eigvalsh(covariance)[-1])
    return 1.0 / (2.0 * largest) if largest > 0.0 else np.inf
