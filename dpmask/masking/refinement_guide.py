"""What guides a refinement: classes whose tellability it keeps, from a clustering or a column, or none (distortion)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmask.errors import JobError
from dpmask.lake.coding import Coding, find_values, value_coding
from dpmask.lake.columns import Rows
from dpmask.lake.table import Table

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

    coding: Coding

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
        return self.coding.codes(rows).astype(np.uint16)


def column_labels(table: Table, column: str, who: str) -> ColumnLabels:
    """The classes that a column tells; one pass."""
    found = find_values(table, [column], {}, who)[column]
    if len(found.texts) > _MOST_CLASSES:
        raise JobError(
            f"{who}: the guide's column '{column}' has more than {_MOST_CLASSES} different values. Take a column of "
            "few classes, or a clustering: guide: {clusters: 6, algorithm: bisecting_kmeans}."
        )
    return ColumnLabels(value_coding(column, found, who))


def checked_guide(guide: Any, who: str) -> Any:
    """A guide as it was meant, or an error that says what it may be."""
    if guide == DISTORTION:
        return DISTORTION
    if isinstance(guide, Mapping) and set(guide) == {"column"} and isinstance(guide["column"], str):
        return dict(guide)
    raise JobError(f"{who}: guide must be 'distortion' or {{column: NAME}}; got {guide!r}.")


def guide_columns(guide: Any) -> tuple[str, ...]:
    """The columns that a guide names."""
    return () if guide == DISTORTION else (guide["column"],)


def guide_labels(table: Table, guide: Any, who: str) -> Labels:
    """The classes that a guide makes of a table."""
    if guide == DISTORTION:
        return NoLabels()
    return column_labels(table, guide["column"], who)
