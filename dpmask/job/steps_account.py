"""What each step did to zeros, to missing values and to edit rules: before it, and after it.

Where every column is masked by one step alone, one count over the original and the released table gives it for all of
them. A column that several steps mask is counted before and after each of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpmask.constraints.zeros import KEEP
from dpmask.job.measures import consistency_requests
from dpmask.job.model import Job
from dpmask.kernels.zeros import MANY_ZEROS
from dpmask.masking.method import FittedMethod, Method
from dpmask.measures.utility.consistency import Consistency, consistency
from dpmask.table.table import Table


def by_step(
    original: Table, masked: Table, fitted: Sequence[FittedMethod], results: Mapping[str, Any]
) -> list[Consistency | None]:
    """What each step did; None of one that masks no numbers. ``results`` may have the count of all steps together."""
    methods = [one.method for one in fitted]
    whole = _whole(original, masked, methods, results)
    if whole is None:
        return [None] * len(fitted)
    times = Counter(name for method in methods for name in method.masks)
    repeated = {name for name, count in times.items() if count > 1 and name in _columns(whole)}
    apart = dict(_apart(original, fitted, repeated)) if repeated else {}
    return [apart.get(number, _part(whole, method)) for number, method in enumerate(methods)]


def _columns(found: Consistency) -> list[str]:
    return [one.column for one in found.columns]


def _whole(
    original: Table, masked: Table, methods: Sequence[Method[Any]], results: Mapping[str, Any]
) -> Consistency | None:
    """The count of all steps together."""
    requests = consistency_requests(original.masked_schema, masked.masked_schema, methods, ())
    if not requests:
        return None
    asked, found = requests[0], results.get(requests[0].name)
    if isinstance(found, Consistency) and _columns(found) == list(asked.parameters["columns"]):
        return found
    return consistency(original, masked, **asked.parameters)


def _apart(table: Table, fitted: Sequence[FittedMethod], repeated: set[str]) -> Iterator[tuple[int, Consistency]]:
    """The counts of the steps that mask one of these columns, between the tables before and after each."""
    for number, step in enumerate(fitted):
        after = table.masked_by(step)
        if repeated.intersection(step.method.masks):
            requests = consistency_requests(table.masked_schema, after.masked_schema, [step.method], ())
            if requests:
                yield number, consistency(table, after, **requests[0].parameters)
        table = after


def _part(whole: Consistency, method: Method[Any]) -> Consistency | None:
    """What one step did, of the count of all."""
    columns = tuple(one for one in whole.columns if one.column in method.masks)
    if not columns:
        return None
    parts = {one.column: whole.parts[one.column] for one in columns}
    rules = tuple(one for one in whole.rules if one.rule in method.rules)
    return replace(whole, value=max(parts.values()), parts=parts, columns=columns, rules=rules)


def zeros_masked(job: Job, steps: Sequence[Consistency | None]) -> list[str]:
    """Warnings of steps that could keep zeros, and did not, in columns that have many."""
    found = []
    for name, method, one in zip(job.names, job.methods, steps, strict=True):
        if one is None or method.on_zeros in (None, KEEP):
            continue
        found += [
            f"{name}: of {column.zeros_before:,} zeros of {column.column} {column.zeros_lost:,} are no longer zero, "
            f"and {column.zeros_new:,} values became zero. Which amounts are zero is tabulated first: zeros: keep."
            for column in one.columns
            if column.zeros_before >= MANY_ZEROS * (one.records - column.missing_before) and column.zeros_lost
        ]
    return found
