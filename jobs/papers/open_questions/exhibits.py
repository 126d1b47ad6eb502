"""What the five papers left open, answered by experiments of our own."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from cano_torra_2009.exhibits import columns as scenario
from fung_2009.quality import ALGORITHMS, adult, contingency, crx, f_measure, natural, ranked, requirement
from gallery.exhibits import masked, methods, table
from open_questions.fuzziness import fuzziness
from score import score
from sheets import Sheet, Size, census, plot
from torra_2009.exhibits import compared

import dpmask

OTHER_UNITS = {"membership transform", "rotation"}
"""What they release is in other units, which d2 does not compare."""


def spearman(one: Any, two: Any) -> float:
    """The correlation of ranks."""
    return float(pd.Series(one).corr(pd.Series(two), method="spearman"))


def tolerance(size: Size) -> Sheet:
    """Torra, Endo, Miyamoto 2009: is kappa1 = kappa2 meaningful, and how to choose kappa."""
    noises, rows, curves = size.of([0.0, 0.2, 0.4, 0.6, 1.0, 1.4, 2.0], [0.0, 1.0]), [], []
    pairs = [(0.0, 0.0), (0.1, 0.1), (0.2, 0.2), (0.5, 0.5), (1.0, 1.0), (0.0, 0.1), (0.0, 0.5)]
    for name, (first, second) in product(size.of(("census", "tarragona"), ("census",)), size.of(pairs, pairs[:2])):
        people = table(name)
        tolerances = {"tolerance": first} if first else {}
        tolerances |= {"masked_tolerance": second} if second else {}
        found = [compared(people, noise, 10, **tolerances) for noise in noises]
        warm, cold = [one.warm_d2 for one in found], [one.d2 for one in found]
        rises = "yes" if all(np.diff(warm) > 0) else "no"
        rows.append([name, f"{first:g} {second:g}", warm[0], warm[-1], spearman(noises, warm), rises])
        rows[-1].append(spearman(noises, cold) if np.ptp(cold) else None)
        curves += [
            {"x": noise, "y": y, "line": f"{first:g}, {second:g}", "panel": name}
            for noise, y in zip(noises, warm, strict=True)
        ]
    heads = {
        "table": "",
        "kappa1 kappa2": "",
        "d2 without noise": ".2f",
        f"d2 at noise {noises[-1]:g}": ".2f",
        "rank correlation with noise": ".2f",
        "rises throughout": "",
        "the same, cold": ".2f",
    }
    notes = [
        f"Ten clusters, m = 1.5, noise 10 p = {', '.join(f'{noise:g}' for noise in noises)}. d2 is from a warm start: the masked file is clustered from the original's centres, so that "
        "chance of the starts does not count; 'cold' is the rank correlation where both files are clustered anew, each the best of 20 starts.",
        "kappa1 = kappa2 is meaningful: d2 is 0 without noise, as a distance must be, and rises with noise at every step up to kappa = 0.5; with kappa = 1, a whole standard deviation, at all steps but one. "
        "With kappa1 < kappa2 it starts at what the two tolerances make of the same file, and follows the noise less (0 and 0.1: rank correlation 0.96 and 0.43) or not at all (0 and 0.5: "
        "it falls with it). The paper's doubt came from its sign error and from starts in different optima.",
        "Choose kappa1 = kappa2 = 0, plain fuzzy c-means, unless the data themselves have errors; then kappa is the size of these errors in "
        "standard deviations, the same for both files. No kappa above 0 ranks the noise better than 0 does.",
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
    for name in size.of(("census", "tarragona", "eia"), ("census",)):
        people = table(name)
        found = {}
        for method, how, asked in methods(people, size):
            released = masked(people, asked)
            comparable = method not in OTHER_UNITS and released.nunique().min() > 1
            found[method, how] = _losses(people, released, with_distance=comparable)
        for method in dict.fromkeys(method for method, _ in found):
            own = np.array([losses for (other, _), losses in found.items() if other == method], float)
            rows.append([name, method, len(own), *(_range(values) for values in own.T)])
        points += [
            {"x": moved, "y": 1 - agreed, "line": method, "panel": name}
            for (method, _), (_, moved, _, agreed) in found.items()
        ]
        every = np.array(list(found.values()), float)
        pil, il, d2, agreed = every[~np.isnan(every).any(axis=1)].T
        ranks.append(
            f"{name}: d2 with PIL {spearman(pil, d2):.2f}, with IL1s {spearman(il, d2):.2f}; "
            f"1 - F with PIL {spearman(pil, -agreed):.2f}, with IL1s {spearman(il, -agreed):.2f}"
        )
    heads = {"table": "", "method": "", "lines": "d", "PIL": "", "IL1s": "", "d2 a record": "", "F of k-means": ""}
    notes = [
        "Every method at all its parameters of the gallery; from the least to the largest value over these. PIL and IL1s are generic losses; "
        "d2 (fuzzy c-means, 10 clusters, m = 1.5) and F (bisecting k-means, 6 clusters) say what clusters lost. Rotation and membership transforms release other units, which d2 does not compare, and some refinements leave a column with one value, "
        "which has no standard deviation.",
        f"Rank correlation over all lines that have a d2. {'; '.join(ranks)}.",
        "IL1s, how far values moved, ranks the methods about as the clusters do (0.89 to 0.95). PIL does so less (0.55 to 0.72): it compares moments and "
        "quantiles, which ipso C keeps (PIL 14 to 17) while it loses clusters, and which noise changes while clusters stay. Rotation "
        "shows that neither is enough: by both all is lost, but the clusters of tarragona and eia stay (F 0.90 and 0.89; census 0.40). If clusters are what the recipient wants, "
        "measure them (cluster_distance, partition_agreement); without such a measure judge by IL1s.",
    ]
    return Sheet(
        "Generic and cluster-specific information loss over all methods (Torra, Endo, Miyamoto 2009)",
        heads,
        rows,
        notes,
        {"clusters lost against IL1s": plot(points, "IL1s", "1 - F", mark="point", log="x")},
    )


def _losses(people: Any, released: Any, *, with_distance: bool) -> tuple[float, float, float, float]:
    """PIL, IL1s, d2 a record, if it can be had, and F of the clusters before and after."""
    columns, options = list(people), {"columns": list(people)}
    generic = dpmask.utility.probabilistic_information_loss(people, released, **options).value
    moved = dpmask.utility.il1s(people, released, **options).value
    agreed = dpmask.utility.partition_agreement(people, released, columns=columns, clusters=6, repeats=1).value
    if not with_distance:
        return generic, moved, float("nan"), agreed
    specific = dpmask.utility.cluster_distance(people, released, **options, clusters=10, fuzziness=1.5, starts=5).value
    return generic, moved, specific, agreed


def _range(values: Any) -> str | None:
    if np.isnan(values).all():
        return None
    low, high = (f"{value:.3g}" for value in (np.nanmin(values), np.nanmax(values)))
    return low if low == high else f"{low} to {high}"


def degenerate_designs(size: Size) -> Sheet:
    """Cano and Torra 2009: fuzzy c-regression with degenerate designs, and c by score."""
    people, rows, curves = census(), [], []
    sides, seeds = scenario(people, "S2"), size.of((1, 2, 3, 4, 5), (1,))
    without = {**sides, "independents": [name for name in sides["independents"] if name != people.columns[4]]}
    for clusters, (design, both) in product(
        size.of([2, 3, 5, 8, 12, 16], [2]), (("v5 = v8 + v10 among them", sides), ("without v5", without))
    ):
        for least in (1, None):
            asked = dpmask.RegressionSynthesis(clusters=clusters, minimum_size=least, **both)
            found = [score(people, asked.fit(people, seed=seed).mask(people), both["dependents"]) for seed in seeds]
            kind = "any size" if least else "large models only"
            means = [
                float(np.mean([getattr(one, part) for one in found])) for part in ("loss", "risk", "score", "linked")
            ]
            scores = [one.score for one in found]
            rows.append([clusters, design, kind, *means[:3], f"{min(scores):.1f} to {max(scores):.1f}", means[3]])
            curves += [
                {"x": clusters, "y": y, "line": f"{kind}, {design}", "panel": panel}
                for panel, y in (("score", means[2]), ("linked by the strongest intruder, %", means[3]))
            ]
    heads = {"c": "d", "independents": "", "models": "", "PIL": ".1f", "DR": ".1f", "score": ".1f"}
    free = [row for row in rows if row[2] == "any size"]
    low, high = min(row[5] for row in free), max(row[5] for row in free)
    differ = [abs(one[5] - two[5]) for one in free for two in free if one[0] == two[0]]
    notes = [
        f"Scenario S2; means over {len(seeds)} seeds, and the scores of all of these. A singular design is no obstacle: directions without spread are cut off, and with models of any size both designs have scores that "
        f"differ by at most {max(differ):.1f}.",
        f"The score cannot choose c: PIL falls by about what DR rises, and with models of any size the score stays between {low:.1f} and {high:.1f}. Linkage can: it is {free[0][7]:.0f} % with {free[0][0]} models, "
        f"{free[-1][7]:.0f} % with {free[-1][0]}. Where small models are dissolved (the default: each needs several records for each coefficient), more models than a few bring no further loss down.",
        "So: take the fewest models with which the loss is bearable, add residual_noise, and judge residual_linkage.",
    ]
    return Sheet(
        "Fuzzy c-regression with degenerate designs, and c by score (Cano and Torra 2009)",
        {**heads, "of the seeds": "", "linked": ".1f"},
        rows,
        notes,
        {"over c": plot(curves, "c", "per cent")},
    )


def guides(size: Size) -> Sheet:
    """Fung et al. 2009: which guide and which number of clusters when the recipient's algorithm is unknown."""
    rows, curves, findings = [], [], []
    for name, data, numbers, thresholds, seeds in size.of(
        [
            ("CRX", crx, (2, 4, 6, 8, 10), (5, 20, 50, 100), (1, 2, 3, 4, 5)),
            ("Adult", adult, (2, 6, 10), (20, 100), (1, 2)),
        ],
        [("CRX", crx, (2, 6), (20,), (1,))],
    ):
        recipients = list(product(ALGORITHMS, numbers))
        for algorithm, clusters in [*recipients, ("distortion", 0)]:
            found = [
                _agreement(data, algorithm, clusters, h, seed, other, number)
                for h, seed, (other, number) in product(thresholds, seeds, recipients)
            ]
            rows.append([name, algorithm, clusters or None, float(np.mean(found)), float(np.quantile(found, 0.1))])
            short = f"{algorithm.split()[0]} {clusters or ''}".strip()
            curves.append({"x": short, "y": rows[-1][3], "line": algorithm, "panel": name})
        findings.append(
            f"{name}: recipients cluster by either algorithm into {', '.join(map(str, numbers))} clusters, h = {', '.join(map(str, thresholds))}, {len(seeds)} seeds"
        )
    heads = {"table": "", "guide": "", "clusters of the guide": "d", "mean F": ".3f", "F of the worst tenth": ".3f"}
    notes = [
        f"{'; '.join(findings)}. F is the mean over all of these. The QID has nine columns: the paper's of Adult, those of CRX that say most about six clusters.",
        *(_best([row for row in rows if row[0] == name]) for name in dict.fromkeys(row[0] for row in rows)),
        "Every guide by clusters keeps more than distortion does, in the mean over recipients and in the worst tenth. So without knowledge of the recipient: "
        "a guide of about six clusters, by either algorithm. Two keep less on CRX, ten on Adult.",
    ]
    return Sheet(
        "Which guide when the recipient's algorithm is unknown (Fung et al. 2009)",
        heads,
        rows,
        notes,
        {"mean F": plot(curves, "guide", "mean F", mark="bar")},
    )


def _best(rows: list[list[Any]]) -> str:
    """The guide with most on average, that of the best worst tenth, and distortion, of one table."""
    mean, tenth = (max(rows, key=lambda row, place=place: row[place]) for place in (3, 4))
    return (
        f"{rows[0][0]}: best on average is {mean[1]} with {mean[2] or 'no'} clusters (F {mean[3]:.3f}), best in the worst tenth "
        f"{tenth[1]} with {tenth[2] or 'no'} (F {tenth[4]:.3f}); distortion has {rows[-1][3]:.3f} and {rows[-1][4]:.3f}."
    )


def _agreement(data: Any, algorithm: str, clusters: int, h: int, seed: int, recipient: str, number: int) -> float:
    """F of the recipient's clusters of the masked table with those that the recipient would find in the raw one."""
    top9 = ranked(data, "bisecting k-means", 6, 1)[:9]
    labels = natural(data, algorithm, clusters, seed) if clusters else None
    return f_measure(contingency(data, [requirement(top9, h)], labels, recipient, recipient, number, seed))


EXHIBITS = {
    "fuzziness": fuzziness,
    "tolerance": tolerance,
    "generic-specific": generic_and_specific,
    "designs": degenerate_designs,
    "guides": guides,
}
