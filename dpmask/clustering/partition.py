"""Crisp clusters of features, for tables of numbers and categories: k-means, and k-means that cuts in two.

A sample is clustered in one task first, from several k-means++ starts; where it is not all of the data, passes over all
of it go on from there (dpmask.clustering.iteration). Bisecting k-means cuts the cluster with the largest sum of squares
in two, again and again (Steinbach, Karypis and Kumar 2000); the sample decides which cluster that is, the centres
follow from all data. Memory per task: one block of features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.clustering.features import Features, find_features
from dpmask.clustering.fitted import FittedClustering
from dpmask.clustering.iteration import Model, Records, Solution, descend, first_centers, solve, start_draws
from dpmask.clustering.scaling import joined
from dpmask.clustering.settings import SearchSettings
from dpmask.engine.draws import Subkey
from dpmask.engine.passes import Blocks, Span, fits_in_memory, hold_blocks, hold_joined, map_blocks, reduce_blocks
from dpmask.errors import InputError
from dpmask.kernels.fuzzy.center_sums import CenterSums, labels, merge
from dpmask.lake.reading import Rows
from dpmask.table import table as tables
from dpmask.table.columns import require_known

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ALGORITHMS = ("bisecting_kmeans", "kmeans", "fuzzy_c_means")
"""By which a table of any columns can be partitioned; fuzzy clusters by their nearest centres."""
_STARTS, _PASSES, _SHIFT = 10, 300, 1e-6
_FUZZINESS = 1.2  # one-hot features are many, and centres of more fuzziness fall into one
_SEARCH = SearchSettings()
_Read = Callable[[Any, Span], Records]


class Cut(NamedTuple):
    """One cut of bisecting k-means: which cluster, and the centres of what stays and of what gets the next number."""

    cluster: int
    centers: Floats  # 2 x features


@dataclass(frozen=True)
class Settings:
    """What a search for clusters goes by; ``fuzziness`` 1 is crisp."""

    clusters: int
    starts: int
    max_passes: int
    shift: float
    fuzziness: float = 1.0
    search: SearchSettings = _SEARCH

    @property
    def model(self) -> Model:
        """What a pass computes."""
        return Model(self.fuzziness, None, None, False, None)

    def solve(self, records: Records, draws: Floats) -> Solution:
        """The best of several starts on one block."""
        return solve(self.model, records, first_centers(self.model, records, draws), self.shift, self.max_passes)


@dataclass(frozen=True, repr=False)
class FittedPartition(FittedClustering):
    """A partition of records: centres in features, and how many passes found them."""

    method: Any
    features: Features
    centers: Floats
    cuts: tuple[Cut, ...]
    objective: float
    passes: int

    @property
    def iterations(self) -> int:
        """Passes that iterated the centres."""
        return self.passes

    @property
    def columns(self) -> tuple[str, ...]:
        """The clustered columns."""
        return self.features.columns

    @property
    def clusters(self) -> int:
        """How many clusters there are."""
        return len(self.centers)

    def _summary(self) -> dict[str, Any]:
        return {
            "clusters": self.clusters,
            "objective": self.objective,
            "passes": self.passes,
            "columns": ", ".join(self.columns),
        }

    def labels(self, table: Any) -> Any:
        """The cluster of each record, as a series."""
        return tables.derive_rows(table, self.columns, self._labels, require_known, type(self.method).__name__)["label"]

    def _labels(self, rows: Rows) -> dict[str, Any]:
        return {"label": self.of(rows)}

    def of(self, rows: Rows) -> Integers:
        """The cluster of each record of a block."""
        return self.of_values(self.features.values(rows))

    def of_values(self, values: Floats) -> Integers:
        """The same from features x rows."""
        return cut_labels(values, self.cuts) if self.cuts else labels(values, self.centers)


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

    settings: Settings
    source: tables.Table
    features: Features
    key: Subkey

    @property
    def share(self) -> float:
        """How much of the table the sample is."""
        return self.settings.search.share(self.source.rows)

    def sample(self) -> Blocks:
        """A sample in one place on the cluster, the same for any partitioning."""
        read = partial(self.features.sample, self.key.subkey("sample"), self.share)
        return hold_joined(self.source.on_rows(self.features.columns, read), joined, self.source.blocks, "sample")

    def draws(self, rounds: int, clusters: int) -> Floats:
        """Uniforms for rounds x starts x clusters x candidates."""
        draws = start_draws(self.key.subkey("starts"), rounds * self.settings.starts, clusters)
        return draws.reshape(rounds, self.settings.starts, *draws.shape[1:])

    def whole(self) -> tuple[Blocks, _Read]:
        """All blocks as features, persisted where they fit."""
        read = self.source.on_rows(self.features.columns, self.features.records)
        if fits_in_memory(8 * self.source.rows * self.features.size):
            return hold_blocks(read, self.source.blocks, "hold"), _as_persisted
        return self.source.blocks, read

    def require_records(self, who: str) -> None:
        """Refuse fewer records than clusters."""
        if self.source.rows < self.settings.clusters:
            raise InputError(
                f"{who}: {self.settings.clusters} clusters need at least as many records; there are {self.source.rows}."
            )


def flat(search: Search, method: Any) -> FittedPartition:
    """All clusters at once, in Lloyd's way."""
    settings = search.settings
    draws = search.draws(1, settings.clusters)[0]
    (solution,) = map_blocks(partial(_start, settings, draws), search.sample(), "starts")
    if search.share < 1.0:
        blocks, read = search.whole()
        one_pass = partial(_full_pass, settings.model, read, blocks, ())
        solution = descend(one_pass, solution.centers, settings.shift, settings.max_passes)
    passes = solution.passes
    return FittedPartition(method, search.features, solution.centers, (), solution.objective, passes)


def bisecting(search: Search, method: Any) -> FittedPartition:
    """Cut in two until there are as many clusters as wanted, or nothing is left to cut."""
    settings = search.settings
    if settings.clusters == 1:
        return flat(search, method)
    draws = search.draws(settings.clusters - 1, 2)
    sample = search.sample()
    (found,) = map_blocks(partial(_cut_all, settings, draws), sample, "starts")
    cuts, passes = found
    blocks: Blocks = sample
    read: _Read = _as_persisted
    if search.share < 1.0:
        blocks, read = search.whole()
        moved: tuple[Cut, ...] = ()
        for cluster, centers in cuts:
            one_pass = partial(_full_pass, settings.model, read, blocks, (*moved, Cut(cluster, centers)))
            solution = descend(one_pass, centers, settings.shift, settings.max_passes)
            moved, passes = (*moved, Cut(cluster, solution.centers)), passes + solution.passes
        cuts = moved
    centers = _leaf_centers(cuts, search.features.size)
    objective = reduce_blocks(partial(_objective, read, cuts, centers), float.__add__, blocks, "k-means")
    return FittedPartition(method, search.features, centers, cuts, objective, passes)


def _objective(read: _Read, cuts: tuple[Cut, ...], centers: Floats, content: Any, span: Span) -> float:
    """The sum of squares around the clusters' centres."""
    values = read(content, span).values
    return float(((values - centers[cut_labels(values, cuts)].T) ** 2).sum())


def _start(settings: Settings, draws: Floats, records: Records, span: Span) -> Solution:
    return settings.solve(records, draws)


def _as_persisted(content: Records, span: Span) -> Records:
    return content


def _full_pass(
    model: Model, read: _Read, blocks: Blocks, cuts: tuple[Cut, ...], centers: Floats
) -> tuple[Floats, float]:
    """One pass; with cuts, over the records of the cluster that the last one cuts."""
    sums = reduce_blocks(partial(_sums, model, read, cuts, centers[None]), merge, blocks, "k-means")
    return model.image(sums, centers[None])[0], float(sums.objective[0])


def _sums(model: Model, read: _Read, cuts: tuple[Cut, ...], centers: Floats, content: Any, span: Span) -> CenterSums:
    records = read(content, span)
    if cuts:
        members = cut_labels(records.values, cuts[:-1]) == cuts[-1].cluster
        records = Records(np.ascontiguousarray(records.values[:, members]), None, None)
    return model.sums(records, centers)


def _cut_all(settings: Settings, draws: Floats, records: Records, span: Span) -> tuple[tuple[Cut, ...], int]:
    """All cuts of a sample, and how many passes over it they took."""
    found = np.zeros(records.values.shape[1], np.int64)
    spreads = [_spread(records.values)]
    cuts: list[Cut] = []
    passes = 0
    for number in range(1, settings.clusters):
        cluster = int(np.argmax(spreads))
        if not spreads[cluster] > 0.0:
            break  # fewer different records than clusters
        members = np.flatnonzero(found == cluster)
        values = np.ascontiguousarray(records.values[:, members])
        solution = settings.solve(Records(values, None, None), draws[number - 1])
        second = labels(values, solution.centers) == 1
        found[members[second]] = number
        spreads[cluster] = _spread(values[:, ~second])
        spreads.append(_spread(values[:, second]))
        cuts.append(Cut(cluster, solution.centers))
        passes += solution.passes
    return tuple(cuts), passes


def _spread(values: Floats) -> float:
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
    table: tables.Table,
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
    search = Search(settings, table, found, key.subkey(algorithm))
    search.require_records(algorithm)
    return (bisecting if algorithm == "bisecting_kmeans" else flat)(search, settings)
