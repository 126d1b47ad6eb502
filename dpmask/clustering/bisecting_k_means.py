"""Bisecting k-means over Dask, for numbers and categories: one cluster is cut in two until there are enough.

See dpmask.clustering.partition for how, and dpmask.clustering.features for what is clustered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpmask.clustering.base import Clustering
from dpmask.clustering.features import find_features
from dpmask.clustering.partition import FittedPartition, Settings, bisecting, search_features
from dpmask.engine.draws import Subkey
from dpmask.parameters import require_integer, require_number
from dpmask.table.table import Frame, as_table


@dataclass(frozen=True, kw_only=True)
class BisectingKMeans(Clustering):
    """Bisecting k-means: the cluster with the largest sum of squares is cut in two until there are enough.

    Parameters
    ----------
    clusters
        How many clusters.
    starts
        How many greedy k-means++ starts are tried for each cut; the smallest sum of squares wins.
    max_passes
        The most passes over the data for each cut.
    shift
        The last pass of a cut moves no centre by more, in features from 0 to 1.

    Examples
    --------
    >>> import dpmask, pandas
    >>> people = pandas.DataFrame({"net": [1.0, 2.0, 11.0, 12.0], "kind": ["a", "a", "b", "b"]})
    >>> fitted = dpmask.BisectingKMeans(clusters=2).fit(people, seed=1)
    >>> fitted.labels(people).nunique()
    2
    """

    clusters: int
    starts: int = 10
    max_passes: int = 300
    shift: float = 1e-6

    def __post_init__(self) -> None:
        for name in ("clusters", "starts", "max_passes"):
            require_integer(self, name, at_least=1)
        require_number(self, "shift", above=0)

    def fit(
        self,
        table: Frame,
        *,
        columns: Sequence[str] | None = None,
        intervals: Sequence[str] = (),
        key: str | bytes | Subkey | None = None,
        seed: int | None = None,
    ) -> FittedPartition:
        """Find the clusters.

        Parameters
        ----------
        table
            A pandas or Dask DataFrame, or a lake.
        columns
            The columns to cluster by, of any type; all by default.
        intervals
            Those of them that have interval labels such as "[20, 40)", which count as their middle.
        key, seed
            What the starts and the sample are drawn by; seed 0 by default.
        """
        source = as_table(table, self.who)
        names = source.masked_schema.names if columns is None else columns
        features = find_features(source, names, self.who, intervals=intervals)
        settings = Settings(self.clusters, self.starts, self.max_passes, self.shift)
        subkey = self.subkey("bisecting k-means", key, seed)
        return bisecting(search_features(self, settings, source, features, subkey, self.who))
