"""What the five papers left open, answered by experiments of our own."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from cano_torra_2009.exhibits import columns as scenario
from fung_2009.quality import ALGORITHMS, contingency, crx, f_measure, natural, ranked, requirement
from gallery.exhibits import masked, methods, table
from score import score
from sheets import Sheet, Size, census, plot
from torra_2009.exhibits import compared

import dpmask


def spearman(one: Any, two: Any) -> float:
    """The correlation of ranks."""
    return float(pd.Series(one).corr(pd.Series(two), method="spearman"))


def fuzziness(size: Size) -> Sheet:
    """Torra 2020, section 5: which m1, m2 for a wanted risk."""
    rows, points = [], []
    for name in ("census",):
        people = table(name)
        grid = product(
            size.of([5, 10, 25, 50], [10]),
            size.of([1.1, 1.5], [1.1]),
            size.of([1.01, 1.05, 1.2, 1.5], [1.05, 1.5]),
        )
        for k, m1, m2 in grid:
            method = dpmask.FuzzyMicroaggregation(
                columns=list(people), k=k, fuzziness=m1, draw_fuzziness=m2, minimum_size=3
            )
            fitted = method.fit(people, seed=1)
            linked = dpmask.risk.distance_linkage(people, fitted.mask(people), columns=list(people)).rate
            rows.append([name, k, m1, m2, fitted.figures.loss, 100 * linked, 100 * fitted.figures.on_records])
            points.append({"x": fitted.figures.loss, "y": 100 * linked, "line": f"m2 = {m2}", "panel": name})
    heads = {"table": "", "k": "d", "m1": "g", "m2": "g", "loss": ".4f", "linked, %": ".1f", "on records, %": ".1f"}
    notes = [
        "loss: mean squared error of a standardised variable; linked: by the strongest intruder, all columns known; minimum_size 3.",
        _cheapest(rows),
        "So: choose the risk by k, and leave m1 at 1.1 and m2 at 1.05, about the least loss at every wanted risk; they are the defaults of "
        "fuzzy_microaggregation. A larger m2 lowers the linkage, too, but m2 = 1.5 costs two to three times the loss of a larger k for the "
        "same linkage.",
    ]
    return Sheet(
        "Which m1 and m2 for a wanted risk (Torra 2020, section 5)",
        heads,
        rows,
        notes,
        {"risk against loss": plot(points, "loss", "linked, %", mark="point", log="x")},
    )


def _cheapest(rows: list[list[Any]]) -> str:
    """For some wanted risks the line with least loss."""
    found = []
    for name, wanted in product(dict.fromkeys(row[0] for row in rows), (10, 5, 2)):
        safe = [row for row in rows if row[0] == name and row[5] <= wanted]
        if safe:
            best = min(safe, key=lambda row: row[4])
            found.append(
                f"{name}, at most {wanted} %: k = {best[1]}, m1 = {best[2]:g}, m2 = {best[3]:g} (loss {best[4]:.3f})"
            )
    return f"Least loss for a wanted linkage. {'; '.join(found)}." if found else "No line is below 10 %."


def tolerance(size: Size) -> Sheet:
    """Torra, Endo, Miyamoto 2009: is kappa1 = kappa2 meaningful, and how to choose kappa."""
    noises, rows, curves = size.of([0.0, 0.4, 1.0, 2.0], [0.0, 1.0]), [], []
    pairs = [(0.0, 0.0), (0.1, 0.1), (0.0, 0.1), (0.5, 0.5), (0.0, 0.5)]
    for name, (first, second) in product(("census",), size.of(pairs, pairs[:2])):
        people = table(name)
        tolerances = {"tolerance": first} if first else {}
        tolerances |= {"masked_tolerance": second} if second else {}
        found = [compared(people, noise, 10, **tolerances).warm_d2 for noise in noises]
        rows.append(
            [
                name,
                f"{first:g} {second:g}",
                found[0],
                found[-1],
                spearman(noises, found),
                "yes" if all(np.diff(found) > 0) else "no",
            ]
        )
        curves += [
            {"x": noise, "y": y, "line": f"{first:g}, {second:g}", "panel": name}
            for noise, y in zip(noises, found, strict=True)
        ]
    heads = {
        "table": "",
        "kappa1 kappa2": "",
        "d2 without noise": ".2f",
        "d2 at noise 2": ".2f",
        "rank correlation with noise": ".2f",
        "rises throughout": "",
    }
    notes = [
        "d2 from a warm start (the masked file is clustered from the original's centres), so that restart luck is out of it.",
        "kappa1 = kappa2 is meaningful: d2 is 0 without noise, as a distance must be, and rises with noise throughout. With kappa1 < kappa2 it "
        "starts at what the two tolerances make of the same file, and where these differ much (0 and 0.5) that covers the noise: d2 no longer "
        "rises with it. The paper's doubt came from its sign error and from starts in different optima.",
        "Choose kappa1 = kappa2 = 0, plain fuzzy c-means, unless the data themselves have errors; then kappa is the size of these errors in "
        "standard deviations, the same for both files.",
    ]
    return Sheet(
        "Is kappa1 = kappa2 meaningful, and which kappa (Torra, Endo, Miyamoto 2009)",
        heads,
        rows,
        notes,
        {"d2 over noise": plot(curves, "noise (10 p)", "d2, warm", zero=True)},
    )


def generic_and_specific(size: Size) -> Sheet:
    """Torra, Endo, Miyamoto 2009: generic against cluster-specific information loss over all methods."""
    rows, points, ranks = [], [], []
    for name in ("census",):
        people = table(name)
        columns, found = list(people), []
        for method, how, asked in methods(people, size):
            released = masked(people, asked)
            generic = dpmask.utility.probabilistic_information_loss(people, released, columns=columns).value
            moved = dpmask.utility.il1s(people, released, columns=columns).value
            specific = dpmask.utility.cluster_distance(
                people, released, columns=columns, clusters=10, fuzziness=1.5, starts=5
            ).value
            found.append((generic, moved, specific))
            rows.append([name, method, how, generic, moved, specific])
            points.append({"x": moved, "y": specific, "line": method, "panel": name})
        pil, il, d2 = zip(*found, strict=True)
        ranks.append(f"{name}: PIL {spearman(pil, d2):.2f}, IL1s {spearman(il, d2):.2f}")
    heads = {"table": "", "method": "", "parameter": "", "PIL": ".1f", "IL1s": ".3f", "d2 a record": ".3f"}
    notes = [
        f"Rank correlation of the cluster-specific d2 with the generic losses. {'; '.join(ranks)}.",
        "IL1s, how far values moved, ranks the methods about as the clusters do. PIL does not: it compares moments and quantiles, which ipso C "
        "keeps while it loses the clusters most, and which noise changes while clusters stay. If clusters are what the recipient wants, "
        "measure them, or judge by IL1s.",
    ]
    return Sheet(
        "Generic and cluster-specific information loss over all methods (Torra, Endo, Miyamoto 2009)",
        heads,
        rows,
        notes,
        {"d2 against IL1s": plot(points, "IL1s", "d2 a record", mark="point", zero=True)},
    )


def degenerate_designs(size: Size) -> Sheet:
    """Cano and Torra 2009: fuzzy c-regression with degenerate designs, and c by score."""
    people, rows, curves = census(), [], []
    sides = scenario(people, "S2")
    without = {**sides, "independents": [name for name in sides["independents"] if name != people.columns[4]]}
    for clusters, (design, both) in product(
        size.of([2, 3, 5, 8, 12, 16], [2]), (("v5 = v8 + v10 among them", sides), ("without v5", without))
    ):
        for least in (1, None):
            asked = dpmask.RegressionSynthesis(clusters=clusters, minimum_size=least, **both)
            fitted = asked.fit(people, seed=1)
            found = score(people, fitted.mask(people), both["dependents"])
            kind = "any size" if least else "large models only"
            rows.append([clusters, design, kind, found.loss, found.risk, found.score, found.linked])
            curves += [
                {"x": clusters, "y": y, "line": f"{kind}, {design}", "panel": panel}
                for panel, y in (("score", found.score), ("linked by the strongest intruder, %", found.linked))
            ]
    heads = {"c": "d", "independents": "", "models": "", "PIL": ".1f", "DR": ".1f", "score": ".1f", "linked": ".1f"}
    notes = [
        "Scenario S2. A singular design is no obstacle: directions without spread are cut off, and both designs say the same, but for starts.",
        "The score cannot choose c: PIL falls by what DR rises, and it stays between 36 and 39. Linkage can: it is 61 % with two models and "
        "rises from there. Where small models are dissolved (the default: each needs several records for each coefficient), PIL "
        "stops falling at about five models and rises again.",
        "So: take the fewest models with which the loss is bearable, add residual_noise, and judge residual_linkage.",
    ]
    return Sheet(
        "Fuzzy c-regression with degenerate designs, and c by score (Cano and Torra 2009)",
        heads,
        rows,
        notes,
        {"over c": plot(curves, "c", "per cent")},
    )


def guides(size: Size) -> Sheet:
    """Fung et al. 2009: which guide and which number of clusters when the recipient's algorithm is unknown."""
    recipients = list(product(ALGORITHMS, size.of((2, 6, 10), (2, 6))))
    rows, curves = [], []
    for algorithm, clusters in [*product(ALGORITHMS, size.of((2, 6, 10), (2, 6))), ("distortion", 0)]:
        found = []
        for h, seed, (other, number) in product(size.of((5, 50), (20,)), size.of((1, 2, 3), (1,)), recipients):
            found.append(_agreement(algorithm, clusters, h, seed, other, number))
        rows.append([algorithm, clusters or None, float(np.mean(found)), float(np.quantile(found, 0.1))])
        curves.append({"x": f"{algorithm.split()[0]} {clusters or ''}", "y": rows[-1][2], "line": algorithm})
    heads = {"guide": "", "clusters of the guide": "d", "mean F": ".3f", "F of the worst tenth": ".3f"}
    best = max(rows, key=lambda row: row[2])
    notes = [
        f"CRX, the nine columns that say most about six clusters; F is the mean over recipients who cluster by {' or '.join(ALGORITHMS)} into "
        f"{', '.join(str(number) for number in dict.fromkeys(number for _, number in recipients))} clusters, over thresholds and seeds.",
        f"Best on average: {best[0]} with {best[1] or 'no'} clusters. Every guide by clusters keeps far more than distortion does, whichever "
        "algorithm and number the recipient takes; six clusters are better than two, ten no better than six. k-means is a little ahead on "
        "average, bisecting k-means in the worst tenth. So without knowledge of the recipient: a guide of about six clusters, by either.",
    ]
    return Sheet(
        "Which guide when the recipient's algorithm is unknown (Fung et al. 2009)",
        heads,
        rows,
        notes,
        {"mean F": plot(curves, "guide", "mean F", mark="bar")},
    )


def _agreement(algorithm: str, clusters: int, h: int, seed: int, recipient: str, number: int) -> float:
    """F of the recipient's clusters of the masked table with those that the recipient would find in the raw one."""
    top9 = ranked(crx, "bisecting k-means", 6, 1)[:9]
    labels = natural(crx, algorithm, clusters, seed) if clusters else None
    return f_measure(contingency(crx, [requirement(top9, h)], labels, recipient, recipient, number, seed))


EXHIBITS = {
    "fuzziness": fuzziness,
    "tolerance": tolerance,
    "generic-specific": generic_and_specific,
    "designs": degenerate_designs,
    "guides": guides,
}
