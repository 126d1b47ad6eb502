"""What a job file gives, checked by models, with errors that name the key and the nearest valid one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING
from functools import cache
from typing import Any, get_type_hints

from pydantic import BaseModel, Field, ValidationError, create_model

from dpmask.errors import MOST_LINES, JobError, nearest
from dpmask.job.file import CsvFormat, Publish, Roles, StrictModel
from dpmask.job.job_text import JobText, KeyPath
from dpmask.job.metadata import METADATA_FORMS, Metadata
from dpmask.release.gate import REASON_LENGTH

_SECTIONS: dict[KeyPath, type[BaseModel]] = {
    ("columns",): Roles,
    ("csv",): CsvFormat,
    ("publish",): Publish,
    ("metadata",): Metadata,
}


@cache
def parameter_model(target: Callable[..., Any]) -> type[BaseModel]:
    """A model of the keyword parameters of a method class or a measure function."""
    hints = get_type_hints(target.__init__ if inspect.isclass(target) else target)
    factories = {one.name: one.default_factory for one in getattr(target, "__dataclass_fields__", {}).values()}
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(target).parameters.items():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            default = ... if parameter.default is inspect.Parameter.empty else parameter.default
            factory = factories.get(name, MISSING)
            fields[name] = (hints[name], default if factory is MISSING else Field(default_factory=factory))
    return create_model(target.__name__, __base__=StrictModel, **fields)


def validated(model: type[Any], values: Any, text: JobText, path: KeyPath) -> Any:
    """The values as the model has them; all that is wrong is reported at once, each with its line."""
    wrong = [name for name, value in values.items() if isinstance(value, bool) and not _takes_flag(model, name)]
    if wrong:
        raise JobError(text.error((*path, wrong[0]), "must not be true or false."))
    try:
        return model.model_validate(values)
    except ValidationError as error:
        known = [field.alias or name for name, field in model.model_fields.items()]
        found = error.errors(include_url=False)
        lines = [_described(text, path, dict(one), known) for one in found[:MOST_LINES]]
        left = "\n" * (len(found) - len(lines))  # a message counts them
        raise JobError("\n".join(lines) + left) from None


def _takes_flag(model: type[BaseModel], name: str) -> bool:
    field = model.model_fields.get(name)
    return field is None or field.annotation in {bool, Any}


def _described(text: JobText, base: KeyPath, error: dict[str, Any], known: list[str]) -> str:
    """One of pydantic's findings in our words."""
    path: KeyPath = (*base, *error["loc"])
    if error["type"] == "extra_forbidden":
        parent = error["loc"][:-1]
        names = list(_SECTIONS[parent].model_fields) if parent in _SECTIONS else known
        return text.error(path, f"is not a key here. {nearest(str(error['loc'][-1]), names)}")
    return text.error(path, _in_our_words(path, error))


def _in_our_words(path: KeyPath, error: dict[str, Any]) -> str:
    kind, limits, message = error["type"], error.get("ctx", {}), error["msg"].removeprefix("Value error, ")
    words = {
        "missing": "is missing.",
        "string_pattern_mismatch": "must be a text on one line, without control characters, and not empty.",
        "sequence_str": f"must be a list, such as [{str(error['input'])[:40]}].",
        "too_long": f"takes {limits.get('max_length')} at most; it has {limits.get('actual_length')}.",
    }
    if limits.get("min_length") == 1:
        words |= dict.fromkeys(("too_short", "string_too_short"), "must not be empty.")
    if path[:1] == ("key",):
        return "must be env:NAME or file:PATH; the secret itself does not belong in a job file."
    if path[:1] == ("accept",) and kind == "string_too_short":
        return f"must give a reason of {REASON_LENGTH} or more characters; the release shows it."
    if path[:1] == ("metadata",) and kind == "string_pattern_mismatch" and path[-1] in METADATA_FORMS:
        return f"must be {METADATA_FORMS[path[-1]]}; got {_shown(error['input'])}."
    if path == ("seed",):
        return "must be an integer."
    if kind in words:
        return words[kind]
    begun = message.replace("Input should be", "must be", 1) if message.startswith("Input") else f"is wrong: {message}"
    return f"{begun}; got {type(error['input']).__name__} {_shown(error['input'])}."


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."  # noqa: PLR2004
