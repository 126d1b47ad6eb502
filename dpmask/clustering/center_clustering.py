"""Clusters of numbers by their centres, over Dask: what fuzzy c-means and k-means share."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpmask.clustering.base import Clustering, require_records, sample_share
from dpmask.clustering.fitted_fuzzy_c_means import FittedFuzzyCMeans
from dpmask.clustering.fuzzy_passes import (
    best_start,
    correct_on,
    count_moving,
    count_trapped,
    full_pass,
    report_step,
)
from dpmask.clustering.iteration import ClusterModel, Solution, descend, start_draws
from dpmask.clustering.scaling import (
    Constrained,
    Inputs,
    Preparation,
    collapse_threshold,
    constrained,
    covariance_of,
    joined,
)
from dpmask.docstrings import completed, parameter_texts
from dpmask.engine.draws import Subkey
from dpmask.engine.limits import current_limits
from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Floats
from dpmask.kernels.covariance import CovarianceSums
from dpmask.parameters import require_choice, require_flag, require_integer, require_number
from dpmask.table.checks import require_complete, require_values, require_varied
from dpmask.table.columns import is_numeric, require_numeric
from dpmask.table.encoders.numeric import Scale
from dpmask.table.table import Table

_DEFAULT_FUZZINESS = 2.0
_ENTROPY_FACTOR = 10.0


class Variant(NamedTuple):
    """What such clusterings differ in; see the parameters of ``FuzzyCMeans``."""

    fuzziness: float | None = None
    entropy: float | str | None = None
    tolerance: float | str | None = None
    constraints: tuple[str, ...] = ()
    accelerate: bool = True
    two_grid: bool = True

    def model(self, threshold: float, limits: Constrained | None, *, partial: bool) -> ClusterModel:
        """What a pass computes, for data whose centres collapse below this entropy weight."""
        entropy = _ENTROPY_FACTOR * threshold if self.entropy == "auto" else self.entropy
        fuzziness = None if entropy is not None else self.fuzziness or _DEFAULT_FUZZINESS
        tolerance = None if isinstance(self.tolerance, str) else self.tolerance
        feasible = limits.units if limits else None
        return ClusterModel(fuzziness, entropy, tolerance, partial, feasible)  # type: ignore[arg-type]


if TYPE_CHECKING:
    Start = ArrayLike | None
else:  # it is checked where its columns are known
    Start = Any


@dataclass(frozen=True, kw_only=True)
class CenterClustering(Clustering, ABC):
    """Parameters of fuzzy c-means and k-means, and how their centres are found.

    Parameters
    ----------
    clusters
        How many clusters.
    starts
        How many greedy k-means++ starts are tried; the best objective wins.
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
    """

    clusters: int
    starts: int = 20
    standardise: bool = True
    initial: Start = field(default=None, repr=False)
    max_passes: int = 1000
    shift: float = 1e-6
    nulls: str = "refuse"

    def __init_subclass__(cls, **more: Any) -> None:
        """Complete its help with the texts of the parameters here."""
        super().__init_subclass__(**more)
        if cls.__doc__:
            names = [name for one in (CenterClustering, cls) for name in inspect.get_annotations(one)]
            cls.__doc__ = completed(cls.__doc__, names, parameter_texts(CenterClustering.__doc__ or ""))

    def __post_init__(self) -> None:
        for name in ("clusters", "starts", "max_passes"):
            require_integer(self, name, at_least=1)
        require_flag(self, "standardise")
        require_number(self, "shift", above=0)
        require_choice(self, "nulls", ("refuse", "drop", "partial"))

    @property
    @abstractmethod
    def variant(self) -> Variant:
        """Which clustering it is."""

    def fit_numbers(
        self, source: Table, columns: Sequence[str] | None, weight: str | None, key: Subkey
    ) -> FittedFuzzyCMeans:
        """Find the centres."""
        inputs = self._inputs(source.masked_schema, columns, weight)
        seen = covariance_of(source, inputs, self.who)
        self._check(seen, inputs.columns)
        scale = Scale(seen.mean, seen.sd) if self.standardise else Scale(0.0 * seen.mean, 0.0 * seen.mean + 1.0)
        limits = constrained(self.variant.constraints, inputs.columns, scale, self.who)
        covariance = seen.covariance / np.outer(scale.sd, scale.sd)
        threshold = collapse_threshold(covariance, limits.units if limits else None)
        model = self.variant.model(threshold, limits, partial=self.nulls == "partial")
        preparation = Preparation(inputs, scale, self.nulls == "drop", self.who)
        solution = self._solve(source, preparation, model, key)
        centers = limits.released(solution.centers, scale) if limits else scale.to_original(solution.centers)
        trapped = count_trapped(source, preparation, model, solution.centers)
        unsettled = count_moving(source, preparation, model, solution.centers)
        fitted = FittedFuzzyCMeans(self, preparation, model, solution, centers, threshold, trapped, unsettled)
        return fitted.with_warnings()

    def _inputs(self, schema: Any, columns: Sequence[str] | None, weight: str | None) -> Inputs:
        tolerance = self.variant.tolerance if isinstance(self.variant.tolerance, str) else None
        if columns is None:
            columns = [
                field.name for field in schema if is_numeric(field.type) and field.name not in {weight, tolerance}
            ]
        inputs = Inputs(tuple(columns), weight, tolerance)
        require_numeric(schema, inputs.names, self.who)
        if not columns:
            raise JobError(f"{self.who}: the table has no numeric column.")
        return inputs

    def _check(self, seen: CovarianceSums, columns: Sequence[str]) -> None:
        """Refuse what cannot be clustered, without showing a value."""
        require_values(seen, columns, self.who)
        if self.nulls == "refuse":
            advice = ". nulls='drop' leaves such records out, nulls='partial' uses the values they have."
            require_complete(seen, columns, seen.rows, self.who, advice)
        if self.standardise:
            require_varied(seen, columns, self.who)
        require_records(seen.rows, self.clusters, self.who)
        if self.nulls == "drop" and not seen.complete > 0.0:
            raise InputError(f"{self.who}: no record is complete, so nulls='drop' leaves none. nulls='partial' would.")

    def _solve(self, source: Table, preparation: Preparation, model: ClusterModel, key: Subkey) -> Solution:
        """Cluster a sample in one task; if it is not all of the data, go on with passes over all of it."""
        names, variant, rows = preparation.inputs.names, self.variant, source.rows
        share, values = sample_share(rows), source.floats(names)
        sampled = partial(preparation.sample, key.subkey("sample"), share)
        sample = values.with_positions().persist_joined(sampled, joined, "sample")
        draws = start_draws(key.subkey("starts"), self.starts, self.clusters)
        initial = self._initial(preparation)
        start = partial(best_start, model, initial, draws, self.shift, self.max_passes, variant.accelerate)
        (solution,) = sample.map(start, "starts")
        if share == 1.0:
            report_step(solution.history[-1])
            return solution
        records = values.persist(preparation.records, "persist", size=8 * rows * len(names))
        sweeps = _sweeps(share) if variant.two_grid else 0
        return descend(
            partial(full_pass, model, records),
            solution.centers,
            self.shift,
            self.max_passes,
            better=partial(correct_on, model, sample, sweeps) if sweeps else None,
            accelerate=variant.accelerate,
            report=report_step,
        )

    def _initial(self, preparation: Preparation) -> Floats | None:
        if self.initial is None:
            return None
        initial = np.asarray(self.initial, dtype=np.float64)
        shape = (self.clusters, len(preparation.inputs.columns))
        if initial.shape != shape or not np.isfinite(initial).all():
            raise JobError(f"{self.who}: initial must be {shape[0]} x {shape[1]} finite numbers; got {initial.shape}.")
        return preparation.scale.to_units(initial)


def _sweeps(share: float) -> int:
    """Passes over a sample of this share in one two-grid correction; 0 where it is not worth making."""
    limits = current_limits()
    most = int(limits.correction_passes / share)
    return most if most >= limits.fewest_sweeps else 0
