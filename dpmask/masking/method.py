"""The contract of a masking method: its parameters, and what fitting them to a table gives.

A method is one file (or one package, where it needs several): a frozen dataclass of parameters, a ``Method``, whose
``fit_table`` learns from a table and returns a frozen dataclass, a ``FittedMethod``. Every hook stands here with its
type and its default; a class that lacks one without a default is refused when it is imported.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from dpmask.engine.draws import Subkey, make_key
from dpmask.results import Plain, Result
from dpmask.table import table as tables
from dpmask.table.columns import require_numeric

if TYPE_CHECKING:
    from dpmask.lake.reading import Rows

Schema = Any
"""An Arrow schema."""
Fitted = TypeVar("Fitted", bound="FittedMethod")


def _require_hooks(cls: type, hooks: Sequence[str], contract: str) -> None:
    """Refuse, at import, a class that lacks what the contract asks for."""
    missing = [
        name for name in hooks if getattr(getattr(cls, name, None), "__isabstractmethod__", name not in dir(cls))
    ]
    if missing and not cls.__name__.startswith("_"):
        raise TypeError(f"{cls.__name__}: a {contract} must define {', '.join(missing)}.")


class Method(ABC, Generic[Fitted]):
    """The parameters of a masking method: a frozen, keyword-only dataclass that checks itself."""

    columns: tuple[str, ...]

    figures: ClassVar[type[Result] | None] = None
    """The class of the fitted method's ``figures``; a policy may name their judged numbers."""
    withheld: ClassVar[tuple[str, ...]] = ()
    """Parameters that a release must not show."""
    undone_by: ClassVar[str | None] = None
    """The risk measure of the intruder who knows this method; a job that does not take it is warned."""

    def __init_subclass__(cls, **more: Any) -> None:
        """Refuse a class without its hooks."""
        super().__init_subclass__(**more)
        _require_hooks(cls, ["fit_table"], "Method")

    @property
    def passes(self) -> int:
        """Passes over the data to fit."""
        return 1

    @property
    def masks(self) -> tuple[str, ...]:
        """The columns it masks."""
        return self.columns

    @property
    def drops(self) -> bool:
        """Whether it may leave records out; such a method must be a job's first step."""
        return False

    @property
    def origins(self) -> Mapping[str, str]:
        """Columns that it adds, and the column that each comes from."""
        return {}

    @property
    def judged(self) -> tuple[str, ...]:
        """The figures that a policy may name."""
        return self.figures.judged if self.figures is not None else ()

    def work(self, rows: int) -> float:
        """CPU seconds beyond reading the table, about, for ``dpmask plan``."""
        return 0.0

    def check(self, table: tables.Table) -> None:
        """Refuse a table whose schema or footers do not fit, before anything is read."""
        require_numeric(table.masked_schema, self.masks, type(self).__name__)

    def masked_schema(self, schema: Schema) -> Schema:
        """The schema of a table with this schema once it is masked."""
        return schema

    def fit(self, table: Any, *, key: str | bytes | Subkey | None = None, seed: int | None = None) -> Fitted:
        """Learn from a lake, a pandas or a Dask DataFrame what masking needs; a secret ``key`` or a ``seed`` draws."""
        who = type(self).__name__
        source = tables.as_table(table, who)
        secret = make_key(who, key=key, seed=seed)
        self.check(source)
        fitted = self.fit_table(source, secret)
        for warning in fitted.warnings():
            warnings.warn(warning, stacklevel=2)
        return fitted

    @abstractmethod
    def fit_table(self, table: tables.Table, key: Subkey) -> Fitted:
        """The fitted method for a table that was checked; draws only from subkeys of ``key``."""

    def _repr_html_(self) -> str:
        """A small table of the parameters, for notebooks."""
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(repr(value))}</td></tr>" for name, value in vars(self).items()
        )
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"


class FittedMethod(ABC):
    """A method fitted to a table: a frozen dataclass, without a repr of its own, as its fields hold values of records.

    It masks each record by itself (``mask_rows(rows, first)``), or, where records must meet, the whole table
    (``mask_table(table)``): a subclass defines one of them.
    """

    method: Method[Any]
    key: Subkey
    """The key of its draws; what follows in a job is bound to it."""
    dropped: Any = None
    """Which records it leaves out (dpmask.table.dropping), if its method ``drops``."""
    figures: Result | None = None
    """What masking came to, of the class that the method names."""

    def __init_subclass__(cls, **more: Any) -> None:
        """Refuse a class without its hooks."""
        super().__init_subclass__(**more)
        _require_hooks(cls, ["statement", "weaknesses"], "FittedMethod")
        if not cls.__name__.startswith("_") and not ("mask_rows" in dir(cls)) ^ ("mask_table" in dir(cls)):
            raise TypeError(f"{cls.__name__}: a FittedMethod must define mask_rows or mask_table, one of them.")

    if TYPE_CHECKING:

        def mask_rows(self, rows: Rows, first: int) -> Rows:
            """One block masked, its first record at position ``first``."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns it reads."""
        return self.method.masks

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns it changes or adds."""
        return self.inputs

    def check(self, table: tables.Table) -> None:
        """Refuse a table that cannot be masked, before anything is read."""
        require_numeric(table.masked_schema, self.inputs, type(self.method).__name__)

    def masked_schema(self, schema: Schema) -> Schema:
        """The schema of a table with this schema once it is masked."""
        return self.method.masked_schema(schema)

    def mask(self, table: Any) -> Any:
        """The table masked: pandas as pandas, a Dask frame or a lake as a Dask frame, index and other columns kept.

        Where records must meet, they are exchanged at once; everything else is lazy.
        """
        return tables.mask(self, table, type(self.method).__name__)

    @abstractmethod
    def statement(self) -> str:
        """What a reader of the release may know of what was done."""

    @abstractmethod
    def weaknesses(self) -> list[str]:
        """What the data holder must know that it does not protect against."""

    def warnings(self) -> list[str]:
        """What is wrong with this fit, and what to do about it."""
        return []

    def claims(self) -> list[dict[str, Plain]]:
        """What anybody can check in the released files, as ``verify`` does."""
        return []

    def solution(self) -> dict[str, Plain] | None:
        """What programs may read in the manifest."""
        return None

    def __repr__(self) -> str:
        """The class and its columns: no value that was learnt from records."""
        return f"<{type(self).__name__}: {', '.join(self.inputs)}>"

    def _repr_html_(self) -> str:
        """The statement, and the figures if there are any."""
        figures = "" if self.figures is None else self.figures._repr_html_()
        return f"<p>{escape(self.statement())}</p>{figures}"
