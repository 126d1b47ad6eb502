"""One name for one thing, in words of the field: code and texts do not fall back into a dialect of their own."""

import ast
import re
from pathlib import Path

import pytest

import dpmask

ROOT = Path(dpmask.__file__).parents[1]
CODE = sorted((ROOT / "dpmask").rglob("*.py"))
TEXTS = [
    *CODE,
    *(path for folder in ("dpmask", "docs", "jobs") for path in sorted((ROOT / folder).rglob("*.md"))),
    *(path for ending in ("*.j2", "*.js") for path in sorted((ROOT / "dpmask").rglob(ending))),
    *sorted((ROOT / "jobs").rglob("*.yaml")),
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
]
PHRASES = {
    r"\b(tells?|told|telling apart|hears?|heard|speaks?|spoken)\b": "report, describe, distinguish, follow from",
    r"\bunless said\b": "by default",
    r"\bhangs? together\b": "correlations",
    r"\b(for|to) who knows\b": "to an intruder who knows",
    r"\b(hold|held)_(dear|beside)\b": "persist_checkpointed, meet_all",
}
"""What texts and comments do not say, and what they say instead (Writing that a file object must ``tell`` is Python's)."""
MODULES = {
    **{"chosen": "hash_sample", "tally": "value_counts", "spread": "covariance", "slots": "edge_lookup"},
    **{"zones": "partial_sort", "grid": "rounding_with_constraints", "stretches": "sample_rows", "flat": "whole_table"},
    **{"looking": "first_pass", "searching": "quantile_search", "sides": "table_pair", "together": "shared_passes"},
    **{"pairing": "alignment", "grouped": "grouped_release", "checkpoints": "journal", "util": "its subject"},
}
NAMES = {
    r"told|tells?|heard|said|tally|told_apart": "reported, described, counts, distinguished",
    r"hold_\w+|held_(dear|beside)": "persist",
    r"Meeting|Step|Onlooker|Origin|Made|Tally|Look|Spread": "what it is",
}


@pytest.mark.parametrize("pattern", PHRASES)
def test_texts_are_in_words_of_the_field(pattern):
    found = []
    for path in TEXTS:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if re.search(pattern, line, re.IGNORECASE) and "def tell(self)" not in line:
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not found, f"write: {PHRASES[pattern]}"


def test_modules_say_what_is_in_them():
    assert {path.stem: MODULES[path.stem] for path in CODE if path.stem in MODULES} == {}


def names_of(tree):
    """What a module defines: functions, classes, arguments and variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def test_names_say_what_a_thing_is():
    found = {
        f"{path.relative_to(ROOT)}: {name}: {better}"
        for path in CODE
        for name in names_of(ast.parse(path.read_text(encoding="utf-8")))
        for pattern, better in NAMES.items()
        if re.fullmatch(pattern, name.strip("_")) and (path.name, name) != ("writing.py", "tell")
    }
    assert found == set()
