"""A job file's text to plain values, with the line of every key kept for error messages.

A job may serve every month: ``--set KEY=VALUE`` changes a value, and ``${NAME}`` in any text is filled from the
environment. What comes of that is checked as if it stood in the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from copy import copy, deepcopy
from functools import reduce
from typing import Any

import yaml

from dpmask.engine.yaml_text import TextLimits, compose, load, values_of
from dpmask.errors import InputError, JobError, printable
from dpmask.lake.storage import Place

KeyPath = tuple[str | int, ...]

_SETTING = re.compile(r"\s*([^=]+?)\s*=\s*(.*?)\s*", re.DOTALL)
_PART = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_ALSO = re.compile(r"\+(?=(?:mask|measure)\[)")
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_BARE = re.compile(r"\$(\w+)")
_FOLDERS = ("source", "target", "private")


class JobText:
    """The values of a job file, and where each of them stands."""

    def __init__(self, url: str, settings: Sequence[str] = ()) -> None:
        self.url = printable(url)
        node = compose(_text(url), self.url)
        self.lines: dict[KeyPath, int] = {}
        if node is not None:
            self._note(node, ())
        self.values: Any = values_of(node, self.url)
        if not isinstance(self.values, dict):
            raise JobError(f"{url}: must be a mapping of keys such as name, source, target; see dpmask schema.")
        for one in settings:
            self.values = self._set(one)
        self.variables: set[str] = set()
        """Names of the environment's variables that the values were filled from."""
        self.values = self._filled(self.values, ())

    def changed(self, path: KeyPath, value: Any, *, adding: bool = False) -> JobText:
        """The same text with another value at a path; what is above it must be there, its first key unless adding."""
        changed = copy(self)
        changed.values = deepcopy(self.values)
        place: Any = changed.values
        try:
            for part in path[:-1]:
                place = place[part]
            if isinstance(place, list) or (len(path) == 1 and not adding):
                place[path[-1]]  # is there: a list does not get longer
            place[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            raise JobError(f"{self.url}: has nothing at {key_path(path)}. Name it as in mask[0].k.") from None
        return changed

    def with_values(self, values: dict[str, Any]) -> JobText:
        """The same text with other values, as the file would have them; what they stand for is filled in."""
        changed = copy(self)
        changed.variables = set(self.variables)
        changed.values = changed._filled(values, ())
        return changed

    def error(self, path: KeyPath, text: str) -> str:
        """A message that names the line, the key and what is wrong."""
        known = next((path[:n] for n in range(len(path), 0, -1) if path[:n] in self.lines), ())
        line = f"line {self.lines[known]}: " if known else ""
        return f"{self.url}: {line}{printable(key_path(path), 200)}: {text}" if path else f"{self.url}: {text}"

    def _set(self, setting: str) -> Any:
        """The values with one that ``--set`` names, new or not; what replaces a text is one, but for null."""
        form = "PATH=VALUE such as source=s3://lake/2026-11/ or mask[0].k=5"
        _, (path, *others), value = parse_setting(setting, "--set", form)
        before: Any = self.values
        with suppress(KeyError, IndexError, TypeError):
            for part in path:
                before = before[part]
        typed = setting.partition("=")[2].strip()
        if isinstance(before, str) and not isinstance(value, list | dict) and typed != "null":
            value = typed
        return reduce(lambda text, one: text.changed(one, value, adding=True), [path, *others], self).values

    def _filled(self, value: Any, path: KeyPath) -> Any:
        """Values with the environment's variables in their texts."""
        if isinstance(value, dict):
            return {key: self._filled(one, (*path, key)) for key, one in value.items()}
        if isinstance(value, list):
            return [self._filled(one, (*path, number)) for number, one in enumerate(value)]
        if not isinstance(value, str):
            return value
        names = set(_VARIABLE.findall(value))
        self.variables |= names
        unset = sorted(name for name in names if name not in os.environ)
        if unset:
            shown = printable(f"${{{unset[0]}}}", 100)
            raise JobError(self.error(path, f"{shown} is not set in the environment. Set it, or give another --set."))
        bare = _BARE.search(value) if path[0] in _FOLDERS else None
        if bare:
            raise JobError(self.error(path, f"write ${{{bare[1]}}} for a variable of the environment, with braces."))
        return _VARIABLE.sub(lambda match: os.environ[match[1]], value)

    def _note(self, node: yaml.Node, path: KeyPath) -> None:
        self.lines[path] = node.start_mark.line + 1
        if isinstance(node, yaml.SequenceNode):
            for number, item in enumerate(node.value):
                self._note(item, (*path, number))
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                self._note(value, (*path, key.value))
                self.lines[(*path, key.value)] = key.start_mark.line + 1


def parse_setting(text: str, option: str, form: str, *, several: bool = False) -> tuple[str, list[KeyPath], Any]:
    """What is typed in an option: a name, the paths that it joins by ``+``, and their value, or values, in YAML."""
    problem = f"{option} {printable(text, 200)}: must be {form}."
    match = _SETTING.fullmatch(text)
    if not match or (several and not match[2]):
        raise JobError(problem)
    try:
        value = load(f"[{match[2]}]" if several else match[2], option)
    except JobError:
        raise JobError(problem) from None
    paths = [
        tuple(int(index) if index else name for name, index in _PART.findall(one)) for one in _ALSO.split(match[1])
    ]
    return match[1], paths, value


def key_path(path: KeyPath) -> str:
    """A path as people write it: mask[0].columns."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _text(url: str) -> str:
    place = Place(url)
    if not place.exists():
        raise JobError(f"{place.url}: there is no such job file.")
    try:
        return place.read(TextLimits().size).decode()
    except UnicodeDecodeError:
        raise JobError(f"{place.url}: is not a text file in UTF-8.") from None
    except InputError as error:
        raise JobError(str(error)) from None
