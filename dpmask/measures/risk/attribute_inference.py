"""Attribute inference: an intruder takes a person's sensitive value from the nearest masked record.

The intruder knows some columns of a person, takes the masked record nearest to them (Euclidean, each file standardised
by its own mean and standard deviation; records equally near share) and believes its value of ``target``. It is right if
that value is the person's: the same category, or a number within ``tolerance`` standard deviations.

Much of this can be learned of anybody from how columns depend on each other. So the same is tried with the person's own
masked record left out: ``guessing``. ``excess`` = (rate - guessing) / (1 - guessing) is what taking part costs the
person (the form is that of Giomi, Boenisch, Wehmeyer and Tasnadi 2023).

A sample of persons is attacked, chosen by a hash of their values, against all masked records. Passes: two over both
tables (three for a category). Memory per task: one block; the sample travels with it. Time: sample x records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpmask.engine.tasks import Position
from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Floats
from dpmask.kernels.hash_sample import HashSample, hash_sample, merge_hash_samples, record_words_of
from dpmask.kernels.linkage.neighbours import Nearest, Queries, merge_nearest, nearest
from dpmask.kernels.moments import Moments, column_moments, merge_moments
from dpmask.kernels.warm_up import KernelUse, Task
from dpmask.kernels.wilson import wilson
from dpmask.lake.reading import Rows
from dpmask.measures.measure import Measure, require_integers, timed
from dpmask.results import MORE_RISK, RATE, Headline, Interval, Risk, Term
from dpmask.table.checks import require_spread
from dpmask.table.columns import floats, is_numeric, require_numeric
from dpmask.table.encoders.value_codes import KeyEncoder, value_encoders
from dpmask.table.pairs import masked_name, pair
from dpmask.table.row_keys import missing, require_groupable
from dpmask.table.table import Frame, Table

_WHO = "attribute_inference"
_MOST_SAMPLED = 100_000
_GIOMI = (
    "Giomi, Boenisch, Wehmeyer and Tasnadi 2023, A unified framework for quantifying privacy risk in synthetic data"
)


@dataclass(frozen=True, kw_only=True)
class AttributeInference(Risk):
    """``rate`` with the person's record in the release, ``guessing`` without it, ``excess`` between them."""

    rate: float
    excess: float

    judged: ClassVar[tuple[str, ...]] = ("rate", "excess")
    headlines: ClassVar[Sequence[Headline]] = [
        Headline("learned", "rate", "of persons' sensitive values can be read off the nearest released record"),
    ]
    about: ClassVar[Term] = Term(
        "The share of persons whose sensitive value is that of the masked record nearest to them; excess is what "
        "their own record adds to that.",
        MORE_RISK,
        _GIOMI,
    )
    terms: ClassVar[Mapping[str, Term]] = {
        **Risk.terms,
        "rate": RATE,
        "excess": Term(
            "How much the rate exceeds that of the same attack without the person's own record.", MORE_RISK, _GIOMI
        ),
    }

    @property
    def intervals(self) -> Mapping[str, Interval]:
        """Wilson's of the rate; that of the excess from the ends of the rate's and of guessing's."""
        inside, outside = wilson(self.rate, self.attacked), wilson(self.guessing, self.attacked)
        return {"rate": inside, "excess": (_excess(inside[0], outside[1]), _excess(inside[1], outside[0]))}

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"The nearest masked record gives away the sensitive value of {self.rate:.2%} of {self.attacked:,} "
            f"persons, and of {self.guessing:.2%} when their own record is left out: taking part costs "
            f"{self.excess:.2%}. Larger means more risk."
        )


def _check(schema: Any, *, columns: Sequence[str], target: str, **_: object) -> None:
    """Refuse known columns that are not numbers, and a target that is among them or cannot be compared."""
    _require_other(columns, target)
    require_numeric(schema, columns, _WHO)
    require_groupable(schema, [target], _WHO)


def _require_other(columns: Sequence[str], target: str) -> None:
    if not columns or target in columns:
        raise JobError(
            f"{_WHO}: columns must be one or more known columns and target another one; got {list(columns)} and "
            f"{target!r}."
        )


@timed
def attribute_inference(
    original: Frame,
    masked: Frame,
    *,
    columns: Sequence[str],
    target: str,
    sample: int = 1000,
    tolerance: float = 0.05,
    seed: int = 0,
) -> AttributeInference:
    """How often the nearest masked record gives away a person's sensitive value.

    Parameters
    ----------
    columns
        The numeric columns that the intruder knows.
    target
        The sensitive column, a number or a category.
    sample
        How many persons are attacked.
    tolerance
        How close a number must be to count as inferred, in standard deviations.
    seed
        Chooses the persons.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"age": range(50), "ill": ["yes", "no"] * 25})
    >>> found = dpmask.risk.attribute_inference(original, original, columns=["age"], target="ill")
    >>> found.rate, found.guessing
    (1.0, 0.0)
    """
    _require(sample, tolerance, seed)
    _require_other(columns, target)
    pairs = pair(original, masked, [*columns, target], _WHO)
    _check(pairs.masked_schema, columns=columns, target=target)
    require_numeric(pairs.masked_schema, [masked_name(name) for name in columns], _WHO)
    attack = _NeighbourAttack(tuple(columns), target, _categories(pairs, target), sample, seed)
    persons = attack.persons(pairs)
    attacked = len(persons.chosen.words)
    if not attacked:
        raise InputError(f"{_WHO}: no record has a value in all of {', '.join([*columns, target])}.")
    require_spread(persons.before.of(slice(len(columns))), columns, _WHO)
    reach = tolerance * float(persons.before.sd[-1]) if attack.categories is None else 0.0
    return _result(attack.nearest(pairs, persons, reach), attacked)


def _require(sample: int, tolerance: float, seed: int) -> None:
    require_integers(_WHO, 10, _MOST_SAMPLED, sample=sample)
    require_integers(_WHO, 0, _MOST_SAMPLED, seed=seed)
    number = isinstance(tolerance, int | float) and not isinstance(tolerance, bool)
    if not number or not 0 <= tolerance < math.inf:
        raise JobError(f"{_WHO}: tolerance must be a number >= 0; got {tolerance!r}.")


def _categories(pairs: Table, target: str) -> KeyEncoder | None:
    """The categories of a target, before and after masking; None for a number."""
    both = [target, masked_name(target)]
    if all(is_numeric(pairs.masked_schema.field(name).type) for name in both):
        return None
    found = value_encoders([pairs], both, _WHO, in_order=False)
    return KeyEncoder(target, np.unique(np.concatenate([one.known for one in found.values()])))  # type: ignore[union-attr]


class _InferredPersons(NamedTuple):
    """Moments before and after masking, of the known columns and then the target; and the persons attacked."""

    before: Moments
    after: Moments
    chosen: HashSample


class _NeighbourAttack(NamedTuple):
    """What is known, what is sought, its categories if it is no number, and how many persons are attacked."""

    known: tuple[str, ...]
    target: str
    categories: KeyEncoder | None
    sample: int
    seed: int

    def persons(self, pairs: Table) -> _InferredPersons:
        """The first pass: moments of both files, and a choice of persons."""
        names = [*self.known, self.target]
        both = [*names, *(masked_name(name) for name in names)]
        rows = pairs.select(both).with_positions()
        return rows.reduce(partial(_drawn, self), partial(_merge, self.sample), f"{_WHO}: persons")

    def nearest(self, pairs: Table, persons: _InferredPersons, reach: float) -> Nearest:
        """The second pass: the nearest masked records of every person."""
        values = _standardised(persons.chosen.values[:-1], persons.before)
        queries = Queries(values, persons.chosen.positions, persons.chosen.values[-1])
        rows = pairs.select([masked_name(name) for name in (*self.known, self.target)]).with_positions()
        return rows.reduce(partial(_search, self, queries, persons.after, reach), merge_nearest, f"{_WHO}: nearest")

    def columns(self, rows: Rows, name: Callable[[str], str] = str) -> list[Floats]:
        """The known columns and the target as numbers."""
        target = name(self.target)
        if self.categories is None:
            sought = floats(rows, target)
        else:
            sought = np.where(missing(rows, target), np.nan, self.categories.on(target).encode(rows))
        return [*(floats(rows, name(column)) for column in self.known), sought]


def _drawn(attack: _NeighbourAttack, rows: Rows, position: Position) -> _InferredPersons:
    before, after = attack.columns(rows), attack.columns(rows, masked_name)
    values = np.array(before)
    whole = np.flatnonzero(np.isfinite(values).all(axis=0))
    chosen = values[:, whole]
    words = record_words_of(list(chosen), attack.seed)
    return _InferredPersons(
        column_moments(before), column_moments(after), hash_sample(words, whole + position.first, chosen, attack.sample)
    )


def _merge(sample: int, left: _InferredPersons, right: _InferredPersons) -> _InferredPersons:
    return _InferredPersons(
        merge_moments(left.before, right.before),
        merge_moments(left.after, right.after),
        merge_hash_samples(left.chosen, right.chosen, sample),
    )


def _search(
    attack: _NeighbourAttack, queries: Queries, after: Moments, reach: float, rows: Rows, position: Position
) -> Nearest:
    *known, sought = attack.columns(rows, masked_name)
    return nearest(queries, _standardised(np.array(known), after), sought, position.first, reach)


def _standardised(values: Floats, moments: Moments) -> Floats:
    """Known columns in standard deviations from their file's mean; a constant one says nothing."""
    sd, mean = (part[: len(values), None] for part in (moments.sd, moments.mean))
    return (values - mean) / np.where(sd > 0.0, sd, 1.0)


def _result(found: Nearest, attacked: int) -> AttributeInference:
    rate, guessing = (float(share) for share in (found.right / np.maximum(found.ties, 1)).mean(axis=1))
    return AttributeInference(
        rate=rate,
        excess=_excess(rate, guessing),
        guessing=guessing,
        attacked=attacked,
        parts={"with the own record": rate, "with it held out": guessing},
    )


def _excess(rate: float, guessing: float) -> float:
    return max(rate - guessing, 0.0) / (1.0 - guessing) if guessing < 1.0 else 0.0


MEASURE = Measure(
    function=attribute_inference,
    result=AttributeInference,
    passes=2,
    check=_check,
    kernels=KernelUse((Task("neighbours"),)),
)
