"""Fitting a refinement: codes of a table, the search that its parameters ask for, and what the solution came to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dpmask.engine.draws import Subkey
from dpmask.errors import InputError
from dpmask.masking.refinement.attributes import MISSING, SUPPRESSED, Attribute
from dpmask.masking.refinement.blocks import CodedTable, coded_table
from dpmask.masking.refinement.columns import WHO, MaskedColumn, masked_columns, parsed_bound
from dpmask.masking.refinement.dropped_groups import DroppedGroups
from dpmask.masking.refinement.figures import Figures
from dpmask.masking.refinement.fitted import FittedRefinement
from dpmask.masking.refinement.fitted_regions import FittedRegions
from dpmask.masking.refinement.guide import DISTORTION, Labels, guide_labels
from dpmask.masking.refinement.left_out import without_cells, without_groups, without_households
from dpmask.masking.refinement.local import CellLimits, refine_with_cells
from dpmask.masking.refinement.mondrian import partitions
from dpmask.masking.refinement.parameters import MONDRIAN
from dpmask.masking.refinement.search import refine
from dpmask.masking.refinement.series import SeriesCondition
from dpmask.masking.refinement.solution import Quasi, RefinementSolution
from dpmask.masking.refinement.stops import Stops, explained
from dpmask.masking.refinement.suppressed_cells import SuppressedCells, Suppression
from dpmask.table.households import DroppedHouseholds
from dpmask.table.sensitive import SensitiveColumn, sensitive_columns
from dpmask.table.table import Table
from dpmask.table.taxonomy import read_taxonomy

if TYPE_CHECKING:
    from dpmask.masking.refinement.method import TopDownRefinement

_ROUNDING = 1e-9  # 0.29 of 100 records are 29


@dataclass(frozen=True)
class _CodedColumns:
    """A table as the search sees it: its columns, those of models, the classes of the guide, and the codes of all."""

    method: TopDownRefinement
    table: Table
    columns: Sequence[MaskedColumn]
    sensitive: Mapping[str, SensitiveColumn]
    labels: Labels
    coded: CodedTable
    attributes: list[Attribute]

    @property
    def both(self) -> list[tuple[MaskedColumn, Attribute]]:
        """Each column and its attribute, but for those that are kept."""
        return [pair for pair in zip(self.columns, self.attributes, strict=True) if not pair[0].kept]

    @property
    def bands(self) -> dict[str, list[float]]:
        """Where the bands of sensitive numbers begin."""
        return {column: one.bands for column, one in self.sensitive.items() if one.bands is not None}

    @property
    def unseen(self) -> tuple[tuple[str, str], ...]:
        """Limited values that no record has: their columns and names."""
        found = []
        for model in (model for one in self.method.group_requirements for model in one.models):
            column = self.sensitive[model.column]
            found += [(model.column, name) for name, _ in model.values if column.code(name) is None]
        return tuple(dict.fromkeys(found))


def fitted_refinement(method: TopDownRefinement, table: Table, key: Subkey) -> FittedRefinement:
    """Find the refinements."""
    splits = {column: method.series.splits(column) for column in method.domains} if method.series else {}
    allowed = math.floor(method.suppress_records * table.rows + _ROUNDING)
    seen = _coded_columns(method, table, key, allowed, splits)
    quasis = method.asked.quasis(seen.sensitive)
    condition = None
    if method.series is not None and method.series.releases:
        condition = method.series.condition(table, seen.columns, method.group_requirements)
    guided, suppression = method.guide != DISTORTION, Suppression()
    if method.suppress_cells:
        missing, limits = [one.encoder.missing for one in seen.columns], _cell_limits(method, table.rows)
        solution, suppression = refine_with_cells(seen.coded, seen.attributes, missing, quasis, limits, guided=guided)
    else:
        most = 0 if method.household is not None else allowed
        solution = refine(seen.coded, seen.attributes, quasis, most, guided=guided, series=condition)
    if method.search == MONDRIAN:
        return _fitted_regions(seen, quasis, solution, key)
    seen = replace(seen, attributes=solution.attributes)
    stops = _stops(seen, quasis, solution, suppression, condition)
    _require_values(method.at_least, seen, stops)
    return _fitted(seen, quasis, solution, suppression, stops, condition, key)


def _coded_columns(
    method: TopDownRefinement, table: Table, key: Subkey, allowed: int, splits: Mapping[str, Any]
) -> _CodedColumns:
    """What is learnt of a table before the search; households are gathered, of which some may be dropped."""
    domains = {column: (parsed_bound(low), parsed_bound(high)) for column, (low, high) in method.domains.items()}
    edges = {column: [parsed_bound(one) for one in given[1:-1]] for column, given in method.start.items()}
    trees = {column: read_taxonomy(tree, WHO) for column, tree in method.taxonomies.items() if tree is not None}
    frozen = {column: sorted(found.values()) for column, found in splits.items() if found}
    columns = masked_columns(table, method.grouped, trees, domains, edges, method.keep, frozen)
    sensitive = sensitive_columns(table, method.sensitive, method.bands, trees, WHO)
    encoders = tuple(one.encoder for one in columns)
    labels = guide_labels(table, method.guide, method.grouped, key.subkey("guide"), WHO)
    coded = coded_table(
        table,
        (*encoders, *(one.encoder for one in sensitive.values())),
        labels,
        dropping=(allowed > 0 and not method.of_households) or method.suppress_cells > 0,
        household=method.household,
    )
    if method.household is not None:
        coded.gather_households(method.household, len(encoders), allowed)
    histograms = coded.class_counts([one.size for one in encoders], labels.classes)
    attributes = [
        one.attribute(counts, splits.get(one.encoder.column, {}))
        for one, counts in zip(columns, histograms, strict=True)
    ]
    for one in attributes:
        one.importance = method.importance.get(one.name, 1.0)
    return _CodedColumns(method, table, columns, sensitive, labels, coded, attributes)


def _stops(
    seen: _CodedColumns,
    quasis: Sequence[Quasi],
    solution: RefinementSolution,
    suppression: Suppression,
    condition: SeriesCondition | None,
) -> Stops:
    """Why each column stopped, by its own groups or by what earlier releases of a series show."""
    guided, repaired = seen.method.guide != DISTORTION, bool(suppression.keys)
    names = [seen.method.asked.name(one) for one in quasis]
    stops = explained(seen.coded, seen.attributes, quasis, names, solution, guided=guided, repaired=repaired)
    if condition is None:
        return stops
    known = {one.column for one in stops.stops}
    more = [one for column, one in condition.stops.items() if column not in known]
    return stops._replace(stops=(*stops.stops, *more))


def _fitted(
    seen: _CodedColumns,
    quasis: Sequence[Quasi],
    solution: RefinementSolution,
    suppression: Suppression,
    stops: Stops,
    condition: SeriesCondition | None,
    key: Subkey,
) -> FittedRefinement:
    """The refinement, with what it leaves out and its figures."""
    method, attributes, both = seen.method, seen.attributes, seen.both
    dropped, cells, lost = _left_out(seen, quasis, solution, suppression)
    return FittedRefinement(
        method,
        tuple(column.released(attribute, method.intervals) for column, attribute in both),
        {column.encoder.column: column.cut(attribute) for column, attribute in both},
        Figures(
            groups=method.asked.smallest(quasis, solution.smallest),
            models=method.asked.model_figures(quasis, solution.worst),
            steps=solution.steps(),
            trees={attribute.name: attribute.tree() for _, attribute in both},
            rows=seen.table.rows,
            dropped=solution.drops.records if solution.gone is None else solution.gone.lost,
            cells=lost,
            stops=stops.stops,
            alternatives=stops.alternatives,
            losses=_losses(attributes, seen.columns),
            series=() if condition is None else condition.figures(attributes),
        ),
        seen.labels,
        key,
        dropped,
        seen.bands,
        seen.unseen,
        cells,
        {}
        if dropped or cells  # values that only they have are hidden: no cut of a tree
        else {one.name: column.frozen(one) for column, one in zip(seen.columns, attributes, strict=True)},
    )


def _left_out(
    seen: _CodedColumns, quasis: Sequence[Quasi], solution: RefinementSolution, suppression: Suppression
) -> tuple[DroppedGroups | DroppedHouseholds | None, SuppressedCells | None, Mapping[str, int]]:
    """The records that are dropped, the cells set to missing, and how many of each column."""
    encoders = tuple(one.encoder for one in seen.columns)
    dropped: DroppedGroups | DroppedHouseholds | None = None
    if solution.gone is not None:
        dropped = without_households(seen.table, encoders, seen.coded, quasis, solution)
    if solution.drops.records:
        dropped = without_groups(seen.table, encoders, seen.attributes, quasis, solution.drops)
    if not suppression.keys:
        return dropped, None, {}
    records = [one for one in quasis if not one.of_households]
    return dropped, *without_cells(seen.table, encoders, seen.attributes, records, suppression)


def _fitted_regions(
    seen: _CodedColumns, quasis: Sequence[Quasi], one_cut: RefinementSolution, key: Subkey
) -> FittedRegions:
    """The regions, beside the solution of one cut for all records."""
    method, coded = seen.method, seen.coded
    importance = [method.importance.get(column, 1.0) for column in method.grouped]
    found = partitions(coded, seen.columns, quasis, importance, seen.labels.classes)
    worst = {number: figures for one in found for number, figures in one.worst.items()}
    smallest = {number: one.leaves.smallest for one in found for number in one.worst}
    lost = {method.grouped[n]: loss for one in found for n, loss in one.losses(coded.rows).items()}
    figures = Figures(
        groups=method.asked.smallest(quasis, [smallest[number] for number in range(len(quasis))]),
        models=method.asked.model_figures(quasis, [worst[number] for number in range(len(quasis))]),
        steps=(),
        trees={},
        rows=coded.rows,
        losses={column: lost[column] for column in method.masks},
        regions=sum(one.leaves.regions for one in found),
        one_cut=_losses(one_cut.attributes, seen.columns),
    )
    return FittedRegions(
        method,
        (),
        {},
        figures,
        seen.labels,
        key,
        bands=seen.bands,
        unseen=seen.unseen,
        regions=tuple(one.released for one in found),
    )


def _cell_limits(method: TopDownRefinement, rows: int) -> CellLimits:
    whole = {*method.keep, *(column for one in method.of_households for column in one.columns)}
    shares = [0.0 if column in whole else method.cell_limits.get(column, 1.0) for column in method.grouped]
    return CellLimits(
        math.floor(method.suppress_cells * rows * len(method.masks) + _ROUNDING),
        tuple(math.floor(share * rows + _ROUNDING) for share in shares),
        tuple(method.importance.get(column, 1.0) for column in method.grouped),
    )


def _require_values(at_least: Mapping[str, float], seen: _CodedColumns, stops: Stops) -> None:
    """Refuse a solution that leaves a column coarser than it may be."""
    for column, attribute in zip(seen.columns, seen.attributes, strict=True):
        least = at_least.get(attribute.name, 0)
        cut = column.cut(attribute)
        values = len(cut) - 1 if column.domain else sum(value not in {SUPPRESSED, MISSING} for value in cut)
        if values < least:
            blocking = [
                f"Of {one.requirement} {one.blocked_by}." for one in stops.stops if one.column == attribute.name
            ]
            raise InputError(
                f"{WHO}: '{attribute.name}' is left with {values} value{'s' * (values != 1)}, and must have at "
                f"least {least}. {' '.join(blocking) or 'It has no more.'} Lower k or another limit, set "
                f"importance: {{{attribute.name}: 3}} or more, or lower at_least."
            )


def _losses(attributes: Sequence[Attribute], columns: Sequence[MaskedColumn]) -> dict[str, float]:
    """What each column lost that is not kept."""
    return {one.name: one.loss() for one, column in zip(attributes, columns, strict=True) if not column.kept}
