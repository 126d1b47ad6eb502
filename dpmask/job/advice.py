"""What to change where too many records are linked: how much larger groups must be, as a first try.

Each step makes groups of its own, and released rows are alike in all columns only where they are in the same group of
every step. So of n records about k1 k2 / n are alike for two steps: the larger the table, the fewer. In the ready job
household_income, of a million people, the rate fell with the 1.3rd power of the factor by which both k were raised
(1.5: from 10.6 to 5.8 %, 1.86: to 4.8 %); what is proposed assumes less.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpmask.job.model import Job
from dpmask.job.movable import PlacedMovable, movable_of
from dpmask.job.sweep_axes import last_steps

_POWER = 1.7
_DIGITS = 2


def larger_groups(job: Job, rows: int, judged: float, limit: float) -> list[str]:
    """How far to raise each k, for a rate that was judged above its limit; nothing for a job without groups."""
    steps = [found for number in last_steps(job) if (found := list(_group_sizes(job, number)))]
    if not steps or not 0.0 < limit < judged:
        return []
    factor = (judged / limit) ** (_POWER / len(steps))
    sizes = [one for found in steps for one in found]
    raised = [_raised(one.parameter.value * factor, rows) for one in sizes]
    changes = [
        f"{one.name} from {one.parameter.value:,} to {k:,}"
        for one, k in zip(sizes, raised, strict=True)
        if k > one.parameter.value
    ]
    if not changes:
        return []
    return [*_alike(steps, rows), f"As a first try, raise {', '.join(changes)}; dpmask sweep compares several."]


def _group_sizes(job: Job, number: int) -> Iterator[PlacedMovable]:
    for one in movable_of(job, number):
        if one.parameter.range.counts == "records" and one.parameter.path[-1] == "k":
            yield one


def _alike(steps: list[list[PlacedMovable]], rows: int) -> list[str]:
    """How many records are alike in the groups of several steps, if these had nothing to do with each other."""
    if len(steps) == 1:
        return []
    smallest = [min(one.parameter.value for one in found) for found in steps]
    alike = max(rows * math.prod(k / rows for k in smallest), 1.0)
    listed = " and ".join(f"{k:,}" for k in smallest)
    return [
        f"Each step has groups of its own, of {listed} records: about {alike:,.0f} of {rows:,} records are alike in "
        "all columns, the fewer the larger a table is."
    ]


def _raised(k: float, rows: int) -> int:
    """Two digits, upwards; no more than half of the table."""
    unit = 10 ** max(math.floor(math.log10(k)) + 1 - _DIGITS, 0)
    return min(math.ceil(k / unit) * unit, rows // 2)
