"""Tables I to III and figures 1 to 6 of Cano and Torra (2009), "Generation of synthetic data by means of fuzzy c-regression"."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from cano_torra_2009.printed import TABLE_1, TABLE_2, TABLE_3
from score import score
from sheets import COLOURS, Sheet, Size, census, plot

import dpmask

SCENARIOS = {"S1": ((1, 3, 4, 6, 7, 9, 11, 12, 13), (2, 8, 10)), "S2": ((4, 7, 12, 13), (1, 2, 3, 5, 6, 8, 9, 10, 11))}
HEADS = {
    "c": "", "PIL": ".1f", "PIL printed": ".1f", "DR": ".1f", "DR printed": ".1f", "score": ".1f",
    "score printed": ".1f", "linked": ".1f", "unchanged": ".1f",
}  # fmt: skip
WHY = [
    "PIL: probabilistic information loss of the dependents. DR = 0.25 DBRL + 0.25 PRL + 0.5 ID. linked: records that the "
    "strongest intruder links by the dependents; unchanged: values released as they were. All in per cent.",
    "Fuzzy c-means may start anywhere: seeds move PIL by about a point, and the paper's are not known.",
    "The printed DR does not come out under any reading tried; how it was put together is not printed. Ours follows the "
    "source that the paper cites, and 'linked' shows what a mean over weak intruders hides.",
    "The printed O.F. lies between 0 and 1 and neither rises nor falls with c; what it is an objective of is not printed, and it "
    "is not compared.",
    "The paper has no least number of records for a model, and so there is none here: 'unchanged' shows what comes of it.",
]
IPSO_WHY = (
    "IPSO-B is printed as IPSO-A: so it comes out where residuals are drawn with a standard deviation of 1, which is "
    "nothing beside incomes. Here they have the covariance of the data's own, as in Burridge (2003)."
)
TWELVE = (
    "The printed losses of IPSO-A and IPSO-C are near those of all twelve columns, those of the models near those of the "
    "nine that were masked; the paper does not say which it took."
)
DEGENERATE = (
    "S2 as published has v5 = v8 + v10 among its independents, so the models are singular (the paper left out v5 in S1 for "
    "that reason). Here eigenvalues below rounding are cut off, and PIL is far below the printed one, which does not "
    "fall steadily with c: so do solutions of a singular system that rounding decides."
)


def columns(people: Any, scenario: str) -> dict[str, list[str]]:
    """The dependents and independents of a scenario by name."""
    sides = [[people.columns[number - 1] for number in numbers] for numbers in SCENARIOS[scenario]]
    return dict(zip(("dependents", "independents"), sides, strict=True))


def method(line: int | str, **sides: list[str]) -> Any:
    """The method behind a line of the tables: IPSO, or so many models."""
    if isinstance(line, str):
        return dpmask.IPSO(variant=line[-1], **sides)
    return dpmask.RegressionSynthesis(clusters=line, minimum_size=1, **sides)


def example() -> Any:
    """Five groups of 100 points, each about a line of its own. The paper's data are not printed; these are ours."""
    rng = np.random.default_rng(5)
    lines = [(0, 0, 2.0), (8, 25, -1.5), (18, 5, 0.3), (5, 45, 0.8), (22, 40, -2.0)]  # left end, height, slope
    x = [left + 8 * rng.random(100) for left, _, _ in lines]
    y = [
        height + slope * (at - left) + rng.normal(0, 0.7, 100)
        for at, (left, height, slope) in zip(x, lines, strict=True)
    ]
    return pd.DataFrame({"x": np.concatenate(x), "y": np.concatenate(y)})


def measured(people: Any, lines: dict[Any, Any], some: list[Any], **sides: list[str]) -> Iterator[list[Any]]:
    """A row for each line of a table."""
    for line in some:
        fitted = method(line, **sides).fit(people, seed=1)
        found = score(people, fitted.mask(people), sides["dependents"])
        shares = [column.reproduced for column in fitted.figures.columns]
        pil, risk, whole = lines[line]
        yield [
            str(line),
            found.loss,
            pil,
            found.risk,
            risk,
            found.score,
            whole,
            found.linked,
            100 * sum(shares) / len(shares),
        ]


def _sheet(title: str, rows: list[list[Any]], notes: list[str]) -> Sheet:
    curves = []
    for row in rows:
        name = row[0]
        at = {"line": "IPSO"} if name.startswith("IPSO") else {"line": "c-regression"}
        curves += [
            {"x": row[1], "y": row[3], **at, "label": name, "panel": "dpmask"},
            {"x": row[2], "y": row[4], **at, "label": name, "panel": "printed"},
        ]
    return Sheet(title, HEADS, rows, notes, {"PIL and DR": plot(curves, "PIL", "DR", mark="point", zero=True)})


def table_1(size: Size) -> Sheet:
    """The example with two columns; also figure 4."""
    some = size.of(list(TABLE_1), [2, 5])
    rows = list(measured(example(), TABLE_1, list(some), dependents=["y"], independents=["x"]))
    notes = [
        *WHY,
        "The example's data are not printed: ours are five groups about five lines, so that only the course can be compared: loss falls and risk rises with c, fastest up to the five models that there are.",
    ]
    return _sheet("Cano, Torra 2009, Table I and Figure 4: the example", rows, notes)


def table_2(size: Size) -> Sheet:
    """Scenario S1; also figure 5."""
    people = census()
    some = list(size.of(list(TABLE_2), [2, "IPSO-A"]))
    rows = list(measured(people, TABLE_2, some, **columns(people, "S1")))
    return _sheet("Cano, Torra 2009, Table II and Figure 5: scenario S1", rows, [*WHY, IPSO_WHY, TWELVE])


def table_3(size: Size) -> Sheet:
    """Scenario S2; also figure 6."""
    people = census()
    some = list(size.of(list(TABLE_3), [2, "IPSO-A"]))
    rows = list(measured(people, TABLE_3, some, **columns(people, "S2")))
    return _sheet("Cano, Torra 2009, Table III and Figure 6: scenario S2", rows, [DEGENERATE, *WHY, IPSO_WHY])


def figures_1_to_3(_: Size) -> Sheet:
    """The example's records by model, and each model's line, for 2, 3 and 5 models."""
    people, rows, charts = example(), [], {}
    for number, clusters in enumerate((2, 3, 5), start=1):
        fitted = dpmask.FuzzyCRegression(clusters=clusters).fit(people, dependents=["y"], independents=["x"], seed=1)
        labels, models = fitted.labels(people).to_numpy(), fitted.coefficients[:, :, 0]
        points = [
            {"x": x, "y": y, "line": str(model)} for x, y, model in zip(people["x"], people["y"], labels, strict=True)
        ]
        chart = plot(points, "x", "y", mark="point")
        points_layer = {name: chart.pop(name) for name in ("mark", "encoding")}
        lines = [_line(model, people["x"][labels == place], place) for place, model in enumerate(models)]
        chart["layer"] = [points_layer, *lines]
        charts[f"Figure {number}"] = chart
        rows += [[clusters, place, *model, int((labels == place).sum())] for place, model in enumerate(models)]
    notes = ["The example's data are not printed: ours are five groups about five lines."]
    heads = {"c": "d", "model": "d", "constant": ".2f", "slope": ".2f", "records": "d"}
    return Sheet("Cano, Torra 2009, Figures 1 to 3: models of the example", heads, rows, notes, charts)


def _line(model: Any, x: Any, place: int) -> dict[str, Any]:
    ends = [{"x": float(at), "y": float(model[0] + model[1] * at)} for at in (x.min(), x.max())] if len(x) else []
    axes = {name: {"field": name, "type": "quantitative"} for name in ("x", "y")}
    return {
        "data": {"values": ends},
        "mark": {"type": "line", "color": COLOURS[place], "strokeWidth": 2},
        "encoding": axes,
    }


EXHIBITS = {"table-1": table_1, "table-2": table_2, "table-3": table_3, "figures-1-3": figures_1_to_3}
