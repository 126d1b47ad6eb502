"""All methods of numbers on four tables: risk, loss and score at several parameters, the frontier, one map each."""

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import pandas as pd
from score import Score, score
from sheets import Sheet, Size, plot, reference

import dpmask

TABLES = ("census", "tarragona", "eia", "adult")
LEFT_OUT = {"eia": ["UTILITYID", "UTILNAME", "STATE", "YEAR", "MONTH"]}
NUMBERS = {"adult": ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]}
NOTES = [
    "PIL: probabilistic information loss; DR = 0.25 DBRL + 0.25 PRL + 0.5 ID; score = 0.5 PIL + 0.5 DR: all in per cent. linked: the records "
    "that the strongest intruder finds who knows all columns, the method and its parameters. An asterisk: no other line has less of both PIL and linked.",
    "Every column is masked, all together. For synthesis and ipso the first two are independents and stay as they are, which is why their "
    "risk is high. Refined intervals count by their middles. Rotation and membership transforms release other units: PIL finds nearly all "
    "lost; there linked are the records that an intruder with up to 100 known records recovers in all columns.",
    "The score is a mean over weak intruders and close values: choose by 'linked', and by the loss that your analysts feel. The two other "
    "methods of dpmask do not mask numbers: pseudonyms (households) and calibrated_weights.",
]


def table(name: str) -> Any:
    """The numbers of one of the four."""
    if name == "adult":
        return pd.read_parquet(reference("adult.parquet"))[NUMBERS[name]].astype(float)
    return pd.read_csv(reference(f"{name}.csv")).drop(columns=LEFT_OUT.get(name, [])).astype(float)


def methods(people: Any, size: Size) -> Iterator[tuple[str, str, Any]]:
    """Each method, what its parameter is, and the method itself."""
    columns = list(people)
    sides = {"dependents": columns[2:], "independents": columns[:2]}
    for scale in size.of([0.05, 0.1, 0.2, 0.5, 1.0], [0.1, 0.5]):
        yield "noise", f"scale {scale}", dpmask.NoiseAddition(columns=columns, scale=scale)
        yield "correlated noise", f"scale {scale}", dpmask.NoiseAddition(columns=columns, scale=scale, correlated=True)
    for k in size.of([3, 5, 10, 25, 100], [5, 25]):
        yield "microaggregation", f"k {k}", dpmask.Microaggregation(columns=columns, k=k)
        yield "fuzzy microaggregation", f"k {k}", dpmask.FuzzyMicroaggregation(columns=columns, k=k, minimum_size=k)
        yield "refinement", f"k {k}", refinement(people, k, intervals="midpoint")
        yield "refinement (mondrian)", f"k {k}", refinement(people, k, search="mondrian")
    for window in size.of([0.05, 0.1, 0.2, 0.5], [0.1, 0.5]):
        yield "swapping", f"window {window}", dpmask.RankSwapping(columns=columns, window=window)
    for clusters in size.of([2, 5, 10], [2]):
        yield "regression synthesis", f"c {clusters}", dpmask.RegressionSynthesis(clusters=clusters, **sides)
    for variant in size.of("ABC", "C"):
        yield "ipso", variant, dpmask.IPSO(variant=variant, **sides)
    for function in size.of(["s", "triangular", "gaussian"], ["s"]):
        yield "membership transform", function, dpmask.MembershipTransform(columns=columns, function=function)
    yield "rotation", "", dpmask.RandomRotation(columns=columns)


def refinement(people: Any, k: int, **options: Any) -> Any:
    """All columns in intervals, each group of equal rows at least k."""
    domains = {name: [float(people[name].min()), float(people[name].max()) + 1] for name in people}
    asked = [(list(people), k)]
    return dpmask.TopDownRefinement(requirements=asked, domains=domains, guide="distortion", **options)


def masked(people: Any, method: Any, seed: int = 1) -> Any:
    """The masked numbers; an interval stands for its middle."""
    released = method.fit(people, seed=seed).mask(people)[list(people)]
    texts = [name for name in released if not pd.api.types.is_numeric_dtype(released[name])]
    return released.assign(**{name: released[name].astype(str).map(_middle) for name in texts}).astype(float)


def _middle(label: str) -> float:
    low, high = label.strip("[])").split(", ")
    return (float(low) + float(high)) / 2


def attacked(people: Any, asked: Any) -> Score:
    """The score of a method; linked is the most by any intruder, one who knows the method and its parameters among them."""
    released = masked(people, asked)
    found, rates = score(people, released, list(people)), [0.0]
    for name, options in asked.attacks().items():
        own = getattr(dpmask.risk, name)(people, released, **options)
        if name.endswith("linkage") or name == "known_records":
            rates.append(100 * (own.records if name == "known_records" else own.rate))
    return found._replace(linked=max(found.linked, *rates))


def frontier(found: list[Score]) -> list[bool]:
    """Which points no other beats in both loss and linkage."""
    return [
        not any(
            other.loss <= one.loss
            and other.linked <= one.linked
            and (other.loss, other.linked) != (one.loss, one.linked)
            for other in found
        )
        for one in found
    ]


@cache
def lines(name: str, size: Size) -> list[tuple[str, str, Score]]:
    """Every method at every parameter on one table."""
    people = table(name)
    return [(method, how, attacked(people, asked)) for method, how, asked in methods(people, size)]


def compared(name: str, size: Size) -> Sheet:
    """One table, all methods."""
    found, people = lines(name, size), table(name)
    best = frontier([one for _, _, one in found])
    rows = [
        [
            *(method, how, one.loss, one.risk, one.score, one.linked, one.distance, one.probabilistic, one.interval),
            "*" if mark else "",
        ]
        for (method, how, one), mark in zip(found, best, strict=True)
    ]
    points = [
        {"x": one.loss, "y": y, "line": method, "panel": panel}
        for method, _, one in found
        for panel, y in (("linked by the strongest intruder, %", one.linked), ("DR of the score, %", one.risk))
    ]
    parts = dict.fromkeys(["PIL", "DR", "score", "linked", "DBRL", "PRL", "ID"], ".1f")
    title = f"Gallery: {name}, {len(people):,} records, {people.shape[1]} numbers"
    chart = plot(points, "PIL, %", "risk, %", mark="point", zero=True)
    return Sheet(
        title, {"method": "", "parameter": "", **parts, "frontier": ""}, rows, NOTES, {"risk against loss": chart}
    )


def overview(size: Size) -> Sheet:
    """One map of all four tables, with the frontier of each; and of each method the parameter with the best score."""
    points, rows, edge = [], [], []
    for name in TABLES:
        found = lines(name, size)
        marks = frontier([one for _, _, one in found])
        points += [{"x": one.loss, "y": one.linked, "line": method, "panel": name} for method, _, one in found]
        edge += sorted((one.loss, one.linked, name) for (_, _, one), mark in zip(found, marks, strict=True) if mark)
        for method in dict.fromkeys(method for method, _, _ in found):
            own = [(how, one, mark) for (other, how, one), mark in zip(found, marks, strict=True) if other == method]
            how, one, _ = min(own, key=lambda line: line[1].score)
            rows.append([name, method, how, one.loss, one.risk, one.score, one.linked, sum(mark for *_, mark in own)])
    heads = {"table": "", "method": "", "best parameter": "", **dict.fromkeys(["PIL", "DR", "score", "linked"], ".1f")}
    notes = [
        "Of each method the parameter with the least score; 'on the frontier': how many of its parameters no other line beats in both PIL and linked. "
        "The line in the map is the frontier. All parameters are in the tables that follow.",
        *NOTES,
    ]
    chart = plot(points, "PIL, %", "linked by the strongest intruder, %", mark="point", zero=True)
    chart["spec"] = with_frontier(chart["spec"])
    chart["data"]["values"] += [{"x": x, "y": y, "panel": panel, "frontier": True} for x, y, panel in edge]
    return Sheet(
        "Gallery: all methods on census, tarragona, EIA and Adult",
        {**heads, "on the frontier": "d"},
        rows,
        notes,
        {"risk against loss": chart},
    )


def with_frontier(spec: dict[str, Any]) -> dict[str, Any]:
    """The map with a line through the points that no other beats."""
    axes = {letter: spec["encoding"][letter] for letter in ("x", "y")}
    points = {"mark": spec["mark"], "encoding": spec["encoding"], "transform": [{"filter": "!datum.frontier"}]}
    line = {
        "mark": {
            "type": "line",
            "color": "#444444",
            "strokeWidth": 1,
            "strokeDash": [4, 3],
            "interpolate": "step-after",
        },
        "encoding": axes,
        "transform": [{"filter": "datum.frontier"}],
    }
    return {"width": spec["width"], "height": spec["height"], "layer": [line, points]}


EXHIBITS = {"map": overview, **{name: partial(compared, name) for name in TABLES}}
