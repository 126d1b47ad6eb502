"""A job file's text to plain values, with the line of every key kept for error messages."""

from __future__ import annotations

from collections.abc import Hashable
from copy import copy, deepcopy
from typing import Any

import yaml

from dpmask.errors import JobError
from dpmask.lake.storage import Place

KeyPath = tuple[str | int, ...]


class JobText:
    """The values of a job file, and where each of them stands."""

    def __init__(self, url: str) -> None:
        self.url = url
        text = _text(url)
        try:
            node = yaml.compose(text, Loader=yaml.SafeLoader)
            self.lines: dict[KeyPath, int] = {}
            if node is not None:
                self._note(node, ())
            self.values: Any = yaml.safe_load(text)
        except RecursionError:
            raise JobError(f"{url}: is nested too deeply to be a job file.") from None
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
            raise JobError(
                f"{url}: {place}is not valid YAML: {getattr(error, 'problem', None) or 'unreadable'}."
            ) from None
        if not isinstance(self.values, dict):
            raise JobError(f"{url}: must be a mapping of keys such as name, source, target; see dpmask schema.")

    def changed(self, path: KeyPath, value: Any) -> JobText:
        """The same text with another value at a path; whatever stands above the path must be there."""
        changed = copy(self)
        changed.values = deepcopy(self.values)
        place: Any = changed.values
        try:
            for part in path[:-1]:
                place = place[part]
            if isinstance(place, list) or len(path) == 1:
                place[path[-1]]  # is there: neither a list nor the file gets longer
            place[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            raise JobError(f"{self.url}: has nothing at {key_path(path)}. Name it as in mask[0].k.") from None
        return changed

    def error(self, path: KeyPath, text: str) -> str:
        """A message that names the line, the key and what is wrong."""
        known = next((path[:n] for n in range(len(path), 0, -1) if path[:n] in self.lines), ())
        line = f"line {self.lines[known]}: " if known else ""
        return f"{self.url}: {line}{key_path(path)}: {text}" if path else f"{self.url}: {text}"

    def _note(self, node: yaml.Node, path: KeyPath) -> None:
        self.lines[path] = node.start_mark.line + 1
        if isinstance(node, yaml.SequenceNode):
            for number, item in enumerate(node.value):
                self._note(item, (*path, number))
        if isinstance(node, yaml.MappingNode):
            seen: set[Hashable] = set()
            for key, value in node.value:
                if key.value in seen:
                    raise JobError(
                        f"{self.url}: line {key.start_mark.line + 1}: {key_path((*path, key.value))}: stands twice."
                    )
                seen.add(key.value)
                self._note(value, (*path, key.value))
                self.lines[(*path, key.value)] = key.start_mark.line + 1


def key_path(path: KeyPath) -> str:
    """A path as people write it: mask[0].columns."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _text(url: str) -> str:
    place = Place(url)
    if not place.exists():
        raise JobError(f"{url}: there is no such job file.")
    try:
        return place.read().decode()
    except UnicodeDecodeError:
        raise JobError(f"{url}: is not a text file in UTF-8.") from None
