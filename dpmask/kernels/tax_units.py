"""Synthetic tax units: uniforms in, returns out, each record by itself.

The shape is invented, as that of the census beside it: round numbers chosen by hand, no real file was looked at. It has
what makes tax files hard to mask: amounts that are mostly zero and have long tails, sums that must hold, a spouse's
wages that only joint filers have, and weights of a sample that takes more of the rich.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from dpmask.kernels.arrays import Flags, Floats, Integers
from dpmask.kernels.census import REGIONS
from dpmask.kernels.elementary import exp, power

STATUSES = ("single", "joint", "head of household")
DRAWS = ("status", "age", "region", "prosperity", "works", "wages", "spouse works", "spouse wages", "has interest",
         "interest", "has dividends", "dividends", "has gains", "gains", "deductions", "sample")  # fmt: skip

_JOINT = 1
_YOUNGEST, _OLDEST, _RETIRED = 18, 95, 65
_LARGEST = 50_000_000
_SELLS = 0.5  # of those who hold shares
_BRACKETS = (12_000, 40_000, 90_000)
_RATES = (0.15, 0.25, 0.38)
_STRATA = (25_000, 75_000, 200_000, 1_000_000)
_WEIGHTS = np.array([560.0, 410.0, 220.0, 60.0, 8.0])
_REGION_WEIGHTS = 1.0 + 0.05 * np.arange(len(REGIONS))


class TaxUnits(NamedTuple):
    """A run of records, a column each. Status and region are numbers into the names."""

    unit_id: Integers
    status: Integers
    age: Integers
    region: Integers
    wages: Integers
    spouse_wages: Integers
    interest: Integers
    dividends: Integers
    gains: Integers
    income: Integers
    tax: Integers
    weight: Floats


def make_units(first: int, draws: Mapping[str, Floats]) -> TaxUnits:
    """Make the tax units at positions first, first + 1, ..., with all draws at each position."""
    status = np.searchsorted([0.48, 0.9], draws["status"], side="right")
    age = (_YOUNGEST + (_OLDEST - _YOUNGEST) * power(draws["age"], 1.35)).astype(np.int64)
    region = (len(REGIONS) * power(draws["region"], 1.5)).astype(np.int64)
    prosperity = 0.6 * ndtri(draws["prosperity"])
    works = draws["works"] < np.where(age < _RETIRED, 0.9, 0.2)
    spouse = (status == _JOINT) & (draws["spouse works"] < np.where(age < _RETIRED, 0.7, 0.15))
    wages = _amounts(works, 10.3 + prosperity, 0.5, draws["wages"])
    spouse_wages = _amounts(spouse, 10.1 + prosperity, 0.5, draws["spouse wages"])
    older = np.clip((age - _YOUNGEST) / 50.0, 0.0, 1.0)
    interest = _amounts(draws["has interest"] < 0.2 + 0.4 * older, 5.5 + prosperity + older, 1.3, draws["interest"])
    holds = draws["has dividends"] < np.clip(0.05 + 0.12 * older + 0.08 * prosperity, 0.01, 0.6)
    dividends = _amounts(holds, 6.5 + 1.4 * prosperity + older, 1.6, draws["dividends"])
    gains = _amounts(holds & (draws["has gains"] < _SELLS), 7.5 + 1.5 * prosperity, 1.7, draws["gains"])
    income = wages + spouse_wages + interest + dividends + gains
    tax, weight = _taxes(income, draws["deductions"]), _weights(income, region)
    unit = np.arange(first, first + len(status))
    return TaxUnits(
        unit, status, age, region, wages, spouse_wages, interest, dividends, gains, income, tax, weight
    )  # fmt: skip


def _amounts(has: Flags, level: Floats, spread: float, draws: Floats) -> Integers:
    """Lognormal amounts of those who have one, at least 1."""
    drawn = exp(level + spread * ndtri(np.clip(draws, 1e-12, 1 - 1e-12)))
    return np.where(has, np.rint(drawn).clip(1, _LARGEST), 0.0).astype(np.int64)


def _taxes(income: Integers, draws: Floats) -> Integers:
    """Tax by brackets, after deductions."""
    taxed = income * (1.0 - 0.2 * draws)
    tax = sum(rate * np.clip(taxed - low, 0.0, high - low) for rate, low, high in _by_bracket())
    return np.floor(tax).astype(np.int64)


def _by_bracket() -> list[tuple[float, float, float]]:
    return list(zip(_RATES, _BRACKETS, (*_BRACKETS[1:], np.inf), strict=True))


def _weights(income: Integers, region: Integers) -> Floats:
    """The inverse of a unit's chance to be in the sample: by income and region."""
    return np.round(_WEIGHTS[np.searchsorted(_STRATA, income, side="right")] * _REGION_WEIGHTS[region], 2)
