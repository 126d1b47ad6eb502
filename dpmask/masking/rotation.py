"""Random rotation: D' = D R, with a secret R that is any rotation or reflection of the columns' space, equally likely.

Distances between records are kept, so that whatever needs only those, such as k-means, finds the same. The released
columns are mixtures: they keep their names, but none of them is the variable it was.

Protects against: reading off a value, as long as nobody knows R. Nothing else: about as many known records as there are
columns give R away, and with it everybody, also where memberships were rotated and their bounds can be guessed
(``known_records`` measures it, in every job). Distances, outliers and clusters stay visible; columns
with far larger values than the others shine through.

Paper: Ahmad, Haque and Tauhid 2014, who rotate memberships. The masked columns are doubles; a record with a missing
value cannot be rotated and is refused. Passes over the data: one for the range, one to mask. Memory per task: one
block, and its columns twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.draws import Subkey, record_normals
from dpmask.errors import InputError, JobError
from dpmask.kernels.rotation import haar_orthogonal, rotated
from dpmask.kernels.warm_up import KernelUse, Task
from dpmask.lake.reading import Rows, Schema
from dpmask.masking.column_method import ColumnMethod
from dpmask.masking.method import FittedMethod
from dpmask.parameters import Names, require_columns
from dpmask.table.checks import require_complete, require_complete_by_footers, require_finite_rows
from dpmask.table.columns import as_floats, float_schema, floats, room
from dpmask.table.table import Table

_UNEVEN = 10.0
_NOT_ROTATED = ", which cannot be rotated. Fill them in, drop those records, or take the column out."


@dataclass(frozen=True, kw_only=True)
class RandomRotation(ColumnMethod["FittedRotation"]):
    """Columns rotated together by a secret orthogonal matrix.

    Parameters
    ----------
    columns
        Two or more columns of numbers, without missing values.

    Examples
    --------
    >>> import dpmask, pandas
    >>> people = pandas.DataFrame({"age": [31.0, 45.0, 62.0], "hours": [40.0, 38.5, 20.0]})
    >>> masked = dpmask.RandomRotation(columns=["age", "hours"]).fit(people, seed=7).mask(people)
    >>> round(float((masked**2).sum().sum() - (people**2).sum().sum()), 6)
    0.0

    """

    columns: Names

    def __post_init__(self) -> None:
        require_columns(self, "columns")
        if len(self.columns) == 1:
            raise JobError(f"{self.who}: columns must be two or more; a single one can only change its sign.")

    @property
    def kernels(self) -> KernelUse:
        """What it runs."""
        return KernelUse((Task("rotation"), Task("normals")))

    def check(self, table: Table) -> None:
        """Refuse a table whose schema or footers do not fit, before anything is read."""
        super().check(table)
        require_complete_by_footers(table, self.columns, self.who, _NOT_ROTATED)

    def masked_schema(self, schema: Schema) -> Schema:
        """Rotated columns are doubles."""
        return float_schema(schema, self.columns)

    def attacks(self) -> Mapping[str, Mapping[str, Any]]:
        """An intruder who knows some records."""
        return {"known_records": {"columns": list(self.masks)}}

    def fit_table(self, table: Table, key: Subkey) -> FittedRotation:
        """Draw the matrix; one pass refuses columns that cannot be rotated."""
        moments = self.moments(table, "rotation: range")
        require_complete(moments, self.columns, table.rows, self.who, _NOT_ROTATED)
        size = len(self.columns)
        matrix = haar_orthogonal(record_normals(key, 0, size * size).reshape(size, size))
        return FittedRotation(self, matrix, float(moments.sd.max() / moments.sd.min()) > _UNEVEN, key)


@dataclass(frozen=True)
class FittedRotation(FittedMethod):
    """A rotation ready to be applied. The matrix undoes it: it is as secret as the key."""

    method: RandomRotation
    matrix: NDArray[np.float64]
    uneven: bool
    key: Subkey

    @property
    def of_one_table(self) -> str:
        """Two tables rotated alike differ by what the originals differ by."""
        return "its matrix was drawn for that table alone"

    def mask_rows(self, rows: Rows, first: int) -> Rows:
        """One block rotated."""
        columns = [floats(rows, column) for column in self.inputs]
        turned = rotated(columns, self.matrix, [room(rows.num_rows) for _ in columns])
        if not np.isfinite(sum(float(values.sum()) for values in turned)):
            require_finite_rows(columns, self.inputs, self.who, "rotated")
            raise InputError(
                f"{self.who}: the table has values too large to be rotated. Divide their columns by a power of ten "
                "first."
            )
        for column, values in zip(self.inputs, turned, strict=True):
            rows = as_floats(rows, column, values)
        return rows

    def statement(self) -> str:
        """What a reader of the release may know."""
        return (
            f"The columns {', '.join(self.method.columns)} were rotated together by a secret orthogonal matrix: each "
            "is now a mixture of all of them, and its name means nothing any more. Distances between records over "
            "these columns are kept; means, variances and correlations of single columns are not."
        )

    def for_analysts(self) -> list[str]:
        """What can be done with rotated columns, and what not."""
        return [
            "Only what rests on distances between records, or is the same for all rotations, can be computed from "
            f"{', '.join(self.method.columns)}, taken together: clusters, nearest neighbours, principal variances, and "
            "fits and R^2 of linear regressions on all of them. No total, mean or coefficient of a single column means "
            "anything."
        ]

    def warnings(self) -> list[str]:
        """Columns so uneven that the largest dominates every rotated one."""
        if not self.uneven:
            return []
        return [
            f"{self.who}: standard deviations of the columns differ by more than a factor of {_UNEVEN:g}, so that "
            "every rotated column shows mostly the largest of them. Apply membership_transform to them first."
        ]

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        count = len(self.method.columns)
        return [
            f"About {count} known records, as many as there are columns, undo the rotation and disclose every record: "
            "known_records measures it.",
            "Distances between records are kept, so outliers stay outliers and can be recognised.",
            *self.warnings(),
        ]
