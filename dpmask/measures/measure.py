"""The contract of a measure: a function of an original and a masked table, and all that others ask about it.

A measure is one file: a result class (dpmask.results.Loss or Risk), a function with the measure's name and keyword
parameters, and ``MEASURE``, a ``Measure`` that names both. Jobs, ``dpmask evaluate``, sweeps, plans and reports know a
measure by that object alone.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Flag, auto
from functools import wraps
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar

from dpmask.docstrings import completed
from dpmask.errors import JobError
from dpmask.kernels.warm_up import NO_KERNELS, KernelUse
from dpmask.measures import find_measure
from dpmask.results import Result, Risk
from dpmask.table.checks import require_complete_by_footers, require_spread_by_footers
from dpmask.table.columns import require_numeric
from dpmask.table.table import Table

Found = TypeVar("Found", bound=Result)
Attacked = TypeVar("Attacked", bound=Risk)
Parameters = ParamSpec("Parameters")


class Need(Flag):
    """What a measure needs of both tables, from passes that measures of the same columns share."""

    NOTHING = 0
    MOMENTS = auto()  # means, variances and covariances
    HIGHER = auto()  # the original's moments up to order 4
    QUANTILES = auto()  # of both tables, and the original's density there
    STEPS = auto()  # both distribution functions at sampled values
    BINS = auto()  # how many values lie in each bin, and have each category
    DISTANCES = auto()  # between a record and its masked record

    @property
    def passes(self) -> int:
        """How many passes over both tables that takes, as a rule: one for small tables, one more with bad luck."""
        if self & (Need.QUANTILES | Need.BINS):
            return 3
        return 2 if self & Need.STEPS else 1


_PAIRED = "The tables: frames are paired by index, lakes by position."
_UNPAIRED = "The tables: pandas or Dask frames, or lakes. Their records need not be paired."
_COLUMNS, _ANY_COLUMNS = "The numeric columns to compare.", "The columns to compare, numbers or categories."
_WEIGHT = "The column of survey weights, of each table its own; in a job that of the role, otherwise none by default."


@dataclass(frozen=True, kw_only=True)
class Measure(Generic[Found]):
    """A measure as everybody else knows it."""

    function: Callable[..., Found]
    """``function(original, masked, *, ...)``: the public function; its keyword parameters are those of a job."""
    result: type[Found]
    """The class of what it returns."""
    passes: int = 1
    """About how many passes it makes over both tables, for ``dpmask plan``; with ``needs``, they say it."""
    passes_per_column: int = 0
    """Further passes for each of ``columns``."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Parameters that a job fills from declared roles, where it does not give them: parameter to role."""
    follows: Mapping[str, str] = field(default_factory=dict)
    """Parameters that move with one of a method where both are equal: parameter to the method's, as guide.clusters."""
    paired: bool = True
    """Whether records of both tables must be paired."""
    least_columns: int = 1
    """How many numeric columns it needs."""
    most_columns: int | None = None
    """How many columns it takes, where ``dpmask evaluate`` chooses them."""
    check: Callable[..., None] | None = None
    """``check(schema, **parameters)`` refuses columns that do not fit; by default ``columns`` must be numeric."""
    complete: bool = False
    """Whether ``columns`` must have a value in every record."""
    varied: bool = False
    """Whether ``columns`` must be finite and not constant."""
    work: Callable[[Mapping[str, Any], int], float] | None = None
    """``work(parameters, rows)``: CPU seconds beyond reading both tables, about, for ``dpmask plan``."""
    needs: Need = Need.NOTHING
    """What it needs of the shared passes; then ``from_summary`` is given, too."""
    from_summary: Callable[..., Found] | None = None
    """``from_summary(summary, **parameters)``: the result from a ``Summary`` of both tables, without ``columns``."""
    kernels: KernelUse | Callable[[Mapping[str, Any]], KernelUse] = NO_KERNELS
    """The kernels that it runs, for ``dpmask warmup`` and ``dpmask plan``, or a function of its parameters."""

    def __post_init__(self) -> None:
        """Refuse, at import, a measure that lacks what others ask it for."""
        if (self.needs is Need.NOTHING) != (self.from_summary is None):
            raise TypeError(f"{self.name}: a Measure gives needs and from_summary together, or neither.")
        if not self.function.__doc__:
            raise TypeError(f"{self.name}: the function of a Measure has a docstring, which is its help.")
        parameters = inspect.signature(self.function).parameters
        self.function.__doc__ = completed(self.function.__doc__, parameters, self._shared_texts(), self.result)

    def _shared_texts(self) -> dict[str, str]:
        """What parameters mean that its docstring leaves to others."""
        of_pairs = bool(self.needs & Need.DISTANCES) if self.needs else self.paired
        return {
            "original, masked": _PAIRED if of_pairs else _UNPAIRED,
            "columns": _ANY_COLUMNS if self.takes_categories else _COLUMNS,
            "clusters": "How many clusters.",
            "weight": _WEIGHT,
            "weighted": "Whether weights are taken.",
        }

    @property
    def name(self) -> str:
        """What a job calls it."""
        return self.function.__name__

    @property
    def parameters(self) -> dict[str, bool]:
        """The keyword parameters of its function, and whether they must be given."""
        known = inspect.signature(self.function).parameters.values()
        return {one.name: one.default is one.empty for one in known if one.kind is one.KEYWORD_ONLY}

    @property
    def takes_categories(self) -> bool:
        """Whether shared passes may give it categories."""
        return bool(self.needs & Need.BINS)

    def passes_for(self, parameters: Mapping[str, Any]) -> int:
        """About how many passes over both tables it makes, taken alone."""
        if self.needs:
            return self.needs.passes
        return self.passes + self.passes_per_column * len(parameters.get("columns", ()))

    def work_for(self, parameters: Mapping[str, Any], rows: int) -> float:
        """CPU seconds beyond reading both tables of so many rows, about."""
        return self.work(parameters, rows) if self.work is not None else 0.0

    def kernels_for(self, parameters: Mapping[str, Any]) -> KernelUse:
        """The kernels that it runs with these parameters."""
        return self.kernels(parameters) if callable(self.kernels) else self.kernels

    def require(self, schema: Any, parameters: Mapping[str, Any], who: str) -> None:
        """Refuse columns that do not fit the schema."""
        if self.check is None:
            weight = parameters.get("weight") if parameters.get("weighted", True) else None
            weights = [weight] if isinstance(weight, str) else list(weight or ())
            require_numeric(schema, [*parameters.get("columns", ()), *weights], who)
        else:
            self.check(schema, **parameters)

    def require_table(self, table: Table, parameters: Mapping[str, Any]) -> None:
        """Refuse columns of which the footers of the original say that it cannot be measured."""
        columns = list(parameters.get("columns", ()))
        if self.complete:
            require_complete_by_footers(table, columns, self.name, ". Fill them in or drop them, or do not measure it.")
        if self.varied:
            require_spread_by_footers(table, columns, self.name)


class MeasureRequest(NamedTuple):
    """A measure that a job or a user asks for: what the result is called, the measure, and its parameters."""

    name: str
    measure: str
    parameters: dict[str, Any]

    @property
    def definition(self) -> Measure[Any]:
        """The measure itself."""
        return find_measure(self.measure)

    @property
    def judged(self) -> tuple[str, ...]:
        """The numbers of the result that a policy may name."""
        return self.definition.result.judged


def timed(function: Callable[Parameters, Attacked]) -> Callable[Parameters, Attacked]:
    """The function of a risk, whose result then has the seconds it took."""

    @wraps(function)
    def measured(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Attacked:
        start = time.perf_counter()
        found = function(*args, **kwargs)
        return replace(found, seconds=time.perf_counter() - start)

    return measured


def require_integers(who: str, least: int, most: int | None = None, **values: object) -> None:
    """Refuse parameters that are not integers in this range."""
    for name, value in values.items():
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or value < least or (most is not None and value > most):  # type: ignore[operator]
            expected = f">= {least}" if most is None else f"from {least} to {most}"
            raise JobError(f"{who}: {name} must be an integer {expected}; got {value!r}.")
