"""The contract of a measure: a function of an original and a masked table, and all that others ask about it.

A measure is one file: a result class (dpmask.results.Result), a function with the measure's name and keyword
parameters, and one ``Measure`` that names both. Jobs, ``dpmask evaluate``, sweeps, plans and reports know a measure by
that object alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dpmask.results import Result, Term
from dpmask.table.columns import require_numeric

if TYPE_CHECKING:
    pass

Found = TypeVar("Found", bound=Result)


class Need(Flag):
    """What a measure needs of both tables, from passes that measures of the same columns share."""

    NOTHING = 0
    MOMENTS = auto()
    HIGHER = auto()
    DISTANCES = auto()
    STEPS = auto()
    QUANTILES = auto()
    BINS = auto()


@dataclass(frozen=True, kw_only=True)
class Measure(Generic[Found]):
    """A measure as everybody else knows it."""

    function: Callable[..., Found]
    """``function(original, masked, *, ...)``: the public function; its keyword parameters are those of a job."""
    result: type[Found]
    """The class of what it returns."""
    passes: int = 1
    """About how many passes it makes over both tables, for ``dpmask plan``; shared passes are counted by ``needs``."""
    passes_per_column: int = 0
    """Further passes for each of ``columns``."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Parameters that a job fills from declared roles, where it does not give them: parameter to role."""
    paired: bool = True
    """Whether records of both tables must be paired."""
    least_columns: int = 1
    """How many columns it needs."""
    most_columns: int | None = None
    """How many columns it takes, where ``dpmask evaluate`` chooses them."""
    check: Callable[..., None] | None = None
    """``check(schema, **parameters)`` refuses columns that do not fit; by default ``columns`` must be numeric."""
    needs: Need = Need.NOTHING
    """What it needs of the shared passes; then ``from_summary`` is given, too."""
    from_summary: Callable[..., Found] | None = None
    """``from_summary(summary, **parameters)``: the result from a summary of both tables."""

    def __post_init__(self) -> None:
        """Refuse, at import, a measure that lacks what others ask it for."""
        if (self.needs is Need.NOTHING) != (self.from_summary is None):
            raise TypeError(f"{self.name}: a Measure gives needs and from_summary together, or neither.")

    @property
    def name(self) -> str:
        """What a job calls it."""
        return self.function.__name__

    @property
    def judged(self) -> Sequence[str]:
        """The numbers that a policy may name."""
        return self.result.judged

    @property
    def about(self) -> Term:
        """What it measures, which direction is worse, and who says so."""
        return self.result.about

    @property
    def takes_categories(self) -> bool:
        """Whether shared passes may give it categories."""
        return bool(self.needs & Need.BINS)

    def require(self, schema: Any, parameters: Mapping[str, Any], who: str) -> None:
        """Refuse columns that do not fit the schema."""
        if self.check is None:
            require_numeric(schema, parameters.get("columns", ()), who)
        else:
            self.check(schema, **parameters)
