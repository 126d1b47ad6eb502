"""A sweep as a typed result: its points, the frontier, the recommendation; as a chart in notebooks, and as a page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import yaml

from dpmask.report.glossary import GlossaryEntry, field_term
from dpmask.report.headline import HeadNumber
from dpmask.report.line_charts import Curve, MapPoint, PolicyLimits, curves_chart, map_chart
from dpmask.report.outline import line
from dpmask.report.page import environment
from dpmask.report.rules import parts
from dpmask.report.svg_parts import share_text
from dpmask.results import shown

if TYPE_CHECKING:
    import pandas as pd

_LINKAGE = "gate.linkage"
"""What every job measures: linkage by all columns at risk."""
_MATCH_POINT = ".match_point"


def typed(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Parameters as one would type them: lists and whole steps in YAML, on one line."""
    form: Any = {"default_flow_style": True, "sort_keys": False, "allow_unicode": True, "width": math.inf}
    return {
        name: yaml.safe_dump(value, **form).strip() if isinstance(value, dict | list) else str(value)
        for name, value in parameters.items()
    }


def typed_line(parameters: Mapping[str, Any]) -> str:
    """All of them on one line."""
    return ", ".join(f"{name} = {value}" for name, value in typed(parameters).items())


@dataclass(frozen=True, kw_only=True)
class SweepPoint:
    """A job at some parameters: what it risks and loses, and the rules of the policy that it breaks."""

    parameters: Mapping[str, Any]
    run: str
    values: Mapping[str, float]
    """Every number that a policy may name; one found on a sample by the worse end of its interval."""
    broken: tuple[str, ...]
    risk: float
    loss: float
    about: Mapping[str, Any] = field(repr=False, compare=False)
    """What the results mean, by their names."""

    @property
    def holds(self) -> bool:
        """Whether it satisfies the policy."""
        return not self.broken

    @property
    def typed(self) -> dict[str, str]:
        """Its parameters as one would type them."""
        return typed(self.parameters)

    @property
    def text(self) -> str:
        """The same on one line."""
        return typed_line(self.parameters)

    def beats(self, other: SweepPoint) -> bool:
        """Whether it risks and loses no more than another, and one of them less."""
        no_worse = self.risk <= other.risk and self.loss <= other.loss
        return no_worse and (self.risk, self.loss) != (other.risk, other.loss)


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A job at several parameters. ``risk`` and ``loss`` name what its points are compared by."""

    name: str
    risk: str
    loss: str
    points: tuple[SweepPoint, ...]
    report: str = ""
    """Where its page is."""
    rules: tuple[str, ...] = ()
    """The policy that points are judged by."""
    why: Mapping[str, str] = field(default_factory=dict)
    """Why a parameter was tried that nobody asked for, by its name."""

    @property
    def limits(self) -> PolicyLimits:
        """Where the policy ends for what points are compared by; both are the better the smaller."""
        known = [parts(rule) for rule in self.rules]
        upper = {
            name: min(limit for other, relation, limit in known if other == name and relation.startswith("<"))
            for name, relation, _ in known
            if relation.startswith("<")
        }
        return PolicyLimits(upper.get(self.risk), upper.get(self.loss))

    @property
    def frontier(self) -> tuple[bool, ...]:
        """For each point, whether no other beats it."""
        return tuple(not any(other.beats(point) for other in self.points) for point in self.points)

    @property
    def recommended(self) -> int | None:
        """The point with least loss that satisfies the policy; of several, the one with least risk, then the first."""
        allowed = [number for number, point in enumerate(self.points) if point.holds]
        return min(allowed, key=lambda number: (self.points[number].loss, self.points[number].risk), default=None)

    def explain(self) -> str:
        """Which point to take, and why."""
        if self.recommended is None:
            least = min(self.points, key=lambda point: point.risk)
            return (
                f"No point satisfies the policy. The least {self.risk} is {least.risk:.4g}, at {least.text}, where it "
                f"breaks: {'; '.join(least.broken)}. Mask more strongly, or take another method."
            )
        point, passed = self.points[self.recommended], sum(one.holds for one in self.points)
        return (
            f"Take {point.text}: of the {passed} of {len(self.points)} points that satisfy the policy it loses least, "
            f"{self.loss} {point.loss:.4g}, at {self.risk} {point.risk:.4g} (by its upper 95 % limit where it was "
            "sampled)."
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        points = [
            {
                "parameters": dict(point.parameters),
                "typed": point.typed,
                "run": point.run,
                "values": dict(point.values),
                "holds": point.holds,
                "broken": list(point.broken),
                "risk": point.risk,
                "loss": point.loss,
                "frontier": frontier,
            }
            for point, frontier in zip(self.points, self.frontier, strict=True)
        ]
        return {
            "name": self.name,
            "risk": self.risk,
            "loss": self.loss,
            "points": points,
            "recommended": self.recommended,
            "recommendation": self.explain(),
            "rules": list(self.rules),
            "report": self.report,
            "why": dict(self.why),
        }

    def to_frame(self) -> pd.DataFrame:
        """A row for each point."""
        import pandas as pd

        rows = [
            {**point.parameters, self.risk: point.risk, self.loss: point.loss, "holds": point.holds, "frontier": one}
            for point, one in zip(self.points, self.frontier, strict=True)
        ]
        return pd.DataFrame(rows)

    def chart(self) -> str:
        """Risk against loss, and where the policy ends, as SVG."""
        points = [
            MapPoint(
                loss=point.loss,
                risk=point.risk,
                text=f"{number + 1}: recommended" if number == self.recommended else str(number + 1),
                title=f"{point.text}: {self.risk} {point.risk:.4g}, {self.loss} {point.loss:.4g}",
                holds=point.holds,
                frontier=frontier,
                recommended=number == self.recommended,
            )
            for number, (point, frontier) in enumerate(zip(self.points, self.frontier, strict=True))
        ]
        return map_chart(points, (self.risk, self.loss), self.limits, "Risk against loss")

    def _repr_html_(self) -> str:
        """The chart and a small table, for notebooks."""
        names = ("point", *self.points[0].parameters, self.risk, self.loss, "policy")
        lines = [
            (
                str(number),
                *point.typed.values(),
                shown(point.risk),
                shown(point.loss),
                "holds" if point.holds else "broken",
            )
            for number, point in enumerate(self.points, start=1)
        ]
        header = "".join(f"<th>{escape(name)}</th>" for name in names)
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>" for cells in lines)
        return f"{self.chart()}<table><caption>{escape(self.explain())}</caption><tr>{header}</tr>{rows}</table>"


def map_page(sweep: Sweep) -> str:
    """The map of a sweep, and its one table."""
    goals = (sweep.risk, sweep.loss)
    measured = dict.fromkeys(name for point in sweep.points for name in point.values)
    about = sweep.points[0].about
    terms = {name: _goal_term(name, about) for name in [*goals, *measured]}
    content = {
        **sweep.to_dict(),
        "recommended": None if sweep.recommended is None else sweep.recommended + 1,
        "parameter": _first_number(sweep),
        "map_chart": sweep.chart,
        "limited": sweep.limits != PolicyLimits(),
        "numbers": _numbers(sweep, terms),
        "curves_chart": lambda name: _curves(sweep, name),
        "others": {name: term for name, term in terms.items() if name not in goals},
        "risk_term": terms[sweep.risk],
        "loss_term": terms[sweep.loss],
    }
    return environment([]).get_template("map.html.j2").render(content)


def _goal_term(name: str, about: Mapping[str, Any]) -> GlossaryEntry:
    measure, _, number = name.rpartition(".")
    known = about.get(measure)
    return field_term(number, {"name": measure, "about": known} if known else None)


def _first_number(sweep: Sweep) -> str | None:
    """The first parameter of several numbers, if there is one."""
    for name in sweep.points[0].parameters:
        values = [point.parameters[name] for point in sweep.points]
        if len({line(value) for value in values}) > 1 and all(
            isinstance(one, int | float) and not isinstance(one, bool) for one in values
        ):
            return name
    return None


def _curves(sweep: Sweep, parameter: str) -> str:
    """Risk and loss against a parameter, and F-measure and match point where clusters are compared.

    There is a line for each choice of the other parameters, if any.
    """
    compared = [name.removesuffix(_MATCH_POINT) for name in sweep.points[0].values if name.endswith(_MATCH_POINT)]
    names = [f"{measure}.{field}" for measure in compared for field in ("value", "match_point")]
    lines: dict[str, list[SweepPoint]] = {}
    for point in sorted(sweep.points, key=lambda one: float(one.parameters[parameter])):
        lines.setdefault(_others(point, parameter), []).append(point)

    def curves(value: Callable[[SweepPoint], float | None]) -> list[Curve]:
        return [
            Curve(name, [(float(one.parameters[parameter]), value(one)) for one in points])
            for name, points in lines.items()
        ]

    panels = {sweep.risk: curves(lambda one: one.risk), sweep.loss: curves(lambda one: one.loss)}
    panels |= {name: curves(lambda one, name=name: one.values.get(name)) for name in names}  # type: ignore[misc]
    return curves_chart(panels, parameter, f"Risk and loss against {parameter}")


def _numbers(sweep: Sweep, terms: Mapping[str, GlossaryEntry]) -> list[HeadNumber]:
    """What the recommended point, or the one of least risk, risks and loses; and how many points the policy allows."""
    least = min(range(len(sweep.points)), key=lambda number: sweep.points[number].risk)
    number = least if sweep.recommended is None else sweep.recommended
    point, which = sweep.points[number], "the recommended point" if sweep.recommended is not None else "least risk"
    limits, passed = sweep.limits, sum(one.holds for one in sweep.points)
    risk = HeadNumber(
        "Who could be found or learned of",
        "Singling out, linkability, inference",
        share_text(point.risk) if 0 <= point.risk <= 1 else f"{point.risk:.3g}",
        f"is {sweep.risk} at point {number + 1}, {which}{_limited(limits.risk, share=0 <= point.risk <= 1)}."
        + _linked(sweep, point),
        _is_allowed(sweep, point),
        terms[sweep.risk],
    )
    loss = HeadNumber(
        "What was lost",
        "Utility",
        f"{point.loss:.3g}",
        f"is {sweep.loss} at point {number + 1}{_limited(limits.loss, share=False)}.",
        None if limits.loss is None else point.loss <= limits.loss,
        terms[sweep.loss],
    )
    text = "points satisfy the whole policy: " + ("; ".join(sweep.rules) or "it has no rule") + "."
    allowed = HeadNumber("What the policy allows", "Decision", f"{passed} of {len(sweep.points)}", text, passed > 0)
    return [risk, loss, allowed]


def _linked(sweep: Sweep, point: SweepPoint) -> str:
    """What the strongest intruder finds, where points are compared by less than that."""
    found = None if sweep.risk == _LINKAGE else point.values.get(_LINKAGE)
    return "" if found is None else f" An intruder with all columns at risk finds {share_text(found)} ({_LINKAGE})."


def _is_allowed(sweep: Sweep, point: SweepPoint) -> bool | None:
    """Whether the policy allows that risk and what the strongest intruder finds; None where it says nothing of them."""
    about = [rule for rule in sweep.rules if parts(rule)[0] in (sweep.risk, _LINKAGE)]
    return not set(about).intersection(point.broken) if about else None


def _limited(limit: float | None, *, share: bool) -> str:
    return "" if limit is None else f"; the policy ends at {share_text(limit) if share else f'{limit:.6g}'}"


def _others(point: SweepPoint, parameter: str) -> str:
    return ", ".join(f"{name}: {line(value)}" for name, value in point.parameters.items() if name != parameter)
