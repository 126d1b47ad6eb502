"""The pages people read: each one self-contained HTML file, without a script and without a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader
from markupsafe import Markup, escape

from dpmask.report import chart
from dpmask.report.distributions import LEAST_SHOWN, correlation_change, drawn_columns, public_columns
from dpmask.report.glossary import Entry, field_term, measure_term
from dpmask.report.outline import line, outline
from dpmask.results import Exhibit


def report_page(account: Mapping[str, Any], comparison: Mapping[str, Any]) -> str:
    """The internal report, from the whole account of a run and its compared columns."""
    with_figures = [step for step in account["steps"] if step.about]
    return _rendered("page.html.j2", {**account, **_compared(comparison)}, [*with_figures, *account["measures"]])


def public_page(
    public: Mapping[str, Any],
    identity: str,
    measures: Sequence[Any],
    solutions: Sequence[Mapping[str, Exhibit]],
    comparison: Mapping[str, Any],
) -> str:
    """The page that goes with a release: no risk, nothing of the original, no small count.

    ``solutions`` describes how the solution of each step is drawn.
    """
    steps = [{**step, "solution_exhibits": drawn} for step, drawn in zip(public["steps"], solutions, strict=True)]
    columns = public_columns(comparison["columns"])
    shown = {**public, "steps": steps, "release": identity, "columns": columns, "least": LEAST_SHOWN}
    return _rendered("public.html.j2", {**shown, "measures": measures}, measures)


def evaluation_page(found: Mapping[str, Any], comparison: Mapping[str, Any]) -> str:
    """What an evaluation of two lakes found."""
    return _rendered("evaluation.html.j2", {**found, **_compared(comparison)}, found["measures"])


def map_page(swept: Mapping[str, Any]) -> str:
    """The map of a sweep, and its one table."""
    best = swept["recommended"]
    points = [
        {**point, "number": number, "recommended": number - 1 == best}
        for number, point in enumerate(swept["points"], start=1)
    ]
    goals = [swept["risk"], swept["loss"]]
    measured = dict.fromkeys(name for point in points for name in point["values"])
    terms = {name: _goal_term(name, swept["about"]) for name in [*goals, *measured]}
    shown = {
        **swept,
        "points": points,
        "curves": _curves(points),
        "recommended": None if best is None else best + 1,
        "others": {name: term for name, term in terms.items() if name not in goals},
        "risk_term": terms[goals[0]],
        "loss_term": terms[goals[1]],
    }
    return _environment([], goals).get_template("map.html.j2").render(shown)


def _goal_term(name: str, about: Mapping[str, Any]) -> Entry:
    measure, _, field = name.rpartition(".")
    known = about.get(measure)
    return field_term(field, {"name": measure, "about": known} if known else None)


def _compared(comparison: Mapping[str, Any]) -> dict[str, Any]:
    found = comparison["correlations"]
    return {
        "columns": drawn_columns(comparison["columns"]),
        "correlations": correlation_change(found) if found else None,
    }


def _rendered(template: str, shown: Mapping[str, Any], results: Sequence[Any]) -> str:
    return _environment(results).get_template(template).render(shown)


def _environment(results: Sequence[Any], goals: Sequence[str] = ()) -> Environment:
    environment = Environment(
        loader=PackageLoader("dpmask.report", "."), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    by_name = {one.name: one for one in results}
    used: dict[str, Entry] = {}  # a page ends with the terms it refers to
    environment.globals.update(
        noted=lambda term: used.setdefault(term.name, term),
        terms=lambda: sorted(used.values(), key=lambda term: term.name.lower()),
        charts=chart.can_draw(),
        colours=(chart.BEFORE, chart.AFTER),
        field_term=lambda field, result=None: field_term(field, _term_source(result)),
        measure_term=lambda measure: measure_term(_term_source(measure)),
    )
    environment.filters.update(
        words=lambda name: name.replace("_", " "),
        breakable=lambda name: escape(name).replace("_", Markup("_<wbr>")).replace(".", Markup(".<wbr>")),
        figure=_figure,
        line=line,
        outline=outline,
        attacks=_attacks,
        rule_term=lambda rule: _rule_term(rule.rule, by_name),
        distribution_chart=_distribution_chart,
        correlation_chart=lambda found, side: chart.matrix_chart(found["columns"], found[side], _title(found, side)),
        risk_chart=lambda attacks: chart.risk_chart(_plain(attacks), "Rates of attacks beside what guessing scores"),
        sizes_chart=lambda groups: chart.sizes_chart(groups, "How many groups have how many records"),
        convergence_chart=_convergence_chart,
        curves_chart=lambda curves: chart.curves_chart(
            curves["rows"], curves["parameter"], (goals[0], goals[1]), f"Risk and loss against {curves['parameter']}"
        ),
        map_chart=lambda points: chart.map_chart(_labelled(points), (goals[0], goals[1]), "Risk against loss"),
    )
    return environment


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


def _labelled(points: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Points with what stands beside each: its number, and its parameters if it is recommended."""
    return [
        {
            **{key: point[key] for key in ("risk", "loss", "frontier", "holds", "recommended")},
            "label": f"{point['number']}: recommended" if point["recommended"] else str(point["number"]),
        }
        for point in points
    ]


def _curves(points: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Risk and loss against the first parameter of several numbers; a line for each choice of the others, if any."""
    for name in points[0]["parameters"]:
        values = {line(point["parameters"][name]): point["parameters"][name] for point in points}
        if len(values) > 1 and all(
            isinstance(one, int | float) and not isinstance(one, bool) for one in values.values()
        ):
            rows = [
                {
                    "x": point["parameters"][name],
                    "line": _others(point, name),
                    "risk": point["risk"],
                    "loss": point["loss"],
                }
                for point in points
            ]
            return {"parameter": name, "rows": rows}
    return None


def _others(point: Mapping[str, Any], name: str) -> str:
    return ", ".join(f"{one}: {line(value)}" for one, value in point["parameters"].items() if one != name)


def _distribution_chart(column: Mapping[str, Any]) -> Markup:
    label = f"{column['column']}: share of records in each bar, {' and '.join(column['sides'])} masking"
    if column["kind"] == "category":
        return chart.category_chart(column["labels"], column["sides"], label)
    return chart.histogram_chart(column["edges"], list(column["sides"].values()), label)


def _title(found: Mapping[str, Any], side: str) -> str:
    what = {"before": "Correlations before masking", "after": "Correlations after masking"}
    return f"{what.get(side, 'Difference of the correlations')} of {', '.join(found['columns'])}"


def _convergence_chart(histories: Mapping[str, Any]) -> Markup:
    shifts = {name: [shift for _, shift in steps] for name, steps in histories.items()}
    return chart.convergence_chart(shifts, "Shift of the centres in each pass, logarithmic: " + ", ".join(shifts))
