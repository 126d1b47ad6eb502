"""The first passes of each step and measure, for ``dpmask plan``: what they refuse a run would refuse, too.

They find what no footer shows: values that are not a number, infinities, outside a domain or not in a taxonomy, gaps
that too few records share, weights below zero. A table in a store, or one that is long to read, is not read for it.

What few passes fit masks the table for what follows, and so does a step that drops records, as what follows depends on
whom it leaves. Another step's columns are then looked at as they were: gaps, infinities and constants stay.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from dpmask.engine.limits import current_limits
from dpmask.engine.tasks import first_passes
from dpmask.errors import ColumnError, InputError, JobError
from dpmask.job.measures import named_columns, released_as
from dpmask.job.prepare import Prepared, compared_schema
from dpmask.lake.storage import Place
from dpmask.masking.claims import standing_claims, suppressed_columns
from dpmask.masking.method import FittedMethod, Method
from dpmask.measures.measure import MeasureRequest
from dpmask.table.label_sets import through_steps
from dpmask.table.steps import TableMasking
from dpmask.table.table import Table

_PASSES_OF_STEPS, _PASSES_OF_MEASURES = 3, 4  # a later one of a step may group all records
_MANY_PASSES = 1000
_OF_THE_ORIGINAL = ("columns", "by")
"""Parameters that name columns of which the original is enough, or that are looked at by themselves."""
_MOST_SECONDS = 10.0


def values_are_checked(prepared: Prepared) -> bool:
    """Whether the table is near and small enough to be read by a plan."""
    lake = prepared.lake
    return lake.rows <= current_limits().planned_rows and Place(lake.files[0].url).local


class _Rehearsed(NamedTuple):
    """A table as masked by some steps, and the columns that other steps change."""

    table: Table
    fitted: Sequence[FittedMethod]
    changed: frozenset[str]

    def after(self, method: Method[Any], fitted: FittedMethod | None) -> _Rehearsed:
        """The same after one more step."""
        if fitted is None or self.changed or isinstance(fitted, TableMasking):
            return self._replace(changed=self.changed.union(method.masks))
        return _Rehearsed(self.table.masked_by(fitted), [*self.fitted, fitted], self.changed)


def rehearse(prepared: Prepared, gate: Sequence[MeasureRequest]) -> None:
    """Refuse what a run would refuse in the first passes of its steps, and of its measures and those of the gate."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a run reports them
        found = _Rehearsed(prepared.lake, [], frozenset())
        for number, method in enumerate(prepared.job.methods):
            begun = _begin_step(prepared, found, number, method)
            if begun is None:
                return
            found = begun
        for request in (*prepared.job.measures, *gate):
            _begin_measure(prepared, found, request)


def _begin_step(prepared: Prepared, before: _Rehearsed, number: int, method: Method[Any]) -> _Rehearsed | None:
    """Begin a step, and finish it if that takes few passes; None if it drops records, and who that is takes long."""
    named, table = {*method.reads, *method.masks}, before.table
    short = method.drops and method.work(table.rows) <= _MOST_SECONDS
    fitted = None
    if named.issubset(table.masked_schema.names):
        try:
            with first_passes(_MANY_PASSES if short else _PASSES_OF_STEPS):
                fitted = method.fit_table(table, method.own_key(prepared.subkey(f"rehearsal {number}")))
        except (InputError, JobError) as error:
            if not (before.changed & named) or isinstance(error, ColumnError):
                raise
    return None if method.drops and fitted is None else before.after(method, fitted)


def _begin_measure(prepared: Prepared, found: _Rehearsed, request: MeasureRequest) -> None:
    """Begin a measure of those columns that have their final type; with others left out, only their faults count."""
    after, now = compared_schema(prepared.job, prepared.lake.schema), found.table.masked_schema

    def known(name: str) -> bool:
        if name not in after.names and name not in now.names:  # a word of a parameter, and no column
            return True
        return {name} <= set(after.names) & set(now.names) and bool(after.field(name).type == now.field(name).type)

    suppressed = suppressed_columns(standing_claims(found.fitted, now.names))
    asked = released_as(request, through_steps(found.fitted), suppressed)
    columns = [name for name in asked.get("columns", ()) if known(name)]
    whole = len(columns) == len(asked.get("columns", ()))
    others = named_columns([value for name, value in asked.items() if name not in _OF_THE_ORIGINAL])
    if (columns or whole) and all(map(known, others)):
        try:
            with first_passes(_PASSES_OF_MEASURES):
                request.definition.function(
                    prepared.lake, found.table, **asked | ({} if whole else {"columns": columns})
                )
        except JobError:
            pass  # `prepare` has checked all that the schemas say
        except InputError as error:
            if whole or isinstance(error, ColumnError):
                raise
