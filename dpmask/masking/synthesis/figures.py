"""What synthetic values came to: how large their models are, how many originals they show, what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.results import Exhibit

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_SAME = 1e-6
"""A value counts as reproduced that is nearer to its original than this share of the standard deviation."""
_FEW = 2
"""A model is small that has no more than so many records for each of its coefficients."""


class Made(NamedTuple):
    """Synthetic values (dependents x rows) in original units, at each stage from a recipe to the release."""

    raw: Floats
    held: Floats  # to their bounds
    finished: Floats  # and rounded to their type


class Seen(NamedTuple):
    """One block's share. The first six have an entry for each dependent."""

    values: Integers
    reproduced: Integers
    on_plane: Integers
    clipped: Integers
    rounded: Integers
    squares: Floats  # squared differences to the originals, in standard deviations
    sizes: tuple[Integers, ...]  # for each group of dependents the records of each model

    @staticmethod
    def of(original: Floats, predicted: Floats, made: Made, sd: Floats, sizes: list[Integers]) -> Seen:
        """What made values (dependents x rows) are like beside the originals and the models' rounded predictions."""
        raw, held, finished = made
        moved = (finished - original) / sd[:, None]
        return Seen(
            (~np.isnan(finished)).sum(axis=1),
            (np.abs(moved) <= _SAME).sum(axis=1),
            (np.abs(finished - predicted) <= _SAME * sd[:, None]).sum(axis=1),
            (np.abs(held - raw) > 0.0).sum(axis=1),
            (np.abs(finished - held) > 0.0).sum(axis=1),
            np.nansum(moved**2, axis=1),
            tuple(sizes),
        )

    def plus(self, other: Seen) -> Seen:
        """Both parts together."""
        return Seen(
            self.values + other.values,
            self.reproduced + other.reproduced,
            self.on_plane + other.on_plane,
            self.clipped + other.clipped,
            self.rounded + other.rounded,
            self.squares + other.squares,
            tuple(one + two for one, two in zip(self.sizes, other.sizes, strict=True)),
        )


@dataclass(frozen=True)
class ColumnFigures:
    """One dependent, as shares of its released values."""

    column: str
    values: int
    reproduced: float
    on_plane: float
    clipped: float
    rounded: float
    loss: float

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        touched = {name: round(getattr(self, name) * self.values) for name in ("clipped", "rounded")}
        return {
            "column": self.column,
            "values": self.values,
            "reproduced": self.reproduced,
            "on_plane": self.on_plane,
            **touched,
            "loss": self.loss,
        }


@dataclass(frozen=True)
class ModelFigures:
    """The models of one group of dependents."""

    columns: tuple[str, ...]
    sizes: tuple[int, ...]
    dissolved: int
    coefficients: int

    @property
    def smallest(self) -> int:
        """Records of the smallest model that is used."""
        return min(size for size in self.sizes if size)

    @property
    def small(self) -> float:
        """Share of records whose model is small."""
        return sum(size for size in self.sizes if size <= _FEW * self.coefficients) / sum(self.sizes)

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {
            "columns": list(self.columns),
            "models": len(self.sizes),
            "dissolved": self.dissolved,
            "coefficients": self.coefficients,
            "smallest": self.smallest,
            "small": self.small,
        }


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
    "values": Exhibit("number", term="synthesised"),
    "reproduced": Exhibit("share"),
    "on_plane": Exhibit("share", "on its model's hyperplane", term="on_planes"),
    "clipped": Exhibit("number"),
    "rounded": Exhibit("number"),
    "loss": Exhibit("number", "mean squared error, standardised"),
}


@dataclass(frozen=True)
class SynthesisFigures:
    """All models and dependents; a policy judges the worst of them."""

    groups: tuple[ModelFigures, ...]
    columns: tuple[ColumnFigures, ...]

    judged: ClassVar[tuple[str, ...]] = ("smallest", "small", "reproduced", "on_planes", "loss")
    exhibits: ClassVar[Mapping[str, Exhibit]] = {
        "models": Exhibit("rows", "Models", of=_MODELS),
        "columns": Exhibit("rows", "Synthetic values", of=_COLUMNS),
    }

    @property
    def smallest(self) -> int:
        """Records of the smallest model."""
        return min(group.smallest for group in self.groups)

    @property
    def small(self) -> float:
        """The largest share of records whose model has at most two records for each coefficient."""
        return max(group.small for group in self.groups)

    @property
    def reproduced(self) -> float:
        """The largest share of a dependent's values that are released as they were."""
        return max(column.reproduced for column in self.columns)

    @property
    def on_planes(self) -> float:
        """The largest share of a dependent's values that are just what their model says, rounded to their type."""
        return max(column.on_plane for column in self.columns)

    @property
    def loss(self) -> float:
        """Mean squared error of a standardised dependent, over all of them."""
        return sum(column.loss for column in self.columns) / len(self.columns)

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {
            **{name: getattr(self, name) for name in self.judged},
            "models": [group.to_dict() for group in self.groups],
            "columns": [column.to_dict() for column in self.columns],
        }


def make_figures(
    seen: Seen,
    groups: Sequence[Sequence[str]],
    columns: Sequence[str],
    dissolved: Sequence[int],
    coefficients: int,
) -> SynthesisFigures:
    """The figures of all blocks together."""
    total = np.maximum(seen.values, 1)
    models = [
        ModelFigures(tuple(group), tuple(sizes.tolist()), gone, coefficients)
        for group, sizes, gone in zip(groups, seen.sizes, dissolved, strict=True)
    ]
    parts = (seen.reproduced, seen.on_plane, seen.clipped, seen.rounded, seen.squares)
    lines = zip(columns, seen.values.tolist(), *((part / total).tolist() for part in parts), strict=True)
    return SynthesisFigures(tuple(models), tuple(ColumnFigures(*line) for line in lines))
