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
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.collection import Collection, itself
from dpmask.engine.exchange import Piece
from dpmask.engine.tasks import Position
from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Counts, Flags, Floats, Words
from dpmask.kernels.households import Homes, compositions, gathered, household_risks
from dpmask.kernels.keys import RowKeys, counted, grouped, with_word
from dpmask.kernels.moments import column_moments, merge_moments
from dpmask.lake.reading import Rows
from dpmask.measures.measure import Measure, timed
from dpmask.measures.risk.distance_linkage import LinkageRisk, distance_linkage
from dpmask.measures.risk.group_counts import released_labels
from dpmask.results import LESS_RISK, MORE_RISK, RATE, Interval, Risk, Term
from dpmask.table.arrays import table_of_arrays
from dpmask.table.beside import beside
from dpmask.table.columns import floats, is_category, is_numeric, require_known
from dpmask.table.dropping import PRESENT
from dpmask.table.grouping import GroupSizes, merged_sizes, targets_for
from dpmask.table.households import household_keys, households_of
from dpmask.table.label_sets import AsReleased, only_of, with_labels
from dpmask.table.pairs import masked_name, pair
from dpmask.table.routing import rows_by_target
from dpmask.table.row_keys import missing, require_groupable, row_keys
from dpmask.table.table import Frame, Table, as_table

_WHO = "households"
_MEMBERS = 4
"""Members whose numbers are compared, the lowest first."""
_SAMPLE = 5_000
_COMPOSITION = "composition"
_HUNDEPOOL = "Hundepool et al. 2012, Statistical disclosure control, section 3.3"


@dataclass(frozen=True, kw_only=True)
class HouseholdRisk(Risk):
    """What an intruder finds who knows all members of a household."""

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
    about: ClassVar[Term] = Term(
        "What an intruder finds who knows all members of a household and looks for them at once.", MORE_RISK, _HUNDEPOOL
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
    sets: Mapping[str, Mapping[str, Sequence[object] | None]] | None = None,
    suppressed: Sequence[str] | None = None,
    sample: int | None = None,
    limit: int = 10_000,
    seed: int = 0,
) -> HouseholdRisk:
    """What an intruder finds who knows all members of a household.

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
    task = _KnownMembers(number, numbers, tuple(labels), tuple(released.values()), gaps, wild)
    both = _side_by_side(original, masked, task)
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


class _Wide(NamedTuple):
    """Households that the release has, one row each: compositions as words, sizes, numbers (columns x ranks x rows)."""

    before: RowKeys
    after: RowKeys
    sizes: Counts
    numbers: tuple[Floats, Floats]


class _KnownMembers(NamedTuple):
    """What an intruder knows of each member."""

    household: str
    numbers: tuple[str, ...]
    labels: tuple[str, ...]
    released: tuple[AsReleased, ...]
    gaps: bool
    """Whether records may be missing in the release."""
    suppressed: tuple[str, ...] = ()
    """The labels in which a missing cell is taken for what it was."""

    @property
    def columns(self) -> list[str]:
        """All that is read of both tables."""
        names = [*self.numbers, *self.labels]
        return [*names, *map(masked_name, names), *([PRESENT] if self.gaps else [])]

    @property
    def size(self) -> int:
        """Bytes of a member."""
        return 33 + 16 * len(self.numbers)

    def originals(self, rows: Rows) -> Rows:
        """The labels of originals, as they would be released."""
        for one in self.released:
            rows = one.replaced(rows)
        return rows

    def members(self, rows: Rows, position: Position) -> tuple[NDArray[Any], ...]:
        """Whether each is in the release, the keys of its labels before and after, and its numbers."""
        values = [
            np.array([floats(rows, name) for name in names]).reshape(len(self.numbers), rows.num_rows)
            for names in (self.numbers, list(map(masked_name, self.numbers)))
        ]
        originals = self.originals(rows)
        before = row_keys(originals, self.labels)
        after = self.released_keys(rows, originals)
        return (self.there(rows), *before, *after, *values)

    def released_keys(self, rows: Rows, originals: Rows) -> RowKeys:
        """The keys of released labels; ``originals`` has what suppressed ones were."""
        for name in self.suppressed:
            rows = with_labels(rows, masked_name(name), originals.column(name))
        return row_keys(rows, list(map(masked_name, self.labels)))

    def there(self, rows: Rows) -> Flags:
        """Whether each record is in the release."""
        return ~missing(rows, PRESENT) if self.gaps else np.ones(rows.num_rows, np.bool_)

    def wide(self, homes: Homes) -> _Wide:
        """Households with a member in the release. Members who are not are known, and cannot be seen."""
        there, one, two, three, four, known, seen = homes.members
        left = np.add.reduceat(there, homes.starts, dtype=np.int64) if len(homes.starts) else np.empty(0, np.int64)
        kept = np.flatnonzero(left)
        before = with_word(compositions(RowKeys(one, two), homes.starts), homes.sizes.view(np.uint64)).at(kept)
        masked = RowKeys(*(np.where(there, lane, np.uint64(0)) for lane in (three, four)))
        after = with_word(compositions(masked, homes.starts), left.view(np.uint64)).at(kept)
        numbers = homes.numbers()
        ranked = _ranked(known, numbers, homes.starts), _ranked(np.where(there, seen, np.nan), numbers, homes.starts)
        return _Wide(before, after, left[kept], (ranked[0][..., kept], ranked[1][..., kept]))


def _ranked(values: Floats, numbers: Counts, starts: Counts) -> Floats:
    """The numbers of each household in rising order (columns x ranks x households), missing where there are fewer."""
    found = np.full((len(values), _MEMBERS, len(starts)), np.nan)
    for place, column in enumerate(values):
        order = np.lexsort((column, numbers))
        rank = np.arange(len(numbers)) - starts[numbers]
        few = rank < _MEMBERS
        found[place, rank[few], numbers[few]] = column[order][few]
    return found


def _side_by_side(original: Frame, masked: Frame, task: _KnownMembers) -> Table:
    """Both tables as one: the household's number, and all that is compared, before and after."""
    names = [*task.numbers, *task.labels]
    if not (isinstance(original, Table) and isinstance(masked, Table)):
        masked = masked.assign(**{task.household: 0})  # it may have no such column, and need not
        return pair(original, masked, [task.household, *names], _WHO, marks=True)
    there = {PRESENT: PRESENT} if task.gaps else {}
    given = {name: name for name in (task.household, *names)}
    return beside([(original, given), (masked, {name: masked_name(name) for name in names} | there)])


def _rows(wide: _Wide) -> int:
    return len(wide.sizes)


def _households(homes: Homes) -> int:
    return len(homes.starts)


def _composition_counts(fewest: int, wide: _Wide) -> Piece:
    return counted(wide.after.at(wide.sizes >= fewest))


def _linked(
    wide: Collection[_Wide], rows: Sequence[int], task: _KnownMembers, *, sample: int | None, limit: int, seed: int
) -> LinkageRisk | None:
    """Linkage with households as records; None where all that is known of them is the same."""
    varied = wide.reduce(_spreads, merge_moments, f"{_WHO}: numbers") if task.numbers else None
    names = [f"{name} {rank + 1}" for name in task.numbers for rank in range(_MEMBERS)]
    known = [] if varied is None else [n for n, sd in enumerate(np.nan_to_num(varied.sd)) if sd > 0]
    shown = [_COMPOSITION, *(names[n] for n in known)]
    if sum(rows) < 2 or (not known and not task.labels):  # noqa: PLR2004
        return None
    tables = [table_of_arrays(wide, rows, shown, partial(_values, tuple(known), side)) for side in (0, 1)]
    return distance_linkage(*tables, columns=shown, sample=sample, limit=limit, seed=seed)


def _spreads(wide: _Wide) -> Any:
    return column_moments(list(wide.numbers[0].reshape(-1, len(wide.sizes))))


def _values(known: tuple[int, ...], side: int, wide: _Wide) -> tuple[Words, Floats]:
    """The compositions of one of both tables, and its numbers that differ."""
    words = (wide.before, wide.after)[side].first
    return words, wide.numbers[side].reshape(-1, len(wide.sizes))[list(known)]


def _mean_risk(both: Table, task: _KnownMembers) -> float:
    """The sum over households of the chance that any member is found by the labels of its own."""
    targets, names = targets_for(both.rows), [task.household, *task.columns]
    by_row = both.select(list(dict.fromkeys(names))).transform(partial(_split_rows, task, targets))
    chances = by_row.exchange(itself, partial(_chances, targets), targets, f"{_WHO}: shared", size=33 * both.rows)
    met = chances.exchange(itself, _risks, targets, f"{_WHO}: members", size=24 * both.rows)
    return float(met.reduce(_sum, float.__add__, f"{_WHO}: members"))


def _split_rows(task: _KnownMembers, targets: int, rows: Rows) -> list[Piece]:
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
