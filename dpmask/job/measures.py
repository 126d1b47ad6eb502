"""The measures of a job: how they are taken, and how many passes that makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from dpmask.constraints.conditions import split_rules
from dpmask.engine.remembered import remembered
from dpmask.errors import InputError, JobError
from dpmask.masking.method import Method
from dpmask.measures import CONSISTENCY, find_measure
from dpmask.measures.measure import MeasureRequest
from dpmask.measures.utility.shared_passes import groups_of, needs_of, take_together
from dpmask.results import Result
from dpmask.table.columns import is_numeric
from dpmask.table.keyed_sample import rows_digest
from dpmask.table.label_sets import LabelSets, only_of
from dpmask.table.table import Table


def named_columns(value: Any) -> Iterator[str]:
    """The names in a parameter that is a column, lists columns, or lists such lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from named_columns(one)


def consistency_requests(
    before: Any, after: Any, methods: Sequence[Method[Any]], own: Sequence[MeasureRequest]
) -> list[MeasureRequest]:
    """What every job reports of zeros, missing values and the rules of its steps, unless it asks for it itself."""
    masked = dict.fromkeys(name for method in methods for name in method.masks)
    columns = [name for name in masked if _numeric_in((before, after), name)]
    if not columns or any(CONSISTENCY in {one.name, one.measure} for one in own):
        return []
    asked = dict.fromkeys(rule for method in methods for rule in method.rules)
    rules = [rule for rule in asked if _countable(rule, columns, before, after)]
    return [MeasureRequest(CONSISTENCY, CONSISTENCY, {"columns": columns, "rules": rules})]


def _countable(rule: str, columns: Sequence[str], before: Any, after: Any) -> bool:
    """Whether a rule binds columns that are compared, under a condition on released ones."""
    conditions = {name for one in split_rules([rule])[1] for name in one.columns}
    try:
        find_measure(CONSISTENCY).require(before, {"columns": columns, "rules": [rule]}, CONSISTENCY)
    except JobError:
        return False
    return conditions <= set(after.names)


def takers(
    original: Table,
    masked: Table,
    requests: Sequence[MeasureRequest],
    sets: LabelSets | None = None,
    suppressed: Sequence[str] = (),
) -> dict[str, Callable[[], Result]]:
    """What takes each measure of two tables. Losses of the same columns share their passes, which are made at once.

    ``sets`` say what released labels stand for, ``suppressed`` in which columns missing cells stand for any value, for
    measures that take them and were not given any.
    """
    found: dict[str, Callable[[], Result]] = {
        one.name: partial(
            taken_once, one._replace(parameters=released_as(one, sets or {}, suppressed)), original, masked
        )
        for one in requests
    }
    is_number = partial(_numeric_in, (original.masked_schema, masked.masked_schema))
    for group in groups_of(requests, is_number):
        with suppress(JobError, InputError):  # each raises its own when it is taken alone
            found |= take_together(original, masked, group, "loss")
    return found


def taken_once(request: MeasureRequest, original: Table, masked: Table) -> Result:
    """What a measure finds; where somebody keeps it, only once for the same values of the columns that it names."""
    text = f"{request.measure} {request.parameters!r}"

    def content() -> Iterator[bytes]:
        for table in (original, masked):
            yield rows_digest(table, [name for name in table.masked_schema.names if name in text])

    take: Callable[[], Result] = partial(request.definition.function, original, masked, **request.parameters)
    return remembered(text, content, take)


def released_as(request: MeasureRequest, sets: LabelSets, suppressed: Sequence[str]) -> dict[str, Any]:
    """A measure's parameters, with how columns were released, if it takes such."""
    parameters, known = with_sets(request, sets), request.definition.parameters
    if not suppressed or "suppressed" not in known or parameters.get("suppressed"):
        return parameters
    return parameters | {"suppressed": list(suppressed)}


def with_sets(request: MeasureRequest, sets: LabelSets) -> dict[str, Any]:
    """A measure's parameters, with the label sets of the columns that it names, if it takes such."""
    parameters = request.parameters
    if "sets" not in request.definition.parameters or parameters.get("sets"):
        return parameters
    named = named_columns([value for name, value in parameters.items() if name != "sets"])
    return parameters | {"sets": only_of(sets, named)}


def _numeric_in(schemas: Sequence[Any], column: str) -> bool:
    return all(column in schema.names and is_numeric(schema.field(column).type) for schema in schemas)


def passes_of(requests: Sequence[MeasureRequest], schema: Any) -> int:
    """About how many passes over both tables measures take, shared ones counted once."""
    groups = groups_of(requests, partial(_numeric_in, (schema,)))
    together = [one for group in groups for one in group]
    alone = [one.definition.passes_for(one.parameters) for one in requests if one not in together]
    return sum(needs_of(one.measure for one in group).passes for group in groups) + sum(alone)
