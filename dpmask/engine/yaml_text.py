"""YAML from anybody: plain values only, within limits that are checked before anything is built.

A file may be a bomb: aliases that stand for a billion nodes, a number of a million digits, lists ten thousand deep. It
is first read as events, which takes no memory, then as nodes, then as values. Keys are text or numbers and stand once.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from dpmask.errors import JobError, printable

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEEPEST = 100
_LONGEST_NUMBER = 100
_LONGEST_TEXT = 100_000
_TAG = "tag:yaml.org,2002:"
_TAGS = {f"{_TAG}{name}" for name in ("str", "int", "float", "bool", "null", "seq", "map", "timestamp", "merge")}
_NUMBERS = {f"{_TAG}int", f"{_TAG}float"}


class TextLimits(NamedTuple):
    """What a file may have at most."""

    size: int = 1 << 20
    nodes: int = 50_000


def read_text(path: str, limits: TextLimits) -> str:
    """A local text file; a pipe, a device or a file that is too large is refused unread."""
    about = os.stat(path)  # opening a pipe would wait for somebody to write to it
    if not stat.S_ISREG(about.st_mode) or about.st_size > limits.size:
        raise JobError(f"{printable(path, 200)}: must be a file of at most {limits.size:,} bytes.")
    with open(path, "rb") as file:
        return file.read().decode()


def compose(text: str, who: str, limits: TextLimits = TextLimits()) -> yaml.Node | None:  # noqa: B008 - a constant
    """The nodes of a text, within limits; None if it is empty."""
    if len(text) > limits.size:
        raise JobError(f"{who}: has more than {limits.size:,} characters.")
    try:
        _scan(text, who, limits)
        node = yaml.compose(text, Loader=_Loader)
        if node is not None:
            _Checks(who, limits).expanded(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or "unreadable"
        raise JobError(f"{who}: {place}is not valid YAML: {printable(problem, 200)}.") from None
    return node


def values_of(node: yaml.Node | None, who: str) -> Any:
    """Composed nodes as plain values."""
    if node is None:
        return None
    try:
        return _Constructor().construct_document(node)
    except (yaml.YAMLError, ValueError, ArithmeticError, TypeError, LookupError, AttributeError):
        raise JobError(
            f"{who}: has a value that is not what its form says, such as a date that does not exist."
        ) from None


def load(text: str, who: str, limits: TextLimits = TextLimits()) -> Any:  # noqa: B008 - a constant
    """The values of a text."""
    return values_of(compose(text, who, limits), who)


class _Constructor(yaml.constructor.SafeConstructor):
    """Builds values without a parser."""

    def __init__(self) -> None:
        super().__init__()


def _scan(text: str, who: str, limits: TextLimits) -> None:
    """Refuse a text with too many nodes, or too deep ones, by its events."""
    depth = nodes = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        nodes += isinstance(event, yaml.NodeEvent)
        if depth > _DEEPEST or nodes > limits.nodes:
            what = (
                f"is nested more than {_DEEPEST} deep" if depth > _DEEPEST else f"has more than {limits.nodes:,} values"
            )
            raise JobError(f"{who}: line {event.start_mark.line + 1 if event.start_mark else 0}: {what}.")


class _Checks:
    """Counts nodes as often as aliases repeat them, and refuses what must not be built."""

    def __init__(self, who: str, limits: TextLimits) -> None:
        self.who, self.limits = who, limits
        self.known: dict[int, int] = {}

    def expanded(self, node: yaml.Node) -> int:
        """How many nodes this one stands for."""
        if id(node) in self.known:
            if self.known[id(node)] < 0:
                raise self._error(node, "refers to itself.")
            return self.known[id(node)]
        self.known[id(node)] = -1
        self._check(node)
        total = 1
        for child in _children(node):
            total += self.expanded(child)
            if total > self.limits.nodes:
                raise self._error(node, f"stands for more than {self.limits.nodes:,} values, by its aliases.")
        self.known[id(node)] = total
        return total

    def _check(self, node: yaml.Node) -> None:
        if node.tag not in _TAGS:
            raise self._error(node, f"{printable(node.tag, 80)} is no type of a value here.")
        if isinstance(node, yaml.ScalarNode):
            self._check_scalar(node)
        if isinstance(node, yaml.MappingNode):
            self._check_keys(node)

    def _check_scalar(self, node: yaml.ScalarNode) -> None:
        if len(node.value) > (_LONGEST_NUMBER if node.tag in _NUMBERS else _LONGEST_TEXT):
            raise self._error(node, f"has {len(node.value):,} characters, which is too long.")
        if not node.value.isascii() and any("\ud800" <= one <= "\udfff" for one in node.value):
            raise self._error(node, "is not text: it holds half of a character.")

    def _check_keys(self, node: yaml.MappingNode) -> None:
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(key, "a key must be text or a number; this one is a list or a mapping.")
            if (key.tag, key.value) in seen and key.tag != f"{_TAG}merge":
                raise self._error(key, f"{printable(key.value, 80)}: stands twice.")
            seen.add((key.tag, key.value))

    def _error(self, node: yaml.Node, text: str) -> JobError:
        return JobError(f"{self.who}: line {node.start_mark.line + 1}: {text}")


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        yield from node.value
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield value
