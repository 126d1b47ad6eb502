"""Results of commands as tables: what a plan, a run, a sweep, an evaluation and an attack found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpmask.errors import Interrupted, StorageError, printable
from dpmask.report.words import kind_words
from dpmask.terminal.output import count, echo, echo_paragraph
from dpmask.terminal.table import BAD, GOOD, show_table

if TYPE_CHECKING:
    from dpmask.job.attack import Attacks
    from dpmask.job.estimate import Plan
    from dpmask.job.evaluate import Evaluation
    from dpmask.job.outcome import MeasureOutcome, Outcome, RuleOutcome
    from dpmask.job.roles import PlannedColumn, PlannedWeight
    from dpmask.report.sweep_map import Sweep

_PARTS_OF_GATE = "gate "
"""What the gate measures is called so; its own lines have the worst of these."""
_MEANING = "What these numbers mean: --explain, the internal report, or dpmask explain NAME."


def show_released(outcome: Outcome, *, explain: bool = False) -> None:
    """What came of a run that ended well; with ``explain``, each measure in a sentence or two as well."""
    _show_found(outcome, explain=explain)
    echo(f"Internal report: {outcome.report}")
    new, records = outcome.status == "released", f"{outcome.rows:,} records"
    there = f"{records} at {outcome.release}; nothing was changed"
    written = f"{records} in {count(outcome.files or 0, 'file')} to {outcome.release}"
    if outcome.trial:
        echo(f"TRIAL, not a release: {f'wrote {written}' if new else f'there are already {there}'}")
    else:
        echo(f"Released {written}" if new else f"Already released {there}")


def show_failed(outcome: Outcome, *, explain: bool = False) -> None:
    """Why a run ended without a release, and what it found until then."""
    _show_found(outcome, explain=explain, err=True)
    for line in f"dpmask: {outcome.error or ''}".split("\n"):
        echo_paragraph(line.lstrip(), indent=len(line) - len(line.lstrip()), err=True)
    if outcome.report:
        echo(f"Internal report: {outcome.report}", err=True)
    if outcome.checkpoint and outcome.exit_code in {StorageError.exit_code, Interrupted.exit_code}:
        echo("To go on from where it stopped, run it again with --resume.", err=True)


def _show_found(outcome: Outcome, *, explain: bool, err: bool = False) -> None:
    """Warnings, as the log has them, and the numbers with what the policy makes of them."""
    for warning in outcome.warnings or []:
        echo_paragraph(f"Warning: {warning}", err=err)
    if outcome.measures:
        _show_verdicts(outcome.measures, outcome.policy or [], err=err)
        if explain:
            for measure in outcome.measures:
                echo_paragraph(f"{measure.name}: {measure.explanation}", err=err)
        elif not err:
            echo(_MEANING)


def _show_verdicts(measures: Sequence[MeasureOutcome], rules: Sequence[RuleOutcome], *, err: bool) -> None:
    """Of each measure its first number and those that rules are about, each with its rule and the verdict."""
    stated: dict[str, list[RuleOutcome]] = {}
    for rule in rules:
        stated.setdefault(rule.rule.split()[0], []).append(rule)
    lines: list[tuple[list[str], RuleOutcome | None]] = []
    for one in measures:
        for place, field in enumerate(one.judged):
            own = stated.pop(f"{one.name}.{field}", [])
            found = [one.name, field, _number(one.judged[field])]
            lines += [(found, rule) for rule in own]
            if place == 0 and not own and not one.name.startswith(_PARTS_OF_GATE):
                lines.append((found, None))
    for number, own in stated.items():  # about figures of methods
        name, _, field = number.rpartition(".")
        lines += [([name, field, _number(rule.judged)], rule) for rule in own]
    show_table(
        ["measure", "number", "found", "limit", "verdict"],
        [[*found, *_verdict(rule, found[-1])] for found, rule in lines],
        right=[2],
        colours=[None if rule is None else GOOD if rule.held else BAD for _, rule in lines],
        err=err,
    )


def _verdict(rule: RuleOutcome | None, found: str) -> list[str]:
    """The limit and the verdict; and what it was judged by, where that is an end of an interval."""
    if rule is None:
        return ["", ""]
    judged, verdict = _number(rule.judged), "holds" if rule.held else "broken"
    return [rule.rule.split(maxsplit=1)[1], verdict if judged == found else f"{verdict}, judged by {judged}"]


def _number(value: float | None) -> str:
    if value is None:
        return "none"
    return f"{int(value):,}" if float(value).is_integer() else f"{value:.4g}"


def show_plan(planned: Plan) -> None:
    """What a plan found."""
    size = f"{planned.rows:,} rows in {count(planned.files, 'file')}, {planned.columns} columns released"
    echo(f"{planned.name}: {size}")
    echo(f"  blocks (partitions): {planned.blocks}, passes over the data: {planned.passes}")
    echo(f"  memory per worker thread: up to {planned.memory_per_thread_mb} MB above an idle worker")
    echo(f"  time: about {planned.seconds} s on {planned.threads} threads; CPU: about {planned.cpu_seconds} s")
    if planned.kernels_to_compile:
        kernels = count(planned.kernels_to_compile, "kernel")
        echo(f"    {planned.compile_seconds} s of it to compile {kernels}, once on this machine: dpmask warmup")
    if not planned.values_checked:
        echo("  values are checked by the run: the table is in a store, or long to read; here only its footers were")
    echo(f"  at the target now: {planned.standing}")
    if planned.nulls:
        counts = ", ".join(f"{name} ({'?' if null is None else null})" for name, null in planned.nulls.items())
        echo_paragraph(f"nulls, which stay null: {counts}", indent=2)
    header = ["  column", "role", "type", "nulls", "zeros", "distinct", "from", "to", "masked by"]
    show_table(header, [_column_line(one) for one in planned.column_table], right=range(3, 8))
    if planned.blocks > 1:
        echo("  zeros, distinct values and extremes (to two digits) are those of the first records")
    for warning in planned.warnings:
        echo_paragraph(f"warning: {warning}", indent=2)
    for step, columns in planned.zeros_kept.items():
        names = ", ".join(printable(one, 60) for one in columns)
        echo_paragraph(
            f"{step}: zeros of {names} stay zero, as at least 5 % of the values are; zeros: mask masks them, too",
            indent=2,
        )
    for weight in planned.weights:
        echo_paragraph(_weight_line(weight), indent=2)
    echo_paragraph(f"rules: {'; '.join(planned.rules)}", indent=2)
    for name, found in planned.suspected.items():
        echo_paragraph(f"the gate may refuse {name}: in the first block, {found}", indent=2)
    for name, reason in planned.accepted.items():
        echo_paragraph(f"accepted: {name}: {reason}", indent=2)


def _weight_line(one: PlannedWeight) -> str:
    """What a weight reveals."""
    steps = ", ".join(one.masked_by)
    then = f"masked by {steps}" if steps else "no step masks it, so that it finds them, and shows who lives together"
    return (
        f"weight {printable(one.name, 60)}: {one.distinct:,} different ones in the first {one.records:,} records, of "
        f"which {one.alone:,} share theirs with nobody{' but their household' if one.of_households else ''}; {then}"
    )


def _column_line(one: PlannedColumn) -> list[str]:
    zeros = "" if one.zeros is None else f"{one.zeros:.0%}"
    ends = ["" if end is None else f"{end:g}" for end in (one.low, one.high)]
    nulls, distinct = ("?" if number is None else f"{number:,}" for number in (one.nulls, one.distinct))
    name = f"  {printable(one.name, 60)}"
    return [
        name,
        one.role,
        printable(kind_words(one.type), 40),
        nulls,
        zeros,
        distinct,
        *ends,
        ", ".join(one.masked_by),
    ]


def show_sweep(swept: Sweep) -> None:
    """A table of all points, and the recommendation."""
    header = [*swept.points[0].parameters, swept.risk, swept.loss, "policy", "frontier"]
    rows = [
        [
            *point.typed.values(),
            f"{point.risk:.4g}",
            f"{point.loss:.4g}",
            "holds" if point.holds else "broken",
            "*" if frontier else "",
        ]
        for point, frontier in zip(swept.points, swept.frontier, strict=True)
    ]
    for name, why in swept.why.items():
        echo_paragraph(f"Tried without --over: {name}; {why} (dpmask explain sweep).")
    show_table(header, rows, colours=[GOOD if point.holds else BAD for point in swept.points], coloured_column=-2)
    echo_paragraph(swept.explain())
    echo(f"Map: {swept.report}")


def show_evaluation(found: Evaluation, *, explain: bool = False) -> None:
    """All numbers of an evaluation as a table; with ``explain``, in words as well."""
    by, originals, masked = found.pairing
    echo(f"{found.original.rows:,} original and {found.masked.rows:,} masked records, paired by {by}")
    for what, left in (("originals without masked", originals), ("masked without original", masked)):
        if left:
            echo(f"  {what}: {left:,}")
    lines = [
        [one.measure, field, "none" if value is None else f"{value:.6g}"]
        for one in found.measures
        for field, value in one.judged.items()
    ]
    show_table(["measure", "number", "found"], lines, right=[2], indent=2)
    for one in found.measures if explain else ():
        echo_paragraph(f"{one.measure}: {one.explanation}")
    for missing in found.not_measured:
        echo_paragraph(f"not measured: {missing.reason}")
    if not explain:
        echo("What these numbers mean: --explain, or dpmask explain NAME.")


def show_attacks(found: Attacks) -> None:
    """A table of attacks with their rates, intervals and what guessing finds."""
    echo(f"{found.rows:,} released records, paired with the register by {found.pairing.by}")
    header = ["attack", "share", "rate", "95 % interval", "guessing", "attacked", "known"]
    rows = [
        [
            one.attack,
            one.share.replace("_", " "),
            f"{one.rate:.2%}",
            f"{one.low:.2%} to {one.high:.2%}",
            f"{one.guessing:.2%}",
            f"{one.attacked:,}",
            ", ".join(one.columns),
        ]
        for one in found.attacks
    ]
    show_table(header, rows)
    for reason in found.not_tried.values():
        echo_paragraph(f"not tried: {reason}")
