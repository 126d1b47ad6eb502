"""How well refinement keeps clusters: what the figures of Fung et al. (2009) are drawn from, on Adult and CRX."""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from sheets import reference

import dpmask
from dpmask.kernels.partitions import f_measure, match_point

ALGORITHMS = {"basic k-means": dpmask.KMeans, "bisecting k-means": dpmask.BisectingKMeans}
TOP9 = [
    "education-num",
    "native-country",
    "marital-status",
    "occupation",
    "education",
    "relationship",
    "age",
    "race",
    "sex",
]
"""Adult's, as the paper prints them for k-means with six clusters, the highest rank first."""


class Data(NamedTuple):
    """A table, all of whose columns are clustered, and what refinement needs to know of them."""

    table: Any
    taxonomies: dict[str, str]
    domains: dict[str, list[float]]
    ranked: list[str] | None

    @property
    def columns(self) -> list[str]:
        """All columns."""
        return list(self.table)


class Quality(NamedTuple):
    """F-measure and match point of the clusters before and after."""

    f: float
    match: float


def _domains(table: Any) -> dict[str, list[float]]:
    numbers = table.select_dtypes("number")
    return {name: [float(numbers[name].min()), float(numbers[name].max()) + 1] for name in numbers}


@cache
def adult() -> Data:
    """The 45,222 complete records, 14 attributes."""
    frame = pd.read_parquet(reference("adult.parquet")).drop(columns="class")
    frame = frame[(frame.astype(str) != "?").all(axis=1)].reset_index(drop=True)
    frame = frame.astype({name: str for name in frame if frame[name].dtype == "category"})
    trees = {path.stem: str(path) for path in reference("taxonomies/adult").glob("*.json")}
    return Data(frame, trees, _domains(frame), TOP9)


@cache
def crx() -> Data:
    """The 653 complete records, 15 attributes; categories are suppressed, not generalised."""
    frame = pd.read_csv(reference("crx.csv"), dtype=str).drop(columns="class")
    frame = frame[(frame != "?").all(axis=1)].reset_index(drop=True)
    frame = frame.astype(dict.fromkeys(["A2", "A3", "A8", "A11", "A14", "A15"], float))
    return Data(frame, {}, _domains(frame), None)


@cache
def natural(data: Any, algorithm: str, clusters: int, seed: int) -> Any:
    """The labels of the raw table (step 1)."""
    source = data()
    fitted = ALGORITHMS[algorithm](clusters=clusters).fit(source.table, columns=source.columns, seed=seed)
    return fitted.labels(source.table).to_numpy()


def ranked(data: Any, algorithm: str, clusters: int, seed: int) -> list[str]:
    """The columns by how much they say about the clusters, most first: the paper's order, or the mutual information."""
    source = data()
    if source.ranked:
        return source.ranked
    labels, gains = natural(data, algorithm, clusters, seed), {}
    for name in source.columns:
        values = source.table[name]
        if values.dtype.kind == "f":
            values = pd.qcut(values, 10, duplicates="drop").astype(str)
        joint = pd.crosstab(values, labels, normalize=True).to_numpy()
        apart = joint.sum(axis=1)[:, None] * joint.sum(axis=0)[None]
        gains[name] = float((joint[joint > 0] * np.log2(joint[joint > 0] / apart[joint > 0])).sum())
    return sorted(gains, key=lambda name: -gains[name])


def requirement(columns: Sequence[str], h: int) -> tuple[tuple[str, ...], int]:
    """One QID and its threshold, hashable."""
    return tuple(columns), h


def labelled(data: Any, guide: Any) -> Any:
    """The table with its classes."""
    return data().table.assign(cluster=[f"C{label}" for label in guide])


def refined(data: Any, requirements: Sequence[Any], guide: Any, seed: int) -> Any:
    """The refinement fitted, guided by classes or by distortion (step 2)."""
    source = data()
    names = {name for columns, _ in requirements for name in columns}
    method = dpmask.TopDownRefinement(
        requirements=[(list(columns), h) for columns, h in requirements],
        taxonomies={name: tree for name, tree in source.taxonomies.items() if name in names},
        domains={name: ends for name, ends in source.domains.items() if name in names},
        guide="distortion" if guide is None else {"column": "cluster"},
        intervals="midpoint",
    )
    table = source.table if guide is None else labelled(data, guide)
    return method.fit(table, seed=seed), table


_REFINED: dict[Any, Any] = {}
_CLUSTERED: dict[Any, Any] = {}


def solution(data: Any, requirements: Sequence[Any], guide: Any, seed: int) -> Any:
    """The refinement at one threshold for all QIDs.

    One whose smallest group has A records is also that of every threshold from its own up to A: the same refinements
    stay valid and the same others do not. So it is searched for once.
    """
    columns, h = tuple(columns for columns, _ in requirements), requirements[0][1]
    known = _REFINED.setdefault((data, columns, None if guide is None else guide.tobytes()), [])
    for asked, fitted in known:
        if asked <= h <= fitted.figures.smallest:
            return fitted
    known.append((h, refined(data, requirements, guide, seed)[0]))
    return known[-1][1]


def contingency(
    data: Any, requirements: Sequence[Any], guide: Any, algorithm: str, recluster: str, clusters: int, seed: int
) -> np.ndarray:
    """Records by natural cluster and by cluster of the masked table (steps 3 and 4); ``guide`` has classes, or is None."""
    labels = natural(data, algorithm, clusters, seed)
    fitted = solution(data, requirements, guide, seed)
    known = (data, str(sorted(fitted.cuts.items())), recluster, clusters, seed)
    if known not in _CLUSTERED:  # the same cuts give the same masked table
        table = fitted.mask(data().table if guide is None else labelled(data, guide))[data().columns]
        again = ALGORITHMS[recluster](clusters=clusters).fit(table, columns=list(table), seed=seed)
        _CLUSTERED[known] = again.labels(table).to_numpy()
    counts = np.zeros((clusters, clusters), np.int64)
    np.add.at(counts, (labels, _CLUSTERED[known]), 1)
    return counts


def quality(
    data: Any,
    requirements: Sequence[Any],
    guided: bool,
    algorithm: str,
    clusters: int,
    seed: int,
    recluster: str | None = None,
) -> Quality:
    """What is left of the clusters."""
    guide = natural(data, algorithm, clusters, seed) if guided else None
    counts = contingency(data, requirements, guide, algorithm, recluster or algorithm, clusters, seed)
    return Quality(f_measure(counts), match_point(counts))


def raw_quality(data: Any, algorithm: str, recluster: str, clusters: int, seed: int) -> Quality:
    """The agreement of two clusterings of the raw table, without any masking."""
    counts = np.zeros((clusters, clusters), np.int64)
    np.add.at(counts, (natural(data, algorithm, clusters, seed), natural(data, recluster, clusters, seed)), 1)
    return Quality(f_measure(counts), match_point(counts))


def random_requirements(columns: Sequence[str], number: int) -> list[list[tuple[str, ...]]]:
    """So many sets of QIDs: U[3, 7] QIDs of U[2, 9] columns each, as in section 5.1.4.2."""
    rng, found = np.random.default_rng(7), []
    for _ in range(number):
        size, length = rng.integers(3, 8), rng.integers(2, 10)
        found.append(sorted({tuple(sorted(rng.choice(columns, length, replace=False))) for _ in range(size)}))
    return found


def mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean over seeds or cases, and its 95 % interval by Student's t; agreement is from 0 to 1."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, mean, mean
    half = float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return mean, max(mean - half, 0.0), min(mean + half, 1.0)


def one_tailed(greater: Sequence[float], less: Sequence[float]) -> float | None:
    """The p-value of a paired t-test that the first are greater, as the paper has it; none if all differences are equal."""
    if np.ptp(np.subtract(greater, less)) < 1e-12:
        return None
    return float(stats.ttest_rel(greater, less, alternative="greater").pvalue)
