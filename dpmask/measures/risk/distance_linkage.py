"""Distance-based record linkage: the share of records whose nearest masked record is their own.

An intruder knows some columns of the original and links each record to the nearest masked one. Of q masked records
equally near, each is linked with probability 1/q; distances that agree to nine digits are equal. A record that the
masked table dropped is not linked. Intruders:

    euclidean    knows all given columns. Numbers are standardised, each file by its own mean and standard deviation
                 (ddof 0); a category is the same (0) or not (1); a generalised value is at distance 0 from what is
                 inside it, otherwise as far as its nearest point
    by_known     the average of intruders who know the first 1, 2, ... 7 columns so, the classic score
    mahalanobis  all columns known, and how the mask moves them: (x - x')' (S + 1e-6 tr(S)/t I)^-1 (x - x') with
                 S = Var(x - x') (Torra, Abowd and Domingo-Ferrer 2006); values that are no plain numbers enter by
                 their mean squared gap. Where nothing moved, S = 0, it is the Euclidean distance
    joint        all columns at once, weighed by how informative each is (kernels/linkage/likelihood.py)
    ranks        the same, numbers by their ranks and zeros that stayed as one pattern (linkage_ranks.py)
    assignment   the strongest of these, who also knows that no two records have one masked record: an optimal
                 assignment one to one, of all records or in crowds of a sample (linkage_one_to_one.py)

and ``rate`` is that of the worst of them. On a sample of records also: the worst small sets of columns, and what each
column contributes (linkage_crowd.py).

It shows what a link by nearness finds, and nothing about an intruder with other knowledge or what is inferred without
a link. Rates are exact for the records attacked: all of them up to ``limit``, above it a keyed sample, each against the
whole masked table. Passes: one over each table, two over the pairs (four, if all are attacked), one over the masked
table, in which each block meets all records attacked. Memory per task: a block, a tree of its rows, and a quarter of a
million of the records attacked, or as many as a block has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.draws import Subkey, chosen_records, make_key
from dpmask.engine.limits import current_limits
from dpmask.errors import InputError, JobError
from dpmask.kernels.covariance import CovarianceSums
from dpmask.kernels.linkage.nearest import Metric, principal
from dpmask.kernels.moments import Moments, column_moments, merge_moments
from dpmask.kernels.warm_up import KernelUse, Task
from dpmask.kernels.wilson import wilson
from dpmask.lake.reading import Rows
from dpmask.measures.measure import Measure, timed
from dpmask.measures.risk.linkage_attack import LinkageAttack, linked
from dpmask.measures.risk.linkage_crowd import SAMPLE, CrowdFindings, crowd_findings
from dpmask.measures.risk.linkage_metrics import Learnt, first_columns, first_pass, mahalanobis
from dpmask.measures.risk.linkage_one_to_one import added_by_assignment
from dpmask.measures.risk.linkage_values import Points, Ranges, Values, categories
from dpmask.parameters import require_columns, require_integer
from dpmask.results import MORE_RISK, RATE, Exhibit, Headline, Interval, Risk, Term
from dpmask.table.checks import require_finite, require_spread
from dpmask.table.columns import is_category, is_numeric, require_known
from dpmask.table.encoders.interval import is_ordered, numbers
from dpmask.table.encoders.numeric import Scale
from dpmask.table.label_sets import LabelSets, are_intervals, intervals_of, require_sets
from dpmask.table.pairs import POSITION, PRESENT, masked_name, pair
from dpmask.table.table import Frame, Table, as_table

_WHO = "distance_linkage"
_SAMPLE = 20_000
_MOST_KNOWN = 7


@dataclass(frozen=True, kw_only=True)
class DistanceLinkage:
    """The parameters."""

    columns: Sequence[str]
    sets: LabelSets
    sample: int | None
    limit: int

    def __post_init__(self) -> None:
        require_columns(self, "columns")
        require_integer(self, "limit", at_least=1)
        if self.sample is not None:
            require_integer(self, "sample", at_least=1)
        require_sets(self.sets, self.columns, _WHO)

    def attacked(self, rows: int) -> int:
        """How many of the records."""
        wanted = self.sample if self.sample is not None else rows if rows <= self.limit else _SAMPLE
        return min(wanted, rows)


class Compared(NamedTuple):
    """How each column is compared, how far apart all true pairs are, and what the joint intruder knows of the mask."""

    values: Sequence[Values]
    moves: CovarianceSums
    learnt: Learnt


@dataclass(frozen=True, kw_only=True)
class LinkageRisk(Risk):
    """Shares of attacked records linked to their own masked record, by several intruders; ``rate`` is the worst's."""

    rate: float
    euclidean: float
    by_known: float
    mahalanobis: float
    joint: float
    ranks: float
    known: tuple[float, ...]  # what by_known is the mean of: the first column known, the first two, ...
    assignment: float
    assignment_error: float  # half the width of the 95 % interval of what assigning adds
    worst_sets: Mapping[str, float]
    contributions: Mapping[str, float]
    crowd: int
    sampled: bool
    riskiest: tuple[tuple[int, float], ...] = field(default=(), repr=False)
    """The few records that the joint intruder is surest of, if it links any: their positions and chances."""
    compared: Compared | None = field(default=None, repr=False, compare=False)
    """What was compared, to explain these records."""

    judged: ClassVar[tuple[str, ...]] = (
        "rate", "euclidean", "by_known", "mahalanobis", "joint", "ranks", "assignment",
    )  # fmt: skip
    shares: ClassVar[tuple[str, ...]] = judged
    headlines: ClassVar[Sequence[Headline]] = [
        Headline("linked", "rate", "of records can be linked to their own by the strongest intruder"),
    ]
    unreported: ClassVar[tuple[str, ...]] = ("parts", "sampled", "assignment_error", "riskiest", "compared")
    exhibits: ClassVar[Mapping[str, Exhibit]] = {
        "contributions": Exhibit("numbers", "How much the joint rate falls without a column, among few records"),
        "worst_sets": Exhibit("numbers", "The worst small sets of known columns, among few records"),
    }
    about: ClassVar[Term] = Term(
        "The share of attacked records whose nearest masked record is their own, a tie among q counting 1/q: by the "
        "strongest of several intruders, who know all columns or some, and how masking moves them.",
        "1 means that every record is linked; larger means more risk.",
        "Pagliuca and Seri 1999; Torra, Abowd and Domingo-Ferrer 2006 for Mahalanobis distances; Fellegi and Sunter "
        "1969 for likelihood ratios",
    )
    terms: ClassVar[Mapping[str, Term]] = {
        **Risk.terms,
        "rate": RATE,
        "euclidean": Term(
            "Rate of an intruder who knows all columns and compares them as they are, standardised.",
            MORE_RISK,
            "Pagliuca and Seri 1999, Some results of individual ranking method",
        ),
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
        "joint": Term(
            "Rate of an intruder who weighs all columns by how informative each is: the likelihood ratio of true pairs "
            "against pairs at random.",
            MORE_RISK,
            "Fellegi and Sunter 1969, A theory for record linkage",
        ),
        "ranks": Term(
            "Rate of the joint intruder if numbers are compared by their ranks, and zeros that stayed as a pattern.",
            MORE_RISK,
            "dpmask explain distance_linkage",
        ),
        "assignment": Term(
            "Rate of the strongest of the other intruders if every record is assigned a masked one of its own, jointly "
            "best: of all of at most 2,000 records; of more, with what that adds for 2,000 of them, each among the 64 "
            "masked records nearest to it and their owners.",
            MORE_RISK,
            "Jonker and Volgenant 1987, A shortest augmenting path algorithm for linear assignment problems",
        ),
        "worst_sets": Term(
            "The set of one, two and three columns by which most records are linked, among at most 5,000 records.",
            MORE_RISK,
            "dpmask",
        ),
        "contributions": Term(
            "How much the joint rate falls if a column is not known, among at most 5,000 records.", MORE_RISK, "dpmask"
        ),
    }

    @property
    def intervals(self) -> Mapping[str, Interval]:
        """Wilson's of each rate; the rate itself where every record was attacked. That of the rate is the worst's."""
        rates = {name: float(getattr(self, name)) for name in self.judged if name != "rate"}
        found = {name: wilson(rate, self.attacked) if self.sampled else (rate, rate) for name, rate in rates.items()}
        low, high = found["assignment"]
        found["assignment"] = max(low - self.assignment_error, 0.0), min(high + self.assignment_error, 1.0)
        known = wilson(self.rate, self.attacked) if self.sampled else (self.rate, self.rate)
        return {"rate": max(known, *found.values(), key=lambda interval: interval[1]), **found}

    def explain(self) -> str:
        """What the number means."""
        low, high = self.interval
        sampled = f" (95 % interval {low:.2%} to {high:.2%})" if self.sampled else ""
        return (
            f"Of {self.attacked:,} records attacked {self.rate:.2%}{sampled} are linked to their own masked record by "
            f"the strongest intruder: {self.joint:.2%} by all columns, weighed by how informative each is, "
            f"{self.ranks:.2%} by ranks, "
            f"{self.euclidean:.2%} by plain distances, {self.mahalanobis:.2%} by an intruder who knows how columns "
            f"were masked, {self.by_known:.2%} by one who knows some of them, {self.assignment:.2%} if each record is "
            f"assigned one of its own; guessing links {self.guessing:.2%}, and larger means more risk. "
            f"{self._columns()}"
        )

    def _columns(self) -> str:
        """Which columns lead to records."""
        most = ", ".join(f"{name} ({fall:.0%})" for name, fall in list(self.contributions.items())[:3])
        sets = ", ".join(f"{name} {rate:.0%}" for name, rate in self.worst_sets.items())
        return f"Columns that contribute most: {most}; known alone: {sets} of {self.crowd:,} records."


def check_columns(schema: Any, columns: Sequence[str], who: str) -> None:
    """Refuse columns that are neither numbers, dates nor categories."""
    require_known(schema, columns, who)
    for column in columns:
        kind = schema.field(column).type
        if not is_ordered(kind) and not is_category(kind):
            raise JobError(
                f"{who}: column '{column}' must be a number, a date or a category; it is {kind}. Take it out."
            )


def _check(schema: Any, *, columns: Sequence[str], **_: object) -> None:
    check_columns(schema, columns, _WHO)


@timed
def distance_linkage(
    original: Frame,
    masked: Frame,
    *,
    columns: Sequence[str],
    sets: LabelSets | None = None,
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
        What the intruder knows, the best known first: numbers and dates, which may be masked by interval labels such
        as ``[20, 40)``, or categories. A missing value is a value of its own.
    sets
        What labels of generalised columns stand for, ``{column: {label: [value, ...]}}``: texts of values, None for a
        missing one, or one interval such as ``[20, 40)``; None in place of the list for all values that no other label
        stands for. In a job, by default what its steps say of their labels.
    sample
        How many records are attacked; by default all of them, or 20,000 of more than ``limit``.
    limit
        Up to how many records all are attacked.
    seed
        Chooses the records attacked.

    Returns
    -------
    LinkageRisk
        The rate of the worst intruder, those of each, with their intervals, and the columns that lead to records.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"income": [1.0, 2.0, 5.0, 9.0]})
    >>> masked = pandas.DataFrame({"income": [2.5, 2.0, 6.0, 8.0]})
    >>> dpmask.risk.distance_linkage(original, masked, columns=["income"]).rate
    0.5
    """
    given = {column: one for column, one in (sets or {}).items() if one or column not in columns}
    asked = DistanceLinkage(columns=columns, sets=given, sample=sample, limit=limit)
    table = as_table(masked, _WHO)
    values = compared_values(as_table(original, _WHO), table, asked)
    pairs = pair(original, masked, asked.columns, _WHO, marks=True)
    names = [*asked.columns, *map(masked_name, asked.columns), POSITION, PRESENT]
    everybody = pairs.select(names)
    key, attacked = make_key(_WHO, seed=seed), asked.attacked(pairs.rows)
    counts = {"linkage": attacked, "linkage crowd": SAMPLE, "linkage one to one": current_limits().assigned_records}
    chosen, sampled, few = (
        sampled_positions(key.subkey(purpose), pairs.rows, count) for purpose, count in counts.items()
    )
    some = [one for one in (chosen, sampled, few) if one is not None]
    together = len(some) == 3 and attacked <= current_limits().attacked_records  # noqa: PLR2004
    either = np.unique(np.concatenate(some)) if together else None
    moves, records = first_pass(values, everybody, either)
    if not moves.rows:
        raise InputError(f"{_WHO}: no record of the original is in the masked table. Give both the same index.")
    crowd = crowd_findings(values, moves, records, sampled)
    intruders = _intruders(values, moves, crowd)
    metrics = list({id(metric): metric for metric in intruders}.values())  # some of them may be the same
    links = linked(LinkageAttack(values, metrics, chosen), records, attacked, table.select(asked.columns), _WHO)
    share = {id(metric): float(count) / attacked for metric, count in zip(metrics, links.right, strict=True)}
    *known, euclidean, by_moves, by_rank, joint_rate = (share[id(metric)] for metric in intruders)
    present, worst = moves.rows / pairs.rows, max(intruders[-4:], key=lambda metric: share[id(metric)])
    added = added_by_assignment(values, worst, share[id(worst)], few, records, everybody, present)
    assignment = min(max(share[id(worst)] + added.gain, 0.0), 1.0)
    return LinkageRisk(
        rate=max(*known, euclidean, by_moves, by_rank, joint_rate, assignment),
        euclidean=euclidean,
        by_known=sum(known) / len(known),
        mahalanobis=by_moves,
        joint=joint_rate,
        ranks=by_rank,
        known=tuple(known),
        assignment=assignment,
        assignment_error=added.error,
        worst_sets={" + ".join(asked.columns[one] for one in some): rate * present for some, rate in crowd.sets},
        contributions=_contributions(asked.columns, crowd, present),
        crowd=crowd.crowd,
        sampled=chosen is not None,
        compared=Compared(values, moves, crowd.learnt),
        riskiest=tuple(zip(links.riskiest.positions.tolist(), links.riskiest.chances.tolist(), strict=True)),
        guessing=present / table.rows,
        attacked=attacked,
    )


def sampled_positions(key: Subkey, rows: int, count: int) -> NDArray[np.int64] | None:
    """A keyed sample of positions; None for all of them."""
    return chosen_records(key, rows, count) if count < rows else None


def _intruders(values: list[Values], moves: CovarianceSums, crowd: CrowdFindings) -> list[Metric]:
    """Who knows the first column, the first two, ...; then all: plainly, by what moved, by ranks, and jointly."""
    known = [first_columns(values[:count]) for count in range(1, min(len(values), _MOST_KNOWN) + 1)]
    whole = known[-1] if len(known) == len(values) else first_columns(values)
    by_moves = mahalanobis(whole, moves)
    spread = crowd.learnt.moments.masked
    plain = principal(whole, spread)
    if by_moves is whole:
        return [*known, plain, plain, crowd.ranks or plain, plain]
    return [*known, plain, principal(by_moves, spread), crowd.ranks or crowd.joint, crowd.joint]


def _contributions(columns: Sequence[str], crowd: CrowdFindings, present: float) -> dict[str, float]:
    """How much the rate falls without a column, the most telling first."""
    falls = {columns[one]: (crowd.rate - rate) * present for one, rate in crowd.without.items()}
    return dict(sorted(falls.items(), key=lambda item: -item[1]))


def compared_values(original: Table, masked: Table, asked: DistanceLinkage) -> list[Values]:
    """How each column is compared: by its types, its labels and, for numbers, their moments in both tables."""
    before, after = original.masked_schema, masked.masked_schema
    for schema in (before, after):
        require_known(schema, asked.columns, _WHO)
    kinds = {column: (before.field(column).type, after.field(column).type) for column in asked.columns}
    coded = {column for column, sets in asked.sets.items() if not are_intervals(sets)}
    for column, (first, second) in kinds.items():
        _require_comparable(column, first, second, labelled=column in asked.sets)
    ordered = [column for column in asked.columns if is_ordered(kinds[column][0]) and column not in coded]
    plain = [column for column in ordered if is_ordered(kinds[column][1]) and column not in asked.sets]
    measured = _numbers(original, ordered, original=True), _numbers(masked, plain, original=False)
    return [_value(column, *measured, asked) for column in asked.columns]


def _require_comparable(column: str, first: Any, second: Any, *, labelled: bool) -> None:
    """Refuse a column whose types in both tables cannot be compared."""
    numbers = is_ordered(first) and is_ordered(second) and is_numeric(first) == is_numeric(second)
    texts = is_category(second) and (is_ordered(first) or is_category(first))
    if not (numbers or texts or (labelled and is_ordered(first) and is_ordered(second))):
        raise JobError(
            f"{_WHO}: column '{column}' must be a number, a date, text, or true or false in both tables, or a number "
            f"or a date in the original and interval labels in the masked one; it is {first} and {second}. "
            "Take it out of columns."
        )


class _Number(NamedTuple):
    """A column's mean and standard deviation in one table, and whether values are missing."""

    scale: Scale
    gaps: bool


def _numbers(table: Table, columns: Sequence[str], *, original: bool) -> dict[str, _Number]:
    if not columns:
        return {}
    moments = table.select(columns).reduce(
        partial(_moments, tuple(columns)), merge_moments, "linkage: standard deviations"
    )
    (require_spread if original else require_finite)(moments, columns, _WHO)
    sd = np.where(moments.sd > 0.0, moments.sd, 1.0)  # a mask may leave one value only
    each = zip(columns, moments.mean, sd, moments.values < table.rows, strict=True)
    return {column: _Number(Scale(mean, deviation), bool(gaps)) for column, mean, deviation, gaps in each}


def _moments(columns: tuple[str, ...], rows: Rows) -> Moments:
    return column_moments([numbers(rows, column) for column in columns])


def _value(column: str, before: Mapping[str, _Number], after: Mapping[str, _Number], asked: DistanceLinkage) -> Values:
    sets = asked.sets.get(column, {})
    if column not in before:
        return categories(column, sets, _WHO)
    if column not in after:
        gaps = frozenset(label for label, members in sets.items() if None in (members or ()))
        return Ranges(column, before[column].scale, None, _WHO, intervals_of(sets), gaps)
    scales = before[column].scale, after[column].scale
    if before[column].gaps or after[column].gaps:
        return Ranges(column, *scales, _WHO)
    return Points(column, *scales)


_VALUE_SECONDS, _ATTACK_SECONDS, _PAIR_SECONDS = 1.2e-7, 2.8e-6, 1.15e-11
"""CPU of a column: of each record, of each one attacked, and of each pair, of which few are compared: every block has a
tree of its own. From the ready jobs with 1e5 and 1e6 people."""


def _work(parameters: Mapping[str, Any], rows: int) -> float:
    attacked = min(parameters.get("sample") or _SAMPLE, rows)
    each = _VALUE_SECONDS * rows + (_ATTACK_SECONDS + _PAIR_SECONDS * rows) * attacked
    return each * len(parameters["columns"])


MEASURE = Measure(
    function=distance_linkage,
    result=LinkageRisk,
    passes=5,
    check=_check,
    work=_work,
    kernels=KernelUse((Task("linkage"),), (Task("large trees"), Task("crowds"))),
)
