"""The attacks that the methods of a job name: taken beside the job's own measures, whether it asks for them or not."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from dpmask.errors import InputError
from dpmask.job.measures import named_columns
from dpmask.masking.method import Method
from dpmask.measures import find_measure
from dpmask.measures.measure import MeasureRequest
from dpmask.results import Result
from dpmask.table.columns import is_category, is_numeric

_COLUMNS = ("columns", "independents")
"""Parameters of attacks that name columns."""
HOUSEHOLD = "household"
"""The parameter of attacks that look for whole households."""
BY, BY_MASKED = "by", "by_masked"
"""The parameters of attacks that know strata, and which of their columns an earlier step masked."""
REPEATED = "repeated_linkage"
"""The attack of who masks the originals again."""
_REPEATED_SAMPLE = 4_000
"""Attacked by it, of more: a rate is judged by its upper 95 % limit, so fewer never show less risk."""
LABELS = "labels"
"""The parameter of attacks that also know columns of labels."""


def attack_requests(
    before: Any,
    after: Any,
    steps: Iterable[tuple[str, Method[Any]]],
    own: Sequence[MeasureRequest],
    at_risk: Sequence[str],
) -> list[MeasureRequest]:
    """The attacks of a job's steps, by the steps' names, that ``own`` measures do not already take.

    ``before`` and ``after`` are the schemas of the original and the masked table, ``at_risk`` the columns that the
    intruder knows: their labels help where an attack takes any. Each attack is called as its measure,
    or, where that name is taken, as measure and step. Columns that are not released, or are no longer numbers there,
    cannot be attacked by them and are left out. Last comes who masks the originals again, where that shows anything.
    """
    steps = list(steps)
    found, earlier = list(own), set[str]()
    for step, method in steps:
        for measure, parameters in method.attacks().items():
            known = _released(parameters, before, after)
            if BY in known:
                known[BY_MASKED] = masked_before(method, earlier)
            if LABELS in find_measure(measure).parameters:
                known[LABELS] = known_labels(at_risk, after)
            if HOUSEHOLD in known:
                known["columns"] = known_of_members(at_risk, before, after)
            request = _request(measure, known)
            if all(known[name] for name in _COLUMNS if name in known) and not any(
                _covers(other, request) for other in found
            ):
                found.append(request._replace(name=_free_name(measure, step, found)))
        earlier.update(method.masks)
    repeated = [name for name in repeated_columns(method for _, method in steps) if name in at_risk]
    if repeated:
        attacked = {"columns": list(at_risk), "repeated": repeated, "sample": _REPEATED_SAMPLE}
        again = _request(REPEATED, attacked)
        if not any(_covers(one, again) for one in found):
            found.append(again._replace(name=_free_name(REPEATED, "all steps", found)))
    return found[len(own) :]


def repeated_columns(methods: Iterable[Method[Any]]) -> list[str]:
    """The columns whose released values are known to whoever masks the originals again, with a key of his own.

    None where each of them follows from the original value alone. What a step makes of columns that were drawn before
    nobody can repeat.
    """
    found, telling, drawn = dict[str, None](), set[str](), set[str]()
    for method in methods:
        again = not method.draws and drawn.isdisjoint(method.reads)
        found = dict.fromkeys([name for name in found if name not in method.masks] + [*method.masks] * again)
        telling = telling.difference(method.masks).union(method.repeatable if again else ())
        drawn |= set[str]() if again else {*method.masks}
    return list(found) if telling else []


def undoing(methods: Sequence[Method[Any]]) -> set[str]:
    """The measures that undo these methods."""
    return {measure for method in methods for measure in method.attacks()} | {REPEATED}


def masked_before(method: Method[Any], earlier: Collection[str]) -> list[str]:
    """The columns among those masked ``earlier`` that a method makes strata of."""
    return [name for name in method.reads if name in earlier and name not in method.masks]


def known_labels(at_risk: Sequence[str], after: Any) -> list[str]:
    """The columns among these that are released as categories or labels."""
    return [name for name in at_risk if is_category(after.field(name).type)]


def known_of_members(at_risk: Sequence[str], before: Any, after: Any) -> list[str]:
    """The columns that members of a household are looked for by: numbers, and what is released as labels."""
    labels = known_labels(at_risk, after)
    schemas = before, after
    return [one for one in at_risk if one in labels or all(is_numeric(schema.field(one).type) for schema in schemas)]


def _request(measure: str, parameters: Mapping[str, Any]) -> MeasureRequest:
    """The attack with every parameter, so that a weaker one of the same measure does not pass for it."""
    known = inspect.signature(find_measure(measure).function).parameters.values()
    defaults = {one.name: one.default for one in known if one.default is not one.empty}
    return MeasureRequest(measure, measure, {**defaults, **parameters})


def _released(parameters: Mapping[str, Any], before: Any, after: Any) -> dict[str, Any]:
    """An attack's parameters with the columns that it can have: numbers, or what others are predicted from."""
    names = [name for name in before.names if name in after.names]
    numbers = [name for name in names if all(is_numeric(schema.field(name).type) for schema in (before, after))]
    allowed = {"columns": numbers, "independents": names}
    found = {name: [one for one in parameters[name] if one in allowed[name]] for name in _COLUMNS if name in parameters}
    return {**parameters, **found}


def _covers(one: MeasureRequest, attack: MeasureRequest) -> bool:
    """Whether a measure is the attack already: the same parameters, of columns in any order."""
    return one.measure == attack.measure and all(
        _comparable(one.parameters.get(name)) == _comparable(value) for name, value in attack.parameters.items()
    )


def _comparable(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return frozenset([value]) if isinstance(value, str) else value
    names = all(isinstance(one, str | list | tuple) for one in value)
    return (names and frozenset(named_columns(value))) or tuple(value)


def _free_name(measure: str, step: str, taken: Sequence[MeasureRequest]) -> str:
    names, name, number = {one.name for one in taken}, measure, 1
    while name in names:
        name = f"{measure} of {step}" if number == 1 else f"{measure} of {step} {number}"
        number += 1
    return name


def taken(
    takers: Mapping[str, Callable[[], Result]], attacks: Sequence[MeasureRequest], *, at_once: int = 1
) -> tuple[dict[str, Result], list[str]]:
    """What was measured; and a warning for each attack that this table does not allow, as it has too few records.

    With ``at_once`` some are taken beside each other: for a small table, whose passes leave cores idle.
    """
    found: dict[str, Result] = {}
    warnings = []
    for name, take in (takers if at_once == 1 else _beside(takers, at_once)).items():
        try:
            found[name] = take()
        except InputError as error:
            if name not in {one.name for one in attacks}:
                raise
            warnings.append(f"The attack {name} was not tried, so its risk is unknown. {error}")
    return found, warnings


def _beside(takers: Mapping[str, Callable[[], Result]], at_once: int) -> dict[str, Callable[[], Result]]:
    """The same, all taken by now; each gives its result, or raises what it raised."""
    with ThreadPoolExecutor(at_once) as pool:
        later = {name: pool.submit(copy_context().run, take) for name, take in takers.items()}
    return {name: one.result for name, one in later.items()}
