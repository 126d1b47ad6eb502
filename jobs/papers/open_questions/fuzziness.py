"""Torra 2020, section 5: which m1, m2 (or lambda1, lambda2) for a wanted risk."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from gallery.exhibits import table
from sheets import Sheet, Size, plot

import dpmask

MODELS = {"m1, m2": ("fuzziness", "draw_fuzziness"), "lambda1, lambda2": ("entropy", "draw_entropy")}
DEFAULT = ("m1, m2", 1.1, 1.05)
WANTED = (10.0, 3.0)
SEEDS = (1, 2, 3)


def fuzziness(size: Size) -> Sheet:
    """The loss at a wanted linkage, read off the curve over k of each pair of parameters."""
    tables, sizes = size.of(("census", "tarragona", "eia"), ("census",)), size.of((5, 10, 25, 50, 100), (5, 25, 100))
    pairs = {
        "m1, m2": list(product(size.of((1.1, 1.5), (1.1,)), size.of((1.01, 1.05, 1.2, 1.5), (1.05, 1.5)))),
        "lambda1, lambda2": list(product(size.of((2, 10), (10,)), size.of((1, 2, 5, 20), (2,)))),
    }
    seeds = size.of(SEEDS, SEEDS[:1])
    rows, points, reached = [], [], []
    for model, (first, second) in ((model, pair) for model, some in pairs.items() for pair in some):
        row: list[Any] = [model, first, second]
        for name in tables:
            found = [_measured(name, k, MODELS[model], (first, second), seeds) for k in sizes]
            row += [_at(wanted, found, 1) for wanted in WANTED]
            if first == pairs[model][0][0]:
                points += [
                    {"x": loss, "y": linked, "line": f"{model} = {first:g}, {second:g}", "panel": name}
                    for linked, loss, _ in found
                ]
            if (model, first, second) == DEFAULT:
                ks = [_at(wanted, found, 2) for wanted in WANTED]
                reached.append(f"{name} {' and '.join('beyond the grid' if k is None else f'{k:.0f}' for k in ks)}")
        rows.append(row)
    least = [min((row[place] for row in rows if row[place]), default=None) for place in range(3, len(rows[0]))]
    for row in rows:
        times = [loss / best for loss, best in zip(row[3:], least, strict=True) if loss and best]
        row.append(float(np.mean(times)) if times else None)
    heads = {"model": "", "first": "g", "second": "g"}
    heads |= {f"{name}, {wanted:g} % linked": ".3f" for name in tables for wanted in WANTED}
    return Sheet(
        "Which m1 and m2 for a wanted risk (Torra 2020, section 5)",
        {**heads, "times the least": ".2f"},
        rows,
        [
            f"Fuzzy microaggregation of all columns with k = {', '.join(map(str, sizes))}, minimum_size 3; linkage and loss are means over {len(seeds)} seeds. linked: the "
            "records that the strongest intruder finds who knows all columns. loss: mean squared error of a standardised variable, read off the curve over k where it "
            "crosses that linkage (a dash: it does not cross it on this grid). times the least: the loss divided by the least of the column, mean over the columns without a dash.",
            _answer(rows),
            f"With the defaults (m1 = 1.1, m2 = 1.05) {' and '.join(f'{wanted:g} %' for wanted in WANTED)} are reached at about k = {'; '.join(reached)}.",
        ],
        {"risk against loss": plot(points, "loss", "linked, %", log="xy")},
    )


def _measured(
    name: str, k: int, names: tuple[str, str], values: tuple[float, float], seeds: Sequence[int]
) -> tuple[float, float, int]:
    """Linkage in per cent and loss, means over seeds, and k."""
    people, linked, losses = table(name), [], []
    for seed in seeds:
        options = dict(zip(names, values, strict=True))
        method = dpmask.FuzzyMicroaggregation(columns=list(people), k=k, minimum_size=3, **options)
        fitted = method.fit(people, seed=seed)
        linked.append(100 * dpmask.risk.distance_linkage(people, fitted.mask(people), columns=list(people)).rate)
        losses.append(fitted.figures.loss)
    return float(np.mean(linked)), float(np.mean(losses)), k


def _at(wanted: float, found: Sequence[tuple[float, float, int]], place: int) -> float | None:
    """Loss or k where the curve crosses a linkage, by straight lines between logarithms; None outside the grid."""
    ordered = sorted(found)
    x = np.log([max(one[0], 1e-3) for one in ordered])
    if not x[0] <= np.log(wanted) <= x[-1]:
        return None
    return float(np.exp(np.interp(np.log(wanted), x, np.log([one[place] for one in ordered]))))


def _answer(rows: Sequence[Sequence[Any]]) -> str:
    own = next(row[-1] for row in rows if tuple(row[:3]) == DEFAULT)
    best, worst = (end((row for row in rows if row[-1]), key=lambda row: row[-1]) for end in (min, max))
    least = "" if tuple(best[:3]) == DEFAULT else f"the best pair ({_pair(best)}) {best[-1]:.2f} times, "
    return (
        f"Choose the risk by k, not by m1 and m2. At the same linkage the defaults m1 = 1.1, m2 = 1.05 lose {own:.2f} times the least, "
        f"{least}the worst pair ({_pair(worst)}) {worst[-1]:.2f} times. "
        "A large m2, or a small lambda2, draws far centres: it lowers linkage less than a larger k of the same loss does."
    )


def _pair(row: Sequence[Any]) -> str:
    return f"{row[0]} = {row[1]:g}, {row[2]:g}"
