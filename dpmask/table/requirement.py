"""What must hold of groups of equal records: how many they are, and what they may give away of sensitive values.

A requirement is {columns, k, models, known} or {columns, k, of: households}, a model {model, column} and its limits.
Every model only gets worse when a group is split, so that what holds for some columns holds for each part of them, too
(kernels/models.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import combinations
from os import PathLike
from typing import TYPE_CHECKING, Any

from dpmask.errors import JobError, nearest

RECORDS, HOUSEHOLDS = "records", "households"
"""What a requirement counts: people, or households, whose members' rows are the same."""
MISSING = "missing"
"""The name of a missing value, where no text is called so."""
DISTANCES = ("equal", "ordered", "hierarchical")
MOST_SETS = 5000
"""Sets of known columns of one requirement, at most."""

_LIMITS = {
    "distinct_l": "l: an integer >= 2",
    "entropy_l": "l: a number > 1",
    "recursive_l": "c: a number > 0 and l: an integer >= 2",
    "confidence": "values: {VALUE: share, ...}, most: a share for all values, or both",
    "t_closeness": "t: a share, and distance: equal, ordered or hierarchical",
}
MODELS = tuple(_LIMITS)


@dataclass(frozen=True)
class Model:
    """A privacy model of one sensitive column.

    ``limit`` is l (distinct, entropy), c (recursive, whose l is ``rank``), the largest share of any value (confidence,
    with those of named ``values`` apart), or t.
    """

    model: str
    column: str
    limit: float = 1.0
    rank: int = 1
    values: tuple[tuple[str, float], ...] = ()
    distance: str = "equal"

    def to_dict(self) -> dict[str, Any]:
        """As a job spells it."""
        limits: dict[str, dict[str, Any]] = {
            "distinct_l": {"l": self.limit},
            "entropy_l": {"l": self.limit},
            "recursive_l": {"c": self.limit, "l": self.rank},
            "confidence": {"values": dict(self.values)} if self.values else {},
            "t_closeness": {"t": self.limit, "distance": self.distance},
        }
        most = {"most": self.limit} if self.model == "confidence" and self.limit < 1 else {}
        return {"model": self.model, "column": self.column, **limits[self.model], **most}

    def describe(self) -> str:
        """In words, for statements."""
        shares = [f"'{name}' at most {share:.4g}" for name, share in self.values]
        shares += [f"any value at most {self.limit:.4g}"] if self.limit < 1 else []
        return {
            "distinct_l": f"at least {self.limit:g} different values of {self.column}",
            "entropy_l": f"values of {self.column} with an entropy of at least that of {self.limit:g} equal shares",
            "recursive_l": f"({self.limit:g}, {self.rank})-diverse values of {self.column}",
            "confidence": f"shares of {self.column}: {', '.join(shares)}",
            "t_closeness": f"{self.column} at a distance ({self.distance}) of at most {self.limit:.4g} from the whole",
        }[self.model]


@dataclass(frozen=True)
class Requirement:
    """At least k records share every row of the columns, or of any ``known`` of them; models hold in each.

    ``of`` households, at least k households have members with the same rows.
    """

    columns: tuple[str, ...]
    k: int
    models: tuple[Model, ...] = ()
    known: int | None = None
    of: str = RECORDS

    @property
    def sets(self) -> list[tuple[str, ...]]:
        """The sets of columns whose groups are counted."""
        return [self.columns] if self.known is None else list(combinations(self.columns, self.known))

    @property
    def name(self) -> str:
        """What it is called in results."""
        columns = " + ".join(self.columns)
        if self.of == HOUSEHOLDS:
            return f"households by {columns}"
        return columns if self.known is None else f"any {self.known} of {columns}"

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The columns of its models, each once."""
        return tuple(dict.fromkeys(one.column for one in self.models))

    def to_dict(self) -> dict[str, Any]:
        """As a job spells it."""
        models = {"models": [one.to_dict() for one in self.models]} if self.models else {}
        known = {} if self.known is None else {"known": self.known}
        of = {} if self.of == RECORDS else {"of": self.of}
        return {"columns": list(self.columns), "k": self.k, **models, **known, **of}


if TYPE_CHECKING:
    Requirements = Sequence[Requirement | Mapping[str, Any] | tuple[Sequence[str], int]]
    Trees = Mapping[str, Mapping[str, Any] | str | PathLike[str] | None]
    Edges = Mapping[str, Sequence[float | str | date]]
else:  # what stands in them is checked where it is read
    Requirements = Sequence[object]
    Trees = Mapping[str, object]
    Edges = Mapping[str, Sequence[object]]


def parse_requirements(given: Any, who: str) -> tuple[Requirement, ...]:
    """Requirements in any of their spellings."""
    if isinstance(given, Requirement):
        return (given,)
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence) or not given:
        raise JobError(f"{who}: requirements must be a list of (columns, k) pairs; got {given!r}.")
    return tuple(one if isinstance(one, Requirement) else _requirement(one, who) for one in given)


def _requirement(given: Any, who: str) -> Requirement:
    fields = given
    if isinstance(given, list | tuple) and len(given) == 2:  # noqa: PLR2004
        fields = {"columns": given[0], "k": given[1]}
    allowed = {"columns", "k", "models", "known", "of"}
    fits = isinstance(fields, Mapping) and "columns" in fields and set(fields) <= allowed
    fits = fits and ("k" in fields or bool(fields.get("models"))) and fields.get("of", RECORDS) in (RECORDS, HOUSEHOLDS)
    columns: Any = fields["columns"] if fits else None
    k: Any = fields.get("k", 1) if fits else None
    named = isinstance(columns, list | tuple) and columns and all(isinstance(one, str) for one in columns)
    if not named or len(set(columns)) < len(columns) or not _is_integer(k, 1):
        raise JobError(
            f"{who}: a requirement must be {{columns: [different names], k: a number >= 1}}, with models: [...] and "
            f"known: a number of these columns if need be, or of: households; got {given!r}."
        )
    columns = tuple(columns)
    if fields.get("of") == HOUSEHOLDS:
        if fields.get("known") is not None or fields.get("models"):
            raise JobError(
                f"{who}: of: households counts households whose members' rows are the same, all columns known: it "
                f"takes neither models nor known; got {given!r}. Put them into a requirement of their own."
            )
        return Requirement(columns, k, of=HOUSEHOLDS)
    known = fields.get("known")
    if known is not None and not (_is_integer(known, 1) and known <= len(columns)):
        raise JobError(f"{who}: known must be an integer from 1 to {len(columns)}, the columns; got {known!r}.")
    if known is not None and math.comb(len(columns), known) > MOST_SETS:
        raise JobError(
            f"{who}: {known} of {len(columns)} columns are more than {MOST_SETS:,} sets. Name fewer columns."
        )
    models = fields.get("models") or ()
    if not isinstance(models, list | tuple):
        raise JobError(
            f"{who}: models must be a list such as [{{model: distinct_l, column: ill, l: 3}}]; got {models!r}."
        )
    parsed = tuple(_model(one, columns, who) for one in models)
    return Requirement(columns, k, parsed, None if known == len(columns) else known)


def _model(given: Any, columns: Sequence[str], who: str) -> Model:
    if isinstance(given, Model):
        return given
    if not isinstance(given, Mapping) or given.get("model") not in MODELS:
        name = given.get("model") if isinstance(given, Mapping) else None
        raise JobError(
            f"{who}: a model must be {{model: NAME, column: ..., limits}}; got {given!r}. {nearest(str(name), MODELS)}"
        )
    model, column = given["model"], given.get("column")
    if not isinstance(column, str) or column in columns:
        raise JobError(f"{who}: {model} needs a column beside the requirement's own; got {column!r}.")
    found = _with_limits(model, column, {key: value for key, value in given.items() if key not in {"model", "column"}})
    if found is None:
        raise JobError(f"{who}: {model} of '{column}' needs {_LIMITS[model]}; got {given!r}.")
    return found


def _with_limits(model: str, column: str, limits: Mapping[str, Any]) -> Model | None:
    """The model with its limits; None where they are not as they must be."""
    names, level = set(limits), limits.get("l")
    if model == "distinct_l" and names == {"l"} and _is_integer(level, 2):
        return Model(model, column, level)  # type: ignore[arg-type]
    if model == "entropy_l" and names == {"l"} and _is_number(level) and level > 1:  # type: ignore[operator]
        return Model(model, column, level)  # type: ignore[arg-type]
    if model == "recursive_l" and names == {"c", "l"} and _is_integer(level, 2) and _is_number(limits["c"]):
        return Model(model, column, limits["c"], level) if limits["c"] > 0 else None  # type: ignore[arg-type]
    if model == "t_closeness" and "t" in names and names <= {"t", "distance"} and _is_share(limits["t"]):
        distance = limits.get("distance", DISTANCES[0])
        return Model(model, column, limits["t"], distance=distance) if distance in DISTANCES else None
    values, most = limits.get("values", {}), limits.get("most", 1.0)
    fits = model == "confidence" and names and names <= {"values", "most"} and isinstance(values, Mapping)
    if not fits or not all(map(_is_share, [most, *values.values()])) or (not values and most == 1):
        return None
    return Model(model, column, most, values=tuple((_text(name), share) for name, share in values.items()))


def _text(value: Any) -> str:
    """A value as texts have it: missing, true, 3."""
    if value is None:
        return MISSING
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_integer(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def require_household(requirements: Sequence[Requirement], household: str | None, who: str) -> None:
    """Refuse to count households where nobody says which column numbers them."""
    if household is None and any(one.of == HOUSEHOLDS for one in requirements):
        raise JobError(
            f"{who}: a requirement counts households, and no column numbers them. In a job, declare columns: "
            "{household: [NAME]}; from Python, give household=NAME."
        )
