"""Taxonomies: trees over a column's values, from files or mappings.

A file is YAML or JSON, or a table as ARX writes it: a line for each value, `value;level 1;level 2;...`, the root last.
In YAML and JSON a node is {value: ..., children: [...]}, or a mapping from names to what is below them: another
mapping, a list of values, or nothing for a value. {attribute: ..., tree: node} is a node, too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpmask.engine.yaml_text import TextLimits, load
from dpmask.errors import InputError, JobError, printable
from dpmask.lake.storage import Place

_ROOT = "*"
_DEEPEST = 100
_LONGEST_NAME = 1000
_LIMITS = TextLimits(size=2 << 20, nodes=100_000)


@dataclass(frozen=True)
class Branch:
    """A value of a taxonomy and those it covers; without children it is a value of the data."""

    value: str
    children: tuple[Branch, ...] = ()

    @cached_property
    def leaves(self) -> int:
        """How many values of the data it covers."""
        return sum(child.leaves for child in self.children) if self.children else 1

    @property
    def levels(self) -> int:
        """How deep it is, itself counted."""
        return 1 + max((child.levels for child in self.children), default=0)

    def values(self) -> Iterator[str]:
        """The values of the data that it covers, in order."""
        if not self.children:
            yield self.value
        for child in self.children:
            yield from child.values()

    def nodes(self) -> Iterator[Branch]:
        """All of the tree, parents first."""
        yield self
        for child in self.children:
            yield from child.nodes()

    def to_dict(self) -> dict[str, Any]:
        """As {value, children}."""
        below = {"children": [child.to_dict() for child in self.children]} if self.children else {}
        return {"value": self.value, **below}


def read_taxonomy(given: Any, who: str) -> Branch:
    """The tree in a file, or in a mapping."""
    if isinstance(given, Branch):
        return given
    inline = isinstance(given, Mapping | list)
    origin = f"{who}: {'the taxonomy' if inline else printable(str(given), 200)}"
    tree = _root(given, origin) if inline else _read(str(given), origin)
    twice = sorted(name for name, count in Counter(node.value for node in tree.nodes()).items() if count > 1)
    if twice:
        raise JobError(f"{origin}: names '{twice[0]}' more than once. Give every value and level its own name.")
    return tree


def _read(url: str, origin: str) -> Branch:
    place = Place(url)
    if not place.exists():
        raise JobError(f"{origin}: there is no such file.")
    try:
        text = place.read(_LIMITS.size).decode()
    except InputError as error:
        raise JobError(f"{origin}: {error}") from None
    except UnicodeDecodeError:
        raise JobError(f"{origin}: is not UTF-8 text.") from None
    if not url.lower().endswith((".yaml", ".yml", ".json")):
        return _from_table(text, origin)
    if not url.lower().endswith(".json"):
        return _root(load(text, origin, _LIMITS), origin)
    try:
        return _root(json.loads(text, object_pairs_hook=_no_key_twice), origin)
    except (ValueError, RecursionError):
        raise JobError(f"{origin}: is not valid JSON, or has a key twice.") from None


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError
    return dict(pairs)


def _root(given: Any, origin: str) -> Branch:
    if isinstance(given, Mapping) and isinstance(given.get("tree"), Mapping):
        given = given["tree"]
    _require_few(given, origin)
    branches = _branches(given, origin, 0)
    if not branches:
        raise JobError(f"{origin}: names no value.")
    return branches[0] if len(branches) == 1 else Branch(_ROOT, branches)


def _require_few(given: Any, origin: str) -> None:
    """Refuse a file with too many values before a tree is built of them."""
    waiting, count = [given], 0
    while waiting:
        one = waiting.pop()
        below = one.values() if isinstance(one, Mapping) else one if isinstance(one, list) else ()
        count += len(below)
        if count > _LIMITS.nodes:
            raise JobError(f"{origin}: has more than {_LIMITS.nodes:,} values.")
        waiting.extend(below)


def _branches(given: Any, origin: str, depth: int) -> tuple[Branch, ...]:
    """The nodes at one place of the file, in order."""
    if depth > _DEEPEST:
        raise JobError(f"{origin}: is deeper than {_DEEPEST} levels.")
    if given is None:
        return ()
    if isinstance(given, list):
        return tuple(branch for one in given for branch in _branches(one, origin, depth + 1))
    if isinstance(given, Mapping):
        if "value" in given and set(given) <= {"value", "children"}:
            return (Branch(_name(given["value"], origin), _branches(given.get("children"), origin, depth + 1)),)
        return tuple(Branch(_name(name, origin), _branches(below, origin, depth + 1)) for name, below in given.items())
    return (Branch(_name(given, origin)),)


def _name(value: Any, origin: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or isinstance(value, Mapping | list):
        raise JobError(f"{origin}: a value must be text or a number; got {type(value).__name__}.")
    if len(name := str(value)) > _LONGEST_NAME:
        raise JobError(f"{origin}: a value has {len(name):,} characters; at most {_LONGEST_NAME:,} are read.")
    return name


def _from_table(text: str, origin: str) -> Branch:
    """A tree from lines of a value and its levels; a level that repeats what is below it adds nothing."""
    lines = [[part.strip() for part in line.split(";")] for line in text.splitlines() if line.strip()]
    if not lines or len({len(line) for line in lines}) > 1 or len(lines[0]) < 2:  # noqa: PLR2004
        raise JobError(f"{origin}: must have lines of the same number of parts, such as 'value;level 1;*'.")
    tree: dict[str, Any] = {}
    for line in lines:
        path = [part for place, part in enumerate(line) if not place or part != line[place - 1]]
        below = tree
        for part in reversed(path):
            below = below.setdefault(part, {})
    return _root({name: below or None for name, below in tree.items()}, origin)
