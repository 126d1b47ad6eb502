"""What clusterings share: how they are keyed and searched, and how a fitted one is used and shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from dpmask.engine.draws import Subkey, make_key
from dpmask.engine.limits import current_limits
from dpmask.errors import InputError
from dpmask.kernels.arrays import Integers
from dpmask.lake.reading import Rows
from dpmask.results import shown
from dpmask.table.columns import require_known
from dpmask.table.table import Frame, derive_rows

if TYPE_CHECKING:
    from dpmask.clustering.fuzzy_c_regression import ModelSolution
    from dpmask.clustering.iteration import Solution


class Clustering:
    """The parameters of a clustering: a frozen dataclass."""

    clusters: int

    @property
    def who(self) -> str:
        """Its name in messages."""
        return type(self).__name__

    def subkey(self, purpose: str, key: str | bytes | Subkey | None, seed: int | None) -> Subkey:
        """What the starts and the sample are drawn by: seed 0 by default."""
        return make_key(self.who, key=key, seed=0 if key is None and seed is None else seed).subkey(purpose)


def sample_share(rows: int) -> float:
    """How much of a table of so many records is clustered first."""
    return min(1.0, current_limits().clustering_sample / max(rows, 1))


def require_records(records: int, clusters: int, who: str) -> None:
    """Refuse fewer records than clusters."""
    if records < clusters:
        raise InputError(f"{who}: {clusters} clusters need at least as many records; there are {records}.")


class FittedClustering(ABC):
    """A fitted clustering. As text and in notebooks it shows no value of a record: a centre may be one."""

    method: Clustering
    solution: Solution | ModelSolution

    @property
    @abstractmethod
    def clusters(self) -> int:
        """How many clusters there are."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The clustered columns."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns that placing a record takes."""
        return self.columns

    @property
    def objective(self) -> float:
        """What was minimised, in the units it was clustered in."""
        return self.solution.objective

    @property
    def passes(self) -> int:
        """Passes over the data that iterated the clusters."""
        return self.solution.passes

    iterations = passes

    @property
    def converged(self) -> bool:
        """Whether the clusters came to rest before the last pass that was allowed."""
        return self.solution.converged

    def labels(self, table: Frame) -> Frame:
        """The cluster of each record, as a series; -1 for a record that cannot be placed for missing values."""
        return self._derived(table, self._labels)["label"]

    def _labels(self, rows: Rows) -> dict[str, Any]:
        return {"label": self.of(rows)}

    @abstractmethod
    def of(self, rows: Rows) -> Integers:
        """The cluster of each record of a block."""

    def _derived(self, table: Any, function: Callable[[Rows], dict[str, Any]]) -> Any:
        return derive_rows(table, self.inputs, function, self._require, self.method.who)

    def _require(self, schema: Any, columns: Sequence[str], who: str) -> None:
        """Refuse a table whose records cannot be placed."""
        require_known(schema, columns, who)

    def _summary(self) -> dict[str, Any]:
        return {
            "clusters": self.clusters,
            "objective": self.objective,
            "passes": self.passes,
            "converged": self.converged,
            "columns": ", ".join(self.columns),
        }

    def __repr__(self) -> str:
        """The method and how the fit went."""
        numbers = ", ".join(f"{name}={shown(value)}" for name, value in self._summary().items())
        return f"{type(self).__name__}({self.method!r}, {numbers})"

    def _repr_html_(self) -> str:
        """The same as a small table."""
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{shown(value)}</td></tr>" for name, value in self._summary().items()
        )
        return f"<table><caption>{escape(repr(self.method))}</caption>{rows}</table>"
