"""What several releases of the same people show together, to an intruder who knows which of their rows belong together.

That is the worst case: rows are known to belong together by a pseudonym, by what is released unmasked, or by linking
them first. Two attacks:

* every number estimated by the best linear combination of all numbers of all releases, which averages fresh noise away,
  and subtracts noise that releases have in common; then how close the estimates lie to the originals. The same from one
  release alone stands beside it;
* linkage by these estimates and all other columns of all releases at once, whose labels are all read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpmask.kernels.arrays import Floats
from dpmask.kernels.covariance import covariance_sums, linear_estimate, merge_covariance_sums
from dpmask.lake.reading import Rows
from dpmask.measures.measure import MeasureRequest
from dpmask.results import Result
from dpmask.table.beside import beside
from dpmask.table.columns import as_floats, float_schema, floats, is_numeric
from dpmask.table.label_sets import LabelSets
from dpmask.table.table import Table

_WHO = "several releases"


class PairedRelease(NamedTuple):
    """A release in the order of the register, what of it is compared, and what its labels stand for."""

    masked: Table
    columns: Sequence[str]
    sets: LabelSets


def several_attacks(
    original: Table, releases: Sequence[PairedRelease], sample: int
) -> Iterator[tuple[MeasureRequest, Callable[[], Result]]]:
    """The attacks by all of the releases, and what takes each."""
    count = len(releases)
    names = [{column: _name(column, number) for column in one.columns} for number, one in enumerate(releases, start=1)]
    masked = beside([(one.masked, some) for one, some in zip(releases, names, strict=True)])
    known = beside([(original, some) for some in names])
    sets = {
        some[column]: labels
        for one, some in zip(releases, names, strict=True)
        for column, labels in one.sets.items()
        if column in some
    }
    parameters = {"columns": list(masked.schema.names), "sample": sample}
    linkage = MeasureRequest(f"linkage, {count} releases together", "distance_linkage", parameters)
    numbers = [name for name in names[0] if _numeric(original, name) and _numeric(masked, name)]
    every = [new for some in names for name, new in some.items() if _numeric(original, name) and _numeric(masked, new)]
    together = partial(_estimated, original, masked, numbers, every)
    yield linkage, lambda: linkage.definition.function(known, together(), **parameters, sets=sets)
    for inputs, what in ((numbers, "1 release"), (every, f"{count} releases")):
        if numbers:
            values = MeasureRequest(f"values, best estimate of {what}", "interval_disclosure", {"columns": numbers})
            yield values, partial(_disclosed, values, original, partial(_estimated, original, masked, numbers, inputs))


def _disclosed(request: MeasureRequest, original: Table, estimated: Callable[[], Table]) -> Result:
    return request.definition.function(original, estimated(), **request.parameters)


def _name(column: str, number: int) -> str:
    return column if number == 1 else f"{column} (release {number})"


def _numeric(table: Table, column: str) -> bool:
    return is_numeric(table.masked_schema.field(column).type)


def _estimated(original: Table, masked: Table, columns: Sequence[str], inputs: Sequence[str]) -> Table:
    """The masked table with the best linear estimates of these columns in their places."""
    if not columns:
        return masked
    own = {column: f"{column} (original)" for column in columns}
    both = beside([(original, own), (masked, {name: name for name in inputs})])
    names = [*own.values(), *inputs]
    found = both.floats(names).reduce(covariance_sums, merge_covariance_sums, f"{_WHO}: covariances")
    return masked.masked_by(LinearEstimate(tuple(columns), tuple(inputs), *linear_estimate(found, len(columns))))


@dataclass(frozen=True, repr=False)
class LinearEstimate:
    """A step that puts a linear combination of some columns in the places of others."""

    changes: tuple[str, ...]
    inputs: tuple[str, ...]
    slope: Floats
    constant: Floats
    dropped: None = None

    def check(self, table: Table) -> None:
        """It fits every table with these columns."""

    def masked_schema(self, schema: Any) -> Any:
        """The schema with doubles in their places."""
        return float_schema(schema, self.changes)

    def mask_rows(self, rows: Rows, first: int) -> Rows:
        """The rows with the estimates; missing where one of the inputs is."""
        values = np.array([floats(rows, name) for name in self.inputs])
        for column, slope, constant in zip(self.changes, self.slope, self.constant, strict=True):
            rows = as_floats(rows, column, (slope[:, None] * values).sum(axis=0) + constant)
        return rows
