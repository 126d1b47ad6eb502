"""What of a job may be moved: a control for each number, choice and column, and the job file's values once it is.

A control is called as ``dpmask sweep --over`` would call it, such as ``mask[0].k``; a column, ``columns.NAME``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import yaml

from dpmask.clustering.partition import ALGORITHMS
from dpmask.errors import JobError
from dpmask.job.job_text import KeyPath, key_path
from dpmask.job.model import Job

Changes = Mapping[str, Any]
"""What was moved: the names of controls and their values."""
COLUMNS = "columns."


class _Range(NamedTuple):
    """Where a parameter begins and may end, and whether it is a whole number; ``default`` where the job may omit it."""

    low: float
    high: float = math.inf
    whole: bool = False
    default: float | None = None


_STEP_RANGES = {
    "k": _Range(2, whole=True),
    "clusters": _Range(2, whole=True),
    "minimum_size": _Range(2, whole=True),
    "cell_size": _Range(10, whole=True),
    "fuzziness": _Range(1.05, 4),
    "draw_fuzziness": _Range(1, 4),
    "entropy": _Range(0.01),
    "draw_entropy": _Range(0.01),
    "scale": _Range(0.01, 4),
    "window": _Range(0.001, 1),
    "share": _Range(0.01, 1),
    "suppress_records": _Range(0, 0.5),
    "suppress_cells": _Range(0, 0.5),
}
_MODEL_RANGES = {
    "distinct_l": {"l": _Range(2, whole=True)},
    "entropy_l": {"l": _Range(1.1)},
    "recursive_l": {"c": _Range(0.1), "l": _Range(2, whole=True)},
    "confidence": {"most": _Range(0.05, 1)},
    "t_closeness": {"t": _Range(0.01, 1)},
}
_DEFAULTS = {"fuzzy_microaggregation": {"fuzziness": 1.1}, "refinement": {"suppress_records": 0.0}}
_IMPORTANCE = _Range(0.1, 10, default=1.0)
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
    found = [one for number, step in steps for one in _of_step(job, number, step, f"{number + 1}. {step['method']}")]
    switches = [Control(f"{COLUMNS}{name}", "Columns", name, "switch", True) for name in job.released]
    return [*found, *switches]


def _of_step(job: Job, number: int, step: Mapping[str, Any], heading: str) -> Iterator[Control]:
    path: KeyPath = ("mask", number)
    defaults = dict(_DEFAULTS.get(step["method"], {}))
    if number:
        defaults.pop("suppress_records", None)  # only a first step may drop records
    if "entropy" in step:
        defaults.pop("fuzziness", None)
    given = {**defaults, **step}
    for name, one in _STEP_RANGES.items():
        if name in given:
            yield _number(heading, name.replace("_", " "), given[name], one, (*path, name))
    for at, requirement in enumerate(step.get("requirements", ())):
        if isinstance(requirement, Mapping):
            yield from _of_requirement(heading, requirement, (*path, "requirements", at))
    guide = step.get("guide")
    if isinstance(guide, Mapping) and "clusters" in guide:
        yield from _of_guide(job, heading, guide, (*path, "guide"))
    if step["method"] == "refinement":
        kept, importance = step.get("keep") or (), step.get("importance") or {}
        for column in (name for name in job.methods[number].masks if name not in kept):
            place = (*path, "importance", column)
            yield _number(heading, f"importance of {column}", importance.get(column, 1.0), _IMPORTANCE, place)


def _of_requirement(heading: str, requirement: Mapping[str, Any], path: KeyPath) -> Iterator[Control]:
    of = ", ".join(map(str, requirement["columns"]))
    if "k" in requirement:
        yield _number(heading, f"k of {of}", requirement["k"], _Range(1, whole=True), (*path, "k"))
    for at, model in enumerate(requirement.get("models", ())):
        for name, one in _MODEL_RANGES.get(model.get("model"), {}).items():
            if name in model:
                label = f"{name} of {model['model']}, {model.get('column', '')} by {of}"
                yield _number(heading, label, model[name], one, (*path, "models", at, name))


def _of_guide(job: Job, heading: str, guide: Mapping[str, Any], path: KeyPath) -> Iterator[Control]:
    """Clusters and algorithm; measures that compare as many clusters move with them."""
    measured = [
        ("measure", at, "clusters")
        for at, one in enumerate(job.file.measure)
        if one.get("measure") == "partition_agreement" and one.get("clusters") == guide["clusters"]
    ]
    label = "clusters of the guide"
    yield _number(heading, label, guide["clusters"], _Range(2, 256, whole=True), (*path, "clusters"), *measured)
    algorithm = guide.get("algorithm", ALGORITHMS[0])
    place: KeyPath = (*path, "algorithm")
    yield Control(key_path(place), heading, "algorithm of the guide", "choice", algorithm, (place,), choices=ALGORITHMS)


def _number(heading: str, label: str, value: Any, of: _Range, *paths: KeyPath) -> Control:
    number = value if isinstance(value, int | float) else of.low
    far = max(_SHORTEST if of.whole else 1.0, _FARTHEST * number)
    high = max(min(of.high, far), number)
    step = 1 if of.whole else 10.0 ** math.floor(math.log10(max(high - of.low, 1e-6) / 100))
    low = min(of.low, number)
    name = "+".join(map(key_path, paths))
    return Control(name, heading, label, "number", number, tuple(paths), low, high, step)


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
