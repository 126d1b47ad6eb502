"""Rules of a policy on a page: which are about a number, where they end, and what to do where one is broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dpmask.report.svg_parts import share_text

_GATE = "gate"
_MOST_NAMED = 3
_ABOUT_RISK = (
    "Mask more strongly: a larger k, coarser labels, more noise.",
    "Leave out or generalise a column, the most informative first.",
    "If that risk is yours to take, state another limit in the policy.",
)
_ABOUT_LOSS = (
    "Mask less strongly: a smaller k, finer labels, less noise.",
    "Take another method, or mask fewer columns.",
    "If that loss is acceptable, state another limit in the policy.",
)


class BrokenRule(NamedTuple):
    """A broken rule, what was found, and what can be done."""

    rule: str
    judged: float
    sampled: bool
    """Whether it was judged by an end of an interval and not by the number that was found."""
    columns: Sequence[str]
    found: str
    leading: Sequence[str]
    """The columns that contribute most, if they are known."""
    advice: Sequence[str]


def parts(rule: str) -> tuple[str, str, float]:
    """The number that a rule is about, such as il1s.value, its relation and its limit."""
    for relation in ("<=", ">=", "<", ">"):
        if relation in rule:
            number, limit = rule.split(relation)
            return number.strip(), relation, float(limit)
    return rule, "", float("nan")


def rules_about(policy: Sequence[Any], number: str) -> list[Any]:
    """The rules of a policy about a number."""
    return [one for one in policy if parts(one.rule)[0] == number]


def limit_of(rule: str, *, share: bool) -> str:
    """Where a rule ends, in words."""
    _, relation, limit = parts(rule)
    words = {"<=": "at most", "<": "less than", ">=": "at least", ">": "more than"}[relation]
    return f"{words} {share_text(limit) if share else f'{limit:,.6g}'}"


def upper_limit(policy: Sequence[Any], number: str) -> float | None:
    """The strictest upper limit on a number."""
    found = [parts(one.rule) for one in rules_about(policy, number)]
    return min((limit for _, relation, limit in found if relation.startswith("<")), default=None)


def broken_rules(policy: Sequence[Any], measures: Sequence[Any], steps: Sequence[Any]) -> list[BrokenRule]:
    """What was found about each broken rule, and what can be done."""
    by_name = {one.name: one for one in [*steps, *measures]}
    return [_broken(one, by_name) for one in policy if not one.held]


def _broken(rule: Any, results: Mapping[str, Any]) -> BrokenRule:
    name, field = parts(rule.rule)[0].rpartition(".")[::2]
    result = results.get(name)
    lost = bool(getattr(result, "lost", False)) or field == "loss"
    found, leading = getattr(result, "explanation", "") or "", list[str]()
    if (name, field) == (_GATE, "linkage") and result is not None:
        falls = result.values.get("contributions") or {}
        telling = [column for column, fall in falls.items() if fall > 0]
        leading = sorted(telling, key=lambda column: -falls[column])[:_MOST_NAMED]
        if falls and not leading:
            found += " No single column decides: the rate does not fall if any one of them is left out."
    number = (getattr(result, "judged", None) or {}).get(field)
    sampled, advice = number is not None and number != rule.judged, _ABOUT_LOSS if lost else _ABOUT_RISK
    return BrokenRule(rule.rule, rule.judged, sampled, rule.columns, found, leading, advice)
