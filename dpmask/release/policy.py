"""The gate: rules over measured values, such as ``il1s.value <= 0.2``. A broken one stops the release."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from dpmask.errors import JobError, nearest
from dpmask.results import Result

_FORM = re.compile(r"\s*([^\s.<>=]+)\.(\w+)\s*(<=|>=|<|>)\s*(\S+)\s*")
_HOLDS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


class Rule(NamedTuple):
    """One line of a policy."""

    text: str
    measure: str
    field: str
    relation: str
    limit: float


class Verdict(NamedTuple):
    """Whether a rule holds, and the value it was judged by: the worse end of the interval where there is one."""

    rule: Rule
    judged: float
    held: bool


def parse_rule(text: str) -> Rule:
    """A rule from its text."""
    match = _FORM.fullmatch(text)
    if match:
        measure, field, relation, number = match.groups()
        try:
            limit = float(number)
        except ValueError:
            limit = math.nan
        if math.isfinite(limit):
            return Rule(" ".join(text.split()), measure, field, relation, limit)
    raise JobError(f"'{text}' is no rule; write MEASURE.FIELD <= NUMBER, such as il1s.value <= 0.2")


def check_rule(rule: Rule, measures: Mapping[str, Sequence[str]]) -> None:
    """Refuse a rule about a measure, a method or a field that the job does not have."""
    judged = {name: fields for name, fields in measures.items() if fields}
    if rule.measure not in judged:
        known = nearest(rule.measure, judged) or "The job measures nothing."
        raise JobError(f"'{rule.text}' refers to '{rule.measure}', which the job does not measure. {known}")
    if rule.field not in measures[rule.measure]:
        raise JobError(
            f"'{rule.text}': {rule.measure} has no '{rule.field}'. {nearest(rule.field, measures[rule.measure])}"
        )


def judge(rule: Rule, result: Result) -> Verdict:
    """Judge a measured result by a rule. A sampled value is judged by its 95 % limit, never by its point."""
    value = getattr(result, rule.field)
    if value is None:
        raise JobError(f"'{rule.text}' cannot be judged: {rule.measure} found no {rule.field} in this job's columns.")
    interval = result.intervals.get(rule.field)
    if interval is not None:
        value = interval[1] if rule.relation in {"<", "<="} else interval[0]
    return Verdict(rule, float(value), _HOLDS[rule.relation](float(value), rule.limit))
