"""What a release promises of its rows, smallest groups and constraints: anybody can count them again.

A claim is {"columns": [...]} with "smallest_group": a number, "constraints": [...], or both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmask.constraints.sets import Constraints, parse_constraints
from dpmask.table.columns import float_kind
from dpmask.table.grouping import group_sizes
from dpmask.table.table import Table

Floats = NDArray[np.float64]

_ROUNDINGS = 8.0
"""A sum of a few floats is exact to so many roundings of its largest term."""


def standing_claims(steps: Sequence[Any]) -> list[dict[str, Any]]:
    """The claims of all steps, without those whose columns a later step has changed."""
    found = []
    for number, step in enumerate(steps):
        later = {column for other in steps[number + 1 :] for column in other.changes}
        found += [claim for claim in step.claims() if not later.intersection(claim["columns"])]
    return found


def broken_claims(table: Table, claims: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is wrong with the claims, counted from the table; nothing if all are true."""
    wrong = []
    for claim in claims:
        columns = claim["columns"]
        least = claim.get("smallest_group")
        if least is not None:
            smallest = group_sizes(table, columns, "verify: groups").smallest
            if smallest < least:
                wrong.append(
                    f"claims that at least {least} records share each row of {', '.join(columns)}, which is not so"
                )
        wrong += [
            f"claims that every record satisfies '{text}', which {count} do not"
            for text, count in _broken(table, columns, claim.get("constraints", ())).items()
        ]
    return wrong


def _broken(table: Table, columns: Sequence[str], texts: Sequence[str]) -> dict[str, int]:
    """The constraints that some records break, and how many."""
    if not texts:
        return {}
    kinds = [table.schema.field(name).type for name in columns]
    precision = max(float(np.finfo(float_kind(kind)).eps) for kind in kinds)
    written = [parse_constraints([text], columns) for text in texts]
    count = partial(_count_broken, written, precision)
    counts = table.reduce(columns, count, np.add, "verify: constraints")
    return {text: int(number) for text, number in zip(texts, counts, strict=True) if number}


def _count_broken(written: Sequence[Constraints], precision: float, columns: Sequence[Floats]) -> NDArray[np.int64]:
    values = np.array(columns)
    return np.array([int(_breaks(one, precision, values).sum()) for one in written])


def _breaks(written: Constraints, precision: float, values: Floats) -> NDArray[np.bool_]:
    """Which records (columns x rows) break a constraint by more than the rounding of their types."""
    lower, upper = written.lower[:, None], written.upper[:, None]
    slack = _ROUNDINGS * precision * np.abs(values)
    broken: NDArray[np.bool_] = np.any((values < lower - slack) | (values > upper + slack), axis=0)
    for row, constant in zip(written.coefficients, written.constants, strict=True):
        terms = row[:, None] * values
        size = np.abs(terms).sum(axis=0) + abs(constant)
        broken |= np.abs(terms.sum(axis=0) - constant) > _ROUNDINGS * precision * size
    return broken
