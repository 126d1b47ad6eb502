"""The guide of a refinement: classes that should stay recognisable, of a clustering or a column, or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True, repr=False)
class Labels:
    """The classes of a table's records: the columns that decide, how many there are, and the class of each row.

    By default all records are in one class.
    """

    inputs: tuple[str, ...] = ()
    classes: int = 1
    source: CategoryEncoder | FittedPartition | None = None

    def of(self, rows: Rows) -> NDArray[np.uint16]:
        """The class of each row of a block."""
        if self.source is None:
            return np.zeros(rows.num_rows, np.uint16)
        found = self.source.encode(rows) if isinstance(self.source, CategoryEncoder) else self.source.of(rows)
        return found.astype(np.uint16)


def guide_labels(table: Table, guide: Any, masked: Sequence[str], key: Subkey, who: str) -> Labels:
    """The classes that a guide gives a table; clusters are those of the masked columns by default."""
    if guide == DISTORTION:
        return Labels()
    if "column" in guide:
        return _column_labels(table, guide["column"], who)
    found = partition(table, guide["columns"] or list(masked), guide["clusters"], guide["algorithm"], key)
    return Labels(found.columns, found.clusters, found)


def _column_labels(table: Table, column: str, who: str) -> Labels:
    """The values of a column as classes; missing is one, too. One pass."""
    found = count_texts(table, [column], who, most=_MOST_CLASSES)[column]
    if found.many:
        raise JobError(
            f"{who}: the guide's column '{column}' has more than {_MOST_CLASSES} different values. Take a column of "
            "few classes, or a clustering: guide: {clusters: 6, algorithm: bisecting_kmeans}."
        )
    encoder = category_encoder(column, found, who)
    return Labels((column,), encoder.size, encoder)


def guide_columns(guide: Any) -> tuple[str, ...]:
    """The columns that a guide names."""
    if guide == DISTORTION:
        return ()
    return (guide["column"],) if "column" in guide else tuple(guide["columns"] or ())


def checked_guide(guide: Any, who: str) -> Any:
    """A guide in one spelling, or an error that lists what it may be."""
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
