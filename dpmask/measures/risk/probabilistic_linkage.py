"""Probabilistic record linkage: an intruder links each original to the masked record whose agreement is likeliest.

Values become 20 quantile bins of the original, the same edges for both files, a missing value a bin of its own. A pair
of records agrees on some columns; Fellegi and Sunter's (1969) weight of that pattern says how likely the pair is a true
one. Each original is linked to the masked record of the largest weight, ties share.

``rate`` is the worst case: the intruder knows how often each column agrees in true pairs (m). ``estimated`` is for one
who estimates m by EM, with u from all pairs and one true pair expected for each record; left free, EM drifts away
from both. Patterns are counted exactly over all n^2 pairs, and no pair is ever formed (kernels/agreement.py).

A masked record without any value in these columns is taken as dropped: it links to nobody. Passes: five over the
columns; then cells, equal rows of bins, pass from shard to shard, three times a column. Memory: the cells, about 40
bytes a record at most, lie spread over the workers; a task holds a share of them, at best a 20th. Time: 2^columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import add
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.collection import Collection, exchange, merge_each
from dpmask.engine.limits import current_limits
from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Counts, Floats
from dpmask.kernels.linkage.agreement import (
    NOBODY,
    NOTHING,
    LinkageShard,
    Weighing,
    agreeing_pairs,
    as_bits,
    cell_counts,
    cells_of,
    exact_patterns,
    hunt,
    hunted_records,
    join_shards,
    split_shard,
    without_first,
)
from dpmask.kernels.linkage.fellegi_sunter import estimate_m, likelihood_ranks, pattern_bits, pattern_weights
from dpmask.kernels.order.bins import bin_count, binned
from dpmask.kernels.warm_up import ORDER, KernelUse
from dpmask.measures.measure import Measure, timed
from dpmask.results import MORE_RISK, RATE, Headline, Risk, Term
from dpmask.table.checks import empty_column
from dpmask.table.columns import require_numeric
from dpmask.table.encoders.interval import quantile_edges
from dpmask.table.pairs import masked_name, pair
from dpmask.table.table import Frame, Table, as_table

_WHO = "probabilistic_linkage"
_MOST_COLUMNS = 10
_CELL_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class ProbabilisticLinkage(Risk):
    """``rate`` with the true m, ``estimated`` with m by EM; ``parts`` has each column's m and u."""

    rate: float
    estimated: float

    judged: ClassVar[tuple[str, ...]] = ("rate", "estimated")
    shares: ClassVar[tuple[str, ...]] = judged
    headlines: ClassVar[Sequence[Headline]] = [
        Headline("linked", "rate", "of records can be linked to their own by the columns that agree"),
    ]
    about: ClassVar[Term] = Term(
        "The share of originals linked to their own masked record by the largest Fellegi-Sunter weight of the "
        "columns that agree, values in 20 quantile bins of the original; ties share.",
        "1 means that every record is linked; larger means more risk.",
        "Fellegi and Sunter 1969, A theory for record linkage",
    )
    terms: ClassVar[Mapping[str, Term]] = {
        **Risk.terms,
        "rate": RATE,
        "estimated": Term(
            "Rate of an intruder who has to estimate how masking changes agreement, by EM.",
            MORE_RISK,
            "Fellegi and Sunter 1969, A theory for record linkage; EM by Jaro 1989",
        ),
    }

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"An intruder who knows how masking changes agreement links {self.rate:.2%} of {self.attacked:,} records "
            f"to their own masked record ({self.estimated:.2%} by EM), where a guess links {self.guessing:.2g}. "
            "Larger means more risk."
        )


def _check(schema: Any, *, columns: Sequence[str], **_: object) -> None:
    """Refuse columns that are not numbers, or too many of them."""
    if not 1 <= len(columns) <= _MOST_COLUMNS or len(set(columns)) < len(columns):
        raise JobError(
            f"{_WHO}: columns must be 1 to {_MOST_COLUMNS} different columns; got {len(columns)}. The work doubles "
            "with each: take those an intruder is likeliest to know."
        )
    require_numeric(schema, columns, _WHO)


@timed
def probabilistic_linkage(original: Frame, masked: Frame, *, columns: Sequence[str]) -> ProbabilisticLinkage:
    """The share of records that Fellegi and Sunter's weights link to their own masked record.

    Parameters
    ----------
    original, masked
        The tables: frames are paired by index, lakes by position.
    columns
        The numeric columns that the intruder knows, ten at most.

    Returns
    -------
    ProbabilisticLinkage
        The rates with the true and with estimated agreement; each column's in ``parts``.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"income": range(20)})
    >>> dpmask.risk.probabilistic_linkage(original, original, columns=["income"]).rate
    1.0
    """
    released = as_table(masked, _WHO)
    _check(released.masked_schema, columns=columns)
    pairs = pair(original, masked, columns, _WHO)
    _check(pairs.masked_schema, columns=columns)
    edges = dict(zip(columns, quantile_edges(pairs, columns, _WHO), strict=True))
    for column in columns:
        if not len(edges[column]):
            raise empty_column(_WHO, column)
    files = _Files(pairs, released, _balanced(released, edges))
    cells = files.meet()
    counts = files.patterns(cells)
    if not counts.masked:
        raise InputError(f"{_WHO}: no masked record has a value in {', '.join(columns)}.")
    return _result(files, cells, counts)


def _balanced(released: Table, edges: Mapping[str, Floats]) -> dict[str, Floats]:
    """The columns in an order in which the first ones cut the masked file into the most even shards."""
    names = list(edges)
    counts = released.reduce(names, partial(_count_bins, edges), partial(merge_each, np.add), f"{_WHO}: bins")
    largest = {name: int(one.max()) for name, one in zip(names, counts, strict=True)}
    return {name: edges[name] for name in sorted(names, key=lambda name: (largest[name], name))}


def _count_bins(edges: Mapping[str, Floats], columns: list[Floats]) -> list[Counts]:
    return [
        np.bincount(binned(values, cuts), minlength=bin_count(cuts))
        for values, cuts in zip(columns, edges.values(), strict=True)
    ]


class _Patterns(NamedTuple):
    """Records in each file, pairs by exact pattern, and true pairs by pattern."""

    originals: int
    masked: int
    pairs: Counts
    true: Counts

    def shares(self, patterns: Counts, total: int) -> Floats:
        """For each column the share of pairs that agree on it."""
        agree = pattern_bits(len(patterns).bit_length() - 1)
        return (patterns[:, None] * agree).sum(axis=0) / total

    @property
    def u(self) -> Floats:
        """Agreement over all pairs."""
        return self.shares(self.pairs, self.originals * self.masked)

    @property
    def m(self) -> Floats:
        """Agreement over the true pairs."""
        return self.shares(self.true, max(int(self.true.sum()), 1))


class _Files(NamedTuple):
    """Both files, and the edges of the bins of each column."""

    pairs: Table
    released: Table
    edges: dict[str, Floats]

    @property
    def columns(self) -> int:
        """How many columns are compared."""
        return len(self.edges)

    def meet(self) -> Collection[LinkageShard]:
        """Originals and masked records with the same bin in the first column together."""
        cuts, names = list(self.edges.values()), list(self.edges)
        both = [*names, *(masked_name(name) for name in names)]
        shards = self.shards(0)
        sources = [
            self.pairs.floats(both).transform(partial(_split_originals, cuts, shards)),
            self.released.floats(names).transform(partial(_split_masked, cuts, shards)),
        ]
        return exchange(sources, _gather, shards, f"{_WHO}: exchange", size=self.size)

    @property
    def size(self) -> int:
        """The most bytes that all cells take."""
        return _CELL_BYTES * (self.pairs.rows + self.released.rows)

    def shards(self, column: int) -> int:
        """Into how many shards the bins of a column go."""
        wanted = -(-(self.pairs.rows + self.released.rows) // current_limits().linkage_shard_rows)
        return min(wanted, bin_count(list(self.edges.values())[column]))

    def moved(
        self, cells: Collection[LinkageShard], advance: Callable[[LinkageShard], LinkageShard], column: int
    ) -> Collection[LinkageShard]:
        """The cells in the shards of another column."""
        shards = self.shards(column)
        split = partial(_advanced, advance, shards)
        return cells.exchange(split, join_shards, shards, f"{_WHO}: exchange", size=self.size)

    def patterns(self, cells: Collection[LinkageShard]) -> _Patterns:
        """Patterns over all pairs and over the true ones, from step to step over the columns."""
        whole = cells.reduce(partial(_sizes, self.columns), add, f"{_WHO}: true pairs")
        at_least = np.zeros(1 << self.columns, np.int64)
        for column in range(self.columns):
            if column:
                cells = self.moved(cells, partial(without_first, with_patterns=False), column)
            at_least += cells.reduce(partial(agreeing_pairs, columns=self.columns), add, f"{_WHO}: all pairs")
        at_least[0] = whole[-2] * whole[-1]
        return _Patterns(int(whole[-2]), int(whole[-1]), exact_patterns(at_least), whole[: 1 << self.columns])

    def linked(self, cells: Collection[LinkageShard], counts: _Patterns, m: Floats) -> float:
        """The share of originals that are linked to their own masked record."""
        weights = pattern_weights(m, counts.u, counts.originals)
        ranks = likelihood_ranks(weights.patterns)
        weighing = Weighing(np.append(ranks, ranks.max() + 1), as_bits(np.flatnonzero(weights.informative).tolist(), 0))
        for column in range(1, self.columns):
            cells = self.moved(cells, partial(_hunted_without_first, weighing), column)
        return cells.reduce(partial(_last_hunt, weighing, counts.masked), add, f"{_WHO}: links") / counts.originals


def _split_originals(edges: list[Floats], shards: int, columns: list[Floats]) -> list[LinkageShard]:
    half, bins = len(edges), tuple(map(bin_count, edges))
    ours, theirs = ([binned(x, cuts) for x, cuts in zip(part, edges, strict=True)] for part in _halves(columns))
    pattern = np.zeros(len(columns[0]), np.int64)
    for number, (x, y) in enumerate(zip(ours, theirs, strict=True)):
        pattern += (x == y).astype(np.int64) << number
    pattern[~_present(columns[half:])] = 1 << half  # dropped: agrees in no way with anybody
    hunted = hunted_records(cells_of(ours, bins), pattern, (1 << half) + 1)
    return split_shard(LinkageShard(hunted, NOTHING, bins), shards)


def _split_masked(edges: list[Floats], shards: int, columns: list[Floats]) -> list[LinkageShard]:
    bins = tuple(map(bin_count, edges))
    there = _present(columns)
    cells = cells_of([binned(y[there], cuts) for y, cuts in zip(columns, edges, strict=True)], bins)
    return split_shard(LinkageShard(NOBODY, cell_counts(cells), bins), shards)


def _halves(columns: list[Floats]) -> tuple[list[Floats], list[Floats]]:
    half = len(columns) // 2
    return columns[:half], columns[half:]


def _present(columns: list[Floats]) -> NDArray[np.bool_]:
    """Records with a value in any of the columns."""
    return ~np.all([np.isnan(values) for values in columns], axis=0)


def _gather(*sources: list[LinkageShard]) -> LinkageShard:
    return join_shards([part for parts in sources for part in parts])


def _sizes(columns: int, shard: LinkageShard) -> Counts:
    """True pairs by pattern, then the records of both files."""
    hunted = shard.hunted
    true = np.bincount(hunted.pattern, hunted.records, minlength=1 << columns).astype(np.int64)
    return np.append(true[: 1 << columns], [hunted.records.sum(), shard.masked.records.sum()])


def _advanced(advance: Callable[[LinkageShard], LinkageShard], shards: int, shard: LinkageShard) -> list[LinkageShard]:
    return split_shard(advance(shard), shards)


def _hunted_without_first(weighing: Weighing, shard: LinkageShard) -> LinkageShard:
    return without_first(hunt(shard, weighing), with_patterns=True)


def _last_hunt(weighing: Weighing, everybody: int, shard: LinkageShard) -> float:
    """Links to the own record: one of those that tie; of all, where nothing agrees."""
    hunted = hunt(shard, weighing).hunted
    nothing_agrees = hunted.pattern & weighing.informative == 0
    dropped = hunted.pattern == len(weighing.rank) - 1
    ties = np.where(nothing_agrees, everybody, hunted.ties)
    return float((hunted.records[~dropped] / ties[~dropped]).sum())


def _result(files: _Files, cells: Collection[LinkageShard], counts: _Patterns) -> ProbabilisticLinkage:
    estimated = estimate_m(counts.pairs, counts.u, 1.0 / counts.masked)
    rate, by_em = files.linked(cells, counts, counts.m), files.linked(cells, counts, estimated)
    parts: dict[str, float] = {}
    for number, name in enumerate(files.edges):
        parts |= {f"{name}: m": counts.m[number], f"{name}: u": counts.u[number], f"{name}: m by EM": estimated[number]}
    return ProbabilisticLinkage(
        rate=rate,
        estimated=by_em,
        guessing=1.0 / counts.originals,
        attacked=counts.originals,
        parts={name: float(value) for name, value in sorted(parts.items())},
    )


MEASURE = Measure(
    function=probabilistic_linkage,
    result=ProbabilisticLinkage,
    passes=5,
    passes_per_column=2,
    most_columns=_MOST_COLUMNS,
    check=_check,
    kernels=KernelUse((), ORDER.all),
)
