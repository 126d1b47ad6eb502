"""What guides a refinement: classes whose tellability it keeps, from a clustering or a column, or none (distortion)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmask.clustering.partition import ALGORITHMS, FittedPartition, partition
from dpmask.engine.draws import Subkey
from dpmask.errors import JobError
from dpmask.lake.reading import Rows
from dpmask.table.encoders.category import CategoryEncoder, category_encoder, count_texts
from dpmask.table.table import Table

DISTORTION = "distortion"
_MOST_CLASSES = 256


class Labels(Protocol):
    """The class of every record of a block."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns it reads."""

    @property
    def classes(self) -> int:
        """How many classes there are."""

    def of(self, rows: Rows) -> NDArray[np.uint16]:
        """The class of each row."""


@dataclass(frozen=True)
class NoLabels:
    """All records in one class: nothing to keep."""

    inputs: tuple[str, ...] = ()
    classes: int = 1

    def of(self, rows: Rows) -> NDArray[np.uint16]:
        """0 for each row."""
        return np.zeros(rows.num_rows, np.uint16)


@dataclass(frozen=True)
class ColumnLabels:
    """The values of a column as classes; missing is one, too."""

    coding: CategoryEncoder

    @property
    def inputs(self) -> tuple[str, ...]:
        """The column."""
        return (self.coding.column,)

    @property
    def classes(self) -> int:
        """How many different values there are."""
        return self.coding.size

    def of(self, rows: Rows) -> NDArray[np.uint16]:
        """The number of each row's value."""
        return self.coding.encode(rows).astype(np.uint16)


def column_labels(table: Table, column: str, who: str) -> ColumnLabels:
    """The classes that a column tells; one pass."""
    found = count_texts(table, [column], who, most=_MOST_CLASSES)[column]
    if found.many:
        raise JobError(
            f"{who}: the guide's column '{column}' has more than {_MOST_CLASSES} different values. Take a column of "
            "few classes, or a clustering: guide: {clusters: 6, algorithm: bisecting_kmeans}."
        )
    return ColumnLabels(category_encoder(column, found, who))


@dataclass(frozen=True)
class ClusterLabels:
    """The clusters of the raw table as classes."""

    partition: FittedPartition

    @property
    def inputs(self) -> tuple[str, ...]:
        """The clustered columns."""
        return self.partition.columns

    @property
    def classes(self) -> int:
        """How many clusters there are."""
        return self.partition.clusters

    def of(self, rows: Rows) -> NDArray[np.uint16]:
        """The cluster of each row."""
        return self.partition.of(rows).astype(np.uint16)


def checked_guide(guide: Any, who: str) -> Any:
    """A guide as it was meant, or an error that says what it may be."""
    if guide == DISTORTION:
        return DISTORTION
    if isinstance(guide, Mapping) and set(guide) == {"column"} and isinstance(guide["column"], str):
        return dict(guide)
    if isinstance(guide, Mapping) and "clusters" in guide and set(guide) <= {"clusters", "algorithm", "columns"}:
        return _checked_clusters({"algorithm": ALGORITHMS[0], "columns": None, **guide}, who)
    raise JobError(
        f"{who}: guide must be 'distortion', {{column: NAME}}, or {{clusters: 6, algorithm: bisecting_kmeans}}, with "
        f"columns: [...] if others than the masked ones are clustered; got {guide!r}."
    )


def _checked_clusters(guide: dict[str, Any], who: str) -> dict[str, Any]:
    clusters, algorithm, columns = guide["clusters"], guide["algorithm"], guide["columns"]
    if isinstance(clusters, bool) or not isinstance(clusters, int) or not 1 < clusters <= _MOST_CLASSES:
        raise JobError(f"{who}: the guide's clusters must be an integer from 2 to {_MOST_CLASSES}; got {clusters!r}.")
    if algorithm not in ALGORITHMS:
        raise JobError(f"{who}: the guide's algorithm must be {' or '.join(ALGORITHMS)}; got {algorithm!r}.")
    named = isinstance(columns, list | tuple) and columns and all(isinstance(one, str) for one in columns)
    if columns is not None and not named:
        raise JobError(f"{who}: the guide's columns must be a list of names; got {columns!r}.")
    return {**guide, "columns": None if columns is None else list(columns)}


def guide_columns(guide: Any) -> tuple[str, ...]:
    """The columns that a guide names."""
    if guide == DISTORTION:
        return ()
    return (guide["column"],) if "column" in guide else tuple(guide["columns"] or ())


def guide_labels(table: Table, guide: Any, masked: Sequence[str], key: Subkey, who: str) -> Labels:
    """The classes that a guide makes of a table; clusters are those of the masked columns unless it names others."""
    if guide == DISTORTION:
        return NoLabels()
    if "column" in guide:
        return column_labels(table, guide["column"], who)
    columns = guide["columns"] or list(masked)
    return ClusterLabels(partition(table, columns, guide["clusters"], guide["algorithm"], key))
