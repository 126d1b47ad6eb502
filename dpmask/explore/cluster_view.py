"""The clusters that a step preserves, and those that a recipient finds in the masked table, in one projection.

Both are drawn by the original features of their records, on the first two principal components of these: an ellipse
for each cluster, its mean and one standard deviation around it. No record is drawn by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpmask.clustering.features import find_features
from dpmask.clustering.partition import FittedPartition, partition
from dpmask.engine.collection import itself
from dpmask.engine.draws import make_key
from dpmask.kernels.arrays import Counts, Floats, Integers
from dpmask.kernels.partitions import f_measure, match_point
from dpmask.masking.method import FittedMethod
from dpmask.table.encoders.interval import is_ordered
from dpmask.table.pairs import PRESENT, masked_name, pair
from dpmask.table.table import Table

_WHO = "explore"
FEWEST = 10
"""A cluster of fewer records is not drawn."""


class Ellipse(NamedTuple):
    """A cluster in the projection: its colour's number, records, centre, half axes and the angle of the first."""

    number: int
    records: int
    center: tuple[float, float]
    axes: tuple[float, float]
    degrees: float


class ClusterView(NamedTuple):
    """Clusters of the original and of the masked table; a masked one has the number of the original's that fits it."""

    columns: tuple[str, ...]
    algorithm: str
    original: list[Ellipse]
    masked: list[Ellipse]
    f_measure: float
    match_point: float
    shown: float
    """The share of the features' variance that the projection shows."""


def cluster_view(original: Table, masked: Table, fitted: Sequence[FittedMethod]) -> ClusterView | None:
    """The clusters that the first step preserves that does; None without one, or if a column of theirs is gone."""
    for step in fitted:
        clusters = step.preserved
        if clusters is not None and set(clusters.found.columns) <= set(masked.masked_schema.names):
            return _view(original, masked, clusters.found, clusters.algorithm)
    return None


def _view(original: Table, masked: Table, found: FittedPartition, algorithm: str) -> ClusterView:
    columns = list(found.columns)
    kinds = ((name, original.schema.field(name).type, masked.masked_schema.field(name).type) for name in columns)
    labelled = [name for name, old, new in kinds if is_ordered(old) and not is_ordered(new)]
    features = find_features(masked, columns, _WHO, intervals=labelled)
    key = make_key(_WHO, seed=0).subkey(_WHO)
    again = partition(masked, columns, found.clusters, algorithm, key, features=features)
    pairs = pair(original, masked, columns, _WHO, marks=True)
    names = [*columns, *map(masked_name, columns), PRESENT]
    (rows,) = pairs.select(names).map(itself, "explore: clusters")
    there = rows.column(PRESENT)
    rows = rows.filter(there.is_valid()) if there.null_count else rows
    values = found.features.values(rows.select(columns))
    before = found.of_values(values)
    after = again.of(rows.select([masked_name(name) for name in columns]).rename_columns(columns))
    size = found.clusters
    table = np.bincount(before * size + after, minlength=size**2).reshape(size, size)
    places, shown = _projected(values)
    return ClusterView(
        tuple(columns),
        algorithm,
        _ellipses(places, before, range(size)),
        _ellipses(places, after, _best_fits(table)),
        f_measure(table),
        match_point(table),
        shown,
    )


def _projected(values: Floats) -> tuple[Floats, float]:
    """Records on the first two principal components (2 x records), and the share of the variance that these have."""
    centered = values - values.mean(axis=1, keepdims=True)
    variances, directions = np.linalg.eigh(np.atleast_2d(centered @ centered.T / values.shape[1]))
    first = directions[:, ::-1][:, :2]
    first = first * np.sign(first[np.abs(first).argmax(axis=0), np.arange(first.shape[1])])  # the same picture always
    places = first.T @ centered
    if len(places) == 1:
        places = np.vstack([places, np.zeros_like(places)])
    return places, float(variances[-2:].sum() / max(variances.sum(), 1e-300))


def _best_fits(table: Counts) -> list[int]:
    """For each masked cluster the original's that it fits best."""
    sizes = np.maximum(table.sum(axis=1)[:, None] + table.sum(axis=0)[None], 1)
    return [int(one) for one in (2.0 * table / sizes).argmax(axis=0)]


def _ellipses(places: Floats, labels: Integers, numbers: Sequence[int]) -> list[Ellipse]:
    found = []
    for label, number in enumerate(numbers):
        members = places[:, labels == label]
        if members.shape[1] < FEWEST:
            continue
        center = members.mean(axis=1)
        spread, directions = np.linalg.eigh(np.cov(members))
        axes = np.sqrt(np.maximum(spread[::-1], 0.0))
        degrees = float(np.degrees(np.arctan2(directions[1, 1], directions[0, 1])))
        shape = (float(axes[0]), float(axes[1]))
        found.append(Ellipse(number, members.shape[1], (float(center[0]), float(center[1])), shape, degrees))
    return found
