"""What labels of generalised columns stand for: sets of original values, or intervals of them.

A method that generalises describes its labels by ``LabelSets`` (dpmask.masking.method), and measures read released
values by them: ``{column: {label: [value, ...]}}``. A value is a text, or None for a missing one; an interval is a text
such as ``[20, 40)``. None in place of the list means every value that no other label stands for. A value that stands in
no set is released as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmask.errors import JobError
from dpmask.lake.reading import Rows
from dpmask.table.encoders.interval import end_number, interval_parts, is_ordered, numbers
from dpmask.table.encoders.texts import text_values
from dpmask.table.new_columns import NewColumn

LabelSets = Mapping[str, Mapping[str, Sequence[object] | None]]
"""For each generalised column what its labels stand for; None: all that no other label stands for."""


def are_intervals(sets: Mapping[str, Sequence[object] | None]) -> bool:
    """Whether each label stands for one interval, perhaps with missing values beside it."""
    return bool(sets) and all(_interval(members) is not None for members in sets.values())


def intervals_of(sets: Mapping[str, Sequence[object] | None]) -> dict[str, str]:
    """The interval that each label stands for, of labels that are such."""
    return {label: str(_interval(members)) for label, members in sets.items()}


def _interval(members: Sequence[object] | None) -> str | None:
    present = [str(one) for one in members or () if one is not None]
    return present[0] if len(present) == 1 and interval_parts(present[0]) else None


def label_of_each(sets: Mapping[str, Sequence[object] | None]) -> dict[str | None, list[str]]:
    """For each value that is listed the labels that stand for it."""
    found: dict[str | None, list[str]] = {}
    for label, members in sets.items():
        for one in members or ():
            found.setdefault(None if one is None else str(one), []).append(label)
    return found


def overlap(sets: Mapping[str, Sequence[object] | None], released: Iterable[str]) -> bool:
    """Whether a value may be released under several of the labels that occur, or under none of the sets'."""
    there = set(released)
    if (None in sets.values() or are_intervals(sets)) and there - set(sets):
        return True  # all values have a label of the sets, and others occur beside them
    unlisted = {text: [text] for text in there - set(sets)}
    known = {label: members or () for label, members in sets.items() if label in there} | unlisted
    ends = [end for members in known.values() for one in members if (end := interval_parts(str(one)))]
    ranges = sorted((end_number(low), end_number(high)) for _, low, high, _ in ends)
    if any(after[0] < before[1] for before, after in pairwise(ranges)):
        return True
    values = [None if one is None else str(one) for members in known.values() for one in members]
    return len(set(values)) < len(values)


def through_steps(steps: Iterable[Any]) -> dict[str, Mapping[str, Sequence[object] | None]]:
    """What labels stand for after these fitted steps; those of a column that a later step changes are gone."""
    found: dict[str, Mapping[str, Sequence[object] | None]] = {}
    for step in steps:
        changed = set(step.changes)
        found = {column: sets for column, sets in found.items() if column not in changed}
        found |= dict(step.label_sets())
    return found


def only_of(sets: LabelSets, columns: Iterable[str]) -> dict[str, Mapping[str, Sequence[object] | None]]:
    """The sets of these columns."""
    kept = set(columns)
    return {column: one for column, one in sets.items() if column in kept}


def require_sets(sets: LabelSets, columns: Iterable[str], who: str) -> None:
    """Refuse sets of columns that are not asked for, and labels that stand for nothing."""
    unknown = sorted(set(sets) - set(columns))
    if unknown:
        raise JobError(f"{who}: sets name column '{unknown[0]}', which is not among columns. Add it there.")
    for column, labels in sets.items():
        for label, members in labels.items():
            if members is not None and not members:
                raise JobError(f"{who}: sets of column '{column}': label '{label}' stands for no value. List some.")


def is_informative(sets: Mapping[str, Sequence[object] | None]) -> bool:
    """Whether labels mean anything: one that stands for everything, missing values too, means nothing."""
    (only, *others) = sets.values() or [[]]
    return bool(others) or (only is not None and None not in only)


def with_labels(rows: Rows, column: str, labels: Any) -> Rows:
    """The rows with these labels where a column has none."""
    place, found = rows.schema.get_field_index(column), rows.column(column)
    return rows.set_column(place, rows.schema.field(place), pc.coalesce(found, labels.cast(found.type)))


@dataclass(frozen=True, repr=False)
class AsReleased:
    """Original values as the labels that they are released under."""

    column: str
    sets: Mapping[str, Sequence[object] | None]
    released: Any
    """The Arrow type of the released column."""

    @property
    def _kind(self) -> Any:
        return self.released if is_ordered(self.released) else pa.string()

    def replaced(self, rows: Rows) -> Rows:
        """The rows with this column as it would be released."""
        values, places = self._intervals(rows) if are_intervals(self.sets) else self._texts(rows)
        place = rows.schema.get_field_index(self.column)
        new = NewColumn(self.column, self._kind)
        return rows.set_column(place, pa.field(self.column, new.kind), new.taken(values, places))

    def _intervals(self, rows: Rows) -> tuple[list[Any], Any]:
        ends = [interval_parts(text) or ("", "nan", "nan", "") for text in intervals_of(self.sets).values()]
        labels: list[Any] = list(self.sets)
        if is_ordered(self.released):
            labels = [float(label) for label in labels]
        values = numbers(rows, self.column)
        places = np.full(len(values), len(labels))
        for place, (opening, low, high, closing) in enumerate(ends):
            first, last = end_number(low), end_number(high)
            above = values > first if opening == "(" else values >= first
            places[above & (values < last if closing == ")" else values <= last)] = place
        return [*labels, None], places

    def _texts(self, rows: Rows) -> tuple[list[Any], Any]:
        """A value that several labels stand for is taken under the one for fewest; a missing one may have a label."""
        sizes = {label: len(members) for label, members in self.sets.items() if members is not None}
        known = {value: min(labels, key=sizes.__getitem__) for value, labels in label_of_each(self.sets).items()}
        others = next((label for label, members in self.sets.items() if members is None), None)
        missing = known.get(None, others)
        if missing is not None and missing != others and sizes[missing] == 1:
            missing = None  # missing values by themselves are released as such
        values: list[Any] = []
        places: dict[str | None, int] = {}

        def place(label: str | None) -> int:
            if label not in places:
                places[label] = len(values)
                values.append(label)
            return places[label]

        nothing = place(missing)
        return values, text_values(rows, self.column).lookup(
            lambda text: place(known.get(text, text if others is None else others)), nothing, np.int64
        )
