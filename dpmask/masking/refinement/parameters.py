"""The parameters of a refinement: checked, and in one spelling."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpmask.errors import JobError
from dpmask.masking.refinement.columns import WHO, parsed_bound
from dpmask.table.encoders.interval import is_date, is_ordered
from dpmask.table.taxonomy import read_taxonomy


def checked_requirements(given: Any) -> tuple[dict[str, Any], ...]:
    """Requirements in one spelling."""
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence) or not given:
        raise JobError(f"{WHO}: requirements must be a list of (columns, k) pairs; got {given!r}.")
    return tuple(_checked_requirement(one) for one in given)


def _checked_requirement(given: Any) -> dict[str, Any]:
    columns: Any = None
    k: Any = None
    if isinstance(given, Mapping) and set(given) == {"columns", "k"}:
        columns, k = given["columns"], given["k"]
    elif isinstance(given, list | tuple) and len(given) == 2:  # noqa: PLR2004
        columns, k = given
    named = isinstance(columns, list | tuple) and columns and all(isinstance(one, str) for one in columns)
    if not named or len(set(columns)) < len(columns) or isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise JobError(f"{WHO}: a requirement must be {{columns: [different names], k: a number >= 1}}; got {given!r}.")
    return {"columns": list(columns), "k": k}


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


def checked_domains(given: Any, masks: Sequence[str], trees: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The outer bounds of each column of intervals."""
    domains = _by_column(given, "domains", "[low, high]", masks)
    both = sorted(set(domains) & set(trees))
    if both:
        raise JobError(f"{WHO}: column '{both[0]}' has a taxonomy and a domain. Give it one of them.")
    return {column: _checked_domain(column, domain) for column, domain in domains.items()}


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
