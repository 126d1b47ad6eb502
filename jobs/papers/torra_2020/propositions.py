"""Propositions 2, 3, 7 and 8 of Torra (2020) as curves, on the CASC census data."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sheets import Sheet, Size, census, plot
from torra_2020.printed import corrected

import dpmask
from dpmask.kernels.fuzzy.center_sums import memberships

CLUSTERS = 10


class Collapse(NamedTuple):
    """How far memberships are from 1/c and centres from the mean, in sd, the largest of each; and the objective."""

    memberships: float
    centers: float
    objective: float


def collapse(people: Any, **sharpness: float) -> Collapse:
    """Ten clusters of the census."""
    fitted = dpmask.FuzzyCMeans(clusters=CLUSTERS, starts=5, **sharpness).fit(people, seed=1)
    centers = (fitted.centers - people.mean().to_numpy()) / people.std(ddof=0).to_numpy()
    shares = fitted.memberships(people).to_numpy()
    return Collapse(float(abs(shares - 1 / CLUSTERS).max()), float(abs(centers).max()), fitted.objective)


LINES = ("memberships from 1/c", "centres from the mean, sd")


def _curves(points: dict[float, Any], x: str, log: str = "x") -> dict[str, Any]:
    rows = [
        {"x": at, "y": y, "line": line}
        for at, found in points.items()
        for line, y in zip(LINES, found[:2], strict=True)
    ]
    return {"largest distances": plot(rows, x, "largest distance", log=log)}


def proposition_2(size: Size) -> Sheet:
    """For large m all memberships are 1/c and all centres the mean."""
    people = census()
    points = {m: collapse(people, fuzziness=m) for m in size.of([1.1, 1.3, 1.5, 2, 2.5, 3, 4, 5, 7, 10, 15], [1.5, 5])}
    at_mean = {m: CLUSTERS ** (1 - m) * people.size for m in points}
    rows = [[m, found.memberships, found.centers, found.objective / at_mean[m]] for m, found in points.items()]
    return Sheet(
        "Torra 2020, Proposition 2: fuzzy c-means, census, c = 10, as m grows",
        {"m": "g", **dict.fromkeys(LINES, ".3f"), "J / J of all centres at the mean": ".3f"},
        rows,
        [
            "Memberships tend to 1/c as the paper says. Centres need not tend to the mean: u_ik^m tends to c^-m G_k / d_ik, "
            "G_k the geometric mean of d_1k..d_ck, and not to a constant. All centres at the mean are one fixed point, but "
            "not the lowest: last column.",
        ],
        _curves(points, "m"),
    )


def proposition_3(size: Size) -> Sheet:
    """For small lambda all memberships of EFCM are 1/c and all centres the mean."""
    people = census()
    critical = 1 / (2 * np.linalg.eigvalsh(people.corr()).max())
    shares = size.of([0.1, 0.5, 0.9, 1.1, 1.5, 2, 3, 5, 10, 30, 100], [0.5, 10])
    points = {share: collapse(people, entropy=share * critical) for share in shares}
    return Sheet(
        "Torra 2020, Proposition 3: EFCM, census, c = 10, as lambda falls",
        {"lambda / lambda_c": "g", **dict.fromkeys(LINES, ".1e")},
        [[share, *found[:2]] for share, found in points.items()],
        [
            f"lambda_c = 1/(2 largest eigenvalue of the correlations) = {critical:.4f}: not only in the limit, but for every "
            "lambda below it there is one centre, the mean. The paper names the limit only.",
        ],
        _curves(points, "lambda / lambda_c"),
    )


def proposition_7(size: Size) -> Sheet:
    """Data that keep the constraint need no projection: constrained and free EFCM agree; with noise they part."""
    exact = pd.DataFrame(corrected().T, columns=["v1", "v2", "v3"])
    options = {"clusters": 4, "entropy": 0.01, "standardise": False, "starts": 10}
    rng, points = np.random.default_rng(1), {}
    draws = rng.standard_normal(exact.shape)
    for noise in size.of([0.0, 0.25, 0.5, 1.0, 1.5, 3.0], [0.0, 1.5]):
        table = exact + noise * draws
        both = [
            dpmask.FuzzyCMeans(**options, constraints=rules).fit(table, seed=1).centers
            for rules in ((), ("1.16 v1 + 1.07 v2 = v3",))
        ]
        apart = np.linalg.norm(both[0][:, None] - both[1][None], axis=2).min(axis=1).max()
        points[noise] = [float(apart), *(float(abs(v @ [1.16, 1.07, -1.0]).max()) for v in both)]
    parts = ("centres apart", "constraint broken, free", "constraint broken, constrained")
    rows = [
        {"x": at, "y": value, "line": line}
        for at, found in points.items()
        for line, value in zip(parts, found, strict=True)
    ]
    return Sheet(
        "Torra 2020, Proposition 7: EFCM with and without 1.16 v1 + 1.07 v2 = v3, the paper's 12 records",
        {"noise": "g", **dict.fromkeys(parts, ".1e")},
        [[at, *found] for at, found in points.items()],
        ["Without noise both are the same to rounding; with noise only the constrained centres keep the constraint."],
        {"distances": plot(rows, "noise", "distance, raw units", zero=True)},
    )


def masked_loss(people: Any, **options: Any) -> Any:
    """The figures of fuzzy microaggregation: mean squared error of a standardised variable, sizes of groups."""
    method = dpmask.FuzzyMicroaggregation(columns=tuple(people.columns), **options)
    return method.fit(people, seed=1).figures


SWEEPS: dict[str, tuple[str, list[float], dict[str, Any]]] = {
    "m1 (m2 = 1.05, k = 10)": ("fuzziness", [1.05, 1.1, 1.2, 1.3, 1.5, 2.0], {"k": 10, "draw_fuzziness": 1.05}),
    "m2 (m1 = 1.1, k = 10)": ("draw_fuzziness", [1.01, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0], {"k": 10, "fuzziness": 1.1}),
    "c (m1 = 1.1, m2 = 1.05)": (
        "clusters",
        [1, 2, 5, 20, 54, 108, 216, 360],
        {"fuzziness": 1.1, "draw_fuzziness": 1.05},
    ),
}


def expected_sizes(people: Any, draw_fuzziness: float) -> tuple[float, float]:
    """The least and the largest expected group of 108 clusters, m1 = 1.1, by the draws' fuzziness."""
    z = (people - people.mean()) / people.std(ddof=0)
    fitted = dpmask.FuzzyCMeans(clusters=len(people) // 10, fuzziness=1.1, starts=1).fit(z, seed=1)
    sizes = memberships(np.ascontiguousarray(z.to_numpy().T), fitted.centers, fuzziness=draw_fuzziness).sum(axis=1)
    return float(sizes.min()), float(sizes.max())


def proposition_8(size: Size) -> Sheet:
    """Loss over m1, m2 and c; expected and realised sizes for large m2."""
    people, table, curves = census(), [], []
    for panel, (name, values, fixed) in SWEEPS.items():
        for value in size.of(values, values[1::4]):
            found = masked_loss(people, **fixed, **{name: value})
            sizes = expected_sizes(people, value) if name == "draw_fuzziness" else (None, None)
            table.append([panel, value, found.loss, found.smallest, *sizes])
            curves.append({"x": value, "y": found.loss, "panel": f"loss over {panel}"})
    return Sheet(
        "Torra 2020, Proposition 8: information loss of fuzzy microaggregation, census, all 13 columns in one group",
        {
            "parameter": "",
            "value": "g",
            "loss": ".4f",
            "smallest group": "d",
            "least expected": ".2f",
            "largest expected": ".2f",
        },
        table,
        [
            "loss: mean squared error of a standardised variable; 1 is as bad as the mean for everybody.",
            "Loss rises with m1 and m2 and falls with c, as the paper says; below m1 = 1.3 and m2 = 1.1 differences are "
            "those of starts and draws. Above m2 = 2 records take centres at random: worse than the mean for everybody.",
            "Expected sizes (here with k = 10) come near k as m2 grows, which is the paper's probabilistic k-anonymity. "
            "Realised groups are draws: the smallest has one record, unless minimum_size is asked for.",
        ],
        {"loss": plot(curves, "parameter", "loss", zero=True)},
    )
