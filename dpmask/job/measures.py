"""The measures of a job: how they are taken, and how many passes that makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from dpmask.errors import InputError, JobError
from dpmask.measures.measure import MeasureRequest
from dpmask.measures.utility.shared_passes import groups_of, needs_of, take_together
from dpmask.results import Result
from dpmask.table.columns import is_numeric
from dpmask.table.table import Table


def named_columns(value: Any) -> Iterator[str]:
    """The names in a parameter that is a column, lists columns, or lists such lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from named_columns(one)


def takers(original: Table, masked: Table, requests: Sequence[MeasureRequest]) -> dict[str, Callable[[], Result]]:
    """What takes each measure of two tables. Losses of the same columns share their passes, which are made at once."""
    found: dict[str, Callable[[], Result]] = {
        one.name: partial(one.definition.function, original, masked, **one.parameters) for one in requests
    }
    is_number = partial(_numeric_in, (original.masked_schema, masked.masked_schema))
    for group in groups_of(requests, is_number):
        with suppress(JobError, InputError):  # each raises its own when it is taken alone
            found |= take_together(original, masked, group, "loss")
    return found


def _numeric_in(schemas: Sequence[Any], column: str) -> bool:
    return all(column in schema.names and is_numeric(schema.field(column).type) for schema in schemas)


def passes_of(requests: Sequence[MeasureRequest], schema: Any) -> int:
    """About how many passes over both tables measures take, shared ones counted once."""
    groups = groups_of(requests, partial(_numeric_in, (schema,)))
    together = [one for group in groups for one in group]
    alone = [one.definition.passes_for(one.parameters) for one in requests if one not in together]
    return sum(needs_of(one.measure for one in group).passes for group in groups) + sum(alone)
