"""Fuzzy c-means and entropy-based fuzzy c-means, with tolerance and linear constraints, over Dask.

Every record belongs to every cluster to a degree u_ik. Fuzziness m (FCM) or the entropy weight lambda (EFCM) says how
sharply: m near 1 and large lambda are almost crisp. A tolerance kappa lets each record move towards the centres by up
to that distance before it counts; constraints such as net + tax = gross hold for every centre, in original units.

Papers: Torra 2020 (EFCM, constraints: Props. 1-5), Torra, Endo and Miyamoto 2009 (tolerance). Passes over the data: one
for the spread, then one for each iteration, usually below 12 (see dpmask.clustering.iteration). Memory per task: one
block of the clustered columns; blocks stay in memory between passes where they fit. Nothing of size records x clusters
is made, but for ``memberships``, which are lazy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmask.clustering.fitted import FittedClustering
from dpmask.clustering.iteration import (
    TRAPPING,
    Model,
    Records,
    Solution,
    Step,
    corrected,
    descend,
    first_centers,
    solve,
    start_draws,
)
from dpmask.clustering.scaling import (
    Constrained,
    Inputs,
    Preparation,
    Scale,
    collapse_threshold,
    constrained,
    joined,
    spread_of,
)
from dpmask.clustering.settings import SearchSettings
from dpmask.engine import progress
from dpmask.engine.draws import Subkey, make_key
from dpmask.engine.passes import Blocks, Span, fits_in_memory, hold_blocks, hold_joined, map_blocks, reduce_blocks
from dpmask.errors import InputError, JobError
from dpmask.kernels.covariance import Spread
from dpmask.kernels.fuzzy.center_sums import CenterSums, labels, largest_fuzziness, memberships, merge
from dpmask.kernels.fuzzy.draws import Closeness, closeness, merge_closeness
from dpmask.parameters import require_choice, require_flag, require_integer, require_number
from dpmask.table import table as tables
from dpmask.table.columns import is_numeric, require_numeric

Floats = NDArray[np.float64]

_DEFAULT_FUZZINESS = 2.0
_ENTROPY_FACTOR = 10.0
_COINCIDENT = 1e-6
_MOST = 0.5


@dataclass(frozen=True, kw_only=True)
class FuzzyCMeans:
    """Parameters of a fuzzy clustering.

    ``fuzziness`` is the papers' m (1 is crisp, 2 if nothing is said); ``entropy`` their lambda, or "auto" for ten times
    the value below which all centres collapse into one. ``tolerance`` is kappa in clustering units (standard deviations
    when standardised): a number, or the name of a column that holds one for each record. ``constraints`` are written as
    in "net + tax = gross" or "age >= 0". ``nulls``: "refuse", "drop" records with a missing value, or "partial"
    distances over the values a record has. The centres move less than ``shift`` in the last pass. ``two_grid`` and
    ``accelerate`` save passes, never change the result.
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
        """Find the centres. Without columns: all numeric ones but weight and tolerance. Without seed: seed 0."""
        subkey = make_key(self.who, key=key, seed=0 if key is None and seed is None else seed).subkey("fuzzy c-means")
        source = tables.as_table(table, self.who)
        inputs = self._inputs(source.masked_schema, columns, weight)
        seen = spread_of(source, inputs, self.who)
        self._check(seen, inputs.columns)
        scale = Scale(seen.mean, seen.sd) if self.standardise else Scale(0.0 * seen.mean, 0.0 * seen.mean + 1.0)
        limits = constrained(self.constraints, inputs.columns, scale, self.who)
        covariance = seen.covariance / np.outer(scale.sd, scale.sd)
        threshold = collapse_threshold(covariance, limits.units if limits else None)
        model = self._model(threshold, limits)
        preparation = Preparation(inputs, scale, self.nulls == "drop", self.who)
        solution = self._solve(source, preparation, model, subkey)
        centers = limits.released(solution.centers, scale) if limits else scale.to_original(solution.centers)
        trapped = self._trapped(source, preparation, model, solution.centers)
        return FittedFuzzyCMeans(self, preparation, model, solution, centers, threshold, trapped)._with_warnings()

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

    def _check(self, seen: Spread, columns: Sequence[str]) -> None:
        """Refuse what cannot be clustered, without showing a value."""
        for number, name in enumerate(columns):
            missing = seen.rows - seen.values[number] - seen.infinite[number]
            if seen.infinite[number]:
                raise InputError(
                    f"{self.who}: column '{name}' holds infinite values in {seen.infinite[number]} records."
                )
            if not seen.values[number]:
                raise InputError(f"{self.who}: column '{name}' has no value in any record. Take it out of columns.")
            if missing and self.nulls == "refuse":
                raise InputError(
                    f"{self.who}: column '{name}' is missing in {missing} records. nulls='drop' leaves such records "
                    "out, nulls='partial' uses the values they have."
                )
            if self.standardise and not (seen.low[number] < seen.high[number] and seen.sd[number] > 0.0):
                raise InputError(
                    f"{self.who}: column '{name}' is constant, it cannot be standardised. Take it out of columns."
                )
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
        start = partial(_start, model, self._initial(preparation), draws, self)
        (solution,) = map_blocks(start, sample, "starts")
        if share == 1.0:
            _report(solution.history[-1])
            return solution
        read = source.on_floats(names, preparation.records)
        blocks: Blocks = source.blocks
        if fits_in_memory(source.rows * len(names) * 8):
            blocks, read = hold_blocks(read, blocks, "hold"), _as_held
        one_pass = partial(_full_pass, model, read, blocks)
        sweeps = self.settings.sweeps(source.rows) if self.two_grid else 0
        better = partial(_correct_on, model, sample, sweeps) if sweeps else None
        return descend(
            one_pass,
            solution.centers,
            self.shift,
            self.max_passes,
            better=better,
            accelerate=self.accelerate,
            report=_report,
        )

    def _trapped(self, source: tables.Table, preparation: Preparation, model: Model, centers: Floats) -> int:
        """How many centres owe most of their weight to one record, at a fuzziness where such a centre cannot leave it."""
        if model.fuzziness is None or model.fuzziness <= TRAPPING:
            return 0
        near = source.on_floats(preparation.inputs.names, partial(_closeness, model, preparation, centers))
        found = reduce_blocks(near, merge_closeness, source.blocks, "fuzzy c-means: centres on records")
        return int((found.share > _MOST).sum())

    def _initial(self, preparation: Preparation) -> Floats | None:
        if self.initial is None:
            return None
        initial = np.asarray(self.initial, dtype=np.float64)
        shape = (self.clusters, len(preparation.inputs.columns))
        if initial.shape != shape or not np.isfinite(initial).all():
            raise JobError(f"{self.who}: initial must be {shape[0]} x {shape[1]} finite numbers; got {initial.shape}.")
        return preparation.scale.to_units(initial)


def _start(
    model: Model, initial: Floats | None, draws: Floats, method: FuzzyCMeans, records: Records, span: Span
) -> Solution:
    starts = first_centers(model, records, draws) if initial is None else initial[None]
    return solve(model, records, starts, method.shift, method.max_passes, accelerate=method.accelerate)


def _closeness(
    model: Model, preparation: Preparation, centers: Floats, columns: Sequence[Floats], span: Span
) -> Closeness:
    values = preparation._replace(drop=True).records(columns, span).values
    return closeness(values, centers, fuzziness=model.fuzziness)


def _as_held(content: Records, span: Span) -> Records:
    return content


def _full_pass(model: Model, read: Callable[..., Records], blocks: Blocks, centers: Floats) -> tuple[Floats, float]:
    sums = reduce_blocks(partial(_block_sums, model, read, centers[None]), merge, blocks, "fuzzy c-means")
    return model.image(sums, centers[None])[0], float(sums.objective[0])


def _block_sums(model: Model, read: Callable[..., Records], centers: Floats, content: Any, span: Span) -> CenterSums:
    return model.sums(read(content, span), centers)


def _correct_on(model: Model, sample: Blocks, sweeps: int, point: Floats, image: Floats) -> Floats:
    (better,) = map_blocks(partial(_correct, model, point, image, sweeps), sample, "two grids")
    return better


def _correct(model: Model, point: Floats, image: Floats, sweeps: int, records: Records, span: Span) -> Floats:
    return corrected(model, records, point, image, sweeps)


def _report(step: Step) -> None:
    progress.note(f"fuzzy c-means: pass {step.number}, objective {step.objective:.8g}, shift {step.shift:.2g}")


@dataclass(frozen=True, repr=False)
class FittedFuzzyCMeans(FittedClustering):
    """Centres in original units, and how they were found."""

    method: FuzzyCMeans
    preparation: Preparation
    model: Model
    solution: Solution
    centers: Floats
    threshold: float
    """The entropy weight below which the centres of these data collapse."""
    trapped: int = 0
    """How many centres one record holds, by more than half of their weight; only counted above a fuzziness of 3."""

    @property
    def clusters(self) -> int:
        """How many clusters there are."""
        return len(self.centers)

    def _summary(self) -> dict[str, Any]:
        return super()._summary() | {"converged": self.converged, "columns": ", ".join(self.columns)}

    @property
    def columns(self) -> tuple[str, ...]:
        """The clustered columns, in the order of the centres' second axis."""
        return self.preparation.inputs.columns

    @property
    def objective(self) -> float:
        """J, in the units it was clustered in."""
        return self.solution.objective

    @property
    def history(self) -> tuple[Step, ...]:
        """Objective and shift of every pass whose centres were kept; ``number`` counts all passes."""
        return self.solution.history

    @property
    def passes(self) -> int:
        """Passes over the data that iterated the centres."""
        return self.solution.passes

    iterations = passes

    @property
    def converged(self) -> bool:
        """Whether the last pass moved the centres by less than ``shift``, and no record holds one of them."""
        return self.solution.converged and not self.trapped

    @property
    def coincident(self) -> int:
        """How many centres lie on another one."""
        centers = self.solution.centers
        gaps = np.abs(centers[:, None] - centers[None]).max(axis=2) + np.triu(np.full((len(centers),) * 2, np.inf))
        return int((gaps.min(axis=1, initial=np.inf) < _COINCIDENT).sum())

    def memberships(self, table: Any) -> Any:
        """How much each record belongs to each cluster: a frame of the same kind and index, computed when asked for.

        A record that cannot be placed for missing values has none.
        """
        names = [f"cluster_{number}" for number in range(len(self.centers))]
        return tables.derive(table, self.preparation.inputs.names, partial(self._memberships, names), self.method.who)

    def labels(self, table: Any) -> Any:
        """The nearest centre of each record, as a series; -1 for a record that cannot be placed for missing values."""
        return tables.derive(table, self.preparation.inputs.names, self._labels, self.method.who)["label"]

    def _placed(self, columns: Sequence[Floats]) -> tuple[Records, NDArray[np.bool_]]:
        records = self.preparation._replace(drop=False).records(columns, Span(0, 0))
        present = ~np.isnan(records.values)
        placed: NDArray[np.bool_] = np.any(present, axis=0) if self.model.partial else np.all(present, axis=0)
        return records, placed

    def _memberships(self, names: list[str], columns: Sequence[Floats]) -> dict[str, Any]:
        return dict(zip(names, self.shares(columns), strict=True))

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

    def _labels(self, columns: Sequence[Floats]) -> dict[str, Any]:
        return {"label": self.nearest(columns)}

    def nearest(self, columns: Sequence[Floats]) -> NDArray[np.int64]:
        """The nearest centre of each record of one block, given as its columns; -1 for one that cannot be placed."""
        records, placed = self._placed(columns)
        found = labels(records.values, self.solution.centers, partial=self.model.partial)
        return np.where(placed, found, -1)

    def _with_warnings(self) -> FittedFuzzyCMeans:
        """Say what a user must know of this result."""
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
        if not self.solution.converged:
            self._warn(
                f"after {self.passes} passes the centres still move by {self.history[-1].shift:.2g}. "
                "Raise max_passes or shift."
            )
        return self

    def _warn(self, text: str) -> None:
        warnings.warn(f"{self.method.who}: {text}", stacklevel=4)
