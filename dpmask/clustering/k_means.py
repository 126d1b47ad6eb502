"""k-means over Dask: fuzzy c-means with fuzziness 1, where every record belongs to its nearest centre alone.

Starts, passes and memory are those of fuzzy c-means (dpmask.clustering.fuzzy_c_means): the best of several k-means++
starts on a sample goes on with passes over all the data until the centres stand still.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from dpmask.clustering.features import find_features
from dpmask.clustering.fuzzy_c_means import FuzzyCMeans
from dpmask.clustering.partition import FittedPartition, Search, Settings, flat
from dpmask.clustering.settings import SearchSettings
from dpmask.engine.draws import Subkey, make_key
from dpmask.errors import JobError
from dpmask.parameters import require_choice, require_flag, require_integer, require_number
from dpmask.table import table as tables
from dpmask.table.columns import is_numeric, require_known

_WHO = "KMeans"
_CRISP = 1.0


class _Crisp(FuzzyCMeans):
    """Fuzzy c-means whose messages name k-means."""

    who: ClassVar[str] = "KMeans"


@dataclass(frozen=True, kw_only=True)
class KMeans:
    """k-means: every record belongs to its nearest centre.

    Parameters
    ----------
    clusters
        How many clusters.
    starts
        How many greedy k-means++ starts are tried; the smallest sum of squares wins.
    standardise
        Whether columns are divided by their standard deviations (by n).
    initial
        Centres to start from, clusters x columns in original units, in place of these starts.
    max_passes
        The most passes over the data.
    shift
        The last pass moves no centre by more, in clustering units.
    nulls
        "refuse", "drop" records with a missing value, or "partial" distances over the values a record has.

    Examples
    --------
    >>> import dpmask, pandas
    >>> people = pandas.DataFrame({"net": [1.0, 2.0, 3.0, 11.0, 12.0, 13.0]})
    >>> fitted = dpmask.KMeans(clusters=2).fit(people, seed=1)
    >>> sorted(fitted.centers[:, 0].tolist())
    [2.0, 12.0]
    """

    clusters: int
    starts: int = 20
    standardise: bool = True
    initial: Any = field(default=None, repr=False)
    max_passes: int = 1000
    shift: float = 1e-6
    nulls: str = "refuse"

    settings: ClassVar[SearchSettings] = SearchSettings()

    def __post_init__(self) -> None:
        for name in ("clusters", "starts", "max_passes"):
            require_integer(self, name, at_least=1)
        require_flag(self, "standardise")
        require_number(self, "shift", above=0)
        require_choice(self, "nulls", ("refuse", "drop", "partial"))

    def fit(
        self,
        table: Any,
        *,
        columns: Sequence[str] | None = None,
        weight: str | None = None,
        key: str | bytes | Subkey | None = None,
        seed: int | None = None,
    ) -> Any:
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
        source = tables.as_table(table, _WHO)
        if columns is not None and not all(is_numeric(kind) for kind in _types(source, columns)):
            return self._of_features(source, columns, weight, key, seed)
        method = _Crisp(fuzziness=_CRISP, **{name: getattr(self, name) for name in asdict(self)})
        return method.fit(table, columns=columns, weight=weight, key=key, seed=seed)

    def _of_features(
        self,
        source: tables.Table,
        columns: Sequence[str],
        weight: str | None,
        key: str | bytes | Subkey | None,
        seed: int | None,
    ) -> FittedPartition:
        if weight is not None or self.initial is not None:
            raise JobError(f"{_WHO}: columns that are not numbers are clustered without weight and initial.")
        subkey = make_key(_WHO, key=key, seed=0 if key is None and seed is None else seed).subkey("k-means")
        settings = Settings(self.clusters, self.starts, self.max_passes, self.shift, search=self.settings)
        search = Search(settings, source, find_features(source, columns, _WHO), subkey)
        search.require_records(_WHO)
        return flat(search, self)


def _types(source: tables.Table, columns: Sequence[str]) -> list[Any]:
    require_known(source.masked_schema, columns, _WHO)
    return [source.masked_schema.field(column).type for column in columns]
