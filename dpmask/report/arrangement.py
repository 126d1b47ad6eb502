"""The order in which categories are drawn: intervals and numbers in their own, other labels the most frequent first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from dpmask.table.encoders.interval import end_number, interval_parts

_SHOWN = 12
_SHOWN_IN_ORDER = 32
_WITHOUT_ORDER = 1
"""Labels without a place in the order, such as * for what was suppressed: they come last."""


class Arrangement(NamedTuple):
    """Labels as they are drawn, the texts that each stands for, and how many values the last has if it is a rest."""

    labels: list[str]
    texts: list[tuple[str, ...]]
    others: int
    ordered: bool

    def counted(self, counts: Counter[str]) -> list[int]:
        """How many records each label stands for."""
        return [sum(counts[text] for text in texts) for texts in self.texts]


def arranged(after: Counter[str], before: Counter[str] | None = None) -> Arrangement:
    """Labels in order, neighbours joined where there are many; or the most frequent ones and a rest."""
    original = before or Counter[str]()
    texts = set(original | after)
    places = {text: place for text in texts if (place := place_in_order(text)) is not None}
    if len(places) > 1 and len(texts) - len(places) <= _WITHOUT_ORDER:
        return _joined(sorted(places, key=lambda text: (*places[text], text)), [*texts - set(places)])
    order = sorted(texts, key=lambda text: (-after[text], -original[text], text))
    shown, few = order[:_SHOWN], tuple(order[_SHOWN:])
    labels = [*shown, *([f"{len(few)} other values"] if few else [])]
    return Arrangement(labels, [*((one,) for one in shown), *([few] if few else [])], len(few), False)


def place_in_order(text: str) -> tuple[float, float] | None:
    """Where an interval or a number lies; None for any other text."""
    _, low, high, _ = interval_parts(text) or ("", text, text, "")
    try:
        ends = end_number(low), end_number(high)
    except ValueError:
        return None
    return None if any(map(math.isnan, ends)) else ends


def _joined(order: Sequence[str], rest: Sequence[str]) -> Arrangement:
    """Every label, or runs of neighbours where there are too many to draw; then those without a place."""
    size = -(-len(order) // _SHOWN_IN_ORDER)
    runs = [tuple(order[start : start + size]) for start in range(0, len(order), size)]
    runs += [(text,) for text in rest]
    return Arrangement([_run_name(run) for run in runs], runs, 0, True)


def _run_name(run: Sequence[str]) -> str:
    """One interval where each begins where the one before it ends; else the first and the last."""
    first, last = run[0], run[-1]
    parts = [found for text in run if (found := interval_parts(text))]
    if len(parts) == len(run) and all(one[2] == other[1] for one, other in pairwise(parts)):
        return first if len(run) == 1 else f"{parts[0][0]}{parts[0][1]}, {parts[-1][2]}{parts[-1][3]}"
    return first if first == last else f"{first} to {last}"
