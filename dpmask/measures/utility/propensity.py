"""Propensity (pMSE): how well a model distinguishes masked records from original ones.

A logistic regression learns, on N original and masked records together, the chance p_i that record i is masked; with c
the share of masked ones, pMSE = mean of (p_i - c)^2 (Woo, Reiter, Oganian and Karr 2009). 0 means that they cannot be
distinguished, c (1 - c) = 0.25 that they can without fail. A model with k parameters besides the constant finds some
difference between any two samples of one population, c (1 - c) k / N on average for large N (its score statistic is
chi-squared with k degrees of freedom): ``expected``; ``ratio`` is pMSE over that. Snoke, Raab, Nowok, Dibben and
Slavkovic (2018) expect 1 - c times as much of records drawn from a model of the very originals they are compared with.

The model sees each number, its square and the products of numbers (these with up to 20 numeric columns), each category
with at least 1 % of the sample, and what is missing; so it notices changed means, variances, correlations and shares.
No coefficient is penalised, as the expectation assumes.
It is fitted on a sample, chosen by the records' positions under a fixed key, of each table by itself. One pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from dpmask.engine.draws import Subkey, make_key, record_words
from dpmask.engine.tasks import Position
from dpmask.errors import InputError
from dpmask.kernels.hash_sample import HashSample, hash_sample, merge_hash_samples
from dpmask.kernels.regression.logistic import Floats, basis, fitted_chances
from dpmask.lake.arrow import array_of
from dpmask.lake.reading import Rows
from dpmask.measures.measure import Measure, require_integers
from dpmask.measures.utility.summary import require_columns
from dpmask.results import Loss, Term
from dpmask.table.checks import empty_column, require_no_infinities
from dpmask.table.columns import floats, is_numeric
from dpmask.table.row_keys import require_groupable, row_keys
from dpmask.table.table import Frame, Table, as_table

_WHO = "propensity"

_MOST_SAMPLED = 100_000
_MOST_PRODUCTS = 20  # numeric columns
_RARE = 0.01
_EXACT = np.uint64(11)  # bits of a key that a double has no room for


@dataclass(frozen=True, kw_only=True)
class Propensity(Loss):
    """``value`` is pMSE, ``expected`` what it is without any difference, ``ratio`` one over the other."""

    expected: float
    ratio: float
    sampled: int
    parameters: int

    judged: ClassVar[tuple[str, ...]] = ("value", "ratio")
    about: ClassVar[Term] = Term(
        "pMSE: the mean of (p - c)^2 over a sample of original and masked records, p the chance of being masked by a "
        "logistic regression, c the share of masked ones; ratio is pMSE over its expectation without any difference.",
        "0 means that masked and original records cannot be distinguished, 0.25 that they can without fail; "
        "larger means more information lost.",
        "Woo, Reiter, Oganian and Karr 2009, Global measures of data utility for microdata masked for disclosure "
        "limitation; Snoke, Raab, Nowok, Dibben and Slavkovic 2018, General and specific utility measures for "
        "synthetic data",
    )

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"pMSE is {self.value:.4g}, {self.ratio:.4g} times what a model of {self.parameters} parameters scores "
            f"without any difference, on a sample of {self.sampled:,} original and masked records. "
            "Larger means that masked records are distinguished from original ones more easily: more information lost."
        )


def propensity(
    original: Frame, masked: Frame, *, columns: Sequence[str], sample: int = 10_000, seed: int = 0
) -> Propensity:
    """pMSE: how well a logistic regression distinguishes masked records from original ones.

    Parameters
    ----------
    original, masked
        The tables: pandas or Dask frames, or lakes. Their records need not be paired.
    columns
        The columns to compare, numbers or categories.
    sample
        How many records of each table the model is fitted on, at most.
    seed
        Chooses these records.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"income": range(100)})
    >>> masked = original + 30.0
    >>> round(dpmask.utility.propensity(original, masked, columns=["income"]).value, 4)
    0.0536
    """
    require_integers(_WHO, 10, _MOST_SAMPLED, sample=sample)
    require_integers(_WHO, 0, 1 << 63, seed=seed)
    require_columns(columns, _WHO)
    tables = as_table(original, _WHO), as_table(masked, _WHO)
    for table in tables:
        _check(table.masked_schema, columns=columns)
    numeric = [name for name in columns if all(is_numeric(one.masked_schema.field(name).type) for one in tables)]
    others = [name for name in columns if name not in numeric]
    drawn = [
        _sampled(*side, numeric, others, sample, seed) for side in zip(tables, ("original", "masked"), strict=True)
    ]
    for name, values in zip(numeric, drawn[0], strict=False):
        if np.isnan(values).all():
            raise empty_column(_WHO, name, "any record of the sample")
    features = _features(np.concatenate(drawn, axis=1), len(numeric))
    if not features.size:
        raise InputError(
            f"{_WHO}: no value of {', '.join(others)} is shared by {_RARE:.0%} of the records, so there is nothing to "
            "compare the tables by. Add numbers, or columns with fewer different values."
        )
    return _result(features, [one.shape[1] for one in drawn])


def _check(schema: Any, *, columns: Sequence[str], **_: object) -> None:
    require_groupable(schema, columns, _WHO)


def _sampled(table: Table, side: str, numeric: list[str], others: list[str], sample: int, seed: int) -> Floats:
    """The values of a sample (columns x records): numbers as they are, categories by their keys."""
    key = make_key(_WHO, seed=seed).subkey(side)
    choice = partial(_choose, key, tuple(numeric), tuple(others), sample)
    rows = table.select([*numeric, *others]).with_positions()
    found = rows.reduce(choice, partial(merge_hash_samples, most=sample), f"{_WHO}: {side}")
    if not len(found.words):
        raise InputError(f"{_WHO}: the {side} table has no record.")
    return found.values


def _choose(
    key: Subkey, numeric: tuple[str, ...], others: tuple[str, ...], sample: int, rows: Rows, position: Position
) -> HashSample:
    words = record_words(key, position.first, rows.num_rows)
    likely = np.argpartition(words, sample)[:sample] if len(words) > sample else np.arange(len(words))
    likely.sort()
    picked = rows.take(array_of(likely))
    values = [floats(picked, name) for name in numeric]
    values += [(row_keys(picked, [name]).first >> _EXACT).astype(np.float64) for name in others]
    return hash_sample(words[likely], position.first + likely, np.array(values), sample)


def _features(values: Floats, numeric: int) -> Floats:
    """What the model sees (records x features)."""
    numbers, others = values[:numeric], values[numeric:]
    require_no_infinities(numbers, _WHO)
    missing = np.isnan(numbers)
    known = np.maximum((~missing).sum(axis=1, keepdims=True), 1)
    numbers = np.where(missing, 0.0, numbers - np.nansum(numbers, axis=1, keepdims=True) / known)
    size = np.sqrt((numbers**2).sum(axis=1, keepdims=True) / known)
    numbers = numbers / np.where(size > 0.0, size, 1.0)
    products = combinations(range(numeric), 2) if numeric <= _MOST_PRODUCTS else ()
    return np.array(
        [
            *numbers,
            *numbers**2,
            *(numbers[i] * numbers[j] for i, j in products),
            *missing[missing.any(axis=1)].astype(np.float64),
            *(one for column in others for one in _indicators(column)),
        ]
    ).T


def _indicators(column: Floats) -> Floats:
    """Which records have each category that is not rare; the rest is what is left."""
    values, counts = np.unique(column, return_counts=True)
    return (column == values[counts >= _RARE * len(column), None]).astype(np.float64)


def _result(features: Floats, sizes: list[int]) -> Propensity:
    records = sum(sizes)
    share = sizes[1] / records
    columns = basis(features)
    kind = np.repeat([0.0, 1.0], sizes)
    value = float(((fitted_chances(columns, kind) - share) ** 2).mean())
    expected = share * (1 - share) * columns.shape[1] / records
    ratio = value / expected if expected else 0.0
    parts = {"original records": sizes[0], "masked records": sizes[1], "features": features.shape[1]}
    return Propensity(
        value=value, expected=expected, ratio=ratio, sampled=records, parameters=columns.shape[1], parts=parts
    )


MEASURE = Measure(function=propensity, result=Propensity, check=_check)
