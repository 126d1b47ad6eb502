"""What synthetic values came to: how large their models are, how many originals they show, what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_SAME = 1e-6
"""A value counts as reproduced that is nearer to its original than this share of the standard deviation."""
_FEW = 2
"""A model is small that has no more than so many records for each of its coefficients."""


class Seen(NamedTuple):
    """One block's share. The first five have an entry for each dependent."""

    values: Integers
    reproduced: Integers
    clipped: Integers
    rounded: Integers
    squares: Floats  # squared differences to the originals, in standard deviations
    sizes: tuple[Integers, ...]  # for each group of dependents the records of each model

    @staticmethod
    def of(original: Floats, raw: Floats, held: Floats, finished: Floats, sd: Floats, sizes: list[Integers]) -> Seen:
        """What values (dependents x rows) are like, at each stage from the prediction to the release."""
        moved = (finished - original) / sd[:, None]
        return Seen(
            (~np.isnan(finished)).sum(axis=1),
            (np.abs(moved) <= _SAME).sum(axis=1),
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


@dataclass(frozen=True)
class SynthesisFigures:
    """All models and dependents; a policy judges the worst of them."""

    groups: tuple[ModelFigures, ...]
    columns: tuple[ColumnFigures, ...]
    on_planes: bool
    """Whether every value lies exactly where its model says, but for rounding and bounds."""

    judged: ClassVar[tuple[str, ...]] = ("smallest", "small", "reproduced", "loss")

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
    def loss(self) -> float:
        """Mean squared error of a standardised dependent, over all of them."""
        return sum(column.loss for column in self.columns) / len(self.columns)

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {
            **{name: getattr(self, name) for name in self.judged},
            "on_planes": self.on_planes,
            "models": [group.to_dict() for group in self.groups],
            "columns": [column.to_dict() for column in self.columns],
        }


def make_figures(
    seen: Seen,
    groups: Sequence[Sequence[str]],
    columns: Sequence[str],
    dissolved: Sequence[int],
    coefficients: int,
    *,
    on_planes: bool,
) -> SynthesisFigures:
    """The figures of all blocks together."""
    total = np.maximum(seen.values, 1)
    models = [
        ModelFigures(tuple(group), tuple(sizes.tolist()), gone, coefficients)
        for group, sizes, gone in zip(groups, seen.sizes, dissolved, strict=True)
    ]
    shares = (seen.reproduced / total, seen.clipped / total, seen.rounded / total, seen.squares / total)
    lines = zip(columns, seen.values.tolist(), *(share.tolist() for share in shares), strict=True)
    return SynthesisFigures(tuple(models), tuple(ColumnFigures(*line) for line in lines), on_planes)
