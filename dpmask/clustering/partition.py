"""Crisp clusters of features, for tables of numbers and categories: k-means, and k-means that cuts in two.

A sample is clustered in one task first, from several k-means++ starts; where it is not all of the data, passes over all
of it go on from there (dpmask.clustering.iteration). Bisecting k-means cuts the cluster with the largest sum of squares
in two, again and again (Steinbach, Karypis and Kumar 2000); the sample decides which cluster that is, the centres
follow from all data. Memory per task: one block of features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from dpmask.clustering.base import Clustering, FittedClustering, require_records, sample_share
from dpmask.clustering.features import Features, find_features
from dpmask.clustering.iteration import ClusterModel, Records, Solution, descend, first_centers, solve, start_draws
from dpmask.clustering.scaling import joined
from dpmask.engine.collection import Collection
from dpmask.engine.draws import Subkey
from dpmask.kernels.arrays import Floats, Integers
from dpmask.kernels.fuzzy.center_sums import CenterSums, merge
from dpmask.kernels.fuzzy.labels import labels
from dpmask.lake.reading import Rows
from dpmask.table.table import Table

ALGORITHMS = ("bisecting_kmeans", "kmeans", "fuzzy_c_means")
"""By which a table of any columns can be partitioned; fuzzy clusters by their nearest centres."""
_STARTS, _PASSES, _SHIFT = 10, 300, 1e-6
_FUZZINESS = 1.2  # one-hot features are many, and centres of more fuzziness fall into one


class Cut(NamedTuple):
    """One cut of bisecting k-means: which cluster, and the centres of what stays and of what gets the next number."""

    cluster: int
    centers: Floats  # 2 x features


class Bisection(NamedTuple):
    """The cuts of bisecting k-means, in order, and what it took to find them."""

    cuts: tuple[Cut, ...] = ()
    passes: int = 0
    converged: bool = True

    def plus(self, cluster: int, solution: Solution) -> Bisection:
        """One more cut."""
        cuts = (*self.cuts, Cut(cluster, solution.centers))
        return Bisection(cuts, self.passes + solution.passes, self.converged and solution.converged)


@dataclass(frozen=True)
class Settings(Clustering):
    """What a search for clusters goes by; ``fuzziness`` 1 is crisp."""

    clusters: int
    starts: int
    max_passes: int
    shift: float
    fuzziness: float = 1.0

    @property
    def model(self) -> ClusterModel:
        """What a pass computes."""
        return ClusterModel(self.fuzziness, None, None, False, None)

    def solve(self, records: Records, draws: Floats) -> Solution:
        """The best of several starts on one block."""
        return solve(self.model, records, first_centers(self.model, records, draws), self.shift, self.max_passes)


@dataclass(frozen=True, repr=False)
class FittedPartition(FittedClustering):
    """A partition of records: centres in features, and how they were found."""

    method: Clustering
    features: Features
    solution: Solution
    cuts: tuple[Cut, ...]

    @property
    def centers(self) -> Floats:
        """Clusters x features."""
        return self.solution.centers

    @property
    def columns(self) -> tuple[str, ...]:
        """The clustered columns."""
        return self.features.columns

    @property
    def clusters(self) -> int:
        """How many clusters there are."""
        return len(self.centers)

    def of(self, rows: Rows) -> Integers:
        """The cluster of each record of a block."""
        return self.of_values(self.features.values(rows))

    def of_values(self, values: Floats) -> Integers:
        """The same from features x rows."""
        return cut_labels(values, self.cuts) if self.cuts else labels(values, self.centers)


class PreservedClusters(NamedTuple):
    """Clusters of a table that masking preserves, and the algorithm that finds as many in the masked table."""

    found: FittedPartition
    algorithm: str


def cut_labels(values: Floats, cuts: tuple[Cut, ...]) -> Integers:
    """The cluster of each record after these cuts."""
    found = np.zeros(values.shape[1], np.int64)
    for number, cut in enumerate(cuts, start=1):
        members = np.flatnonzero(found == cut.cluster)
        if len(members):
            second = labels(np.ascontiguousarray(values[:, members]), cut.centers)
            found[members[second == 1]] = number
    return found


class Search(NamedTuple):
    """A table as features, its sample, and the draws of the starts."""

    method: Clustering
    settings: Settings
    source: Table
    features: Features
    key: Subkey

    @property
    def share(self) -> float:
        """How much of the table the sample is."""
        return sample_share(self.source.rows)

    def sample(self) -> Collection[Records]:
        """A sample in one place on the cluster, the same for any partitioning."""
        read = partial(self.features.sample, self.key.subkey("sample"), self.share)
        return self.source.select(self.features.columns).with_positions().persist_joined(read, joined, "sample")

    def draws(self, rounds: int, clusters: int) -> Floats:
        """Uniforms for rounds x starts x clusters x candidates."""
        draws = start_draws(self.key.subkey("starts"), rounds * self.settings.starts, clusters)
        return draws.reshape(rounds, self.settings.starts, *draws.shape[1:])

    def records(self) -> Collection[Records]:
        """All blocks as features, persisted where they fit."""
        size = 8 * self.source.rows * self.features.size
        return self.source.select(self.features.columns).persist(self.features.records, "persist", size=size)

    def descend(self, records: Collection[Records], centers: Floats, cuts: tuple[Cut, ...] = ()) -> Solution:
        """Passes over all records, or over those of the cluster that the last cut cuts."""
        one_pass = partial(_full_pass, self.settings.model, records, cuts)
        return descend(one_pass, centers, self.settings.shift, self.settings.max_passes)


def search_features(
    method: Clustering, settings: Settings, table: Table, features: Features, key: Subkey, who: str
) -> Search:
    """A search for clusters of a table, which must have as many records."""
    require_records(table.rows, settings.clusters, who)
    return Search(method, settings, table, features, key)


def all_at_once(search: Search) -> FittedPartition:
    """All clusters at once, in Lloyd's way."""
    draws = search.draws(1, search.settings.clusters)[0]
    (solution,) = search.sample().map(partial(search.settings.solve, draws=draws), "starts")
    if search.share < 1.0:
        solution = search.descend(search.records(), solution.centers)
    return FittedPartition(search.method, search.features, solution, ())


def bisecting(search: Search) -> FittedPartition:
    """Cut in two until there are as many clusters as wanted, or nothing is left to cut."""
    settings = search.settings
    if settings.clusters == 1:
        return all_at_once(search)
    draws = search.draws(settings.clusters - 1, 2)
    records = search.sample()
    (found,) = records.map(partial(_cut_all, settings, draws), "starts")
    if search.share < 1.0:
        records, on_sample = search.records(), found
        found = Bisection(passes=on_sample.passes)
        for cut in on_sample.cuts:
            found = found.plus(cut.cluster, search.descend(records, cut.centers, (*found.cuts, cut)))
    centers = _leaf_centers(found.cuts, search.features.size)
    objective = records.reduce(partial(_objective, found.cuts, centers), float.__add__, "k-means")
    solution = Solution(centers, objective, (), found.converged, found.passes)
    return FittedPartition(search.method, search.features, solution, found.cuts)


def _objective(cuts: tuple[Cut, ...], centers: Floats, records: Records) -> float:
    """The sum of squares around the clusters' centres."""
    values = records.values
    return float(((values - centers[cut_labels(values, cuts)].T) ** 2).sum())


def _full_pass(
    model: ClusterModel, records: Collection[Records], cuts: tuple[Cut, ...], centers: Floats
) -> tuple[Floats, float]:
    """One pass; with cuts, over the records of the cluster that the last one cuts."""
    sums = records.reduce(partial(_sums, model, cuts, centers[None]), merge, "k-means")
    return model.image(sums, centers[None])[0], float(sums.objective[0])


def _sums(model: ClusterModel, cuts: tuple[Cut, ...], centers: Floats, records: Records) -> CenterSums:
    if cuts:
        members = cut_labels(records.values, cuts[:-1]) == cuts[-1].cluster
        records = Records(np.ascontiguousarray(records.values[:, members]), None, None)
    return model.sums(records, centers)


def _cut_all(settings: Settings, draws: Floats, records: Records) -> Bisection:
    """All cuts of a sample."""
    found = np.zeros(records.values.shape[1], np.int64)
    squares = [_sum_of_squares(records.values)]
    bisection = Bisection()
    for number in range(1, settings.clusters):
        cluster = int(np.argmax(squares))
        if not squares[cluster] > 0.0:
            break  # fewer different records than clusters
        members = np.flatnonzero(found == cluster)
        values = np.ascontiguousarray(records.values[:, members])
        solution = settings.solve(Records(values, None, None), draws[number - 1])
        second = labels(values, solution.centers) == 1
        found[members[second]] = number
        squares[cluster] = _sum_of_squares(values[:, ~second])
        squares.append(_sum_of_squares(values[:, second]))
        bisection = bisection.plus(cluster, solution)
    return bisection


def _sum_of_squares(values: Floats) -> float:
    """The sum of squares around the mean; exactly 0 for equal records."""
    if not values.shape[1] or not (values != values[:, :1]).any():
        return 0.0
    return float(((values - values.mean(axis=1, keepdims=True)) ** 2).sum())


def _leaf_centers(cuts: tuple[Cut, ...], size: int) -> Floats:
    """The centre of each cluster: of the last cut that it came from. Where nothing was cut, all records are equal."""
    centers = [np.zeros(size)]
    for cluster, (stays, leaves) in cuts:
        centers[cluster] = stays
        centers.append(leaves)
    return np.array(centers)


def partition(
    table: Table,
    columns: Sequence[str],
    clusters: int,
    algorithm: str,
    key: Subkey,
    *,
    features: Features | None = None,
) -> FittedPartition:
    """Clusters of any columns by a named algorithm; of these features, if they are known already."""
    found = find_features(table, columns, algorithm) if features is None else features
    fuzziness = _FUZZINESS if algorithm == "fuzzy_c_means" else 1.0
    settings = Settings(clusters, _STARTS, _PASSES, _SHIFT, fuzziness)
    search = search_features(settings, settings, table, found, key.subkey(algorithm), algorithm)
    return bisecting(search) if algorithm == "bisecting_kmeans" else all_at_once(search)
