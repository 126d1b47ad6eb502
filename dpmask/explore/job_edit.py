"""A job file with other values, as a person would have written them: comments, order and spelling stay as they are.

Values are exchanged where they stand in the text. What comes of it is read again, and must be what was wanted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff
from typing import Any, NamedTuple

import yaml

from dpmask.engine.yaml_text import compose, load
from dpmask.errors import JobError
from dpmask.explore.controls import flow_text


class _Edit(NamedTuple):
    start: int
    end: int
    text: str


def edited(text: str, after: Any, who: str) -> str:
    """The text with these values in place of its own."""
    before = load(text, who)
    compose(text, who)  # within the limits of any job file
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    found, at = [], 0
    for edit in sorted(_edits(text, node, before, after), key=lambda one: (one.start, one.end)):
        found += [text[at : edit.start], edit.text]
        at = max(at, edit.end)
    new = "".join([*found, text[at:]])
    if load(new, who) != after:
        raise JobError(f"{who}: is written in a way that cannot be changed in place. Change it by hand.")
    return new


def difference(before: str, after: str, name: str) -> str:
    """What changes in a text, as diff -u shows it."""
    lines = unified_diff(before.splitlines(), after.splitlines(), name, f"{name} (new)", lineterm="", n=1)
    return "\n".join(lines)


def _edits(text: str, node: Any, before: Any, after: Any) -> Iterator[_Edit]:
    if before == after:
        return
    if isinstance(node, yaml.MappingNode) and isinstance(after, dict) and after:
        yield from _mapping_edits(text, node, before, after)
    elif isinstance(node, yaml.SequenceNode) and isinstance(after, list) and after:
        yield from _sequence_edits(text, node, before, after)
    else:
        yield _Edit(node.start_mark.index, _end(node), flow_text(after))


def _mapping_edits(text: str, node: Any, before: dict[Any, Any], after: dict[Any, Any]) -> Iterator[_Edit]:
    keys = list(before)
    pairs = [_Span(key.start_mark.index, _end(value)) for key, value in node.value]
    gone = [number for number, key in enumerate(keys) if key not in after]
    for number, (key, (_, value)) in enumerate(zip(keys, node.value, strict=True)):
        if number not in gone:
            yield from _edits(text, value, before[key], after[key])
    new = [f"{flow_text(key)}: {flow_text(value)}" for key, value in after.items() if key not in before]
    yield from _exchanged(text, node, pairs, gone, new)


def _sequence_edits(text: str, node: Any, before: list[Any], after: list[Any]) -> Iterator[_Edit]:
    items = [_Span(one.start_mark.index, _end(one)) for one in node.value]
    if len(before) == len(after):
        for one, old, new in zip(node.value, before, after, strict=True):
            yield from _edits(text, one, old, new)
        return
    gone = [number for number, one in enumerate(before) if one not in after]
    kept = [one for one in before if one in after]
    if after[: len(kept)] != kept:
        yield _Edit(node.start_mark.index, _end(node), flow_text(after))
        return
    marks = "" if node.flow_style else "- "
    yield from _exchanged(text, node, items, gone, [f"{marks}{flow_text(one)}" for one in after[len(kept) :]])


class _Span(NamedTuple):
    start: int
    end: int


def _exchanged(text: str, node: Any, parts: list[_Span], gone: Sequence[int], new: Sequence[str]) -> Iterator[_Edit]:
    """Parts of a collection taken out, and others put after the last that stays."""
    stays = [number for number in range(len(parts)) if number not in gone]
    if not stays:
        if gone or new:
            inside = ", ".join(one.removeprefix("- ") for one in new)
            whole = f"{{{inside}}}" if isinstance(node, yaml.MappingNode) else f"[{inside}]"
            yield _Edit(node.start_mark.index, _end(node), whole)
        return
    for number in gone:
        yield _cut(text, node, parts, number, stays)
    if new:
        last = parts[stays[-1]].end
        if node.flow_style:
            yield _Edit(last, last, "".join(f", {one}" for one in new))
        else:
            indent = " " * _column(text, node.start_mark.index)
            end = _line_end(text, last)
            yield _Edit(end, end, "".join(f"\n{indent}{one}" for one in new))


def _cut(text: str, node: Any, parts: list[_Span], number: int, stays: Sequence[int]) -> _Edit:
    """One part taken out: of a flow list with its comma, of a block with its lines."""
    part = parts[number]
    if not node.flow_style:
        start = text.rfind("\n", 0, part.start) + 1
        return _Edit(start, min(_line_end(text, part.end) + 1, len(text)), "")
    if number > stays[-1]:  # at the end: with the comma before it
        return _Edit(parts[number - 1].end, part.end, "")
    return _Edit(part.start, parts[number + 1].start, "")


def _end(node: Any) -> int:
    """Where the text of a node ends; a block's own mark is where the next thing begins."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(last[1] if isinstance(node, yaml.MappingNode) else last)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _column(text: str, at: int) -> int:
    return at - (text.rfind("\n", 0, at) + 1)
