"""A fitted fuzzy clustering: centres, how they were found, and the memberships of records."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmask.clustering.base import FittedClustering
from dpmask.clustering.iteration import ClusterModel, HistoryPoint, Records, Solution
from dpmask.clustering.scaling import Preparation
from dpmask.kernels.arrays import Floats
from dpmask.kernels.fuzzy.center_sums import memberships
from dpmask.kernels.fuzzy.labels import labels
from dpmask.lake.reading import Rows
from dpmask.table.columns import floats, require_numeric
from dpmask.table.table import Frame

if TYPE_CHECKING:
    from dpmask.clustering.center_clustering import CenterClustering


_COINCIDENT = 1e-6


@dataclass(frozen=True, repr=False)
class FittedFuzzyCMeans(FittedClustering):
    """Centres in original units, and how they were found."""

    method: CenterClustering
    preparation: Preparation
    model: ClusterModel
    solution: Solution
    centers: Floats
    threshold: float
    """The entropy weight below which the centres of these data collapse."""
    trapped: int = 0
    """How many centres owe more than half of their weight to one record; only counted above a fuzziness of 3."""

    unsettled: int = 0
    """How many records still moved, within their tolerance, after the 300 rounds that a pass allows them."""

    @property
    def clusters(self) -> int:
        """How many clusters there are."""
        return len(self.centers)

    @property
    def columns(self) -> tuple[str, ...]:
        """The clustered columns, in the order of the centres' second axis."""
        return self.preparation.inputs.columns

    @property
    def inputs(self) -> tuple[str, ...]:
        """These, and the weight and the tolerance, where there are any."""
        return tuple(self.preparation.inputs.names)

    @property
    def history(self) -> tuple[HistoryPoint, ...]:
        """Objective and shift of every pass whose centres were kept; ``number`` counts all passes."""
        return self.solution.history

    @property
    def converged(self) -> bool:
        """Whether the last pass moved the centres by less than ``shift``, and none is trapped on a record."""
        return self.solution.converged and not self.trapped

    @property
    def coincident(self) -> int:
        """How many centres lie on another one."""
        centers = self.solution.centers
        gaps = np.abs(centers[:, None] - centers[None]).max(axis=2) + np.triu(np.full((len(centers),) * 2, np.inf))
        return int((gaps.min(axis=1, initial=np.inf) < _COINCIDENT).sum())

    def memberships(self, table: Frame) -> Frame:
        """How much each record belongs to each cluster: a frame of the same kind and index, computed when asked for.

        A record that cannot be placed for missing values has none.
        """
        return self._derived(table, self._memberships)

    def _memberships(self, rows: Rows) -> dict[str, Any]:
        return {f"cluster_{number}": line for number, line in enumerate(self.shares(self._floats(rows)))}

    def of(self, rows: Rows) -> NDArray[np.int64]:
        """The nearest centre of each record of a block; -1 for one that cannot be placed."""
        return self.nearest(self._floats(rows))

    def _require(self, schema: Any, columns: Sequence[str], who: str) -> None:
        require_numeric(schema, columns, who)

    def _floats(self, rows: Rows) -> list[Floats]:
        return [floats(rows, column) for column in self.inputs]

    def _placed(self, columns: Sequence[Floats]) -> tuple[Records, NDArray[np.bool_]]:
        records = self.preparation._replace(drop=False).records(columns)
        present = ~np.isnan(records.values)
        placed: NDArray[np.bool_] = np.any(present, axis=0) if self.model.partial else np.all(present, axis=0)
        return records, placed

    def shares(self, columns: Sequence[Floats]) -> Floats:
        """Memberships (clusters x rows) of one block, given as its columns; NaN for a record that cannot be placed."""
        records, placed = self._placed(columns)
        shares = memberships(
            records.values,
            self.solution.centers,
            fuzziness=self.model.fuzziness,
            entropy=self.model.entropy,
            tolerance=self.model.tolerance if records.tolerances is None else records.tolerances,
            partial=self.model.partial,
        )
        shares[:, ~placed] = np.nan
        return shares

    def nearest(self, columns: Sequence[Floats]) -> NDArray[np.int64]:
        """The nearest centres from a block's columns."""
        records, placed = self._placed(columns)
        found = labels(records.values, self.solution.centers, partial=self.model.partial)
        return np.where(placed, found, -1)

    def with_warnings(self) -> FittedFuzzyCMeans:
        """Warn of what a user must know."""
        if self.model.entropy is not None and self.model.entropy <= self.threshold and len(self.centers) > 1:
            self._warn(
                f"entropy {self.model.entropy:.4g} is not above {self.threshold:.4g}, below which all centres of these "
                "data collapse into one. Useful values are 3 to 100 times that; entropy='auto' takes 10 times."
            )
        elif self.coincident:
            self._warn(
                f"{self.coincident} of {len(self.centers)} centres lie on another one. Take fewer, or sharper ones."
            )
        if self.trapped:
            self._warn(
                f"{self.trapped} of {len(self.centers)} centres lie on a record: at fuzziness {self.model.fuzziness:g} "
                "they cannot leave it, and are not settled. Take a smaller fuzziness, fewer clusters or more starts."
            )
        if self.unsettled:
            self._warn(
                f"{self.unsettled} records still moved after the 300 rounds that a pass allows within the tolerance: "
                "the objective is not quite the smallest there is for them. Take a smaller tolerance."
            )
        if not self.solution.converged:
            self._warn(
                f"after {self.passes} passes the centres still move by {self.history[-1].shift:.2g}. "
                "Raise max_passes or shift."
            )
        return self

    def _warn(self, text: str) -> None:
        warnings.warn(f"{self.method.who}: {text}", stacklevel=5)
