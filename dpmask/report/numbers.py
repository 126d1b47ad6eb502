"""The numbers of an internal report as files that programs read: JSON, and one table of CSV.

Names are those of the job: a measure's name, a rule's text, a column. ``dpmask explain report`` documents them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any

from dpmask.measures.risk.exposed import ExposedRecord, GivenAway
from dpmask.report.compared import ComparedTables, NotDrawn
from dpmask.report.distributions import drawn_columns
from dpmask.report.headline import HeadNumber, three_numbers, verdict
from dpmask.report.rules import parts

FORMAT = "dpmask report 1"
FIELDS = ("section", "name", "number", "part", "value", "low", "high")
"""The columns of the CSV."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def report_numbers(
    account: Mapping[str, Any],
    comparison: ComparedTables,
    learned: GivenAway | None = None,
    exposed: Sequence[ExposedRecord] = (),
) -> dict[str, Any]:
    """All numbers of a report, for JSON."""
    measures, policy, steps = account["measures"], account["policy"], account["steps"]
    return {
        "format": FORMAT,
        "name": account["name"],
        "run": account["run"],
        "dpmask": account["dpmask"],
        "trial": account["trial"],
        "rows": account["rows"],
        "verdict": {"allowed": all(one.held for one in policy), "sentence": verdict(policy, account["trial"])},
        "headline": [_head(one) for one in three_numbers(measures, policy, steps, learned)],
        "policy": [_rule(one) for one in policy],
        "measures": [
            {"name": one.name, "measure": one.measure, "judged": one.judged, "values": one.values} for one in measures
        ],
        "steps": [
            {"name": one.name, "method": one.method, "figures": one.figures, "consistency": one.consistency}
            for one in steps
        ],
        "distributions": list(_distributions(comparison)),
        "correlations": _correlations(comparison),
        "records": [
            {
                "position": one.position,
                "rows": one.rows,
                "chance": one.chance,
                "known": [step._asdict() for step in one.steps],
            }
            for one in exposed
        ],
    }


def _head(one: HeadNumber) -> dict[str, Any]:
    described = {"question": one.question, "criteria": one.words, "number": one.source}
    return {**described, "value": one.exact, "held": one.held}


def _rule(one: Any) -> dict[str, Any]:
    number, relation, limit = parts(one.rule)
    described = {"rule": one.rule, "number": number, "relation": relation, "limit": limit}
    return {**described, "judged": one.judged, "held": one.held, "columns": one.columns}


def _distributions(comparison: ComparedTables) -> Iterator[dict[str, Any]]:
    for column, drawn in zip(comparison.columns, drawn_columns(comparison.columns), strict=True):
        if not isinstance(column, NotDrawn):
            tables = list(drawn.shares)
            bars = [{"value": str(label), **dict(zip(tables, shares, strict=True))} for label, *shares in drawn.rows]
            yield {"column": drawn.column, "kind": drawn.kind, "bars": bars}


def _correlations(comparison: ComparedTables) -> list[dict[str, Any]]:
    found = comparison.correlations
    if found is None:
        return []
    return [
        {"columns": [found.columns[i], found.columns[j]], "before": found.before[i][j], "after": found.after[i][j]}
        for i, j in combinations(range(len(found.columns)), 2)
    ]


def csv_of(numbers: Mapping[str, Any]) -> str:
    """The numbers as one table, a number to a line; a text that a spreadsheet would obey begins with an apostrophe."""
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(FIELDS)
    for row in _rows(numbers):
        table.writerow([_safe(cell) for cell in row])
    return written.getvalue()


def _safe(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else "" if cell is None else cell


def _rows(numbers: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Section, name, number, part, value, low and high end of its interval."""
    yield "run", numbers["name"], "rows", "", numbers["rows"], None, None
    yield "run", numbers["name"], "allowed", "", int(numbers["verdict"]["allowed"]), None, None
    for one in numbers["headline"]:
        yield "headline", one["question"], one["number"], one["criteria"], one["value"], None, None
    for one in numbers["policy"]:
        yield "policy", one["rule"], "judged", "", one["judged"], None, None
        yield "policy", one["rule"], "limit", "", one["limit"], None, None
        yield "policy", one["rule"], "held", "", int(one["held"]), None, None
    for one in numbers["measures"]:
        yield from _of_measure(one)
    for one in numbers["steps"]:
        for name, value in _numbers_in(one["figures"] or {}):
            yield "step", one["name"], name, "", value, None, None
    for one in numbers["distributions"]:
        for bar, table in product(one["bars"], ("before", "after")):
            if table in bar:
                yield "distribution", one["column"], table, bar["value"], bar[table], None, None
    for one, table in product(numbers["correlations"], ("before", "after")):
        yield "correlation", one["columns"][0], table, one["columns"][1], one[table], None, None
    for one in numbers["records"]:
        for place, step in enumerate(one["known"], start=1):
            yield "record", one["position"], "candidates", f"{place}: {step['column']}", step["candidates"], None, None
            yield "record", one["position"], "chance", f"{place}: {step['column']}", step["chance"], None, None


def _of_measure(one: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    values = one["values"]
    intervals = {next(iter(one["judged"]), ""): values.get("interval"), **(values.get("intervals") or {})}
    for number, value in one["judged"].items():
        low, high = intervals.get(number) or (None, None)
        yield "measure", one["name"], number, "", value, low, high
    for kind in ("parts", "before"):
        for part, value in _numbers_in(values.get(kind) or {}):
            yield "measure", one["name"], kind, part, value, None, None


def _numbers_in(values: Mapping[str, Any]) -> list[tuple[str, float]]:
    return [
        (name, value)
        for name, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
