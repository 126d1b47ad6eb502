"""What of a job may be moved: a control for each number, choice and column, and the job file's values once it is.

A control is called as ``dpmask sweep --over`` would call it, such as ``mask[0].k``; a column, ``columns.NAME``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

import yaml

from dpmask.errors import JobError
from dpmask.job.job_text import KeyPath, key_path
from dpmask.job.model import Job
from dpmask.job.movable import PlacedMovable, movable_of

Changes = Mapping[str, Any]
"""What was moved: the names of controls and their values."""
COLUMNS = "columns."


_FARTHEST = 4
"""A slider without an end of its own goes on to so many times the value of the job."""
_SHORTEST = 20


@dataclass(frozen=True)
class Control:
    """One thing that may be moved, with its value in the job file and the ends of its slider."""

    name: str
    heading: str
    label: str
    kind: Literal["number", "choice", "switch"]
    value: Any
    paths: tuple[KeyPath, ...] = ()
    low: float = 0
    high: float = 0
    step: float = 1
    choices: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether it is a whole number."""
        return self.step == 1

    def checked(self, value: Any) -> Any:
        """A value that this control may have, or an error that says what it may be."""
        if self.kind == "switch":
            fits = isinstance(value, bool)
        elif self.kind == "choice":
            fits = value in self.choices
        else:
            fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            fits = fits and (not self.whole or float(value).is_integer())
        if not fits:
            number = "a whole number" if self.whole else "a number"
            expected = {"switch": "on or off", "choice": " or ".join(self.choices), "number": number}[self.kind]
            raise JobError(f"{self.label}: must be {expected}.")
        return int(value) if self.kind == "number" and self.whole else value


def controls_of(job: Job) -> list[Control]:
    """Everything of a job that may be moved, in the order of its file."""
    steps = enumerate(job.file.mask)
    found = [one for number, step in steps for one in _of_step(job, number, f"{number + 1}. {step['method']}")]
    switches = [Control(f"{COLUMNS}{name}", "Columns", name, "switch", True) for name in job.released]
    return [*found, *switches]


def _of_step(job: Job, number: int, heading: str) -> Iterator[Control]:
    for one in movable_of(job, number):
        if one.parameter.choices:
            yield _choice(heading, one)
        else:
            yield _number(heading, one)


def _choice(heading: str, one: PlacedMovable) -> Control:
    label, value, choices = one.parameter.label, one.parameter.value, one.parameter.choices
    return Control(one.name, heading, label, "choice", value, one.paths, choices=choices)


def _number(heading: str, one: PlacedMovable) -> Control:
    ends, given = one.parameter.range, one.parameter.value
    number = given if isinstance(given, int | float) else ends.low
    far = max(_SHORTEST if ends.whole else 1.0, _FARTHEST * number)
    high = max(min(ends.high, far), number)
    step = 1 if ends.whole else 10.0 ** math.floor(math.log10(max(high - ends.low, 1e-6) / 100))
    low = min(ends.low, number)
    return Control(one.name, heading, one.parameter.label, "number", number, one.paths, low, high, step)


def moved_values(values: Mapping[str, Any], controls: Sequence[Control], changes: Changes) -> dict[str, Any]:
    """The values of a job file with what was moved in place of its own."""
    moved = deepcopy(dict(values))
    for control in (one for one in controls if one.name in changes and one.paths):
        for path in control.paths:
            _put(moved, path, changes[control.name])
    for control in (one for one in controls if changes.get(one.name) is False):
        _leave_out(moved, control.name.removeprefix(COLUMNS))
    return moved


def _put(values: Any, path: KeyPath, value: Any) -> None:
    for part in path[:-1]:
        if isinstance(values, dict) and not isinstance(values.get(part), dict | list):
            values[part] = {}
        values = values[part]
    values[path[-1]] = value


def _leave_out(values: dict[str, Any], column: str) -> None:
    """Drop a column: by its role, in steps and measures, and where it was accepted."""
    roles = values["columns"]
    if column in _listed(roles.get("household")):
        roles["household"] = {"column": column, "release": False}
    else:
        for names in roles.values():
            if isinstance(names, list) and column in names:
                names.remove(column)
        roles["drop"] = [*(roles.get("drop") or []), column]
    for part in ("mask", "measure"):
        _forget(values.get(part), column)
    if isinstance(values.get("accept"), dict):
        values["accept"].pop(column, None)


def _listed(household: Any) -> list[Any]:
    """The number of households, however its role is written."""
    found = household.get("column") if isinstance(household, dict) else household
    return found if isinstance(found, list) else [found]


def _forget(value: Any, column: str) -> None:
    if isinstance(value, list):
        while column in value:
            value.remove(column)
    elif isinstance(value, dict):
        value.pop(column, None)
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _forget(one, column)


def differences(before: Any, after: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Where values differ, as few and as small places as ``--set`` can name, each with its new value."""
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict) and (not path or set(before) <= set(after)):
        for key in after:
            if key in before:
                yield from differences(before[key], after[key], (*path, key))
            else:
                yield (*path, key), after[key]
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, (*path, number))
    else:
        yield path, after


def settings_of(before: Any, after: Any) -> list[str]:
    """The same as ``--set`` takes it, such as ``mask[0].k=5``."""
    return [f"{key_path(path)}={flow_text(value)}" for path, value in differences(before, after)]


def flow_text(value: Any) -> str:
    """A value as YAML in one line."""
    text = yaml.safe_dump(value, default_flow_style=True, width=math.inf, sort_keys=False, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")
