"""Every measure a job may name, of risk and of utility, and what each says of the columns it takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from dpmask import registry
from dpmask.errors import InputError, JobError
from dpmask.measures import measure_function
from dpmask.measures.utility.first_pass import passes_for
from dpmask.measures.utility.shared_passes import SHARED, Asked, groups_of, needs_of, take_together
from dpmask.table.columns import is_numeric, require_numeric
from dpmask.table.table import Table


def from_roles(name: str) -> Mapping[str, str]:
    """The parameters of a measure that a declared role stands in for: its module's ROLES, if it has any."""
    roles: Mapping[str, str] = getattr(module_of(name), "ROLES", {})
    return roles


def check_columns(name: str, schema: Any, parameters: Mapping[str, Any], who: str) -> None:
    """Refuse columns that do not fit: by the module's own ``check``; without one, ``columns`` must be numeric."""
    check = getattr(module_of(name), "check", None)
    if check is None:
        require_numeric(schema, parameters.get("columns", ()), who)
    else:
        check(schema, **parameters)


def named_columns(value: Any) -> Iterator[str]:
    """The names in a parameter that is a column, lists columns, or lists such lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from named_columns(one)


def takers(original: Table, masked: Table, asked: Sequence[Asked]) -> dict[str, Callable[[], Any]]:
    """What takes each measure of two tables. Losses of the same columns share their passes, which are made at once."""
    found: dict[str, Callable[[], Any]] = {
        one.name: partial(measure_function(one.measure), original, masked, **one.parameters) for one in asked
    }
    is_number = partial(_numeric_in, (original.masked_schema, masked.masked_schema))
    for group in groups_of(asked, is_number):
        with suppress(JobError, InputError):  # each says its own when it is taken alone
            found |= take_together(original, masked, group, "loss")
    return found


def _numeric_in(schemas: Sequence[Any], column: str) -> bool:
    return all(column in schema.names and is_numeric(schema.field(column).type) for schema in schemas)


def passes_of(asked: Sequence[Asked], schema: Any) -> int:
    """About how many passes over both tables measures take, shared ones counted once."""
    groups = groups_of(asked, partial(_numeric_in, (schema,)))
    together = [one for group in groups for one in group]
    alone = [_passes_alone(one) for one in asked if one not in together]
    return sum(passes_for(needs_of(one.measure for one in group)) for group in groups) + sum(alone)


def _passes_alone(asked: Asked) -> int:
    module = module_of(asked.measure)
    if asked.measure in SHARED:
        return passes_for(module.NEEDS)
    columns = len(asked.parameters.get("columns", ()))
    return int(getattr(module, "PASSES", 1) + getattr(module, "PASSES_PER_COLUMN", 0) * columns)


def about(name: str, result: Any) -> dict[str, str]:
    """What a measure is, which direction is worse and where it comes from: in its result's words, if it has any."""
    said = (inspect.getdoc(module_of(name)) or name).split("\n\n")[0].split(". ")[0].replace("\n", " ").rstrip(".")
    worse = "Larger means more information lost." if result.public else "See the glossary for each of its numbers."
    return {
        "definition": getattr(result, "definition", f"{said}."),
        "direction": getattr(result, "direction", worse),
        "source": getattr(result, "source", f"dpmask explain {name}").rstrip("."),
    }


def module_of(name: str) -> Any:
    """The module of a measure, with what it says of itself."""
    return registry.module_of(measure_function(name))
