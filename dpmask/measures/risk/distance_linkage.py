"""Distance-based record linkage: the share of records whose nearest masked record is their own.

An intruder knows some columns of the original and links each record to the nearest masked one. Numbers are
standardised, each file by its own mean and standard deviation (ddof 0); a category is the same (0) or not (1); a
generalised value is at distance 0 from what is inside it, otherwise as far as its nearest point. Of q masked records
equally near, each is linked with probability 1/q; distances that agree to nine digits are equal. A record that the
masked table dropped is not linked. Risks:

    rate         the intruder knows all given columns
    by_known     the average of intruders who know the first 1, 2, ... 7 columns, the classic score
    mahalanobis  all columns known, and how the mask moves them: (x - x')' (S + 1e-6 tr(S)/t I)^-1 (x - x') with
                 S = Var(x - x') (Torra, Abowd and Domingo-Ferrer 2006); values that are no plain numbers enter by
                 their mean squared gap. Where nothing moved, S = 0, it is the Euclidean distance.

It shows what a link by nearness finds, and nothing about an intruder with other knowledge or what is inferred without
a link. Every number is exact for the records attacked: all of them up to ``limit``, above it a keyed sample,
each against the whole masked table. Passes: one over each table, two over the pairs, one over the masked table, in
which each block meets all records attacked. Memory per task: a block, a tree of its rows, and a quarter of a million
of the records attacked, or as many as a block has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpmask.engine.draws import chosen_records, make_key
from dpmask.errors import InputError, JobError
from dpmask.kernels.covariance import merge_covariance_sums
from dpmask.kernels.moments import column_moments, merge_moments
from dpmask.kernels.wilson import wilson
from dpmask.measures.measure import Measure, timed
from dpmask.measures.risk.linkage_attack import Attack, first_columns, linked, mahalanobis, moved
from dpmask.measures.risk.linkage_values import Points, Ranges, Values, categories
from dpmask.parameters import require_columns, require_integer
from dpmask.results import MORE_RISK, RATE, Interval, Risk, Term
from dpmask.table.checks import require_finite, require_spread
from dpmask.table.columns import is_category, is_numeric, require_known
from dpmask.table.encoders.numeric import Scale
from dpmask.table.pairs import POSITION, PRESENT, masked_name, pair
from dpmask.table.table import Frame, Table, as_table

_WHO = "distance_linkage"
_SAMPLE = 20_000
_MOST_KNOWN = 7


@dataclass(frozen=True, kw_only=True)
class DistanceLinkage:
    """The parameters."""

    columns: Sequence[str]
    sets: Mapping[str, Mapping[str, Sequence[object]]]
    sample: int | None
    limit: int

    def __post_init__(self) -> None:
        require_columns(self, "columns")
        require_integer(self, "limit", at_least=1)
        if self.sample is not None:
            require_integer(self, "sample", at_least=1)
        unknown = sorted(set(self.sets) - set(self.columns))
        if unknown:
            raise JobError(f"{_WHO}: sets name column '{unknown[0]}', which is not among columns. Add it there.")

    def attacked(self, rows: int) -> int:
        """How many of the records."""
        wanted = self.sample if self.sample is not None else rows if rows <= self.limit else _SAMPLE
        return min(wanted, rows)


@dataclass(frozen=True, kw_only=True)
class LinkageRisk(Risk):
    """Shares of attacked records linked to their own masked record, by three intruders."""

    rate: float
    by_known: float
    mahalanobis: float
    known: tuple[float, ...]  # what by_known is the mean of: the first column known, the first two, ...
    sampled: bool

    judged: ClassVar[tuple[str, ...]] = ("rate", "by_known", "mahalanobis")
    shares: ClassVar[tuple[str, ...]] = judged
    unreported: ClassVar[tuple[str, ...]] = ("parts", "sampled")
    about: ClassVar[Term] = Term(
        "The share of attacked records whose nearest masked record is their own, a tie among q counting 1/q: knowing "
        "all columns, knowing some, and knowing how masking moves them.",
        "1 means that every record is linked; larger means more risk.",
        "Pagliuca and Seri 1999; Torra, Abowd and Domingo-Ferrer 2006 for Mahalanobis distances",
    )
    terms: ClassVar[Mapping[str, Term]] = {
        **Risk.terms,
        "rate": RATE,
        "by_known": Term(
            "Mean rate of intruders who know the first column, the first two, and so on up to seven.",
            MORE_RISK,
            "Domingo-Ferrer and Torra 2001, A quantitative comparison of disclosure control methods",
        ),
        "mahalanobis": Term(
            "Rate of an intruder who also knows the covariance of what masking added.",
            MORE_RISK,
            "Torra, Abowd and Domingo-Ferrer 2006, Using Mahalanobis distance-based record linkage",
        ),
    }

    @property
    def intervals(self) -> Mapping[str, Interval]:
        """Wilson's of each rate; the rate itself where every record was attacked."""
        rates = {name: float(getattr(self, name)) for name in self.judged}
        return {name: wilson(rate, self.attacked) if self.sampled else (rate, rate) for name, rate in rates.items()}

    def explain(self) -> str:
        """What the number means."""
        low, high = self.interval
        sampled = f" (95 % interval {low:.2%} to {high:.2%})" if self.sampled else ""
        return (
            f"Of {self.attacked:,} records attacked {self.rate:.2%}{sampled} are linked to their own masked record by "
            f"an intruder who knows all columns, {self.by_known:.2%} by one who knows some, {self.mahalanobis:.2%} by "
            f"one who also knows how they were masked; guessing links {self.guessing:.2%}, and larger means more risk."
        )


def _check(schema: Any, *, columns: Sequence[str], **_: object) -> None:
    """Refuse columns that are neither numbers nor categories."""
    require_known(schema, columns, _WHO)
    for column in columns:
        kind = schema.field(column).type
        if not is_numeric(kind) and not is_category(kind):
            raise JobError(f"{_WHO}: column '{column}' must be a number or a category; it is {kind}. Take it out.")


@timed
def distance_linkage(
    original: Frame,
    masked: Frame,
    *,
    columns: Sequence[str],
    sets: Mapping[str, Mapping[str, Sequence[object]]] | None = None,
    sample: int | None = None,
    limit: int = 100_000,
    seed: int = 0,
) -> LinkageRisk:
    """The share of records whose nearest masked record is their own.

    Parameters
    ----------
    original, masked
        The tables: frames are paired by index, lakes by position.
    columns
        What the intruder knows, the best known first: numbers, which may be masked by interval labels such as
        ``[20, 40)``, or categories. A missing value is a value of its own.
    sets
        What a label of a generalised category stands for: ``{column: {label: [value, ...]}}``.
    sample
        How many records are attacked; by default all of them, or 20,000 of more than ``limit``.
    limit
        Up to how many records all are attacked.
    seed
        Chooses the records attacked.

    Returns
    -------
    LinkageRisk
        The rates of three intruders, with their intervals.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"income": [1.0, 2.0, 5.0, 9.0]})
    >>> masked = pandas.DataFrame({"income": [2.5, 2.0, 6.0, 8.0]})
    >>> dpmask.risk.distance_linkage(original, masked, columns=["income"]).rate
    0.5
    """
    asked = DistanceLinkage(columns=columns, sets=sets or {}, sample=sample, limit=limit)
    table = as_table(masked, _WHO)
    values = _values(as_table(original, _WHO), table, asked)
    pairs = pair(original, masked, asked.columns, _WHO, marks=True)
    names = [*asked.columns, *map(masked_name, asked.columns), POSITION, PRESENT]
    moves = pairs.select(names).reduce(partial(moved, values), merge_covariance_sums, "linkage: what moved")
    if not moves.rows:
        raise InputError(f"{_WHO}: no record of the original is in the masked table. Give both the same index.")
    known = [first_columns(values[:count]) for count in range(1, min(len(values), _MOST_KNOWN) + 1)]
    whole = known[-1] if len(known) == len(values) else first_columns(values)
    intruders = [*known, whole, mahalanobis(whole, moves)]
    metrics = list({id(metric): metric for metric in intruders}.values())  # some of them may be the same
    attacked, chosen = asked.attacked(pairs.rows), None
    if attacked < pairs.rows:
        chosen = chosen_records(make_key(_WHO, seed=seed).subkey("linkage"), pairs.rows, attacked)
    links = linked(Attack(values, metrics, chosen), pairs, names, table, asked.columns, _WHO)
    share = {id(metric): float(count) / attacked for metric, count in zip(metrics, links, strict=True)}
    shares = [share[id(metric)] for metric in intruders]
    return LinkageRisk(
        rate=shares[-2],
        by_known=sum(shares[:-2]) / len(known),
        mahalanobis=shares[-1],
        known=tuple(shares[:-2]),
        sampled=chosen is not None,
        guessing=moves.rows / pairs.rows / table.rows,
        attacked=attacked,
    )


def _values(original: Table, masked: Table, asked: DistanceLinkage) -> list[Values]:
    """How each column is compared: by its types and, for numbers, their moments in both tables."""
    before, after = original.masked_schema, masked.masked_schema
    for schema in (before, after):
        require_known(schema, asked.columns, _WHO)
    numbers = [column for column in asked.columns if is_numeric(before.field(column).type)]
    plain = [column for column in numbers if is_numeric(after.field(column).type)]
    for column in asked.columns:
        kinds = before.field(column).type, after.field(column).type
        labelled = is_category(kinds[1])
        if not (column in plain or (labelled and (column in numbers or is_category(kinds[0])))):
            raise JobError(
                f"{_WHO}: column '{column}' must be a number, text, or true or false in both tables, or a number in "
                f"the original and interval labels in the masked one; it is {kinds[0]} and {kinds[1]}. "
                "Take it out of columns."
            )
        if column in numbers and column in asked.sets:
            raise JobError(f"{_WHO}: sets are for categories; column '{column}' is a number in the original.")
    measured = _numbers(original, numbers, original=True), _numbers(masked, plain, original=False)
    return [_value(column, *measured, asked) for column in asked.columns]


class _Number(NamedTuple):
    """A column's mean and standard deviation in one table, and whether values are missing."""

    scale: Scale
    gaps: bool


def _numbers(table: Table, columns: Sequence[str], *, original: bool) -> dict[str, _Number]:
    if not columns:
        return {}
    moments = table.reduce(columns, column_moments, merge_moments, "linkage: standard deviations")
    (require_spread if original else require_finite)(moments, columns, _WHO)
    sd = np.where(moments.sd > 0.0, moments.sd, 1.0)  # a mask may leave one value only
    each = zip(columns, moments.mean, sd, moments.values < table.rows, strict=True)
    return {column: _Number(Scale(mean, deviation), bool(gaps)) for column, mean, deviation, gaps in each}


def _value(column: str, before: Mapping[str, _Number], after: Mapping[str, _Number], asked: DistanceLinkage) -> Values:
    if column not in before:
        return categories(column, asked.sets.get(column, {}), _WHO)
    if column not in after:
        return Ranges(column, before[column].scale, None, _WHO)
    scales = before[column].scale, after[column].scale
    if before[column].gaps or after[column].gaps:
        return Ranges(column, *scales, _WHO)
    return Points(column, *scales)


MEASURE = Measure(function=distance_linkage, result=LinkageRisk, passes=3, check=_check)
