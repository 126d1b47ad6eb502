"""Fuzzy c-means and entropy-based fuzzy c-means, with tolerance and linear constraints, over Dask.

Every record belongs to every cluster to a degree u_ik. Fuzziness m (FCM) or the entropy weight lambda (EFCM) sets how
sharply: m near 1 and large lambda are almost crisp. A tolerance kappa lets each record move towards the centres by up
to that distance before it counts; constraints such as net + tax = gross hold for every centre, in original units.

Papers: Torra 2020 (EFCM, constraints: Props. 1-5), Torra, Endo and Miyamoto 2009 (tolerance). Passes over the data: one
for the covariance, then one for each iteration, usually below 12 (dpmask.clustering.iteration). Memory per task: one
block of the clustered columns; blocks stay in memory between passes where they fit. Nothing of size records x clusters
is computed, but for ``memberships``, which are lazy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmask.clustering.fitted_fuzzy_c_means import FittedFuzzyCMeans
from dpmask.clustering.fuzzy_passes import (
    as_persisted,
    best_start,
    correct_on,
    count_moving,
    count_trapped,
    full_pass,
    report_step,
)
from dpmask.clustering.iteration import Model, Solution, descend, start_draws
from dpmask.clustering.scaling import (
    Constrained,
    Inputs,
    Preparation,
    collapse_threshold,
    constrained,
    covariance_of,
    joined,
)
from dpmask.clustering.settings import SearchSettings
from dpmask.engine.draws import Subkey, make_key
from dpmask.engine.passes import Blocks, fits_in_memory, hold_blocks, hold_joined, map_blocks
from dpmask.errors import InputError, JobError
from dpmask.kernels.covariance import CovarianceSums
from dpmask.kernels.fuzzy.center_sums import largest_fuzziness
from dpmask.parameters import require_choice, require_flag, require_integer, require_number
from dpmask.table import table as tables
from dpmask.table.checks import require_complete, require_values, require_varied
from dpmask.table.columns import is_numeric, require_numeric
from dpmask.table.encoders.numeric import Scale

Floats = NDArray[np.float64]

__all__ = ["FittedFuzzyCMeans", "FuzzyCMeans"]

_DEFAULT_FUZZINESS = 2.0
_ENTROPY_FACTOR = 10.0


@dataclass(frozen=True, kw_only=True)
class FuzzyCMeans:
    """Fuzzy c-means: every record belongs to every cluster to a degree.

    Parameters
    ----------
    clusters
        How many clusters.
    fuzziness
        The papers' m: 1 is crisp, 2 the default. Above 3 the starts lie off the records, where they would be trapped.
    entropy
        The papers' lambda, of the entropy model, in place of fuzziness; "auto" is ten times the value below which all
        centres collapse into one.
    tolerance
        The papers' kappa, in clustering units (standard deviations when standardised): a number, or the name of a
        column with one for each record.
    constraints
        Equations and bounds that every centre satisfies, such as "net + tax = gross" or "age >= 0".
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
    accelerate
        Whether passes are saved by Anderson acceleration.
    two_grid
        Whether passes over large tables are saved by corrections on a sample.
    nulls
        "refuse", "drop" records with a missing value, or "partial" distances over the values a record has.

    Examples
    --------
    >>> import dpmask, pandas
    >>> people = pandas.DataFrame({"net": [1.0, 2.0, 3.0, 11.0, 12.0, 13.0]})
    >>> fitted = dpmask.FuzzyCMeans(clusters=2, fuzziness=1.5).fit(people, seed=1)
    >>> sorted(fitted.centers[:, 0].round(1).tolist())
    [2.0, 12.0]
    >>> fitted.labels(people).nunique()
    2
    """

    clusters: int
    fuzziness: float | None = None
    entropy: float | str | None = None
    tolerance: float | str | None = None
    constraints: tuple[str, ...] = ()
    starts: int = 20
    standardise: bool = True
    initial: Any = field(default=None, repr=False)
    max_passes: int = 1000
    shift: float = 1e-6
    accelerate: bool = True
    two_grid: bool = True
    nulls: str = "refuse"

    who: ClassVar[str] = "FuzzyCMeans"
    settings: ClassVar[SearchSettings] = SearchSettings()

    def __post_init__(self) -> None:
        for name in ("clusters", "starts", "max_passes"):
            require_integer(self, name, at_least=1)
        for name in ("standardise", "accelerate", "two_grid"):
            require_flag(self, name)
        require_number(self, "shift", above=0)
        require_choice(self, "nulls", ("refuse", "drop", "partial"))
        if self.fuzziness is not None and self.entropy is not None:
            raise JobError(f"{self.who}: give either fuzziness or entropy, not both.")
        if self.fuzziness is not None:
            require_number(self, "fuzziness", at_least=1, at_most=largest_fuzziness(self.clusters))
        if self.entropy is not None and self.entropy != "auto":
            require_number(self, "entropy", above=0)
        if self.tolerance is not None and not isinstance(self.tolerance, str):
            require_number(self, "tolerance", at_least=0)
        texts = (self.constraints,) if isinstance(self.constraints, str) else tuple(self.constraints)
        object.__setattr__(self, "constraints", texts)

    def fit(
        self,
        table: Any,
        *,
        columns: Sequence[str] | None = None,
        weight: str | None = None,
        key: str | bytes | Subkey | None = None,
        seed: int | None = None,
    ) -> FittedFuzzyCMeans:
        """Find the centres.

        Parameters
        ----------
        table
            A pandas or Dask DataFrame, or a lake.
        columns
            The columns to cluster by; all numeric ones but weight and tolerance by default.
        weight
            A column of weights: a record with weight 3 counts as three.
        key, seed
            What the starts and the sample are drawn by; seed 0 by default.
        """
        subkey = make_key(self.who, key=key, seed=0 if key is None and seed is None else seed).subkey("fuzzy c-means")
        source = tables.as_table(table, self.who)
        inputs = self._inputs(source.masked_schema, columns, weight)
        seen = covariance_of(source, inputs, self.who)
        self._check(seen, inputs.columns)
        scale = Scale(seen.mean, seen.sd) if self.standardise else Scale(0.0 * seen.mean, 0.0 * seen.mean + 1.0)
        limits = constrained(self.constraints, inputs.columns, scale, self.who)
        covariance = seen.covariance / np.outer(scale.sd, scale.sd)
        threshold = collapse_threshold(covariance, limits.units if limits else None)
        model = self._model(threshold, limits)
        preparation = Preparation(inputs, scale, self.nulls == "drop", self.who)
        solution = self._solve(source, preparation, model, subkey)
        centers = limits.released(solution.centers, scale) if limits else scale.to_original(solution.centers)
        trapped = count_trapped(source, preparation, model, solution.centers)
        unsettled = count_moving(source, preparation, model, solution.centers)
        fitted = FittedFuzzyCMeans(self, preparation, model, solution, centers, threshold, trapped, unsettled)
        return fitted.with_warnings()

    def _inputs(self, schema: Any, columns: Sequence[str] | None, weight: str | None) -> Inputs:
        tolerance = self.tolerance if isinstance(self.tolerance, str) else None
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
        if seen.rows < self.clusters:
            raise InputError(
                f"{self.who}: {self.clusters} clusters need at least as many records; there are {seen.rows}."
            )
        if self.nulls == "drop" and not seen.complete > 0.0:
            raise InputError(f"{self.who}: no record is complete, so nulls='drop' leaves none. nulls='partial' would.")

    def _model(self, threshold: float, limits: Constrained | None) -> Model:
        entropy = _ENTROPY_FACTOR * threshold if self.entropy == "auto" else self.entropy
        fuzziness = None if entropy is not None else self.fuzziness or _DEFAULT_FUZZINESS
        tolerance = None if isinstance(self.tolerance, str) else self.tolerance
        feasible = limits.units if limits else None
        return Model(fuzziness, entropy, tolerance, self.nulls == "partial", feasible)  # type: ignore[arg-type]

    def _solve(self, source: tables.Table, preparation: Preparation, model: Model, key: Subkey) -> Solution:
        """Cluster a sample in one task; if it is not all of the data, go on with passes over all of it."""
        names = preparation.inputs.names
        share = self.settings.share(source.rows)
        sampled = source.on_floats(names, partial(preparation.sample, key.subkey("sample"), share))
        sample = hold_joined(sampled, joined, source.blocks, "sample")
        draws = start_draws(key.subkey("starts"), self.starts, self.clusters)
        initial = self._initial(preparation)
        start = partial(best_start, model, initial, draws, self.shift, self.max_passes, self.accelerate)
        (solution,) = map_blocks(start, sample, "starts")
        if share == 1.0:
            report_step(solution.history[-1])
            return solution
        read = source.on_floats(names, preparation.records)
        blocks: Blocks = source.blocks
        if fits_in_memory(source.rows * len(names) * 8):
            blocks, read = hold_blocks(read, blocks, "hold"), as_persisted
        one_pass = partial(full_pass, model, read, blocks)
        sweeps = self.settings.sweeps(source.rows) if self.two_grid else 0
        better = partial(correct_on, model, sample, sweeps) if sweeps else None
        return descend(
            one_pass,
            solution.centers,
            self.shift,
            self.max_passes,
            better=better,
            accelerate=self.accelerate,
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
