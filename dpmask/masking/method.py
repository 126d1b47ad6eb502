"""The contract of a masking method: its parameters, and what fitting them to a table gives.

A method is one file (or one package, where it needs several): a frozen dataclass of parameters, a ``Method``, whose
``fit_table`` learns from a table and returns a frozen dataclass, a ``FittedMethod``. Every hook stands here with its
type and its default; a class that lacks one without a default is refused when it is imported. What several methods
share is a base class of theirs that names ``ABC`` among its own bases: it may leave hooks open.
"""

from __future__ import annotations

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from html import escape
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from dpmask.docstrings import completed, parameter_texts
from dpmask.engine.draws import Subkey, make_key
from dpmask.errors import InputError
from dpmask.kernels.warm_up import NO_KERNELS, KernelUse
from dpmask.lake.reading import Rows, Schema
from dpmask.masking.claims import broken_claims
from dpmask.masking.movable import Movable, ParameterRange, movable_numbers
from dpmask.masking.state import class_name, classes_below, put_together, taken_apart
from dpmask.parameters import Names
from dpmask.results import Exhibit, Plain, Result
from dpmask.table import table as tables
from dpmask.table.columns import require_numeric
from dpmask.table.content import Content, content_of
from dpmask.table.label_sets import LabelSets
from dpmask.table.requirement import Requirement

if TYPE_CHECKING:
    from dpmask.clustering.partition import PreservedClusters
    from dpmask.masking.earlier_releases import EarlierReleases
    from dpmask.table.dropping import Dropped

Fitted = TypeVar("Fitted", bound="FittedMethod")
_FIT = "Fit to this table."


def _require_hooks(cls: type, hooks: Sequence[str], contract: str) -> None:
    """Refuse, at import, a class that lacks what the contract asks for."""
    missing = [
        name for name in hooks if getattr(getattr(cls, name, None), "__isabstractmethod__", name not in dir(cls))
    ]
    if missing and ABC not in cls.__bases__:
        raise TypeError(f"{cls.__name__}: a {contract} must define {', '.join(missing)}.")


class Method(ABC, Generic[Fitted]):
    """The parameters of a masking method: a frozen, keyword-only dataclass that checks itself."""

    columns: Names
    """The columns it masks; a method that calls them otherwise overrides ``masks``."""
    figures: ClassVar[type[Result] | None] = None
    """The class of the fitted method's ``figures``; a policy may name their judged numbers."""
    withheld: ClassVar[tuple[str, ...]] = ()
    """Parameters that a release must not show."""
    neutral: ClassVar[tuple[str, ...]] = ()
    """Parameters that, left at their default, draw as if they did not exist: older jobs draw as they did."""
    once_default: ClassVar[Mapping[str, Any]] = {}
    """Values of neutral parameters that were the default before, and draw as if they did not exist, too."""
    counted_in_series: ClassVar[bool] = False
    """Whether what its releases of a series show together is counted exactly, by ``after``."""
    ranges: ClassVar[Mapping[str, ParameterRange]] = {}
    """Where its numbers begin and may end when they are moved, and which of them a sweep tries by itself."""

    def __init_subclass__(cls, **more: Any) -> None:
        """Refuse a class without its hooks; complete its help with what its base says of parameters."""
        super().__init_subclass__(**more)
        _require_hooks(cls, ["fit_table"], "Method")
        shared = parameter_texts(cls.__base__.__doc__ or "") if cls.__base__ else {}
        if shared and cls.__doc__:
            cls.__doc__ = completed(cls.__doc__, inspect.get_annotations(cls), shared)

    @property
    def who(self) -> str:
        """Its name in messages."""
        return type(self).__name__

    @property
    def passes(self) -> int:
        """Passes over the data to fit."""
        return 1

    @property
    def masks(self) -> tuple[str, ...]:
        """The columns it masks."""
        return tuple(self.columns)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns it learns from: a changed value in any of them gives other draws."""
        return self.masks

    @property
    def drops(self) -> bool:
        """Whether it may leave records out; such a method must be a job's first step."""
        return False

    @property
    def origins(self) -> Mapping[str, str]:
        """Columns that it adds, and the column that each comes from: the lower, then the upper bounds of its values."""
        return {}

    @property
    def required_groups(self) -> Sequence[Sequence[str]]:
        """The sets of columns whose groups of equal records it is required to keep large, if any."""
        return ()

    @property
    def group_requirements(self) -> Sequence[Requirement]:
        """What it requires of groups of equal records, if anything."""
        return ()

    @property
    def draws(self) -> bool:
        """Whether it draws what it releases: another key must give other values.

        What a method without draws, or with next to none, makes of a record is known to whoever has all originals and
        masks them again.
        """
        return True

    @property
    def repeatable(self) -> tuple[str, ...]:
        """The columns that whoever has all originals masks alike: all of a method that does not draw.

        Labels need not be named whose ``label_sets`` show what became of each value.
        """
        return () if self.draws else self.masks

    @property
    def rules(self) -> Sequence[str]:
        """The constraints and edit rules that it keeps, if any."""
        return ()

    @property
    def on_zeros(self) -> str | None:
        """What it does with zeros, of one that may keep them: "keep", "mask", or "auto", by how many there are."""
        return None

    @property
    def judged(self) -> tuple[str, ...]:
        """The figures that a policy may name."""
        return self.figures.judged if self.figures is not None else ()

    def parameters(self) -> dict[str, Any]:
        """Its parameters by name; without neutral ones that are left alone."""
        left = {one.name for one in fields(self) if getattr(self, one.name) in (one.default, {})}  # type: ignore[arg-type]
        found = asdict(self)  # type: ignore[call-overload]
        return {name: value for name, value in found.items() if name not in left.intersection(self.neutral)}

    def drawn_parameters(self) -> dict[str, Any]:
        """The parameters that draws are bound to."""
        found, past = self.parameters(), self.once_default
        return {name: value for name, value in found.items() if name not in past or value != past[name]}

    def work(self, rows: int) -> float:
        """CPU seconds beyond reading the table, about, for ``dpmask plan``; it knows how fast the machine is."""
        return 0.0

    def work_on_groups(self, rows: int, size: int) -> float:
        """The same where an earlier step left so many records equal in all columns that this one masks."""
        return self.work(rows)

    def group_size(self, rows: int) -> int:
        """Of a table of so many rows, records that share one afterwards, about: a later step may group them once."""
        return 1

    @property
    def kernels(self) -> KernelUse:
        """The kernels that it runs, for ``dpmask warmup`` and ``dpmask plan``; others are compiled when first used."""
        return NO_KERNELS

    def check(self, table: tables.Table) -> None:
        """Refuse a table whose schema or footers do not fit, before anything is read."""
        require_numeric(table.masked_schema, self.masks, self.who)

    def masked_schema(self, schema: Schema) -> Schema:
        """The schema of a table with this schema once it is masked."""
        return schema

    def after(self, earlier: EarlierReleases) -> Self:
        """The same as the next release of a series, of a method that is counted in one."""
        raise NotImplementedError(f"{self.who} is not counted in series.")

    def movable(self, given: Mapping[str, Any]) -> Iterator[Movable]:
        """What of a step, as a job gives it, the explorer and sweeps may move: all its numbers, by default."""
        return movable_numbers(given, self.ranges)

    def label_sets(self, solution: Mapping[str, Any]) -> LabelSets:
        """What released labels stand for, by the ``solution`` that a release of this method shows."""
        return {}

    def attacks(self) -> Mapping[str, Mapping[str, Any]]:
        """What an intruder who knows the method and its parameters, but not the key, does.

        The names of risk measures, each with its parameters as a job would give them, ``columns`` among them. A job
        takes them beside its own measures, whether it asks for them or not.
        """
        return {}

    def fit(self, table: tables.Frame, *, key: str | bytes | Subkey | None = None, seed: int | None = None) -> Fitted:
        """Learn from a lake, a pandas or a Dask DataFrame what masking needs; a secret ``key`` or a ``seed`` draws."""
        source = tables.as_table(table, self.who)
        secret = make_key(self.who, key=key, seed=seed)
        self.check(source)
        content = None if secret.bound else content_of(secret, source, self.reads)
        fitted = self.fit_table(source, self.own_key(secret if content is None else content.bound(secret)))
        if not isinstance(fitted, FittedMethod):
            raise TypeError(f"{self.who}: fit_table must return a FittedMethod; it returned a {type(fitted).__name__}.")
        object.__setattr__(fitted, "fitted_on", content)
        for warning in fitted.warnings():
            warnings.warn(warning, stacklevel=2)
        return fitted

    def takes(self, fitted: Method[Any]) -> bool:
        """Whether a fit by other parameters than these may mask in a job that asks for these: only by the same."""
        return self == fitted

    def own_key(self, bound: Subkey) -> Subkey:
        """The key of draws for this method, these parameters and one table alone: no two releases share any."""
        return bound.subkey(f"{self.who} {sorted(self.drawn_parameters().items())!r}").rooted()

    @abstractmethod
    def fit_table(self, table: tables.Table, key: Subkey) -> Fitted:
        """The fitted method for a table that was checked; its ``key`` is bound to the parameters and the table."""

    def _repr_html_(self) -> str:
        """A small table of the parameters, for notebooks."""
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(repr(value))}</td></tr>"
            for name, value in self.parameters().items()
        )
        return f"<table><caption>{self.who}</caption>{rows}</table>"


class FittedMethod(ABC):
    """A method fitted to a table: a frozen dataclass. Its repr shows no field: they may hold values of records.

    It masks each record by itself (``mask_rows(rows, first)``), or, where records must meet, the whole table
    (``mask_table(table)``): a subclass defines one of them.
    """

    method: Method[Any]
    key: Subkey
    """The key of its draws; what follows in a job is bound to it."""
    dropped: Dropped | None = None
    """Which records it leaves out (dpmask.table.dropping), if its method ``drops``."""
    figures: Result | None = None
    """What masking came to, of the class that the method names."""
    fitted_on: Content | None = None
    """What the table held that it was fitted on; None in a job, whose draws are bound to its own."""
    reused: bool = False
    """Whether it masks another table: its figures are not those of this one."""
    solution_exhibits: ClassVar[Mapping[str, Exhibit]] = {}
    """What the public page draws of ``solution``, in this order."""

    def __init_subclass__(cls, **more: Any) -> None:
        """Refuse a class without its hooks; give it the repr of this one, which ``dataclass`` then leaves alone."""
        super().__init_subclass__(**more)
        cls.__repr__ = FittedMethod.__repr__  # type: ignore[method-assign]
        _require_hooks(cls, ["statement", "weaknesses"], "FittedMethod")
        if ABC not in cls.__bases__ and not ("mask_rows" in dir(cls)) ^ ("mask_table" in dir(cls)):
            raise TypeError(f"{cls.__name__}: a FittedMethod must define mask_rows or mask_table, one of them.")

    if TYPE_CHECKING:

        def mask_rows(self, rows: Rows, first: int) -> Rows:
            """One block masked, its first record at position ``first``."""

    @property
    def who(self) -> str:
        """Its method's name in messages."""
        return self.method.who

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns it reads."""
        return self.method.reads

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns it changes or adds."""
        return self.method.masks

    def check(self, table: tables.Table) -> None:
        """Refuse a table that cannot be masked, before anything is read."""
        require_numeric(table.masked_schema, self.method.masks, self.who)

    def masked_schema(self, schema: Schema) -> Schema:
        """The schema of a table with this schema once it is masked."""
        return self.method.masked_schema(schema)

    def mask(self, table: tables.Frame) -> tables.Frame:
        """The table masked: pandas as pandas, a Dask frame or a lake as a Dask frame, index and other columns kept.

        One pass sees whether it is the table that it was fitted on. Another one gets draws of its own; what is promised
        is counted in it, and one that does not keep it is refused. Where records must meet, they are exchanged at once;
        everything else is lazy.
        """
        return tables.mask(self, table, self.who)

    def for_table(self, table: tables.Table) -> Self:
        """Itself for the table that it was fitted on; for another one the same fit with draws of its own."""
        other = None if self.fitted_on is None else self.fitted_on.other(table)
        if other is None:
            return self
        found = self.with_key(self.key.subkey(f"another table, {other}").rooted())
        found.require_promises(table)
        return found

    def with_key(self, key: Subkey) -> Self:
        """The same fit with draws of another key, for another table: refused where it belongs to the one it is of."""
        if self.of_one_table:
            raise InputError(
                f"{self.who}: this is another table, or key, than it was fitted with, and {self.of_one_table}. {_FIT}"
            )
        found: Self = put_together(taken_apart(self, self.key), key, own_classes())
        object.__setattr__(found, "reused", True)
        return found

    def save(self, folder: str | PathLike[str]) -> None:
        """Save the fit to a new private folder, for ``dpmask.load``: all that was learnt, without the key."""
        from dpmask.masking.saved import save

        save(self, folder)

    @property
    def preserved(self) -> PreservedClusters | None:
        """The clusters of the table it was fitted on that it preserves: the explorer draws them before and after."""
        return None

    @property
    def series_cuts(self) -> Mapping[str, Mapping[str, Any]] | None:
        """How each column was cut, for later releases of a series; None where these cannot be counted."""
        return None

    @property
    def of_one_table(self) -> str:
        """Why it must not mask another table than it was fitted on; empty if it may."""
        return ""

    def require_promises(self, table: tables.Table) -> None:
        """Refuse a table that, masked, does not keep what is claimed; its groups are counted again."""
        wrong = broken_claims(table.masked_by(self), self.claims()) if self.claims() else []
        if wrong:
            broken = "; ".join(wrong)
            raise InputError(f"{self.who}: in this table, which is another than it was fitted on, it {broken}. {_FIT}")

    @abstractmethod
    def statement(self) -> str:
        """What a reader of the release may know of what was done."""

    @abstractmethod
    def weaknesses(self) -> list[str]:
        """What the data holder must know that it does not protect against."""

    def for_analysts(self) -> list[str]:
        """What an analyst of the release must know to use it: which totals are exact, what is inflated or weakened."""
        return []

    def warnings(self) -> list[str]:
        """What is wrong with this fit, and what to do about it."""
        return []

    def claims(self) -> list[dict[str, Plain]]:
        """What anybody can check in the released files, as ``verify`` does."""
        return []

    def solution(self) -> dict[str, Plain] | None:
        """What programs may read in the manifest."""
        return None

    def label_sets(self) -> LabelSets:
        """What released labels stand for: sets or intervals of the values that were masked. Measures read by it."""
        return self.method.label_sets(self.solution() or {})

    def __repr__(self) -> str:
        """The class and its columns: no value that was learnt from records."""
        return f"<{type(self).__name__}: {', '.join(self.inputs)}>"

    def _repr_html_(self) -> str:
        """The statement, and the figures if there are any."""
        figures = "" if self.figures is None else self.figures._repr_html_()
        return f"<p>{escape(self.statement())}</p>{figures}"


def own_classes() -> dict[str, type]:
    """The classes of all methods that are imported, by the name that a state has for them."""
    return {class_name(one): one for one in classes_below(Method, FittedMethod)}
