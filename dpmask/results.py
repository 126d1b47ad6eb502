"""What a measure or a method found, as numbers that carry their meaning.

A result is a frozen dataclass. Every number a reader or a policy may ask for has a ``Term``: what it is, which
direction is worse, and who says so. Glossary, tables, policy and what is public all follow from the class.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]
"""What JSON can hold."""
Interval = tuple[float, float]
"""The lower and the upper end of a 95 % interval; both are the number itself where nothing was sampled."""

MORE_RISK = "Larger means more risk."
LESS_RISK = "Smaller means more risk."
MORE_LOSS = "Larger means more information lost."
NEUTRAL = "Neither direction is worse by itself."

WP216 = "Article 29 Working Party 2014, Opinion 05/2014 on anonymisation techniques (WP216)"


class Term(NamedTuple):
    """What a number is, which direction is worse, and where it comes from."""

    definition: str
    direction: str
    source: str


RATE = Term("Share of the attacked records or values for which the attack succeeds.", MORE_RISK, WP216)
INTERVAL = Term(
    "95 % interval of a rate that was found on a sample of records; a point where all were attacked.",
    "The wider, the less is known; a policy is judged by its worse end.",
    "Wilson 1927, Probable inference, the law of succession, and statistical inference",
)
GUESSING = Term(
    "What the same attack scores without the release, or by chance alone.",
    "A risk near it adds nothing to what anybody could do.",
    WP216,
)
ATTACKED = Term("How many records were attacked.", "The more, the narrower the interval.", WP216)


class Exhibit(NamedTuple):
    """How a report draws a field, by the kind of what it is.

    ``number``, ``share`` and ``text`` are a single value; ``numbers`` maps names to numbers. ``rows`` lists mappings,
    one to a row of a table, ``steps`` likewise, in their order, and ``sections`` lists mappings that get a table each;
    ``of`` describes their fields. ``sizes`` maps group sizes to numbers of groups, ``histories`` maps a clustering to
    the objective and the shift of each of its passes, ``trees`` maps columns to taxonomies.
    """

    kind: Literal["number", "share", "text", "numbers", "rows", "steps", "sections", "sizes", "histories", "trees"]
    label: str = ""
    """What it is called; by default its name."""
    term: str = ""
    """The field whose term explains it; by default its own."""
    of: Mapping[str, Exhibit] = {}


class Headline(NamedTuple):
    """A judged number of a risk that may stand first on a page, and the words that follow it there.

    Of all rates of records that are ``linked``, and of all of what is ``learned``, the largest is shown. ``alike`` is
    the size of the smallest group, whose columns the words name; ``beside`` adds a sentence with ``{}`` for its rate.
    """

    kind: Literal["linked", "learned", "alike", "beside"]
    number: str
    text: str


class Result(ABC):
    """The numbers that a measure of two tables, or a fitted method, came to.

    A subclass is a frozen dataclass of numbers, and of mappings of numbers such as ``parts``. One that only others are
    derived from is declared with ``abstract=True``.
    """

    public: ClassVar[bool] = False
    """Whether a release may show it. Risks are never public."""
    first: ClassVar[bool] = False
    """Whether a report shows it first: what a subject-matter statistician asks before anything else."""
    automatic: ClassVar[bool] = False
    """Whether every job takes it, so that others stand before it at the head of a page."""
    judged: ClassVar[tuple[str, ...]] = ()
    """The numbers that a policy may name, the most important first: fields or properties."""
    about: ClassVar[Term]
    """The result as a whole."""
    terms: ClassVar[Mapping[str, Term]] = {}
    """What each number means, where ``about`` does not say it."""
    larger_is_better: ClassVar[bool] = False
    """Whether a larger ``value`` means less loss, as of an agreement."""
    unreported: ClassVar[tuple[str, ...]] = ()
    """Fields that ``to_dict`` leaves out."""
    shares: ClassVar[tuple[str, ...]] = ()
    """The judged numbers that are shares of what was attacked, and have ``guessing`` as their baseline."""
    exhibits: ClassVar[Mapping[str, Exhibit]] = {}
    """What a report draws of ``to_dict`` beside judged numbers and ``parts``, in this order."""

    def __init_subclass__(cls, *, abstract: bool = False, **more: Any) -> None:
        """Refuse, at import, a class that lacks what reports and policies need."""
        super().__init_subclass__(**more)
        if not abstract and not hasattr(cls, "about"):
            raise TypeError(f"{cls.__name__}: a Result must define about, a Term: definition, direction, source.")
        known = {name for base in cls.__mro__ for name in (*vars(base), *inspect.get_annotations(base))}
        known |= {name for exhibit in cls.exhibits.values() for name in exhibit.of}
        for name in (*cls.judged, *cls.terms, *cls.unreported):
            if name not in known and not abstract:
                raise TypeError(f"{cls.__name__}: judged, terms or unreported name '{name}', which it does not have.")

    @abstractmethod
    def explain(self) -> str:
        """What the numbers mean, in a sentence or two."""

    @property
    def intervals(self) -> Mapping[str, Interval]:
        """The 95 % interval of each number that was found on a sample."""
        return {}

    @classmethod
    def leading(cls) -> Sequence[Headline]:
        """The numbers that may stand first on a page, with their words."""
        return ()

    @classmethod
    def term(cls, name: str) -> Term:
        """What a number means."""
        return cls.terms.get(name, cls.about)

    @classmethod
    def described(cls) -> dict[str, Plain]:
        """What the result and each of its numbers mean, for JSON."""
        return {**cls.about._asdict(), "terms": {name: dict(term._asdict()) for name, term in cls.terms.items()}}

    def to_dict(self) -> dict[str, Plain]:
        """The numbers, for JSON: what a policy may name, and every field."""
        names = [*self.judged, *(one.name for one in fields(self))]  # type: ignore[arg-type]
        return {name: plain(getattr(self, name)) for name in dict.fromkeys(names) if name not in self.unreported}

    def to_frame(self) -> pd.DataFrame:
        """A row for each number: its value, its interval, what it is and which direction is worse."""
        import pandas as pd

        rows = []
        for name in self.judged:
            low, high = self.intervals.get(name, (None, None))
            rows.append((name, getattr(self, name), low, high, *self.term(name)[:2]))
        return pd.DataFrame(rows, columns=["number", "value", "low", "high", "definition", "direction"])

    def _repr_html_(self) -> str:
        """A small table, for notebooks."""
        rows = "".join(
            f"<tr title='{escape(self.term(name).definition)}'><th>{escape(name)}</th>"
            f"<td>{shown(getattr(self, name))}</td><td>{self._bar(name)}</td>"
            f"<td>{escape(self.term(name).direction)}</td></tr>"
            for name in self.judged
        )
        return f"<table><caption>{escape(self.explain())}</caption>{rows}</table>"

    def _bar(self, name: str) -> str:
        """A drawing beside a number, as HTML."""
        return ""


@dataclass(frozen=True, kw_only=True)
class Loss(Result, abstract=True):
    """How much information was lost: ``value``, and what it is made of."""

    value: float
    parts: Mapping[str, float] = field(default_factory=dict)

    public: ClassVar[bool] = True
    moments_of_originals: ClassVar[bool] = False
    """Whether the release and this loss together give moments of the originals: public only if a job says so."""
    far_values_weigh: ClassVar[bool] = True
    """Whether a record far from the others counts for more than one among them, as it does in moments."""
    judged: ClassVar[tuple[str, ...]] = ("value",)

    def equal_records(self, rows: int) -> int:
        """The records that one counts among, of so many: fewer where one may weigh more than others."""
        return rows

    def one_record(self, name: str, rows: int) -> float:
        """How far one of so many records moves a number, as a share of its scale: public ones are rounded by it."""
        return 1 / max(rows, 1)


@dataclass(frozen=True, kw_only=True)
class Risk(Result, abstract=True):
    """What an intruder achieves, beside what ``guessing`` would; by default every record was attacked."""

    guessing: float
    attacked: int
    seconds: float = field(default=0.0, compare=False)
    parts: Mapping[str, float] = field(default_factory=dict)

    judged: ClassVar[tuple[str, ...]] = ("rate",)
    terms: ClassVar[Mapping[str, Term]] = {"interval": INTERVAL, "guessing": GUESSING, "attacked": ATTACKED}
    shares: ClassVar[tuple[str, ...]] = ("rate",)
    headlines: ClassVar[Sequence[Headline] | None] = None
    """The numbers that may stand first on a page; by default the first one, if it is a share, as what is learned."""

    @classmethod
    def leading(cls) -> Sequence[Headline]:
        """The numbers that may stand first on a page, with their words."""
        if cls.headlines is not None or cls.judged[0] not in cls.shares:
            return cls.headlines or ()
        return [Headline("learned", cls.judged[0], cls.about.definition.rstrip("."))]

    @property
    def intervals(self) -> Mapping[str, Interval]:
        """The 95 % interval of each number that was found on a sample; the first number is always among them."""
        first = float(getattr(self, self.judged[0]))
        return {self.judged[0]: (first, first)}

    @property
    def interval(self) -> Interval:
        """That of the first number."""
        return self.intervals[self.judged[0]]

    def to_dict(self) -> dict[str, Plain]:
        """The numbers and their intervals, for JSON."""
        several = {"intervals": plain(self.intervals)} if len(self.intervals) > 1 else {}
        return {**super().to_dict(), "interval": list(self.interval), **several}

    def _bar(self, name: str) -> str:
        """The number as a bar of 0 to 100 %, with a mark where guessing is."""
        if name not in self.shares:
            return ""
        share, mark = (f"{100 * min(max(part, 0.0), 1.0):.2f}" for part in (getattr(self, name), self.guessing))
        return (
            f"<svg width='102' height='12' role='img'><title>guessing: {self.guessing:.2%}</title>"
            "<rect x='1' width='100' height='12' fill='#8883'/>"
            f"<rect x='1' width='{share}' height='12' fill='#b5473c'/>"
            f"<rect x='{mark}' width='2' height='12' fill='currentColor'/></svg>"
        )


def worst(parts: str, name: str, of: Callable[[Iterable[Any]], Any], about: str) -> Any:
    """A property of a result: the worst of a number over all its ``parts``, as ``of`` (min or max) finds it."""
    return property(lambda result: of(getattr(part, name) for part in getattr(result, parts)), doc=about)


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
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(one) for one in value]
    return value  # type: ignore[return-value]
