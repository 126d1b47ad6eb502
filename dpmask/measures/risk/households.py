"""Households at risk: an intruder who knows all members looks for all of them at once.

What the intruder knows of each member, ``columns``, is compared in two ways. Columns that are released as categories or
labels make compositions: the multiset of the members' rows, in which an original counts under the labels it would be
released as. ``smallest``, ``uniques`` and ``prosecutor`` are of households that share one. Numbers are compared by
nearness, those of a household in rising order, column by column, up to four members; with the composition as one more
column that is record linkage with households as records (distance_linkage.py), and ``rate`` is its worst rate.

``risk`` needs no knowledge of who lives with whom: r is 1 over the records that share a member's released labels, and a
household is found if any member is, 1 - product of (1 - r) (Hundepool et al. 2012). Where the release does not show
households, it is what is left; ``rate`` then is more than an intruder achieves, and never less.

Passes: one over both tables, in which members meet by their household's number; two for ``risk``; and those of linkage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dpmask.engine.collection import Collection, itself
from dpmask.engine.exchange import Piece
from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Floats, Words
from dpmask.kernels.households import Homes, gathered, household_risks
from dpmask.kernels.keys import RowKeys, counted, grouped
from dpmask.kernels.moments import column_moments, merge_moments
from dpmask.lake.reading import Rows
from dpmask.measures.measure import Measure, timed
from dpmask.measures.risk.distance_linkage import LinkageRisk, distance_linkage
from dpmask.measures.risk.group_counts import released_labels
from dpmask.measures.risk.known_members import MOST_MEMBERS, KnownMembers, WideHouseholds, side_by_side
from dpmask.results import LESS_RISK, MORE_RISK, RATE, Headline, Interval, Risk, Term
from dpmask.table.arrays import table_of_arrays
from dpmask.table.columns import is_category, is_numeric, require_known
from dpmask.table.grouping import GroupSizes, merged_sizes, targets_for
from dpmask.table.households import household_keys, households_of
from dpmask.table.label_sets import LabelSets, only_of
from dpmask.table.routing import rows_by_target
from dpmask.table.row_keys import require_groupable
from dpmask.table.table import Frame, Table, as_table

_WHO = "households"
_SAMPLE = 5_000
_COMPOSITION = "composition"
_HUNDEPOOL = "Hundepool et al. 2012, Statistical disclosure control, section 3.3"


@dataclass(frozen=True, kw_only=True)
class HouseholdRisk(Risk):
    """What an intruder who knows all members of a household finds."""

    rate: float
    risk: float
    smallest: int
    uniques: float
    prosecutor: float
    households: int
    limits: Interval

    judged: ClassVar[tuple[str, ...]] = ("rate", "risk", "smallest", "uniques", "prosecutor")
    shares: ClassVar[tuple[str, ...]] = ("rate", "risk", "uniques", "prosecutor")
    unreported: ClassVar[tuple[str, ...]] = ("limits",)
    headlines: ClassVar[Sequence[Headline]] = [
        Headline("beside", "rate", "An intruder who knows all members finds {} of the households."),
    ]
    about: ClassVar[Term] = Term(
        "What an intruder who knows all members of a household finds by all of them at once.",
        MORE_RISK,
        _HUNDEPOOL,
    )
    terms: ClassVar[Mapping[str, Term]] = {
        **Risk.terms,
        "rate": RATE,
        "risk": Term(
            "Mean over households of 1 - product of (1 - r), r being 1 over the records that share a member's labels.",
            MORE_RISK,
            _HUNDEPOOL,
        ),
        "smallest": Term("Fewest households whose members have the same released labels.", LESS_RISK, _HUNDEPOOL),
        "uniques": Term(
            "Share of households of two or more whose members' labels no other household has.", MORE_RISK, _HUNDEPOOL
        ),
        "prosecutor": Term("Mean over households of 1 over those that have the same labels.", MORE_RISK, _HUNDEPOOL),
        "households": Term("How many households the release has.", "The more, the better each hides.", "dpmask"),
    }

    @property
    def intervals(self) -> Mapping[str, Interval]:
        """That of the rate, if it was found on a sample."""
        return {"rate": self.limits}

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"Of {self.attacked:,} households attacked {self.rate:.2%} are found by an intruder who knows all members; "
            f"{self.uniques:.2%} of those with two or more have labels that no other household has, the fewest that "
            f"are alike are {self.smallest:,}. Looked for one by one, any member of a household is found with a chance "
            f"of {self.risk:.2%}. Larger rates mean more risk."
        )


def _check(schema: Any, *, household: Any = None, columns: Sequence[str] = (), **_: object) -> None:
    require_groupable(schema, [_one(household)], _WHO)
    require_groupable(schema, columns, _WHO)


def _one(household: str | Sequence[str] | None) -> str:
    names = [household] if isinstance(household, str) else list(household or ())
    if len(names) != 1:
        raise JobError(
            f"{_WHO}: household must be the one column that numbers households; got {names!r}. In a job, declare it: "
            "columns: {household: [NAME]}."
        )
    return names[0]


@timed
def households(
    original: Frame,
    masked: Frame,
    *,
    household: str | Sequence[str] | None = None,
    columns: Sequence[str] = (),
    sets: LabelSets | None = None,
    suppressed: Sequence[str] | None = None,
    sample: int | None = None,
    limit: int = 10_000,
    seed: int = 0,
) -> HouseholdRisk:
    """What an intruder who knows all members of a household finds.

    Parameters
    ----------
    household
        The column of the original that numbers households; in a job, by default the one declared so.
    columns
        What the intruder knows of each member; in a job, by default the columns declared quasi. Those that are numbers
        in both tables are compared by nearness, the others by labels.
    sets
        What labels of generalised columns stand for, as in ``distance_linkage``; in a job, what its steps say.
    suppressed
        Columns of the masked table in which a missing cell was suppressed: the intruder is taken to know what it was,
        so that rates are upper limits, and households are counted as if it were there. In a job, by default what its
        steps suppressed.
    sample, limit, seed
        How many households are attacked, 5,000 of more than ``limit`` by default, and what chooses them.

    Returns
    -------
    HouseholdRisk
        The rate of household linkage, the mean risk of a household, and how many households are alike.

    Examples
    --------
    >>> import dpmask, pandas
    >>> people = pandas.DataFrame({"home": [1, 1, 2, 2, 3], "sex": list("fmfmm"), "pay": [10, 20, 30, 40, 90]})
    >>> found = dpmask.risk.households(people, people, household="home", columns=["sex", "pay"])
    >>> found.rate, found.smallest, found.uniques
    (1.0, 1, 0.0)
    """
    number = _one(household)
    before, after = as_table(original, _WHO), as_table(masked, _WHO)
    require_groupable(before.masked_schema, [number, *columns], _WHO)
    require_known(after.masked_schema, columns, _WHO)
    kinds = {name: (before.masked_schema.field(name).type, after.masked_schema.field(name).type) for name in columns}
    numbers = tuple(name for name, both in kinds.items() if all(map(is_numeric, both)))
    labels = [name for name in columns if name not in numbers]
    unlike = [name for name in labels if not is_category(kinds[name][1])]
    if unlike:
        kind = kinds[unlike[0]][1]
        raise JobError(f"{_WHO}: '{unlike[0]}' is released as {kind}, neither a number nor a label. Take it out.")
    released = released_labels(before, after, labels, only_of(sets or {}, labels), _WHO)
    gaps = bool(after.origins) or not (isinstance(original, Table) and isinstance(masked, Table))
    wild = tuple(name for name in labels if name in (suppressed or ()))
    task = KnownMembers(number, numbers, tuple(labels), tuple(released.values()), gaps, wild)
    both = side_by_side(original, masked, task, _WHO)
    homes = households_of(both, number, task.columns, task.members, f"{_WHO}: meet", _WHO, size=task.size)
    wide = homes.persist(task.wide, f"{_WHO}: compared")
    present = wide.map(_rows, f"{_WHO}: compared")
    if not sum(present):
        raise InputError(f"{_WHO}: no record of the original is in the masked table. Give both the same index.")
    alike = merged_sizes(wide.transform(partial(_composition_counts, 1)), both.rows, f"{_WHO}: alike")
    several = merged_sizes(wide.transform(partial(_composition_counts, 2)), both.rows, f"{_WHO}: alike")
    total = sum(homes.map(_households, f"{_WHO}: meet"))
    chosen = _SAMPLE if sample is None and sum(present) > limit else sample
    linked = _linked(wide, present, task, sample=chosen, limit=limit, seed=seed)
    share = sum(present) / total
    rate, (low, high) = (linked.rate, linked.interval) if linked else (_by_chance(alike), (_by_chance(alike),) * 2)
    return HouseholdRisk(
        rate=rate * share,
        risk=_mean_risk(both, task) / sum(present),
        smallest=alike.smallest,
        uniques=several.groups.get(1, 0) / max(several.records, 1),
        prosecutor=_by_chance(alike),
        households=sum(present),
        limits=(low * share, high * share),
        guessing=1.0 / sum(present),
        attacked=linked.attacked if linked else total,
        parts={name: getattr(linked, name) * share for name in linked.shares} if linked else {},
    )


def _by_chance(sizes: GroupSizes) -> float:
    return sizes.distinct / sizes.records


def _rows(wide: WideHouseholds) -> int:
    return len(wide.sizes)


def _households(homes: Homes) -> int:
    return len(homes.starts)


def _composition_counts(fewest: int, wide: WideHouseholds) -> Piece:
    return counted(wide.after.at(wide.sizes >= fewest))


def _linked(
    wide: Collection[WideHouseholds],
    rows: Sequence[int],
    task: KnownMembers,
    *,
    sample: int | None,
    limit: int,
    seed: int,
) -> LinkageRisk | None:
    """Linkage with households as records; None where all that is known of them is the same."""
    varied = wide.reduce(_spreads, merge_moments, f"{_WHO}: numbers") if task.numbers else None
    names = [f"{name} {rank + 1}" for name in task.numbers for rank in range(MOST_MEMBERS)]
    known = [] if varied is None else [n for n, sd in enumerate(np.nan_to_num(varied.sd)) if sd > 0]
    shown = [_COMPOSITION, *(names[n] for n in known)]
    if sum(rows) < 2 or (not known and not task.labels):  # noqa: PLR2004
        return None
    tables = [table_of_arrays(wide, rows, shown, partial(_values, tuple(known), side)) for side in (0, 1)]
    return distance_linkage(*tables, columns=shown, sample=sample, limit=limit, seed=seed)


def _spreads(wide: WideHouseholds) -> Any:
    return column_moments(list(wide.numbers[0].reshape(-1, len(wide.sizes))))


def _values(known: tuple[int, ...], side: int, wide: WideHouseholds) -> tuple[Words, Floats]:
    """The compositions of one of both tables, and its numbers that differ."""
    words = (wide.before, wide.after)[side].first
    return words, wide.numbers[side].reshape(-1, len(wide.sizes))[list(known)]


def _mean_risk(both: Table, task: KnownMembers) -> float:
    """The sum over households of the chance that any member is found by the labels of its own."""
    targets, names = targets_for(both.rows), [task.household, *task.columns]
    by_row = both.select(list(dict.fromkeys(names))).transform(partial(_split_rows, task, targets))
    chances = by_row.exchange(itself, partial(_chances, targets), targets, f"{_WHO}: shared", size=33 * both.rows)
    met = chances.exchange(itself, _risks, targets, f"{_WHO}: members", size=24 * both.rows)
    return float(met.reduce(_sum, float.__add__, f"{_WHO}: members"))


def _split_rows(task: KnownMembers, targets: int, rows: Rows) -> list[Piece]:
    there = np.flatnonzero(task.there(rows))
    keys = task.released_keys(rows, task.originals(rows) if task.suppressed else rows).at(there)
    homes = household_keys(rows, task.household, _WHO).at(there)
    return [(*keys.at(part), *homes.at(part)) for part in rows_by_target(keys.first % np.uint64(targets), targets)]


def _chances(targets: int, pieces: list[Piece]) -> list[Piece]:
    """1 over the records that share each member's labels, by the shard of its household."""
    one, two, *lanes = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    groups = grouped(RowKeys(one, two))
    homes, chances = RowKeys(*lanes), 1.0 / groups.sizes[groups.numbers()]
    return [(*homes.at(part), chances[part]) for part in rows_by_target(homes.first % np.uint64(targets), targets)]


def _risks(pieces: list[Piece]) -> Piece:
    *lanes, chances = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    homes = gathered(RowKeys(*lanes), [chances])
    return (household_risks(homes.members[0], homes.starts),)


def _sum(content: Piece) -> float:
    return float(content[0].sum())


_SECONDS = 1.3e-6
"""CPU of a record that meets its household; from the job household_survey with 1e6 people."""


def _work(_: Mapping[str, Any], rows: int) -> float:
    return _SECONDS * rows


MEASURE = Measure(
    function=households,
    result=HouseholdRisk,
    passes=5,
    work=_work,
    check=_check,
    roles={"household": "household", "columns": "quasi"},
)
