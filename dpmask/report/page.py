"""The pages people read: each one self-contained HTML file, without a script and without a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment, FunctionLoader
from markupsafe import Markup, escape

from dpmask.errors import printable
from dpmask.report import chart, svg
from dpmask.report.compared import ComparedTables
from dpmask.report.distributions import (
    LEAST_SHOWN,
    ComparedCorrelations,
    DrawnColumn,
    correlation_change,
    drawn_columns,
    public_columns,
)
from dpmask.report.drawing import can_draw
from dpmask.report.glossary import Entry, field_term, measure_term
from dpmask.report.outline import line, outline
from dpmask.report.statement import ORDERS
from dpmask.report.template_cache import TemplateCache
from dpmask.results import Exhibit

_TEMPLATES = Path(__file__).parent
_LONGEST_TEXT = 100_000


def report_page(account: Mapping[str, Any], comparison: ComparedTables) -> str:
    """The internal report, from the whole account of a run and its compared columns."""
    with_figures = [step for step in account["steps"] if step.about]
    return _rendered("page.html.j2", {**account, **_compared(comparison)}, [*with_figures, *account["measures"]])


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
    columns = public_columns(comparison.columns)
    shown = {**public, "steps": steps, "release": identity, "columns": columns, "least": LEAST_SHOWN}
    shown["order"] = ORDERS[public["order"]]
    return _rendered("public.html.j2", {**shown, "measures": measures}, measures)


def evaluation_page(found: Mapping[str, Any], comparison: ComparedTables) -> str:
    """What an evaluation of two lakes found."""
    return _rendered("evaluation.html.j2", {**found, **_compared(comparison)}, found["measures"])


def _compared(comparison: ComparedTables) -> dict[str, Any]:
    found = comparison.correlations
    return {
        "columns": drawn_columns(comparison.columns),
        "correlations": correlation_change(found) if found else None,
    }


def load_templates() -> None:
    """Compile all templates, or find them on disk."""
    templates = environment([])
    for file in sorted(_TEMPLATES.glob("*.j2")):
        templates.get_template(file.name)


def _template(name: str) -> str:
    """The text alone: what is compiled from it names no folder of this machine, and is found from any."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _rendered(template: str, shown: Mapping[str, Any], results: Sequence[Any]) -> str:
    return environment(results).get_template(template).render(shown)


def environment(results: Sequence[Any]) -> Environment:
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
    used: dict[str, Entry] = {}  # a page ends with the terms it refers to
    templates.globals.update(
        noted=lambda term: used.setdefault(term.name, term),
        terms=lambda: sorted(used.values(), key=lambda term: term.name.lower()),
        can_draw=can_draw(),
        colours=(svg.BEFORE, svg.AFTER),
        field_term=lambda field, result=None: field_term(field, _term_source(result)),
        measure_term=lambda measure: measure_term(_term_source(measure)),
    )
    templates.filters.update(
        words=lambda name: name.replace("_", " "),
        breakable=lambda name: escape(printable(name)).replace("_", Markup("_<wbr>")).replace(".", Markup(".<wbr>")),
        figure=_figure,
        line=line,
        outline=outline,
        attacks=_attacks,
        rule_term=lambda rule: _rule_term(rule.rule, by_name),
        distribution_chart=_distribution_chart,
        correlation_chart=_correlation_chart,
        risk_chart=lambda attacks: svg.risk_chart(_plain(attacks), "Rates of attacks beside what guessing scores"),
        sizes_chart=lambda groups: svg.sizes_chart(groups, "How many groups have how many records"),
        convergence_chart=_convergence_chart,
    )
    return templates


def _shown_text(value: Any) -> Any:
    """Any text on a page, with bidi and control characters escaped; Jinja escapes markup."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else printable(value, _LONGEST_TEXT)


def _figure(value: Any) -> str:
    """A number to six digits, a count in full."""
    if value is None:
        return "none"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer() and abs(value) < 1e15):  # noqa: PLR2004
        return f"{int(value):,}"
    return f"{value:.6g}"


def _rule_term(rule: str, results: Mapping[str, Any]) -> Entry:
    name, _, rest = rule.partition(".")
    found = results.get(name)
    return field_term(rest.split()[0].rstrip("<>="), _term_source(found))


def _attacks(measures: Sequence[Any]) -> list[dict[str, Any]]:
    """Every measured share of what was attacked, beside what guessing scores where there is such a score."""
    return [
        _attack(measure, field)
        for measure in measures
        for field in measure.judged
        if field in measure.shares or (field in measure.exhibits and measure.exhibits[field].kind == "share")
    ]


def _attack(measure: Any, field: str) -> dict[str, Any]:
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
        "term": field_term(field, _term_source(measure)),
    }


def _term_source(result: Any) -> Any:
    """What the glossary needs of a measure or of a step, if it has any."""
    return {"name": result.name, "about": result.about.model_dump()} if result and result.about else None


def _plain(attacks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{key: one[key] for key in ("name", "rate", "low", "high", "guessing")} for one in attacks]


def _distribution_chart(column: DrawnColumn) -> Markup:
    label = f"{column.column}: share of records in each bar, {' and '.join(column.shares)} masking"
    if column.kind == "category":
        return svg.category_chart(column.labels, column.shares, label)
    return svg.histogram_chart(column.edges, list(column.shares.values()), label)


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
    return chart.convergence_chart(shifts, "Shift of the centres in each pass, logarithmic: " + ", ".join(shifts))
