"""What synthetic values came to: how large their models are, how many originals they show, what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import add
from typing import ClassVar, NamedTuple

import numpy as np

from dpmask.kernels.arrays import Floats, Integers
from dpmask.results import LESS_RISK, MORE_LOSS, MORE_RISK, NEUTRAL, Exhibit, Result, Term, worst

_SAME = 1e-6
"""A value counts as reproduced that is nearer to its original than this share of the standard deviation."""
_FEW = 2
"""A model is small that has no more than so many records for each of its coefficients."""


class SyntheticValues(NamedTuple):
    """Dependents x rows in original units, at each stage from a recipe to the release."""

    raw: Floats
    clipped: Floats  # to their bounds
    finished: Floats  # and rounded to their type


class SynthesisSums(NamedTuple):
    """One block's share. The first six have an entry for each dependent."""

    values: Integers
    reproduced: Integers
    on_plane: Integers
    clipped: Integers
    rounded: Integers
    squares: Floats  # squared differences to the originals, in standard deviations
    sizes: tuple[Integers, ...]  # for each group of dependents the records of each model

    @staticmethod
    def of(
        original: Floats, predicted: Floats, values: SyntheticValues, sd: Floats, sizes: list[Integers]
    ) -> SynthesisSums:
        """How values compare with the originals and the models' rounded predictions (dependents x rows)."""
        raw, clipped, finished = values
        moved = (finished - original) / sd[:, None]
        return SynthesisSums(
            (~np.isnan(finished)).sum(axis=1),
            (np.abs(moved) <= _SAME).sum(axis=1),
            (np.abs(finished - predicted) <= _SAME * sd[:, None]).sum(axis=1),
            (np.abs(clipped - raw) > 0.0).sum(axis=1),
            (np.abs(finished - clipped) > 0.0).sum(axis=1),
            np.nansum(moved**2, axis=1),
            tuple(sizes),
        )

    def plus(self, other: SynthesisSums) -> SynthesisSums:
        """Both parts together."""
        return SynthesisSums._make([*map(add, self[:-1], other[:-1]), tuple(map(add, self.sizes, other.sizes))])


@dataclass(frozen=True)
class ModelFigures:
    """The models of one group of dependents."""

    columns: tuple[str, ...]
    models: int
    dissolved: int
    coefficients: int
    smallest: int
    """Records of the smallest model that is used."""
    small: float
    """Share of records whose model is small."""


def model_figures(columns: Sequence[str], sizes: Sequence[int], dissolved: int, coefficients: int) -> ModelFigures:
    """The figures of models that so many records have each."""
    small = sum(size for size in sizes if size <= _FEW * coefficients) / sum(sizes)
    return ModelFigures(tuple(columns), len(sizes), dissolved, coefficients, min(size for size in sizes if size), small)


@dataclass(frozen=True)
class ColumnFigures:
    """One dependent: numbers of its released values, and shares of them."""

    column: str
    values: int
    reproduced: float
    on_plane: float
    clipped: int
    rounded: int
    loss: float


_GUIDE = "dpmask explain regression_synthesis"
_MODELS = {
    "columns": Exhibit("text", "dependents"),
    "models": Exhibit("number"),
    "dissolved": Exhibit("number"),
    "coefficients": Exhibit("number", "coefficients of each"),
    "smallest": Exhibit("number", "records of the smallest"),
    "small": Exhibit("share", "records in small models"),
}
_COLUMNS = {
    "column": Exhibit("text"),
    "values": Exhibit("number"),
    "reproduced": Exhibit("share"),
    "on_plane": Exhibit("share", "on its model's hyperplane"),
    "clipped": Exhibit("number"),
    "rounded": Exhibit("number"),
    "loss": Exhibit("number", "mean squared error, standardised"),
}


@dataclass(frozen=True)
class SynthesisFigures(Result):
    """All models and dependents; a policy judges the worst of them."""

    models: tuple[ModelFigures, ...]
    columns: tuple[ColumnFigures, ...]

    judged: ClassVar[tuple[str, ...]] = ("smallest", "small", "reproduced", "on_planes", "loss")
    exhibits: ClassVar[Mapping[str, Exhibit]] = {
        "models": Exhibit("rows", "Models", of=_MODELS),
        "columns": Exhibit("rows", "Synthetic values", of=_COLUMNS),
    }
    about: ClassVar[Term] = Term(
        "How large the models behind the synthetic values are, how many originals the values show, and what they cost.",
        NEUTRAL,
        _GUIDE,
    )
    terms: ClassVar[Mapping[str, Term]] = {
        "smallest": Term("Records of the smallest model.", LESS_RISK, _GUIDE),
        "small": Term("Share of records whose model has at most two records for each coefficient.", MORE_RISK, _GUIDE),
        "reproduced": Term("Largest share of a column's values that are released as they were.", MORE_RISK, _GUIDE),
        "on_planes": Term("Largest share of a column's values that equal their model's prediction.", MORE_RISK, _GUIDE),
        "on_plane": Term("Share of a column's values that equal their model's prediction.", MORE_RISK, _GUIDE),
        "loss": Term(
            "Mean squared error of a standardised variable.",
            MORE_LOSS,
            "Domingo-Ferrer and Mateo-Sanz 2002, Practical data-oriented microaggregation",
        ),
        "models": Term("Regressions that a set of dependents was synthesised by.", NEUTRAL, _GUIDE),
        "dissolved": Term("Models with too few records, whose records went to others.", NEUTRAL, _GUIDE),
        "coefficients": Term("Numbers that a model consists of, for each dependent.", NEUTRAL, _GUIDE),
        "values": Term("Values that were replaced by a model's prediction.", NEUTRAL, _GUIDE),
        "clipped": Term("Values that were clipped to a bound.", NEUTRAL, _GUIDE),
        "rounded": Term("Values that were rounded to their type.", NEUTRAL, _GUIDE),
    }

    smallest = worst("models", "smallest", min, "Records of the smallest model.")
    small = worst(
        "models", "small", max, "The largest share of records whose model has at most two records for each coefficient."
    )
    reproduced = worst(
        "columns", "reproduced", max, "The largest share of a dependent's values that are released as they were."
    )
    on_planes = worst(
        "columns",
        "on_plane",
        max,
        "The largest share of a dependent's values that equal their model's prediction, rounded to their type.",
    )

    @property
    def loss(self) -> float:
        """Mean squared error of a standardised dependent, over all of them."""
        return sum(column.loss for column in self.columns) / len(self.columns)

    def explain(self) -> str:
        """What the numbers mean, in a sentence."""
        return (
            f"The smallest model has {self.smallest} records; up to {self.reproduced:.1%} of a column's values are "
            f"released as they were and up to {self.on_planes:.1%} equal their model's prediction; the mean squared "
            f"error of a standardised dependent is {self.loss:.4g}."
        )


def synthesis_figures(
    sums: SynthesisSums,
    groups: Sequence[Sequence[str]],
    columns: Sequence[str],
    dissolved: Sequence[int],
    coefficients: int,
) -> SynthesisFigures:
    """The figures of all blocks together."""
    total = np.maximum(sums.values, 1)
    models = [
        model_figures(group, sizes.tolist(), gone, coefficients)
        for group, sizes, gone in zip(groups, sums.sizes, dissolved, strict=True)
    ]
    shares = ((part / total).tolist() for part in (sums.reproduced, sums.on_plane))
    counts = (part.tolist() for part in (sums.clipped, sums.rounded))
    lines = zip(columns, sums.values.tolist(), *shares, *counts, (sums.squares / total).tolist(), strict=True)
    return SynthesisFigures(tuple(models), tuple(ColumnFigures(*line) for line in lines))
