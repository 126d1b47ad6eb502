"""Random rotation: D' = D R, with a secret R that is any rotation or reflection of the columns' space, equally likely.

Distances between records are kept, so that whatever needs only those, such as k-means, finds the same. The released
columns are mixtures: they keep their names, but none of them is the variable it was.

Protects against: reading off a value, as long as nobody knows R. Nothing else: about as many known records as there are
columns give R away, and with it everybody, also where memberships were rotated and their bounds can be guessed
(``known_records`` measures it, and a job without it is warned). Distances, outliers and clusters stay visible; columns
with far larger values than the others shine through.

Paper: Ahmad, Haque and Tauhid 2014, who rotate memberships. The masked columns are doubles; a record with a missing
value cannot be rotated and is refused. Passes over the data: one for the range, one to mask. Memory per task: one
block, and its columns twice.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.draws import Subkey, make_key, record_normals
from dpmask.errors import InputError, JobError
from dpmask.kernels.moments import column_moments, merge_moments
from dpmask.kernels.rotation import haar_orthogonal, rotated
from dpmask.lake.reading import Rows
from dpmask.masking.draw_purpose import told_apart
from dpmask.masking.fitted import FittedColumns
from dpmask.parameters import require_columns
from dpmask.table import table as tables
from dpmask.table.checks import require_complete, require_finite_rows, require_spread, require_spread_by_footers
from dpmask.table.columns import as_floats, float_schema, floats, require_numeric, room

_WHO = "RandomRotation"
_UNEVEN = 10.0
_ADVICE = "Fill them in, drop those records, or take the column out."


@dataclass(frozen=True, kw_only=True)
class RandomRotation:
    """Two or more ``columns``, rotated together by a secret orthogonal matrix."""

    columns: tuple[str, ...]

    passes: ClassVar[int] = 1
    judged: ClassVar[tuple[str, ...]] = ()
    undone_by: ClassVar[str] = "known_records"
    """The measure of an attack that undoes it: a job that does not take it is warned."""

    @property
    def masks(self) -> tuple[str, ...]:
        """The columns it masks."""
        return self.columns

    def __post_init__(self) -> None:
        require_columns(self, "columns")
        if len(self.columns) == 1:
            raise JobError(f"{_WHO}: columns must be two or more; a single one can only change its sign.")

    def work(self, rows: int) -> float:
        """CPU seconds beyond reading the table: none to speak of."""
        return 0.0

    def masked_schema(self, schema: Any) -> Any:
        """Rotated columns are doubles."""
        return float_schema(schema, self.columns)

    def check(self, table: tables.Table) -> None:
        """Refuse a table whose schema or footers do not fit, before anything is read."""
        require_numeric(table.masked_schema, self.columns, _WHO)
        require_spread_by_footers(table, self.columns, _WHO)

    def fit(self, table: Any, *, key: str | bytes | Subkey | None = None, seed: int | None = None) -> FittedRotation:
        """Draw the matrix, bound to the table by one pass for its range."""
        source = tables.as_table(table, _WHO)
        secret = make_key(_WHO, key=key, seed=seed)
        self.check(source)
        seen = source.reduce(self.columns, column_moments, merge_moments, "rotation: range")
        require_spread(seen, self.columns, _WHO)
        require_complete(seen, self.columns, source.rows, _WHO, f", which cannot be rotated. {_ADVICE}")
        own = secret.subkey(f"rotation {told_apart(source, self.columns, seen.values, seen.low, seen.high)}")
        size = len(self.columns)
        matrix = haar_orthogonal(record_normals(own, 0, size * size).reshape(size, size))
        fitted = FittedRotation(self, matrix, float(seen.sd.max() / seen.sd.min()) > _UNEVEN, own)
        for warning in fitted.warnings():
            warnings.warn(warning, stacklevel=2)
        return fitted


@dataclass(frozen=True)
class FittedRotation(FittedColumns):
    """A rotation ready to be made. The matrix undoes it: it is as secret as the key."""

    method: RandomRotation
    matrix: NDArray[np.float64] = field(repr=False)
    uneven: bool
    key: Subkey

    who: ClassVar[str] = _WHO

    def mask_rows(self, rows: Rows, first: int) -> Rows:
        """One block rotated."""
        columns = [floats(rows, column) for column in self.inputs]
        turned = rotated(columns, self.matrix, [room(rows.num_rows) for _ in columns])
        if not np.isfinite(sum(float(values.sum()) for values in turned)):
            require_finite_rows(columns, self.inputs, _WHO, "rotated")
            raise InputError(
                f"{_WHO}: the table has values too large to be rotated. Divide their columns by a power of ten first."
            )
        for column, values in zip(self.inputs, turned, strict=True):
            rows = as_floats(rows, column, values)
        return rows

    def masked_schema(self, schema: Any) -> Any:
        """Rotated columns are doubles."""
        return self.method.masked_schema(schema)

    def statement(self) -> str:
        """What a reader of the release may know."""
        return (
            f"The columns {', '.join(self.method.columns)} were rotated together by a secret orthogonal matrix: each "
            "is now a mixture of all of them, and its name means nothing any more. Distances between records over "
            "these columns are kept; means, variances and correlations of single columns are not."
        )

    def warnings(self) -> list[str]:
        """Columns so uneven that the largest shines through."""
        if not self.uneven:
            return []
        return [
            f"{_WHO}: standard deviations of the columns differ by more than a factor of {_UNEVEN:g}, so that every "
            "rotated column shows mostly the largest of them. Apply membership_transform to them first."
        ]

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        count = len(self.method.columns)
        return [
            f"About {count} known records, as many as there are columns, undo the rotation and give every record away: "
            "known_records measures it.",
            "Distances between records are kept, so outliers stay outliers and can be recognised.",
            *self.warnings(),
        ]
