"""Every measured attack as a row of a table and a point of a chart: its rate, its interval, guessing, and its limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpmask.report.glossary import field_term
from dpmask.report.rules import upper_limit

_SUMMED_UP = "gate "
"""How the names of measures begin that the gate takes by itself."""
_OF_SERIES = "gate: differencing"
"""What only a release of a series is attacked by; then a rule is about it."""


def attack_rows(measures: Sequence[Any], policy: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """Every measured share of what was attacked, beside what guessing scores where there is such a score."""
    found = [
        _attack(measure, field, policy)
        for measure in measures
        for field in measure.judged
        if measure.judged[field] is not None
        if field in measure.shares or (field in measure.exhibits and measure.exhibits[field].kind == "share")
    ]
    return [one for one in found if one["name"] != _OF_SERIES or one["rate"] or one["limit"] is not None]


def _attack(measure: Any, field: str, policy: Sequence[Any]) -> dict[str, Any]:
    values, rate = measure.values, measure.judged[field]
    intervals = {"rate": values.get("interval"), **(values.get("intervals") or {})}
    low, high = intervals.get(field) or (rate, rate)
    return {
        "name": measure.name if field == "rate" else f"{measure.name}: {field.replace('_', ' ')}",
        "rate": rate,
        "low": low,
        "high": high,
        "guessing": values["guessing"] if field in measure.shares else None,
        "attacked": values["attacked"],
        "limit": upper_limit(policy, f"{measure.name}.{field}"),
        "term": field_term(field, term_source(measure)),
    }


def drawn_attacks(attacks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What a chart needs of them, those with a limit first; what the gate sums up is left to the table."""
    shown = sorted(
        (one for one in attacks if not one["name"].startswith(_SUMMED_UP)), key=lambda one: one["limit"] is None
    )
    return [{key: one[key] for key in ("name", "rate", "low", "high", "guessing", "limit")} for one in shown]


def term_source(result: Any) -> Any:
    """What the glossary needs of a measure or of a step, if it has any."""
    return {"name": result.name, "about": result.about.model_dump()} if result and result.about else None
