"""Categories as codes, by the leaves of a taxonomy or by value. Missing is a value of its own and has the last code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dpmask.engine.limits import current_limits
from dpmask.errors import InputError, JobError
from dpmask.lake.reading import Rows
from dpmask.table.encoders.base import CodeEncoder, Codes, learn
from dpmask.table.encoders.texts import TextCounts, text_values
from dpmask.table.table import Table
from dpmask.table.taxonomy import Branch

_SHOWN, _SHOWN_FROM = 5, 10


@dataclass(frozen=True, repr=False)
class CategoryEncoder(CodeEncoder):
    """Codes by text. A text that is not known, or a missing value where none was seen, has the code ``size``."""

    known: Mapping[str, int]
    missing: bool

    @property
    def size(self) -> int:
        """How many codes there are."""
        return len(self.known) + self.missing

    def encode(self, rows: Rows) -> Codes:
        """The code of each row."""
        known, size = self.known, self.size
        return text_values(rows, self.column).lookup(lambda text: known.get(text, size), len(known), np.int64)


def count_texts(table: Table, columns: Sequence[str], who: str, *, most: int | None = None) -> dict[str, TextCounts]:
    """How often each value of each column occurs, in one pass; as long as there are no more than may have codes."""
    count = partial(TextCounts.of, most=current_limits().code_values if most is None else most)
    return learn(table, dict.fromkeys(columns, count), f"{who}: values")


def category_encoder(column: str, found: TextCounts, who: str) -> CategoryEncoder:
    """Codes by value, in the order of the texts."""
    if found.many:
        raise JobError(
            f"{who}: column '{column}' has more than {found.most} different values, so it identifies records by "
            "itself. Declare it as an identifier, or give it a domain (a number) or a taxonomy."
        )
    return CategoryEncoder(column, {text: code for code, text in enumerate(sorted(found.texts))}, found.missing > 0)


def taxonomy_encoder(column: str, tree: Branch, found: TextCounts, who: str) -> CategoryEncoder:
    """Codes by the leaves of a taxonomy, which must have all values of the data."""
    known = {value: code for code, value in enumerate(tree.values())}
    lacking = {text: count for text, count in found.texts.items() if text not in known}
    if lacking:
        raise InputError(f"{who}: column '{column}': {describe_lacking(lacking)} Add them to the taxonomy.")
    return CategoryEncoder(column, known, found.missing > 0)


def describe_lacking(lacking: Mapping[str, int]) -> str:
    """What a taxonomy lacks: values that many records have by name, others by their number only."""
    named = sorted((text for text, count in lacking.items() if count >= _SHOWN_FROM), key=lambda text: -lacking[text])
    shown = ", ".join(f"'{text}' ({lacking[text]} records)" for text in named[:_SHOWN])
    rest = len(lacking) - min(len(named), _SHOWN)
    records = sum(lacking.values()) - sum(lacking[text] for text in named[:_SHOWN])
    others = f"{rest} values in {records} records" if rest else ""
    return f"the taxonomy lacks {' and '.join(part for part in (shown, others) if part)}."
