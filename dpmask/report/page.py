"""The pages people read: each one self-contained HTML file, without a script and without a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment, FunctionLoader
from markupsafe import Markup, escape

from dpmask.errors import printable
from dpmask.measures.risk.exposed import ExposedRecord, GivenAway
from dpmask.report import svg
from dpmask.report.attacks import attack_rows, drawn_attacks, term_source
from dpmask.report.compared import ComparedTables
from dpmask.report.distributions import (
    LEAST_SHOWN,
    ComparedCorrelations,
    DrawnColumn,
    correlation_change,
    drawn_columns,
    public_columns,
)
from dpmask.report.glossary import GlossaryEntry, field_term, measure_term
from dpmask.report.headline import public_numbers, three_numbers, verdict
from dpmask.report.line_charts import convergence_chart
from dpmask.report.outline import line, outline
from dpmask.report.rules import broken_rules
from dpmask.report.statement import ORDERS
from dpmask.report.svg_parts import LIMIT, share_text
from dpmask.report.template_cache import TemplateCache
from dpmask.report.waterfall import waterfall_chart
from dpmask.report.words import kind_words
from dpmask.results import Exhibit

MOST_DRAWN = 120
"""More columns than this are not drawn: those that changed most are, and the numbers of all are in files beside."""
_TEMPLATES = Path(__file__).parent
_LARGE, _LARGEST = 1e6, 1e15
_LONGEST_TEXT = 100_000


def report_page(
    account: Mapping[str, Any],
    comparison: ComparedTables,
    learned: GivenAway | None = None,
    exposed: Sequence[ExposedRecord] = (),
) -> str:
    """The internal report, from the whole account of a run and its compared columns.

    ``learned`` is what a sample of records shows of themselves, ``exposed`` are those that a page beside it explains.
    """
    measures, policy, steps = account["measures"], account["policy"], account["steps"]
    shown = {
        **account,
        **_compared(comparison),
        "verdict": verdict(policy, account["trial"]),
        "held": all(one.held for one in policy),
        "numbers": three_numbers(measures, policy, steps, learned),
        "broken": broken_rules(policy, measures, steps),
        "exposed": exposed,
    }
    return _rendered("page.html.j2", shown, [*(step for step in steps if step.about), *measures], policy)


def records_page(name: str, run: str, rows: int, exposed: Sequence[ExposedRecord]) -> str:
    """Why each of the riskiest records is at risk; for the data holder alone."""
    return _rendered("records.html.j2", {"name": name, "run": run, "rows": rows, "exposed": exposed}, [])


def public_page(
    public: Mapping[str, Any],
    identity: str,
    measures: Sequence[Any],
    solutions: Sequence[Mapping[str, Exhibit]],
    comparison: ComparedTables,
) -> str:
    """The page that goes with a release: no risk, nothing of the original, no small count.

    ``solutions`` describes how the solution of each step is drawn.
    """
    steps = [{**step, "solution_exhibits": drawn} for step, drawn in zip(public["steps"], solutions, strict=True)]
    drawn = public_columns(comparison.columns)
    shown = {
        **public,
        "steps": steps,
        "release": identity,
        "columns": drawn[:MOST_DRAWN],
        "not_drawn": max(len(drawn) - MOST_DRAWN, 0),
        "least": LEAST_SHOWN,
        "order": ORDERS[public["order"]],
        "measures": measures,
        "numbers": public_numbers(public, measures),
    }
    return _rendered("public.html.j2", shown, measures)


def evaluation_page(found: Mapping[str, Any], comparison: ComparedTables) -> str:
    """What an evaluation of two lakes found."""
    measures = found["measures"]
    shown = {**found, **_compared(comparison), "numbers": three_numbers(measures, ())}
    return _rendered("evaluation.html.j2", shown, measures)


def _compared(comparison: ComparedTables) -> dict[str, Any]:
    found, drawn = comparison.correlations, drawn_columns(comparison.columns)
    if len(drawn) > MOST_DRAWN:
        most = {one.column for one in sorted(drawn, key=_shift, reverse=True)[:MOST_DRAWN]}
        left = len(drawn) - MOST_DRAWN
        drawn = [one for one in drawn if one.column in most]
    else:
        left = 0
    return {"columns": drawn, "not_drawn": left, "correlations": correlation_change(found) if found else None}


def _shift(column: DrawnColumn) -> float:
    """Which share of the records would have to change bars for the column to look as before."""
    if len(column.shares) < 2:  # noqa: PLR2004
        return 0.0
    before, after = column.shares.values()
    return sum(abs(one - two) for one, two in zip(before, after, strict=True)) / 2


def load_templates() -> None:
    """Compile all templates, or find them on disk."""
    templates = environment([])
    for file in sorted(_TEMPLATES.glob("*.j2")):
        templates.get_template(file.name)


def _template(name: str) -> str:
    """The text alone: what is compiled from it names no folder of this machine, and is found from any."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _rendered(template: str, shown: Mapping[str, Any], results: Sequence[Any], policy: Sequence[Any] = ()) -> str:
    return environment(results, policy).get_template(template).render(shown)


def environment(results: Sequence[Any], policy: Sequence[Any] = ()) -> Environment:
    """What templates may call; ``results`` are those whose terms the page refers to."""
    templates = Environment(
        loader=FunctionLoader(_template),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=TemplateCache(),
        finalize=_shown_text,
    )
    by_name = {one.name: one for one in results}
    used: dict[str, GlossaryEntry] = {}  # a page ends with the terms it refers to
    templates.globals.update(
        noted=lambda term: used.setdefault(term.name, term),
        terms=lambda: sorted(used.values(), key=lambda term: term.name.lower()),
        colours=(svg.BEFORE, svg.AFTER, LIMIT),
        field_term=lambda field, result=None: field_term(field, term_source(result)),
        measure_term=lambda measure: measure_term(term_source(measure)),
    )
    templates.filters.update(
        words=lambda name: name.replace("_", " "),
        breakable=lambda name: escape(printable(name)).replace("_", Markup("_<wbr>")).replace(".", Markup(".<wbr>")),
        figure=_figure,
        share=share_text,
        line=line,
        outline=outline,
        kind_words=kind_words,
        attacks=lambda measures: attack_rows(measures, policy),
        rule_term=lambda rule: _rule_term(rule.rule, by_name),
        distribution_chart=distribution_chart,
        correlation_chart=_correlation_chart,
        risk_chart=lambda rows: svg.risk_chart(drawn_attacks(rows), "Rates of attacks beside what guessing scores"),
        sizes_chart=lambda groups: svg.sizes_chart(groups, "How many groups have how many records"),
        convergence_chart=_convergence_chart,
        waterfall_chart=waterfall_chart,
    )
    return templates


def _shown_text(value: Any) -> Any:
    """Any text on a page, with bidi and control characters escaped; Jinja escapes markup."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else printable(value, _LONGEST_TEXT)


def _figure(value: Any) -> str:
    """A number to six digits, a count in full, a large number without a fraction."""
    if value is None:
        return "none"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST):
        return f"{int(value):,}"
    return f"{value:,.0f}" if _LARGE <= abs(value) < _LARGEST else f"{value:,.6g}"


def _rule_term(rule: str, results: Mapping[str, Any]) -> GlossaryEntry:
    name, _, rest = rule.partition(".")
    found = results.get(name)
    return field_term(rest.split()[0].rstrip("<>="), term_source(found))


def distribution_chart(column: DrawnColumn) -> Markup:
    """A column as it is best drawn."""
    label = f"{column.column}: share of records in each bar, {' and '.join(column.shares)} masking"
    if column.kind == "category":
        return svg.category_chart(column.labels, column.shares, label)
    picture = column.picture
    if picture is None:
        return svg.histogram_chart(column.edges, list(column.shares.values()), label)
    sides = list(picture.shares.values())
    return svg.histogram_chart(picture.edges, sides, label, zeros=picture.zeros, logarithmic=picture.logarithmic)


def _correlation_chart(found: ComparedCorrelations, which: Literal["before", "after", "change"]) -> Markup:
    titles = {
        "before": "Correlations before masking",
        "after": "Correlations after masking",
        "change": "Difference of the correlations",
    }
    matrix = {"before": found.before, "after": found.after, "change": found.change}[which]
    return svg.matrix_chart(found.columns, matrix, f"{titles[which]} of {', '.join(found.columns)}")


def _convergence_chart(histories: Mapping[str, Any]) -> Markup:
    shifts = {name: [shift for _, shift in steps] for name, steps in histories.items()}
    return convergence_chart(shifts, "Shift of the centres in each pass, logarithmic: " + ", ".join(shifts))
