"""What a measure or a method found, as numbers that carry their meaning.

A result is a frozen dataclass. Every number a reader or a policy may ask for has a ``Term``: what it is, which
direction is worse, and who says so. Glossary, tables, policy and what is public all follow from the class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]
"""What JSON can hold."""

MORE_RISK = "Larger means more risk."
LESS_RISK = "Smaller means more risk."
MORE_LOSS = "Larger means more information lost."
NEUTRAL = "Neither direction is worse by itself."


class Term(NamedTuple):
    """What a number is, which direction is worse, and where it comes from."""

    definition: str
    direction: str
    source: str


class Result(ABC):
    """The numbers that a measure of two tables, or a fitted method, came to.

    A subclass is a frozen dataclass of numbers, and of mappings of numbers such as ``parts``.
    """

    public: ClassVar[bool] = False
    """Whether a release may show it. Risks are never public."""
    judged: ClassVar[tuple[str, ...]] = ()
    """The numbers that a policy may name, the most important first: fields or properties."""
    about: ClassVar[Term]
    """The result as a whole."""
    terms: ClassVar[Mapping[str, Term]] = {}
    """What each number means, where ``about`` does not say it."""
    larger_is_better: ClassVar[bool] = False
    """Whether a larger ``value`` means less loss, as of an agreement."""

    def __init_subclass__(cls, **more: Any) -> None:
        """Refuse, at import, a class that lacks what reports and policies need."""
        super().__init_subclass__(**more)
        if not cls.__name__.startswith("_") and not hasattr(cls, "about"):
            raise TypeError(f"{cls.__name__}: a Result must define about, a Term: definition, direction, source.")

    @abstractmethod
    def explain(self) -> str:
        """What the numbers mean, in a sentence or two."""

    @property
    def intervals(self) -> Mapping[str, tuple[float, float]]:
        """The 95 % interval of each number that was found on a sample."""
        return {}

    def to_dict(self) -> dict[str, Plain]:
        """The numbers, for JSON: what a policy may name, and every field."""
        named: dict[str, object] = {name: getattr(self, name) for name in self.judged}
        named |= {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]
        return {name: plain(value) for name, value in named.items()}

    def to_frame(self) -> pd.DataFrame:
        """A row for each number: its value, its interval, what it is and which direction is worse."""
        import pandas as pd

        return pd.DataFrame(self._rows(), columns=["number", "value", "low", "high", "definition", "direction"])

    def _rows(self) -> list[tuple[str, object, float | None, float | None, str, str]]:
        rows = []
        for name in self.judged:
            low, high = self.intervals.get(name, (None, None))
            term = self.terms.get(name, self.about)
            rows.append((name, getattr(self, name), low, high, term.definition, term.direction))
        return rows

    def _repr_html_(self) -> str:
        """A small table, for notebooks."""
        cells = "".join(
            f"<tr><th>{escape(name)}</th><td>{shown(value)}</td><td>{escape(direction)}</td></tr>"
            for name, value, _, _, _, direction in self._rows()
        )
        return f"<table><caption>{escape(self.explain())}</caption>{cells}</table>"


def shown(value: object) -> str:
    """A number as people read it: to six digits, a count in full."""
    if value is None:
        return "none"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else escape(str(value))


def plain(value: object) -> Plain:
    """A value as JSON holds it."""
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(one) for one in value]
    return value  # type: ignore[return-value]
