"""What stands first on a page: the verdict in a sentence, and three numbers in the regulator's words.

Who could be found (singling out and linkability), what could be learned (inference), and what was lost; the words are
those of WP216, the Article 29 Working Party's opinion on anonymisation. A number is that of the strongest attack, or of
the first loss that was measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dpmask.measures.risk.exposed import GivenAway
from dpmask.report.glossary import GlossaryEntry, field_term, measure_term
from dpmask.report.rules import limit_of, rules_about
from dpmask.report.svg_parts import share_text
from dpmask.results import MORE_LOSS, MORE_RISK, WP216, Headline

GATE = "gate"
_NAMED = 12
"""Columns that a card names."""
_NOT_MEASURED = "not measured"


class HeadNumber(NamedTuple):
    """One of the three numbers: a question, the regulator's word for it, the number and what it means."""

    question: str
    words: str
    value: str
    text: str
    held: bool | None
    """Whether the rules about it hold; None where there are none."""
    entry: GlossaryEntry | None = None
    exact: float | None = None
    """The number itself, for files that programs read."""
    source: str = ""
    """Where it comes from, such as gate.linkage."""


def three_numbers(
    measures: Sequence[Any], policy: Sequence[Any], steps: Sequence[Any] = (), learned: GivenAway | None = None
) -> list[HeadNumber]:
    """Who could be found, what could be learned, what was lost."""
    return [_found(measures, policy), _learned(measures, policy, learned), _lost(measures, policy, steps)]


def _found(measures: Sequence[Any], policy: Sequence[Any]) -> HeadNumber:
    question, words = "Who could be found", "Singling out, linkability"
    gate = next((one for one in measures if one.name == GATE), None)
    if gate is not None:
        name, rate = f"{GATE}.linkage", gate.judged["linkage"]
        columns, guessing = gate.values.get("columns") or [], gate.values["guessing"]
        known = f", who knows all {len(columns)} columns at risk" if columns else ""
        text = f"of records can be linked to their own by the strongest intruder{known}; guessing finds "
        texts = [f"{text}{share_text(guessing)}.", _smallest(gate.judged["smallest"], gate.values.get("quasi") or [])]
        entry = _term("linkage", gate)
    else:
        linked = _leading(measures, "linked")
        if not linked:
            return HeadNumber(question, words, _NOT_MEASURED, "No attack by linkage was measured.", None)
        rate, worst, head = max(linked, key=lambda item: item[0])
        name, guessing = f"{worst.name}.{head.number}", worst.values["guessing"]
        texts = [f"{head.text}; guessing finds {share_text(guessing)}."]
        texts += [_smallest(int(size), [how.text]) for size, _, how in _leading(measures, "alike")[:1]]
        entry = _term(head.number, worst)
    texts += [how.text.format(share_text(found)) for found, _, how in _leading(measures, "beside")[:1]]
    return _with_rule(HeadNumber(question, words, "", " ".join(texts), None, entry, rate, name), policy)


def _leading(measures: Sequence[Any], kind: str) -> list[tuple[float, Any, Headline]]:
    """The numbers of measures that may stand first, of one kind: each with its measure and its words."""
    return [
        (one.judged[head.number], one, head)
        for one in measures
        for head in one.headlines
        if head.kind == kind and one.judged.get(head.number) is not None
    ]


def _smallest(smallest: int, quasi: Sequence[str]) -> str:
    about = f"in {_some(quasi or ['their quasi-identifiers'])}"
    if smallest <= 1:
        return f"Some records are alone {about}: they can be singled out."
    return f"At least {smallest:,} records are alike {about}."


def _learned(measures: Sequence[Any], policy: Sequence[Any], learned: GivenAway | None) -> HeadNumber:
    question, words = "What could be learned", "Inference"
    found = _leading(measures, "learned")
    if found:
        rate, one, (_, field, text) = max(found, key=lambda item: item[0])
        guessing = one.values.get("guessing") if field in one.shares else None
        beside = f"; {share_text(guessing)} without the release or by chance." if guessing is not None else "."
        number = HeadNumber(question, words, "", text + beside, None, _term(field, one), rate, f"{one.name}.{field}")
        return _with_rule(number, policy)
    if learned is not None:
        text = (
            "of the sensitive values of a record are what its released row says, to a twentieth of a standard "
            f"deviation; a stranger's row says {share_text(learned.stranger)} of them. From {learned.records:,} "
            "records; the job itself measures no inference."
        )
        entry = GlossaryEntry(
            "values that a released row gives away",
            "Share of sensitive values that are within 5 % of a standard deviation of the value released for them, or, "
            "of categories, released as they are: what is learned of a person whose row is found.",
            MORE_RISK,
            WP216,
        )
        return HeadNumber(question, words, share_text(learned.own), text, None, entry, learned.own, "own_row")
    text = "No measure of inference was taken; interval_disclosure and attribute_inference are such."
    return HeadNumber(question, words, _NOT_MEASURED, text, None)


def _lost(measures: Sequence[Any], policy: Sequence[Any], steps: Sequence[Any]) -> HeadNumber:
    question, words = "What was lost", "Utility"
    losses = sorted((one for one in measures if one.lost and one.judged), key=lambda one: one.larger_is_better)
    asked = [one for one in losses if not one.automatic]
    if asked:
        return _with_rule(_loss(question, words, asked[0]), policy)
    own = [(step.figures["loss"], step) for step in steps if step.figures and step.about and "loss" in step.figures]
    own = [(value, step) for value, step in own if isinstance(value, int | float)]
    if own:
        value, step = max(own, key=lambda item: item[0])
        text = f"is the loss of {step.method}: 0 means nothing, 1 all information of its columns."
        entry = field_term("loss", {"name": step.name, "about": step.about.model_dump()})
        number = HeadNumber(question, words, f"{value:.3g}", text, None, entry, value, f"{step.name}.loss")
        return _with_rule(number, policy)
    if losses:
        return _with_rule(_loss(question, words, losses[0]), policy)
    return HeadNumber(question, words, _NOT_MEASURED, "No loss was measured; il1s and totals are such.", None)


def _rank(one: Any) -> tuple[bool, bool]:
    """Losses before agreements, and those that a job asks for before those that every job takes."""
    return one.automatic, one.larger_is_better


def _loss(question: str, words: str, one: Any) -> HeadNumber:
    field, value = next(iter(one.judged.items()))
    if value is None:
        return HeadNumber(question, words, _NOT_MEASURED, one.explanation, None)
    if one.larger_is_better:
        question = "What was kept"
    number = f"{one.name}.{field}"
    return HeadNumber(question, words, f"{value:.3g}", one.explanation, None, _term(field, one), value, number)


def _some(columns: Sequence[str]) -> str:
    """The names of columns; of very many the first."""
    more = f" and {len(columns) - _NAMED:,} more columns" if len(columns) > _NAMED + 1 else ""
    return ", ".join(columns[:_NAMED] if more else columns) + more


def public_numbers(public: Mapping[str, Any], measures: Sequence[Any]) -> list[HeadNumber]:
    """What a release may say of itself: what was protected, what was lost, and the limits that hold."""
    schema, dropped = public["schema"], public["dropped"]
    masked = [column for column in schema if column["masked"]]
    texts = ["columns are masked"]
    texts[0] += f", {len(dropped)} more were removed." if dropped else "."
    groups = [claim for claim in public["claims"] if claim.get("smallest_group")]
    if groups:
        most = max(groups, key=lambda claim: claim["smallest_group"])
        columns, least = _some(most["columns"]), f"At least {most['smallest_group']:,}"
        homes = f"{least} households are alike in {columns} of all their members."
        texts.append(homes if most.get("households") else f"{least} records share each row of {columns}.")
    protected = HeadNumber(
        "What was protected", "Masking", f"{len(masked)} of {len(schema)}", " ".join(texts), None, None, len(masked)
    )
    shown = sorted((one for one in measures if one.judged), key=_rank)
    if shown:
        lost = _loss("What was lost", "Utility", shown[0])
    else:
        lost = HeadNumber("What was lost", "Utility", "not shown", "This release shows no loss.", None)
    held = sum(rule["held"] for rule in public["policy"])
    text = "limits of the data holder hold, on what could be found or learned and on what was lost."
    limits = HeadNumber(
        "Which limits hold", "Singling out, linkability, inference", f"{held} of {len(public['policy'])}", text, None
    )
    return [protected, lost, limits]


def _with_rule(number: HeadNumber, policy: Sequence[Any]) -> HeadNumber:
    """A number as its rule judges it, with the limit beside it."""
    rules = rules_about(policy, number.source)
    value = number.exact if not rules else rules[0].judged
    shown = number.value or share_text(value or 0.0)
    if not rules:
        return number._replace(value=shown)
    limits = ", ".join(limit_of(one.rule, share=not number.value) for one in rules)
    text = f"{number.text} The policy demands {limits}."
    return number._replace(value=shown, text=text, held=all(one.held for one in rules))


def verdict(policy: Sequence[Any], trial: bool = False) -> str:
    """Whether a release may be published, in one sentence."""
    broken = [one for one in policy if not one.held]
    kind = "trial" if trial else "release"
    if not policy:
        return f"This {kind} was judged by no rule."
    if not broken:
        return f"Allowed: this {kind} keeps all {len(policy)} rules of its policy."
    which = ", ".join(one.rule for one in broken[:2]) + (" and others" if len(broken) > 2 else "")  # noqa: PLR2004
    rules = f"{len(broken)} of {len(policy)} rules" if len(policy) > 1 else "its only rule"
    return f"Refused: this {kind} breaks {rules} of its policy ({which}), and nothing was published."


def _term(field: str, one: Any) -> GlossaryEntry:
    source = {"name": one.name, "about": one.about.model_dump()}
    found = field_term(field, source) if field in (source["about"].get("terms") or {}) else measure_term(source)
    return found if found.direction else found._replace(direction=MORE_LOSS)
