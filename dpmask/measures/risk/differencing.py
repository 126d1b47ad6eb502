"""Differencing: what several releases of the same people show that none of them shows alone.

Four attacks by whoever has them all, the newest and earlier ones:

    mean            values by the mean of all releases that hold a person, and by their best linear combination, which
                    averages fresh noise away and takes off what releases share: the share of originals within 1 to 10 %
                    of a standard deviation, on average, less what the newest release alone gives (``gained``)
    totals          the newest release's total less an earlier one's, for the total of the people who are new: whether
                    that of fewer than k is found within 1 to 10 % of a standard deviation a person
    intersections   a person's groups in all releases, by labels: the records left are the sum, over what is released
                    as it is beside them, of the least number in any of the groups; fewer than k, though every release
                    has k
    multisets       the rows of the newest release that an earlier one has not: new people are among those of their
                    group; fewer than k, though the group has k

``rate`` is the worst of them. Of a person whom an earlier release lacks all columns are missing there.

Passes: two over all tables, and, if anybody is new, one in which equal rows meet. The driver holds the
different rows of groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpmask.engine.collection import itself
from dpmask.engine.exchange import Piece
from dpmask.engine.limits import current_limits
from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Flags, Floats
from dpmask.kernels.differencing import (
    Differences,
    JointGroups,
    ValueSums,
    differences,
    merge_value_sums,
    near_counts,
    total_shares,
    value_sums,
)
from dpmask.kernels.keys import RowKeys, grouped, new_keys
from dpmask.kernels.moments import Moments, column_moments, merge_moments
from dpmask.lake.reading import Rows
from dpmask.measures.measure import Measure, require_integers, timed
from dpmask.results import MORE_RISK, RATE, Exhibit, Headline, Risk, Term
from dpmask.table.beside import beside as side_by_side
from dpmask.table.checks import require_finite, require_spread
from dpmask.table.columns import floats, require_known, require_numeric
from dpmask.table.grouping import split_counts, targets_for
from dpmask.table.row_keys import missing, require_groupable, row_keys
from dpmask.table.table import Frame, Table

_WHO = "differencing"
_SOURCE = "dpmask explain differencing"
_BYTES = 40
LEAST = 3
"""A total, or a group, of fewer than so many people says too much of each."""


@dataclass(frozen=True, kw_only=True)
class Differencing(Risk):
    """``rate`` is the worst of the others: what several releases show beyond what each shows alone."""

    rate: float
    gained: float
    totals: float
    intersected: float
    new: float

    judged: ClassVar[tuple[str, ...]] = ("rate", "gained", "totals", "intersected", "new")
    headlines: ClassVar[Sequence[Headline]] = [
        Headline("learned", "rate", "more is shown by all releases of the series together than by each alone"),
    ]
    exhibits: ClassVar[Mapping[str, Exhibit]] = dict.fromkeys(judged[1:], Exhibit("share"))
    about: ClassVar[Term] = Term(
        "What several releases of the same people show together that none shows alone: the worst of four attacks, by "
        "their mean, by differences of totals, by intersected groups, and by rows that an earlier release has not.",
        MORE_RISK,
        _SOURCE,
    )
    terms: ClassVar[Mapping[str, Term]] = {
        **Risk.terms,
        "rate": RATE,
        "gained": Term(
            "Share of values within 1 to 10 % of a standard deviation of an estimate by all releases, less the share "
            "by the newest alone; of people in several releases, in the worst column.",
            MORE_RISK,
            _SOURCE,
        ),
        "totals": Term(
            "Share of widths of 1 to 10 % of a standard deviation by which the difference of two releases' totals "
            "gives the total of fewer than k new people, in the worst column and release.",
            MORE_RISK,
            _SOURCE,
        ),
        "intersected": Term(
            "Share of people in several releases who are left among fewer than k records by their groups in all of "
            "them, though no release has so few.",
            MORE_RISK,
            "Fung, Wang, Fu and Pei 2008, Anonymity for continuous data publishing",
        ),
        "new": Term(
            "Share of the people whom an earlier release lacks who are among fewer than k rows of their group that it "
            "has not, for the worst of these releases.",
            MORE_RISK,
            _SOURCE,
        ),
    }

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"With earlier releases, {self.gained:.2%} more values are found than by this one alone, "
            f"{self.intersected:.2%} of the people in several are left among few by their groups in all, "
            f"{self.new:.2%} of the new ones among few rows that an earlier release has not, and differences of totals "
            f"give that of few new people to {self.totals:.0%}. Larger means more risk."
        )


@timed
def differencing(
    original: Frame,
    masked: Frame,
    *,
    earlier: Sequence[Frame],
    columns: Sequence[str] = (),
    labels: Sequence[str] = (),
    beside: Sequence[str] = (),
    k: int = LEAST,
) -> Differencing:
    """What several releases of the same people show that none of them shows alone.

    Parameters
    ----------
    original, masked
        The newest table and its release: frames are paired by index, lakes by position.
    earlier
        Earlier releases, paired likewise. All columns of a person whom one lacks are missing there. In a job with
        ``series`` they are those of its ledger, and the gate takes this measure by itself.
    columns
        Numeric columns that were masked.
    labels
        Columns by which an intruder knows a person's group: generalised ones, or such as are released as they are.
    beside
        Columns that all releases show as they are, by which records of two of them are distinguished.
    k
        Fewer people than so many are few.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"income": [1.0, 5.0, 2.0, 8.0, 4.0, 9.0, 3.0, 7.0]})
    >>> noise = pandas.DataFrame({"income": [3.0, 2.0, -4.0, -2.0, 3.0, -5.0, -1.0, 4.0]})
    >>> found = dpmask.risk.differencing(original, original + noise, earlier=[original - noise], columns=["income"])
    >>> round(found.gained, 2)  # their mean is the original
    0.95
    """
    require_integers(_WHO, 2, k=k)
    names = list(dict.fromkeys([*columns, *labels, *beside]))
    if not earlier or not names:
        raise JobError(f"{_WHO}: needs earlier releases, and columns or labels that all have.")
    table = _joined(original, [masked, *earlier], names)
    asked = _Asked(tuple(columns), tuple(labels), tuple(beside), tuple(names), len(earlier) + 1)
    wanted = asked.wanted
    require_numeric(table.masked_schema, [one for some in asked.numbers for one in some], _WHO)
    require_groupable(table.masked_schema, wanted, _WHO)
    found = table.select(wanted).reduce(partial(_found, asked), _merged, f"{_WHO}: sums")
    if not found.joint.present[0].any():
        raise InputError(f"{_WHO}: no record of the original is in the masked table. Give both the same index.")
    parts: dict[str, float] = {}
    gained = totals = 0.0
    if columns:
        gained, totals = _of_values(table, asked, found, k, parts)
    few, people = found.joint.intersected(k)
    shares = _of_new_people(table, asked, found.joint, k)
    parts |= {f"new since release -{number}": float(one) for number, one in enumerate(shares, 1)}
    intersected, new = few / max(people, 1), float(shares.max(initial=0.0))
    return Differencing(
        rate=max(gained, totals, intersected, new),
        gained=gained,
        totals=totals,
        intersected=intersected,
        new=new,
        guessing=0.0,
        attacked=table.rows,
        parts=parts,
    )


def _name(column: str, release: int) -> str:
    return f"{column} (release -{release})"


def _joined(original: Frame, releases: Sequence[Frame], names: Sequence[str]) -> Table:
    """Originals, and each release's columns under names of their own."""
    if all(isinstance(one, Table) for one in (original, *releases)):
        for one in (original, *releases):
            require_known(one.masked_schema, names, _WHO)
        return side_by_side(
            [
                (original, {name: name for name in names}),
                *((one, {name: _name(name, at) for name in names}) for at, one in enumerate(releases)),
            ]
        )
    from dpmask.table.frames import join

    return join([original, *releases], names, lambda name, number: _name(name, number - 1), _WHO)


class _Asked(NamedTuple):
    """The columns, and how many releases there are."""

    columns: tuple[str, ...]
    labels: tuple[str, ...]
    beside: tuple[str, ...]
    names: tuple[str, ...]
    releases: int

    @property
    def numbers(self) -> list[list[str]]:
        """The numeric columns of the original, then those of each release."""
        return [list(self.columns), *([_name(name, at) for name in self.columns] for at in range(self.releases))]

    @property
    def wanted(self) -> list[str]:
        """All columns that are read."""
        return [*self.columns, *(_name(name, at) for at in range(self.releases) for name in self.names)]

    def present(self, rows: Rows) -> Flags:
        """Whether each release holds each person: releases x people."""
        of = [[missing(rows, _name(name, at)) for name in self.names] for at in range(self.releases)]
        return ~np.array([np.logical_and.reduce(some) for some in of])

    def values(self, rows: Rows) -> tuple[Floats, Floats]:
        """The originals (columns x people), and releases x columns x people."""
        found = [np.array([floats(rows, one) for one in some]) for some in self.numbers]
        return found[0], np.array(found[1:])

    def groups(self, rows: Rows, release: int) -> RowKeys:
        """The key of each person's group in a release."""
        return row_keys(rows, [_name(name, release) for name in self.labels])


class _Found(NamedTuple):
    moments: Moments | None
    sums: ValueSums | None
    joint: JointGroups


def _found(asked: _Asked, rows: Rows) -> _Found:
    present = asked.present(rows)
    groups = np.array([asked.groups(rows, at) for at in range(asked.releases)])
    values = row_keys(rows, [_name(name, 0) for name in asked.beside]) if asked.beside else new_keys(rows.num_rows)
    joint = JointGroups(groups, present, values, np.ones(rows.num_rows, np.int64)).each_once()
    if not asked.columns:
        return _Found(None, None, joint)
    original, releases = asked.values(rows)
    moments = column_moments([*original, *(one for release in releases for one in release)])
    return _Found(moments, value_sums(original, releases, present), joint)


def _merged(left: _Found, right: _Found) -> _Found:
    joint = left.joint.plus(right.joint)
    most = current_limits().series_rows
    if len(joint.counts) > most:
        raise InputError(f"{_WHO}: more than {most:,} different rows of groups. Take labels out.")
    if left.moments is None or right.moments is None or left.sums is None or right.sums is None:
        return _Found(None, None, joint)
    return _Found(merge_moments(left.moments, right.moments), merge_value_sums(left.sums, right.sums), joint)


def _of_values(table: Table, asked: _Asked, found: _Found, k: int, parts: dict[str, float]) -> tuple[float, float]:
    """What estimates by all releases gain, and what differences of totals give."""
    assert found.moments is not None
    assert found.sums is not None
    columns, t = asked.columns, len(asked.columns)
    require_spread(found.moments.of(slice(t)), columns, _WHO)
    for at in range(asked.releases):
        require_finite(found.moments.of(slice((at + 1) * t, (at + 2) * t)), columns, _WHO, what="masked column")
    sd = found.moments.of(slice(t)).sd
    count = partial(_near, asked, found.sums, sd)
    near = table.select(asked.wanted).reduce(count, np.add, f"{_WHO}: near")
    shares = near[:, :, :-1].mean(axis=2) / np.maximum(near[:, :, -1], 1)
    alone, together = shares[:2].max(axis=0), shares[2:].max(axis=0)
    for number, column in enumerate(columns):
        parts |= {f"{column}: newest alone": float(alone[number]), f"{column}: all": float(together[number])}
    totals = total_shares(found.sums, sd, k)
    parts |= {f"totals, release -{number}": one for number, one in enumerate(totals, 1)}
    return max(float((together - alone).max()), 0.0), max(totals)


def _of_new_people(table: Table, asked: _Asked, joint: JointGroups, k: int) -> Floats:
    """For each earlier release the share of the people whom it lacks who are among few rows that it has not."""
    if not (joint.present[0] & ~joint.present[1:]).any():
        return np.zeros(asked.releases - 1)
    targets, size = targets_for(table.rows * asked.releases), _BYTES * table.rows * asked.releases
    pieces = table.select(asked.wanted).transform(partial(_row_counts, asked))
    meeting = pieces.exchange(partial(split_counts, targets), _different, targets, f"{_WHO}: rows", size=size)
    lacking, among = joint.new_among(meeting.reduce(itself, Differences.plus, f"{_WHO}: rows"), k)
    return among / np.maximum(lacking, 1)


def _near(asked: _Asked, sums: ValueSums, sd: Floats, rows: Rows) -> Any:
    return near_counts(sums, sd, *asked.values(rows), asked.present(rows))


def _row_counts(asked: _Asked, rows: Rows) -> Piece:
    """Each different row of all releases: its key, that of its group, and how often each release has it."""
    present = asked.present(rows)
    keys = [row_keys(rows, [_name(name, at) for name in asked.names]) for at in range(asked.releases)]
    groups = [asked.groups(rows, at) for at in range(asked.releases)]
    each, every = (RowKeys(*(np.concatenate(lane) for lane in zip(*some, strict=True))) for some in (keys, groups))
    there = np.zeros((asked.releases, present.size), np.int64)
    for at, flags in enumerate(present):
        there[at, at * rows.num_rows : (at + 1) * rows.num_rows] = flags
    found = grouped(each)
    firsts = found.firsts
    return (*each.at(firsts), *every.at(firsts), *(found.sums(one) for one in there))


def _different(pieces: list[Piece]) -> Differences:
    lanes = [np.concatenate(part) for part in zip(*pieces, strict=True)]
    return differences(RowKeys(*lanes[:2]), RowKeys(*lanes[2:4]), np.array(lanes[4:]))


def _check(schema: Any, **parameters: Any) -> None:
    """A job gives no releases: the gate takes it."""
    raise JobError(f"{_WHO}: every job with series: takes it by itself, as gate.{_WHO}. Take it out.")


MEASURE = Measure(function=differencing, result=Differencing, passes=3, check=_check)
