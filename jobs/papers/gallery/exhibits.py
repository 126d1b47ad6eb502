"""All methods of numbers on four tables: risk, loss and score at several parameters, the frontier, one map each."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd
from score import Score, score
from sheets import Sheet, Size, plot, reference

import dpmask

LEFT_OUT = {"eia": ["UTILITYID", "UTILNAME", "STATE", "YEAR", "MONTH"]}
NUMBERS = {"adult": ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]}
NOTES = [
    "PIL: probabilistic information loss; DR = 0.25 DBRL + 0.25 PRL + 0.5 ID; score = 0.5 PIL + 0.5 DR: all in per cent. linked: "
    "what the strongest intruder links who knows all columns, the method and its parameters. An asterisk: no other line has less of both PIL and linked.",
    "Every column is masked, all together; for synthesis and ipso the first two are independents and stay as they are, which is "
    "why their risk is high. Rotation and membership transforms release other units, and refinement intervals, so that these measures do not apply.",
    "The score is a mean over weak intruders and close values: choose by 'linked', and by the loss that your analysts feel.",
]


def table(name: str) -> Any:
    """The numbers of one of the four."""
    if name == "adult":
        return pd.read_parquet(reference("adult.parquet"))[NUMBERS[name]].astype(float)
    return pd.read_csv(reference(f"{name}.csv")).drop(columns=LEFT_OUT.get(name, [])).astype(float)


def methods(people: Any, size: Size) -> Iterator[tuple[str, Any, Any]]:
    """Each method, what its parameter is, and the method itself."""
    columns = list(people)
    sides = {"dependents": columns[2:], "independents": columns[:2]}
    for scale in size.of([0.05, 0.1, 0.2, 0.5, 1.0], [0.1, 0.5]):
        yield "noise", f"scale {scale}", dpmask.NoiseAddition(columns=columns, scale=scale)
        yield "correlated noise", f"scale {scale}", dpmask.NoiseAddition(columns=columns, scale=scale, correlated=True)
    for k in size.of([3, 5, 10, 25, 100], [5, 25]):
        yield "microaggregation", f"k {k}", dpmask.Microaggregation(columns=columns, k=k)
        yield "fuzzy microaggregation", f"k {k}", dpmask.FuzzyMicroaggregation(columns=columns, k=k, minimum_size=k)
    for window in size.of([0.05, 0.1, 0.2, 0.5], [0.1, 0.5]):
        yield "swapping", f"window {window}", dpmask.RankSwapping(columns=columns, window=window)
    for clusters in size.of([2, 5, 10], [2]):
        yield "regression synthesis", f"c {clusters}", dpmask.RegressionSynthesis(clusters=clusters, **sides)
    for variant in size.of("ABC", "C"):
        yield "ipso", variant, dpmask.IPSO(variant=variant, **sides)


def masked(people: Any, method: Any) -> Any:
    """The masked numbers."""
    return method.fit(people, seed=1).mask(people)[list(people)].astype(float)


def attacked(people: Any, asked: Any) -> Score:
    """The score of a method; linked is the most by any intruder, one who knows the method and its parameters among them."""
    released = masked(people, asked)
    own = [(name, options) for name, options in asked.attacks().items() if name.endswith("linkage")]
    rates = [100 * getattr(dpmask.risk, name)(people, released, **options).rate for name, options in own]
    found = score(people, released, list(people))
    return found._replace(linked=max(found.linked, *rates, 0.0))


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


def compared(name: str, size: Size) -> Sheet:
    """One table, all methods."""
    people = table(name)
    lines = [(method, how, attacked(people, asked)) for method, how, asked in methods(people, size)]
    best = frontier([found for _, _, found in lines])
    rows = [
        [
            method,
            how,
            one.loss,
            one.risk,
            one.score,
            one.linked,
            one.distance,
            one.probabilistic,
            one.interval,
            "*" if mark else "",
        ]
        for (method, how, one), mark in zip(lines, best, strict=True)
    ]
    points = [
        {"x": one.loss, "y": y, "line": method, "panel": panel}
        for method, _, one in lines
        for panel, y in (("linked by the strongest intruder, %", one.linked), ("DR of the score, %", one.risk))
    ]
    parts = dict.fromkeys(["PIL", "DR", "score", "linked", "DBRL", "PRL", "ID"], ".1f")
    title = f"Gallery: {name}, {len(people):,} records, {people.shape[1]} numbers"
    chart = plot(points, "PIL, %", "risk, %", mark="point", zero=True)
    return Sheet(
        title, {"method": "", "parameter": "", **parts, "frontier": ""}, rows, NOTES, {"risk against loss": chart}
    )


EXHIBITS = {name: partial(compared, name) for name in ("census", "tarragona", "eia", "adult")}
