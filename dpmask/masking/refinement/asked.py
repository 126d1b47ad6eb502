"""The requirements of a refinement as its search takes them: sets of columns, by number, and how results name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmask.kernels.arrays import Floats
from dpmask.kernels.refinement.cells import Sensitive
from dpmask.masking.refinement.figures import ModelFigure
from dpmask.masking.refinement.solution import Quasi
from dpmask.table.requirement import HOUSEHOLDS, RECORDS, Requirement
from dpmask.table.sensitive import SensitiveColumn, limits_of


@dataclass(frozen=True)
class AskedGroups:
    """The requirements, all columns that they group records by, and all sensitive ones, each once."""

    requirements: tuple[Requirement, ...]
    grouped: tuple[str, ...]
    sensitive: tuple[str, ...]

    def quasis(self, columns: Mapping[str, SensitiveColumn]) -> list[Quasi]:
        """The sets of columns that no other one covers (observation 3.1); those of households last."""
        given = {
            (frozenset(sets), one.k, frozenset(one.models), one.of): (sets, one)
            for one in sorted(self.requirements, key=lambda one: one.of == HOUSEHOLDS)
            for sets in one.sets
        }
        kept = [
            pair
            for key, pair in given.items()
            if len(self.requirements) == 1 or not any(_covers(other, key) for other in given if other != key)
        ]
        return [self._quasi(names, one, columns) for names, one in kept]

    def _quasi(self, names: Sequence[str], one: Requirement, columns: Mapping[str, SensitiveColumn]) -> Quasi:
        codes = [len(self.grouped) + self.sensitive.index(column) for column in one.sensitive]
        ends = np.cumsum([0, *(columns[column].encoder.size for column in one.sensitive)]).tolist()
        among = None if one.known is None else self.requirements.index(one)
        beside = Sensitive(tuple(codes), tuple(ends[:-1]), ends[-1])
        limits, of = tuple(limits_of(one, columns)), one.of == HOUSEHOLDS
        return Quasi(tuple(map(self.grouped.index, names)), one.k, beside, limits, among, of)

    def name(self, quasi: Quasi) -> str:
        """What a quasi-identifier is called in figures: all sets of one requirement alike."""
        if quasi.among is not None:
            return str(self.requirements[quasi.among].name)
        columns = tuple(self.grouped[number] for number in quasi.attributes)
        return Requirement(columns, quasi.k, of=HOUSEHOLDS if quasi.of_households else RECORDS).name

    def smallest(self, quasis: Sequence[Quasi], sizes: Sequence[int]) -> dict[str, int]:
        """The smallest group of each requirement."""
        found: dict[str, int] = {}
        for quasi, size in zip(quasis, sizes, strict=True):
            found[self.name(quasi)] = min(size, found.get(self.name(quasi), size))
        return found

    def model_figures(self, quasis: Sequence[Quasi], worst: Sequence[Floats]) -> tuple[ModelFigure, ...]:
        """The worst figure of each limit in the groups of each requirement."""
        found: dict[tuple[str, str, float], ModelFigure] = {}
        for quasi, figures in zip(quasis, worst, strict=True):
            for limit, signed in zip(quasi.limits, figures.tolist(), strict=True):
                sign, bound = limit.condition.sign, limit.condition.limit
                key = self.name(quasi), limit.name, bound
                known = found.get(key)
                figure = signed if known is None else max(signed, sign * known.figure)
                found[key] = ModelFigure(key[0], limit.model.model, limit.name, sign * figure, bound)
        return tuple(found.values())


def _covers(other: Any, given: Any) -> bool:
    alike = other[3] in (given[3], HOUSEHOLDS)  # of k households alike each member has k like it
    return bool(alike and given[0] <= other[0] and given[1] <= other[1] and given[2] <= other[2])
