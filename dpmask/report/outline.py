"""Parameters as people read them: a simple one as a line, a nested one as a tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class OutlineBranch(NamedTuple):
    """A line of a tree, and the branches below it."""

    value: str
    children: tuple[OutlineBranch, ...] = ()

    @property
    def lines(self) -> int:
        """How many lines it takes, with all below it."""
        return 1 + sum(child.lines for child in self.children)


def line(value: Any) -> str:
    """A parameter in one line."""
    if isinstance(value, list | tuple):
        return ("; " if any(map(_is_nested, value)) else ", ").join(map(line, value))
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {line(one)}" for name, one in value.items())
    if value is None:
        return "none"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def outline(value: Any) -> tuple[OutlineBranch, ...]:
    """A nested parameter as a tree; nothing for one that fits a line."""
    if isinstance(value, Mapping):
        return (_value(value),) if _is_tree(value) else tuple(_named(name, one) for name, one in value.items())
    if isinstance(value, list | tuple) and any(map(_is_nested, value)):
        return tuple(OutlineBranch(line(one)) for one in value)
    return ()


def _is_nested(value: Any) -> bool:
    return isinstance(value, list | tuple | Mapping)


def _is_tree(value: Mapping[str, Any]) -> bool:
    """Whether this is a value of a taxonomy; columns may be called value and children, too."""
    return isinstance(value.get("value"), str) and set(value) <= {"value", "children"}


def _value(tree: Mapping[str, Any]) -> OutlineBranch:
    return OutlineBranch(tree["value"], tuple(map(_value, tree.get("children", ()))))


def _named(name: str, value: Any) -> OutlineBranch:
    below = outline(value)
    return OutlineBranch(name, below) if below else OutlineBranch(f"{name}: {line(value)}")
