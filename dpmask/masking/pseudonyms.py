"""Pseudonyms: numbers of households, or others that only say what belongs together, replaced by keyed ones.

A value becomes 32 hexadecimal digits: its 128-bit key through AES-256 under the key of the release. That is one-to-one,
so that two values never share a pseudonym, and nobody without the key can compute one. The key is bound to the content:
in another release everybody has another.

Protects against: looking up a number. Does not protect against: what the records that share a pseudonym give away
together (``households`` measures it, in every job). Missing values stay missing. One pass to mask.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmask.engine.draws import Subkey, chained
from dpmask.lake.reading import Rows, Schema
from dpmask.masking.method import FittedMethod, Method
from dpmask.parameters import Names, require_columns
from dpmask.table import table as tables
from dpmask.table.new_columns import replaced_schema, text_column, with_missing, with_new_columns
from dpmask.table.row_keys import column_words, require_groupable, row_keys


@dataclass(frozen=True, kw_only=True)
class Pseudonyms(Method["FittedPseudonyms"]):
    """Values replaced by keyed pseudonyms, the same for the same value.

    Parameters
    ----------
    columns
        The columns to mask, of any type, such as the number of a household.

    Examples
    --------
    >>> import dpmask, pandas
    >>> people = pandas.DataFrame({"household": [1, 1, 2]})
    >>> masked = dpmask.Pseudonyms(columns=["household"]).fit(people, seed=7).mask(people)["household"]
    >>> masked[0] == masked[1], masked[0] == masked[2], len(masked[0])
    (True, False, 32)

    """

    columns: Names

    def __post_init__(self) -> None:
        require_columns(self, "columns")

    def check(self, table: tables.Table) -> None:
        """Refuse columns that are not there, or whose values cannot be compared."""
        require_groupable(table.masked_schema, self.columns, self.who)

    def masked_schema(self, schema: Schema) -> Schema:
        """Pseudonyms are texts."""
        return replaced_schema(schema, {name: [text_column(name)] for name in self.columns})

    def attacks(self) -> Mapping[str, Mapping[str, Any]]:
        """An intruder who knows all members of a household."""
        return {"households": {"household": self.columns[0]}}

    def fit_table(self, table: tables.Table, key: Subkey) -> FittedPseudonyms:
        """There is nothing to learn."""
        return FittedPseudonyms(self, key)


@dataclass(frozen=True)
class FittedPseudonyms(FittedMethod):
    """Pseudonyms, ready to be given."""

    method: Pseudonyms
    key: Subkey

    def check(self, table: tables.Table) -> None:
        """Refuse a table that does not fit."""
        self.method.check(table)

    def mask_rows(self, rows: Rows, first: int) -> Rows:
        """One block with pseudonyms."""
        return with_new_columns(rows, {name: ([text_column(name)], [self._given(rows, name)]) for name in self.inputs})

    def _given(self, rows: Rows, column: str) -> Any:
        words = np.stack(row_keys(rows, [column]), axis=1)
        mixed = chained(self.key.subkey(column).secret, np.zeros_like(words), words)
        found, places = np.unique(mixed.view("V16"), return_inverse=True)
        given = text_column(column).taken([one.hex() for one in found.tolist()], places.ravel())
        absent = column_words(rows, column)[1]
        return given if absent is None else with_missing(given, absent)

    def statement(self) -> str:
        """What a reader of the release may know."""
        return (
            f"The values of {', '.join(self.inputs)} are random names of 32 digits, the same for the same value in "
            "this release and in no other: they say which records belong together, and nothing else."
        )

    def for_analysts(self) -> list[str]:
        """What pseudonyms are good for."""
        names = ", ".join(self.inputs)
        return [
            f"{names} shows which records belong together, as for standard errors of clusters or counts of members; it "
            "matches no other file and no other release."
        ]

    def weaknesses(self) -> list[str]:
        """What the data holder must know."""
        return [
            "Records that share a pseudonym are known to belong together: an intruder who knows all members of a "
            "household looks for all of them at once. households measures it; refinement keeps k households alike "
            "(of: households)."
        ]
