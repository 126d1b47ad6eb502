"""What the labels of a refinement stand for, from what its release shows: the cuts, and the taxonomies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from dpmask.masking.refinement.attributes import MISSING, SUPPRESSED
from dpmask.masking.refinement.columns import WHO, parsed_bound
from dpmask.table.encoders.interval import interval_text
from dpmask.table.label_sets import LabelSets
from dpmask.table.taxonomy import read_taxonomy

Sets = dict[str, Sequence[object] | None]


def of_values(cut: Sequence[str]) -> Sets:
    """Values released one by one: each stands for itself, and ``*`` for all others."""
    sets: Sets = {value: [value] for value in cut if value not in {MISSING, SUPPRESSED}}
    if MISSING in cut:
        sets[MISSING] = [None]
    return sets | ({SUPPRESSED: None} if SUPPRESSED in cut else {})


def of_tree(cut: Sequence[str], tree: Any) -> Sets:
    """The nodes of a taxonomy: each stands for the values below it, the root for missing ones, too."""
    root = read_taxonomy(tree, WHO)
    nodes = {node.value: list(node.values()) for node in root.nodes()}
    sets: Sets = {label: nodes.get(label, [None]) for label in cut}  # a label that is no node: MISSING
    return {root.value: [*nodes[root.value], None]} if list(cut) == [root.value] else sets


def of_edges(cut: Sequence[Any], form: str, refined: bool) -> Sets:
    """Intervals between edges, under the label or the midpoint they are released as; if not refined, one for all."""
    date, bounds = isinstance(cut[0], str), [parsed_bound(one) for one in cut]
    texts = [interval_text(low, high, date) for low, high in pairwise(bounds)]
    labels = [repr((low + high) / 2.0) for low, high in pairwise(bounds)] if form == "midpoint" else texts
    missing = [] if refined else [None]
    return {label: [text, *missing] for label, text in zip(labels, texts, strict=True)}


def label_sets(solution: Mapping[str, Any], taxonomies: Mapping[str, Any], form: str) -> dict[str, Sets]:
    """Of each column; its solution's cuts say whether it has a taxonomy, intervals or single values."""
    found: dict[str, Sets] = {}
    for column, cut in solution["cuts"].items():
        tree, shown = taxonomies.get(column), solution["trees"][column]
        if tree is not None:
            found[column] = of_tree(cut, tree)
        elif shown["value"] == SUPPRESSED:
            found[column] = of_values(cut)
        else:
            found[column] = of_edges(cut, form, "children" in shown)
    return found


def box_sets(columns: Sequence[str], taxonomies: Mapping[str, Any], domains: Mapping[str, Sequence[Any]]) -> LabelSets:
    """The labels of regions: every node of a taxonomy, ``*`` for any value; intervals stand for themselves."""
    found: dict[str, Sets] = {}
    for column in columns:
        tree = taxonomies.get(column)
        if tree is not None:
            root = read_taxonomy(tree, WHO)
            found[column] = {node.value: list(node.values()) for node in root.nodes()}
            found[column][root.value] = [*root.values(), None]
        elif column in domains:
            low, high = map(parsed_bound, domains[column])
            found[column] = {SUPPRESSED: [interval_text(low, high, isinstance(domains[column][0], str)), None]}
        else:
            found[column] = {SUPPRESSED: None}
    return found
