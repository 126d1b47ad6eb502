"""The parameters of a refinement: checked, and in one spelling."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmask.errors import JobError
from dpmask.masking.refinement.columns import WHO, parsed_bound
from dpmask.table import requirement
from dpmask.table.encoders.interval import is_date, is_ordered
from dpmask.table.taxonomy import read_taxonomy

if TYPE_CHECKING:
    Requirements = requirement.Requirements
    Trees = requirement.Trees
    Edges = requirement.Edges
    Guide = Mapping[str, Any] | str
    Numbers = Mapping[str, float]
    Kept = Sequence[str]
else:  # what jobs give is checked below, with the column that it is about
    Requirements = Trees = Edges = Guide = Numbers = Kept = Any

ONE_CUT, MONDRIAN = "one_cut", "mondrian"
"""The searches: all records share the cuts of a column, or each region has a box of its own."""


def _checked_domain(column: str, given: Any) -> list[Any]:
    """Two numbers, or two dates as texts."""
    try:
        ends = [str(one) if isinstance(one, datetime.date) else one for one in given]
        low, high = map(parsed_bound, ends)
        fits = len(ends) == 2 and isinstance(ends[0], str) == isinstance(ends[1], str)  # noqa: PLR2004
        if not (fits and np.isfinite([low, high]).all() and low < high):
            raise ValueError
    except (TypeError, ValueError):
        raise JobError(
            f"{WHO}: the domain of '{column}' must be [low, high], two numbers or two dates such as 1900-01-01, the "
            f"lower one first; got {given!r}."
        ) from None
    return ends


def checked_trees(given: Any, masks: Sequence[str]) -> dict[str, Any]:
    """The taxonomy of each column that has one, as a mapping; none for a number that is to be suppressed."""
    return {
        column: None if tree is None else read_taxonomy(tree, f"{WHO}: {column}").to_dict()
        for column, tree in _by_column(given, "taxonomies", "trees", masks).items()
    }


def checked_domains(
    given: Any, masks: Sequence[str], trees: Mapping[str, Any], ends: Mapping[str, list[Any]]
) -> dict[str, list[Any]]:
    """The outer bounds of each column of intervals; ``ends`` are those of columns with finest intervals."""
    domains = _by_column(given, "domains", "[low, high]", masks)
    for column, domain in ends.items():
        if column in domains and _checked_domain(column, domains[column]) != domain:
            raise JobError(f"{WHO}: start of '{column}' must begin and end with its domain; got {domain!r}.")
    domains = {**domains, **ends}
    both = sorted(set(domains) & set(trees))
    if both:
        raise JobError(f"{WHO}: column '{both[0]}' has a taxonomy and a domain. Give it one of them.")
    return {column: _checked_domain(column, domain) for column, domain in domains.items()}


def checked_start(given: Any, masks: Sequence[str], trees: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The edges of the finest intervals of a column."""
    found = {}
    for column, edges in _by_column(given, "start", "edges", masks).items():
        try:
            found[column] = [str(one) if isinstance(one, datetime.date) else one for one in edges]
            fits = len(edges) > 1 and column not in trees
            if not fits or not (np.diff([parsed_bound(one) for one in found[column]]) > 0).all():
                raise ValueError
        except (TypeError, ValueError):
            raise JobError(
                f"{WHO}: start of '{column}' must be the edges of its finest intervals, rising, of a number or a date "
                f"without a taxonomy, such as [0, 18, 65, 120]; got {edges!r}."
            ) from None
    return found


def checked_keep(given: Any, masks: Sequence[str]) -> tuple[str, ...]:
    """The columns that are released as they are."""
    names = [] if given is None else given
    if isinstance(names, str) or not isinstance(names, list | tuple) or not set(names) < set(masks):
        raise JobError(f"{WHO}: keep must list some columns of the requirements, and not all of them; got {given!r}.")
    return tuple(names)


def checked_numbers(
    given: Any, name: str, masks: Sequence[str], *, above: float = -1, at_least: float = 0
) -> dict[str, Any]:
    """A number for each column that has one."""
    numbers = dict(_by_column(given, name, "numbers", masks))
    for column, number in numbers.items():
        fits = isinstance(number, int | float) and not isinstance(number, bool) and above < number < np.inf
        if not fits or number < at_least:
            limit = f"> {above:g}" if above >= 0 else f">= {at_least:g}"
            raise JobError(f"{WHO}: {name} of '{column}' must be a number {limit}; got {number!r}.")
    return numbers


def require_unkept(method: Any) -> None:
    """Refuse what says how to mask a column that is kept."""
    for name in ("domains", "start", "importance", "at_least"):
        both = [column for column in method.keep if column in getattr(method, name)]
        if both:
            raise JobError(f"{WHO}: '{both[0]}' is kept as it is, so that it has no {name}. Take it out.")
    closeness = any(model.model == "t_closeness" for one in method.requirements for model in one.models)
    if closeness and method.suppress_records:
        raise JobError(
            f"{WHO}: t_closeness compares groups with the whole table, which dropping records would change. Set "
            "suppress_records: 0, or take another model."
        )


def check_households(method: Any) -> None:
    """Refuse to drop households where more would follow from it than that they are gone."""
    if not method.of_households or not method.suppress_records:
        return
    if any(one.models or one.known for one in method.requirements):
        raise JobError(
            f"{WHO}: with households dropped (suppress_records), requirements of records take neither models nor "
            "known: what is left of their groups might break them. Take one of both out."
        )
    if len(method.of_households) > 1:
        raise JobError(
            f"{WHO}: with households dropped (suppress_records) there may be one requirement of households: what one "
            "drops, another one would miss. Put their columns together."
        )


def check_cells(method: Any) -> None:
    """Refuse what does not go with suppressed cells."""
    if method.cell_limits and not method.suppress_cells:
        raise JobError(f"{WHO}: cell_limits need suppress_cells: the share of all cells that may be set to missing.")
    for column, share in method.cell_limits.items():
        if share > 1:
            raise JobError(f"{WHO}: cell_limits of '{column}' must be a share from 0 to 1; got {share!r}.")
    if not method.suppress_cells:
        return
    if method.suppress_records:
        raise JobError(f"{WHO}: give suppress_cells or suppress_records, one of them.")
    whole = {column for one in method.of_households for column in one.columns}
    if whole.issuperset(method.grouped):
        raise JobError(
            f"{WHO}: suppress_cells: columns of requirements of households lose no cells, as a member with gaps would "
            "be like nobody's for certain, and there are no others. Take it out, or suppress_records."
        )
    limited = [column for column in method.cell_limits if column in whole]
    if limited:
        raise JobError(f"{WHO}: cell_limits name '{limited[0]}', which loses no cells: it is in one of households.")


def check_regions(method: Any) -> None:
    """Refuse what does not go with the search mondrian."""
    for name in ("suppress_records", "suppress_cells", "at_least"):
        if getattr(method, name):
            raise JobError(f"{WHO}: {name} is for search: {ONE_CUT}, not for {MONDRIAN}. Take it out.")
    if method.intervals != "label":
        raise JobError(
            f"{WHO}: search: {MONDRIAN} releases intervals as labels, as they overlap; got intervals: "
            f"{method.intervals}. Take it out."
        )
    if method.of_households:
        raise JobError(f"{WHO}: requirements of households are for search: {ONE_CUT}, not for {MONDRIAN}.")


def _by_column(given: Any, name: str, values: str, masks: Sequence[str]) -> Mapping[str, Any]:
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise JobError(f"{WHO}: {name} must map columns to {values}; got {type(given).__name__}.")
    for column in given:
        if column not in masks:
            raise JobError(f"{WHO}: {name} names column '{column}', which no requirement does.")
    return given


def check_column(column: str, kind: Any, domains: Mapping[str, Sequence[Any]], trees: Mapping[str, Any]) -> None:
    """Refuse a column of a type that cannot be masked as declared."""
    if column in domains:
        if not is_ordered(kind):
            raise JobError(f"{WHO}: column '{column}' has a domain, but is {kind}. Give it a taxonomy, or neither.")
        dated = isinstance(domains[column][0], str)
        if dated != is_date(kind):
            form = "dates such as 1900-01-01" if is_date(kind) else "numbers"
            raise JobError(f"{WHO}: the domain of '{column}', which is {kind}, must be two {form}.")
    elif column not in trees and is_ordered(kind):
        raise JobError(
            f"{WHO}: column '{column}' is {kind}: declare its domain, such as domains: {{{column}: [0, 120]}}, "
            f"or a taxonomy; or set taxonomies: {{{column}: null}} to suppress its values one by one."
        )
