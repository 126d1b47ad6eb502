"""Which columns keep their zeros: all (``keep``), none (``mask``), or those of which many values are zero (``auto``).

Amounts are zero or not, and which are zero is what analysts tabulate. ``auto``, the default of methods, keeps the zeros
of columns of which at least 5 % are exactly zero; not where the other values are all the same, as in a column of flags,
which would be released as it is, nor where these are too few to be masked by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpmask.kernels.arrays import Floats
from dpmask.kernels.zeros import MANY_ZEROS, merge_zero_counts, zero_counts
from dpmask.table.table import Table

KEEP, MASK, AUTO = "keep", "mask", "auto"
ZEROS = (KEEP, MASK, AUTO)
"""What the parameter ``zeros`` of a method may be."""
MANY = f"{MANY_ZEROS:.0%}".replace("%", " %")


def zeros_kept(
    table: Table, columns: Sequence[str], zeros: str, ends: tuple[Floats, Floats], least: int, who: str
) -> tuple[str, ...]:
    """The columns whose zeros stay, of a method with at least so many records in a group.

    Takes a pass for ``auto``, unless the smallest and largest values of the columns (``ends``) say that none is zero.
    """
    if zeros != AUTO:
        return tuple(columns) if zeros == KEEP else ()
    possible = [name for name, low, high in zip(columns, *ends, strict=True) if low <= 0.0 <= high]
    if not possible:
        return ()
    found = table.reduce(possible, zero_counts, merge_zero_counts, f"{who}: zeros")
    kept = found.many & (found.others >= least)
    return tuple(name for name, one in zip(possible, kept.tolist(), strict=True) if one)


def describe_kept(columns: Sequence[str], zeros: str) -> str:
    """Which zeros stay, for readers of a release; empty where none do."""
    if zeros == KEEP or not columns:
        return "Zeros stay zero." if zeros == KEEP else ""
    return f"Zeros of {', '.join(columns)} stay zero: at least {MANY} of the values are."
