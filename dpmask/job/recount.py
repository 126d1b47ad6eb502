"""What two releases of a series leave of people, counted again from their published files alone.

Rows of both are compared by what their labels stand for. Which people are in a group is not public, so all groups of
both releases that may hold a person are taken: the least is a bound, and exact only where groups allow no choice.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import add
from typing import Any, NamedTuple

from dpmask.errors import VerificationError
from dpmask.job.evaluate import label_sets_of
from dpmask.lake.listing import MANIFEST
from dpmask.lake.reading import Rows
from dpmask.lake.storage import Place
from dpmask.release.manifest import LARGEST, parse
from dpmask.table.encoders.interval import end_number, interval_parts
from dpmask.table.lake import read_lake
from dpmask.table.row_keys import row_keys

Row = tuple[Any, ...]
Counts = Mapping[Row, Counter[Any]]


class SeriesRecount(NamedTuple):
    """What one earlier release leaves by some columns, and whether k holds; None where that is not public."""

    earlier: str
    columns: list[str]
    k: int
    in_both: int | None
    new: int | None
    holds: bool | None

    def __str__(self) -> str:
        figures = [("in both", self.in_both), ("new", self.new)]
        counted = ", ".join(f"{name}: among {least} or more" for name, least in figures if least is not None)
        verdict = {
            True: "holds",
            False: "is broken",
            None: "cannot be counted from the files: who is in which group is not public",
        }[self.holds]
        return f"with {self.earlier}, by {', '.join(self.columns)}: {counted or 'nobody'}; k = {self.k} {verdict}"


class _Extent(NamedTuple):
    """What a label stands for: an interval, or a set of values."""

    low: float
    high: float
    values: frozenset[object]

    def contains(self, other: _Extent) -> bool:
        return self.low <= other.low and self.high >= other.high and self.values >= other.values

    def meets(self, other: _Extent) -> bool:
        return (max(self.low, other.low) < min(self.high, other.high)) or bool(self.values & other.values)


def _extent(members: Sequence[object]) -> _Extent:
    present = [one for one in members if one is not None]
    parts = interval_parts(str(present[0])) if len(present) == 1 else None
    if parts is None:
        return _Extent(math.inf, -math.inf, frozenset(members))  # no number
    return _Extent(end_number(parts[1]), end_number(parts[2]), frozenset(one for one in members if one is None))


class _Release(NamedTuple):
    url: str
    manifest: dict[str, Any]
    extents: Mapping[str, Mapping[Any, _Extent]]

    def counts(self, columns: Sequence[str], beside: Sequence[str]) -> Counts:
        """For each row of labels how often each row of values stands beside it."""
        count = partial(_counted, tuple(columns), tuple(beside))
        found = defaultdict[Row, Counter[Any]](Counter)
        pairs: Counter[Any] = read_lake(self.url).select([*columns, *beside]).reduce(count, add, "verify: series")
        for (row, values), number in pairs.items():
            found[row][values] += number
        return found


def _counted(columns: tuple[str, ...], beside: tuple[str, ...], rows: Rows) -> Counter[Any]:
    labels = zip(*(map(_text, rows.column(name).to_pylist()) for name in columns), strict=True)
    keys = row_keys(rows, beside)
    return Counter(zip(labels, zip(keys.first.tolist(), keys.second.tolist(), strict=True), strict=True))


def _text(value: object) -> str | None:
    return None if value is None else value if isinstance(value, str) else repr(value)


def _opened(url: str) -> _Release:
    place = Place(url) / MANIFEST
    manifest = parse(place.read(LARGEST), place.url)
    extents: dict[str, dict[Any, _Extent]] = {}
    for column, sets in label_sets_of(url, None).items():
        if any(members is None for members in sets.values()):
            raise VerificationError(f"{place.url}: '{column}' has no tree, so what releases leave cannot be counted.")
        extents[column] = {label: _extent(members or ()) for label, members in sets.items()}
        extents[column].setdefault(None, _extent([None]))
    if not extents or any(one["name"] in extents and one["type"] == "double" for one in manifest["schema"]):
        raise VerificationError(
            f"{place.url}: has no labels of a refinement, so what releases leave cannot be counted."
        )
    return _Release(url, manifest, extents)


def recounted(release: str, earlier: Sequence[str]) -> Iterator[SeriesRecount]:
    """Count what a release leaves with each of some earlier ones; a broken promise is an error."""
    last = _opened(release)
    for url in earlier:
        first = _opened(url)
        for one in _recounts(first, last):
            if one.holds is False:
                raise VerificationError(f"{Place(release).url}: {one}.")
            yield one


def _recounts(first: _Release, last: _Release) -> Iterator[SeriesRecount]:
    if set(first.extents) != set(last.extents):
        raise VerificationError(f"{last.url} and {first.url} generalise different columns, so they do not compare.")
    both = [{one["name"] for one in release.manifest["schema"]} - set(release.extents) for release in (first, last)]
    required: dict[tuple[str, ...], int] = {}
    for claim in (*first.manifest["claims"], *last.manifest["claims"]):
        if claim.get("smallest_group") and not claim.get("known") and set(claim["columns"]) <= set(last.extents):
            columns = tuple(sorted(claim["columns"]))
            required[columns] = max(claim["smallest_group"], required.get(columns, 0))
    beside = sorted(both[0] & both[1])
    for columns, k in required.items():
        joins = [_joined(column, first, last) for column in columns]
        counts = [release.counts(columns, beside) for release in (first, last)]
        yield _recount(first, columns, k, *(_by_join(one, joins) for one in counts))


def _joined(column: str, first: _Release, last: _Release) -> dict[Any, Any]:
    """For each label the largest one of both releases that contains it."""
    ones, others = first.extents[column], last.extents[column]
    if any(a.meets(b) and not a.contains(b) and not b.contains(a) for a in ones.values() for b in others.values()):
        raise VerificationError(f"{last.url}: '{column}' is cut across values of {first.url}: they do not compare.")
    known = {**ones, **others}
    return {
        label: max((one for one in known.values() if one.contains(extent)), key=_size)
        for label, extent in known.items()
    }


def _size(extent: _Extent) -> tuple[float, int]:
    return extent.high - extent.low, len(extent.values)


def _by_join(counts: Counts, joins: Sequence[Mapping[Any, Any]]) -> dict[Row, list[Counter[Any]]]:
    found = defaultdict[Row, list[Counter[Any]]](list)
    for row, values in counts.items():
        found[tuple(join[label] for join, label in zip(joins, row, strict=True))].append(values)
    return found


def _recount(
    first: _Release, columns: tuple[str, ...], k: int, ones: Mapping[Row, Any], others: Mapping[Row, Any]
) -> SeriesRecount:
    """Forward and cross attacks by all pairs that may hold a person, backward ones by all groups that may."""
    pairs, new, broken = list[int](), list[int](), False
    for join in {*ones, *others}:
        before, after = ones.get(join, []), others.get(join, [])
        fresh = sum(after, Counter[Any]())
        fresh.subtract(sum(before, Counter[Any]()))
        if any(number < 0 for number in fresh.values()):
            raise VerificationError(f"{first.url}: has records that the later release lacks, so it is no series.")
        found = [left for q1 in before for q2 in after if (left := (q1 & q2).total())]
        grown = [left for q2 in after if (left := (q2 & fresh).total())]
        real = len(after) == 1 or (len(before) == 1 and not grown)  # every pair has a person
        broken |= (real and min(found, default=k) < k) or (len(after) == 1 and min(grown, default=k) < k)
        pairs += found
        new += grown
    least = min([*pairs, *new], default=k)
    holds = True if least >= k else False if broken else None
    return SeriesRecount(
        Place(first.url).url, list(columns), k, min(pairs, default=None), min(new, default=None), holds
    )
