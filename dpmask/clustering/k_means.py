"""k-means over Dask: fuzzy c-means with fuzziness 1, where every record belongs to its nearest centre alone.

Starts, passes and memory are those of fuzzy c-means (dpmask.clustering.fuzzy_c_means): the best of several k-means++
starts on a sample goes on with passes over all the data until the centres stand still.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from dpmask.clustering.fuzzy_c_means import FittedFuzzyCMeans, FuzzyCMeans
from dpmask.engine.draws import Subkey
from dpmask.parameters import require_choice, require_flag, require_integer, require_number

_CRISP = 1.0


class _Crisp(FuzzyCMeans):
    """Fuzzy c-means that speaks as k-means."""

    who: ClassVar[str] = "KMeans"


@dataclass(frozen=True, kw_only=True)
class KMeans:
    """Parameters of a crisp clustering; all mean what they mean for FuzzyCMeans.

    ``nulls``: "refuse", "drop" records with a missing value, or "partial" distances over the values a record has.
    """

    clusters: int
    starts: int = 20
    standardise: bool = True
    initial: Any = None
    max_passes: int = 1000
    shift: float = 1e-6
    nulls: str = "refuse"

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
    ) -> FittedFuzzyCMeans:
        """Find the centres. Without columns: all numeric ones but the weight. Without seed: seed 0.

        What comes back has centres, objective, labels and the rest, as of any fuzzy clustering.
        """
        method = _Crisp(fuzziness=_CRISP, **{name: getattr(self, name) for name in asdict(self)})
        return method.fit(table, columns=columns, weight=weight, key=key, seed=seed)
