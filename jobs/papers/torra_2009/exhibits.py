"""Tables 1, 2 and 3 of Torra, Endo and Miyamoto (2009), on the CASC census data, m = 1.5."""

from typing import Any, NamedTuple

import numpy as np
from sheets import Sheet, Size, census, plot
from torra_2009.printed import NOISE, TABLE_1, TABLE_2, TABLE_3

import dpmask

STARTS = 20
FUZZINESS = 1.5
COLD = [
    "Noise is 10 p: each column gets N(0, p s). d1 is not squared, as in the paper's numbers (its formula squares it).",
    "cold (d1, d2): the masked file is clustered afresh, the best of 20 starts, as in the paper; warm: from the original's centres. "
    "Starts here are k-means++, which find lower optima than the paper's random ones. Where two files rest in different optima, d1 and d2 "
    "compare these and not the noise: most of the paper's jumps, and here those of lines where cold and warm differ.",
]


class Compared(NamedTuple):
    """Distances and objectives of the clusterings of two files."""

    d1: float
    d2: float
    warm_d1: float
    warm_d2: float
    original: float
    objective: float


def compared(people: Any, noise: float, clusters: int, **tolerances: float) -> Compared:
    """The clusters of the census and of the census with noise, of which each column gets N(0, noise/10 s)."""
    masked = noisy(people, noise)
    options = {"columns": list(people), "clusters": clusters, "fuzziness": FUZZINESS, "starts": STARTS, **tolerances}
    found = dpmask.utility.cluster_distance(people, masked, **options)
    parts = [found.parts[f"{name}_{start}_eager"] for start in ("cold", "warm") for name in ("d1", "d2")]
    objectives = [history[-1][0] for history in found.histories.values()]
    return Compared(*parts, objectives[0], objectives[1])


def with_sign_error(people: Any, kappa: float) -> float:
    """The objective of a program that moves records away from the centres: e = +kappa s/|s|, s = sum_i (x - v_i)."""
    z = ((people - people.mean()) / people.std(ddof=0)).to_numpy()
    fitted = dpmask.FuzzyCMeans(clusters=10, fuzziness=FUZZINESS, starts=STARTS).fit(people, seed=1)
    centers = (fitted.centers - people.mean().to_numpy()) / people.std(ddof=0).to_numpy()
    objective, before, moved = np.inf, np.inf, z
    for _ in range(1000):
        d = np.maximum(((moved[:, None] - centers[None]) ** 2).sum(axis=2), 1e-300)
        ratio = (d.min(axis=1)[:, None] / d) ** (1 / (FUZZINESS - 1))
        weights = (ratio / ratio.sum(axis=1)[:, None]) ** FUZZINESS
        before, objective = objective, float((weights * d).sum())
        away = (z[:, None] - centers[None]).sum(axis=1)
        moved = z + kappa * away / np.linalg.norm(away, axis=1)[:, None]
        centers = (weights.T @ moved) / weights.sum(axis=0)[:, None]
        if abs(before - objective) < 1e-6:
            break
    return objective


def table_1(size: Size) -> Sheet:
    """Fuzzy c-means with tolerance, 13 columns, 10 clusters."""
    people, rows, curves = census(), [], []
    for (first, second), printed in TABLE_1.items():
        for noise, theirs in zip(NOISE, printed, strict=True):
            if noise not in size.of(NOISE, [0.0, 0.2]):
                continue
            tolerances = {"tolerance": first} if first else {}
            found = compared(people, noise, 10, **tolerances, masked_tolerance=second)
            wrong = with_sign_error(noisy(people, noise), second)
            rows.append(
                [
                    f"{first} {second}",
                    noise,
                    found.d1,
                    theirs[0],
                    found.d2,
                    theirs[1],
                    found.warm_d2,
                    found.objective,
                    wrong,
                    theirs[2],
                ]
            )
            curves += [
                {"x": noise, "y": y, "line": line, "panel": f"kappa1 {first}, kappa2 {second}"}
                for line, y in (("d2 warm", found.warm_d2), ("d2 cold", found.d2), ("d2 printed", theirs[1]))
            ]
    heads = {
        "kappa1 kappa2": "",
        "noise": ".1f",
        "d1": ".2f",
        "d1 printed": ".1f",
        "d2": ".2f",
        "d2 printed": ".1f",
        "d2 warm": ".2f",
        "O.F.": ".1f",
        "O.F. with the sign error": ".1f",
        "O.F. printed": ".0f",
    }
    notes = [
        *COLD,
        "The printed objectives come from a sign error: records are moved away from the centres, e = +kappa s/|s| with s = "
        "sum_i (x - v_i). With that error they come out (next to last column, best optimum only); with the tolerance as "
        "it is defined the objective is smaller than without, as it must be. d1 and d2 differ for the same reason.",
        "Step 4 of the paper's algorithm computes centres from x instead of x + e: a misprint.",
    ]
    return Sheet(
        "Torra, Endo, Miyamoto 2009, Table 1: fuzzy c-means with tolerance",
        heads,
        rows,
        notes,
        {"d2 over noise": plot(curves, "noise (10 p)", "d2", zero=True)},
    )


def noisy(people: Any, noise: float) -> Any:
    """The census with noise, as it is compared."""
    if not noise:
        return people
    return dpmask.NoiseAddition(columns=list(people), scale=noise / 10).fit(people, seed=3).mask(people)


def _plain(
    title: str, people: Any, printed: dict[str, Any], clusters: dict[str, int], size: Size, notes: list[str]
) -> Sheet:
    rows, curves = [], []
    for name, lines in printed.items():
        for noise, theirs in zip(NOISE, lines, strict=True):
            if noise not in size.of(NOISE, [0.0, 0.2]):
                continue
            found = compared(people, noise, clusters[name])
            rows.append(
                [
                    name,
                    noise,
                    found.d1,
                    theirs[0],
                    found.d2,
                    theirs[1],
                    found.warm_d1,
                    found.warm_d2,
                    found.objective,
                    theirs[2],
                ]
            )
            curves += [
                {"x": noise, "y": y, "line": line, "panel": name}
                for line, y in (("d2 warm", found.warm_d2), ("d2 cold", found.d2), ("d2 printed", theirs[1]))
            ]
    heads = {
        "": "",
        "noise": ".1f",
        "d1": ".3f",
        "d1 printed": ".2f",
        "d2": ".2f",
        "d2 printed": ".2f",
        "d1 warm": ".3f",
        "d2 warm": ".2f",
        "O.F.": ".2f",
        "O.F. printed": ".2f",
    }
    return Sheet(title, heads, rows, notes, {"d2 over noise": plot(curves, "noise (10 p)", "d2", zero=True)})


def table_2(size: Size) -> Sheet:
    """Fuzzy c-means, 13 columns, 10 clusters, two executions."""
    notes = [
        *COLD,
        "The original's objective is 2826.30 here; the paper's two executions rested at 2851 and 2829, two local minima "
        "(2851.50 and 2829.63), so its d2 is near 40 and 91 already without noise. Where both files rested in the same one (noise 0.4, first "
        "execution) d1 and d2 come out: 0.31 and 0.88 for 0.32 and 0.92, another draw of the noise.",
    ]
    title = "Torra, Endo, Miyamoto 2009, Table 2: fuzzy c-means, 13 variables, 10 clusters"
    return _plain(title, census(), TABLE_2, dict.fromkeys(TABLE_2, 10), size, notes)


def table_3(size: Size) -> Sheet:
    """Fuzzy c-means, 2 columns, 10 and 20 clusters."""
    notes = [
        *COLD,
        "With 20 clusters the original rests at 107.06 in the paper, at 106.82 here.",
    ]
    title = "Torra, Endo, Miyamoto 2009, Table 3: fuzzy c-means, the first two variables"
    clusters = {"10 clusters": 10, "20 clusters": 20}
    return _plain(title, census().iloc[:, :2], TABLE_3, clusters, size, notes)


EXHIBITS = {"table-1": table_1, "table-2": table_2, "table-3": table_3}
