"""A taxonomy compared with a lake: the tree as text with the records of each value, and what it lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from dpmask.table.columns import require_known
from dpmask.table.encoders.category import count_texts, describe_lacking
from dpmask.table.lake import read_lake
from dpmask.table.taxonomy import Branch, read_taxonomy

_WHO = "taxonomy check"
_SMALL = 10


class CheckedTaxonomy(NamedTuple):
    """The tree in lines, what it covers, and what it lacks, if anything."""

    lines: list[str]
    summary: str
    lacking: str | None


def check_taxonomy(file: str, lake: str, column: str | None) -> CheckedTaxonomy:
    """Count a column's values, in one pass, by the nodes of the tree."""
    tree = read_taxonomy(file, _WHO)
    name = column or PurePosixPath(file).stem.removeprefix("adult_hierarchy_")
    source = read_lake(lake)
    require_known(source.schema, [name], f"{_WHO}: take another --column")
    found = count_texts(source, [name], _WHO)[name]
    known = set(tree.values())
    lacking = {text: count for text, count in found.texts.items() if text not in known}
    covered = sum(found.texts.values()) - sum(lacking.values())
    used = len(known & found.texts.keys())
    summary = (
        f"{name}: {len(known)} values on {tree.levels} levels, {used} of them in the lake; {covered:,} of "
        f"{source.rows:,} records covered, {found.missing:,} missing"
    )
    problem = f"{_WHO}: column '{name}': {describe_lacking(lacking)}" if lacking else None
    return CheckedTaxonomy(list(_lines(tree, found.texts, 0)), summary, problem)


def _lines(branch: Branch, counts: Mapping[str, int], depth: int) -> Iterator[str]:
    records = sum(counts.get(value, 0) for value in branch.values())
    shown = f"{records:,}" if records >= _SMALL or not records else f"fewer than {_SMALL}"
    yield f"{'  ' * depth}{branch.value}: {shown}"
    for child in branch.children:
        yield from _lines(child, counts, depth + 1)
