"""k-means over Dask: fuzzy c-means with fuzziness 1, where every record belongs to its nearest centre alone.

Starts, passes and memory are those of fuzzy c-means (dpmask.clustering.fuzzy_c_means): the best of several k-means++
starts on a sample goes on with passes over all the data until the centres stand still.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpmask.clustering.center_clustering import CenterClustering, Variant
from dpmask.clustering.features import find_features
from dpmask.clustering.fitted_fuzzy_c_means import FittedFuzzyCMeans
from dpmask.clustering.partition import FittedPartition, Settings, all_at_once, search_features
from dpmask.engine.draws import Subkey
from dpmask.errors import JobError
from dpmask.table.columns import is_numeric, require_known
from dpmask.table.table import Frame, Table, as_table


@dataclass(frozen=True, kw_only=True)
class KMeans(CenterClustering):
    """k-means: every record belongs to its nearest centre.

    Examples
    --------
    >>> import dpmask, pandas
    >>> people = pandas.DataFrame({"net": [1.0, 2.0, 3.0, 11.0, 12.0, 13.0]})
    >>> fitted = dpmask.KMeans(clusters=2).fit(people, seed=1)
    >>> sorted(fitted.centers[:, 0].tolist())
    [2.0, 12.0]
    """

    @property
    def variant(self) -> Variant:
        """Which clustering it is: a crisp one."""
        return Variant(fuzziness=1.0)

    def fit(
        self,
        table: Frame,
        *,
        columns: Sequence[str] | None = None,
        weight: str | None = None,
        key: str | bytes | Subkey | None = None,
        seed: int | None = None,
    ) -> FittedFuzzyCMeans | FittedPartition:
        """Find the centres; what is returned has centres, objective, labels and the rest, as of any fuzzy clustering.

        Columns that are not numbers are clustered one-hot; then numbers are scaled by their range, missing values are
        values of their own, and centres are in these features.

        Parameters
        ----------
        table
            A pandas or Dask DataFrame, or a lake.
        columns
            The columns to cluster by; all numeric ones but the weight by default.
        weight
            A column of weights: a record with weight 3 counts as three.
        key, seed
            What the starts and the sample are drawn by; seed 0 by default.
        """
        source = as_table(table, self.who)
        if columns is None or _are_numbers(source, columns, self.who):
            return self.fit_numbers(source, columns, weight, self.subkey("fuzzy c-means", key, seed))
        if weight is not None or self.initial is not None:
            raise JobError(f"{self.who}: columns that are not numbers are clustered without weight and initial.")
        settings = Settings(self.clusters, self.starts, self.max_passes, self.shift)
        features, subkey = find_features(source, columns, self.who), self.subkey("k-means", key, seed)
        return all_at_once(search_features(self, settings, source, features, subkey, self.who))


def _are_numbers(source: Table, columns: Sequence[str], who: str) -> bool:
    require_known(source.masked_schema, columns, who)
    return all(is_numeric(source.masked_schema.field(column).type) for column in columns)
