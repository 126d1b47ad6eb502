"""Edit rules with a condition: `if status = single then spouse_wage = 0`, `if age < 15 and sex = man then income = 0`.

The condition is that of row filters (dpmask.lake.filters): comparisons with `and` between them; a missing value meets
none. The rule after `then` is a constraint (dpmask.constraints.parser).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from dpmask.constraints.parser import ConstraintError
from dpmask.errors import JobError
from dpmask.kernels.arrays import Flags
from dpmask.lake.filters import Comparison, RowFilter, comparisons
from dpmask.lake.reading import Rows
from dpmask.table.columns import whole_array

_RULE = re.compile(r"\s*if\s(.+?)\sthen\s(.+)", re.IGNORECASE | re.DOTALL)


class ConditionalRule(NamedTuple):
    """A constraint that holds where all comparisons do."""

    text: str
    comparisons: tuple[Comparison, ...]
    constraint: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the condition reads."""
        return tuple(dict.fromkeys(one.column for one in self.comparisons))

    def applies(self, rows: Rows) -> Flags:
        """The rows that it binds."""
        columns = {name: whole_array(rows.column(name)) for name in self.columns}
        return RowFilter(self.text, self.comparisons).holds(columns).to_numpy(zero_copy_only=False)


def split_rules(texts: Sequence[str]) -> tuple[list[str], list[ConditionalRule]]:
    """Plain constraints, and those with a condition."""
    plain, rules = [], []
    for text in texts:
        if isinstance(text, str) and re.match(r"\s*if\s", text, re.IGNORECASE):
            rules.append(_parsed(text))
        else:
            plain.append(text)
    return plain, rules


def _parsed(text: str) -> ConditionalRule:
    found = _RULE.fullmatch(text)
    if found is None:
        raise ConstraintError(f"rule '{text}': must read 'if COLUMN = VALUE then CONSTRAINT'")
    try:
        return ConditionalRule(text, comparisons(found[1]), found[2].strip())
    except JobError as error:
        raise ConstraintError(f"rule '{text}': {error}") from None
