"""A synthetic census: uniforms in, people in households out.

The shape is invented. It is plausible for a rich country, with round numbers chosen by hand so that the columns depend
on each other as they do in a census; no table of a real one was copied, fitted or looked at, and nothing true about any
population can be learned from it. Every table that gives it its shape is in this file.

Households fill superblocks of 4096 consecutive people, whose last household is cut off. All of a superblock follows
from the draws at its own positions, so any part of a census of any size can be made by itself. A household's draws
are those at the position of its first member, but for its size, which has to be known before the position is.

Who is in a household follows from its size: a head, mostly a partner, and children of an age that fits the head's.
Partners' schooling and incomes share a normal draw each. Schooling, sex and age decide who works; schooling and sex at
what; these, hours and region what is earned. Of those who do not work, some have a benefit, most of the old a pension.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from dpmask.kernels.arrays import Flags, Floats, Integers
from dpmask.kernels.elementary import exp, log

SUPERBLOCK = 4096
SEXES = ("man", "woman")
EDUCATIONS = ("none", "primary", "lower secondary", "upper secondary", "vocational", "bachelor", "master", "doctorate")
OCCUPATIONS = ("manager", "professional", "technician", "clerical", "service", "sales", "agriculture", "craft",
               "machine operator", "elementary", "armed forces", "not working")  # fmt: skip
REGIONS = ("Capital", "Harbour", "North", "South", "Lakes", "Plains", "East Valley", "West Coast", "Hills", "Forest",
           "Islands", "Highlands")  # fmt: skip
HOUSEHOLD_DRAWS = ("size", "kind", "head age", "region", "schooling", "prosperity", "weight")
PERSON_DRAWS = ("age", "sex", "education", "work", "hours", "income", "deductions")
_REFUSING = {"education": 0.02, "occupation": 0.03, "hours": 0.03, "income": 0.04}  # item non-response
ANSWER_DRAWS = tuple(f"{question} answer" for question in _REFUSING)

_NOT_WORKING = len(OCCUPATIONS) - 1
_ALONE, _COUPLE, _FAMILY, _LONE_PARENT = range(4)
_ADULT, _OLDEST = 18, 99
_SMALLEST_INCOME, _LARGEST_INCOME = 100, 5_000_000
_SCHOOL_AGE, _WORKING_AGE = 6, 15  # below these a census does not ask for schooling, and for work
_SAME_SEX = 0.02
_SHARED_SCHOOLING = 0.7  # correlation of the latent schooling of partners: its square
_TWO = 2
_FULL_TIME = 40
_SLOTS = 1024
_BELOW_ONE = 1.0 - 2.0**-53
_AGES = np.arange(_OLDEST + 1)


class People(NamedTuple):
    """A run of records, a column each. Sex, education, occupation and region are numbers into the names above."""

    person_id: Integers
    household_id: Integers
    age: Integers
    sex: Integers
    education: Integers
    occupation: Integers
    region: Integers
    hours: Integers
    net: Integers
    tax: Integers
    gross: Integers
    weight: Floats


class _Dwellings(NamedTuple):
    """The households of a run, a value each but for ``of``: the number of each person's household."""

    starts: Integers
    of: Integers
    kind: Integers
    head_age: Floats
    region: Integers
    schooling: Floats
    prosperity: Floats
    weight: Floats


def make_people(first: int, draws: Mapping[str, Floats]) -> People:
    """Make the people at positions first, first + 1, ...: whole superblocks, with all draws at each position."""
    homes = _homes(draws)
    of = homes.of
    role = np.arange(len(of)) - homes.starts[of]
    partner = (role == 1) & (homes.kind[of] != _LONE_PARENT)
    age = _ages(draws["age"], homes.head_age[of], role, partner)
    sex = _sexes(draws["sex"], homes.kind[of], role, partner)
    education = _educations(draws["education"], homes.schooling[of], age)
    works, rest = _work(draws["work"], sex, education, age)
    occupation = np.where(works, _pick(_JOBS, rest, sex * len(EDUCATIONS) + education), _NOT_WORKING)
    hours = np.minimum(_pick(_HOURS, draws["hours"], sex * len(OCCUPATIONS) + occupation), _MOST_HOURS[age])
    level = _BASE[occupation, education] + _PROFILE[works.astype(np.intp), sex, age] + _LOG_HOURS[hours]
    level += homes.prosperity[of] + 0.42 * ndtri(draws["income"])
    earned = np.rint(exp(level)).clip(_SMALLEST_INCOME, _LARGEST_INCOME)
    gross = np.where(works | (rest < _SUPPORTED[age]), earned, 0.0).astype(np.int64)
    tax = _taxes(gross, draws["deductions"])
    person, household = np.arange(first, first + len(of)), (first + homes.starts)[of]
    return People(person, household, age, sex, education, occupation, homes.region[of], hours,
                  gross - tax, tax, gross, homes.weight[of])  # fmt: skip


def unanswered(age: Integers, draws: Mapping[str, Floats]) -> dict[str, Flags]:
    """Where a census has nulls: what is not asked of children, and a few percent of the answers to each question."""
    refused = {question: draws[f"{question} answer"] < share for question, share in _REFUSING.items()}
    income = refused["income"]
    return {
        "education": refused["education"] | (age < _SCHOOL_AGE),
        "occupation": refused["occupation"] | (age < _WORKING_AGE),
        "hours": refused["hours"] | (age < _WORKING_AGE),
        "net": income,
        "tax": income,
        "gross": income,
    }


def _homes(draws: Mapping[str, Floats]) -> _Dwellings:
    starts = _starts(draws["size"])
    sizes = np.diff(starts, append=len(draws["size"]))
    own = {name: draws[name][starts] for name in HOUSEHOLD_DRAWS}
    kind = _kinds(sizes, own["kind"])
    region = _pick(_REGION, own["region"])
    return _Dwellings(
        starts,
        of=np.repeat(np.arange(len(starts)), sizes),
        kind=kind,
        head_age=_quantile(_HEAD_AGES, own["head age"], kind),
        region=region,
        schooling=ndtri(own["schooling"]),
        prosperity=_REGION_LEVEL[region] + 0.30 * ndtri(own["prosperity"]),
        weight=np.round(_DESIGN_WEIGHT[region] * exp(0.2 * ndtri(own["weight"])), 4),
    )


def _starts(draws: Floats) -> Integers:
    """Where households begin. The k-th draw of a superblock is the size of its k-th household; most are left over."""
    sizes = (_pick(_SIZE, draws) + 1).reshape(-1, SUPERBLOCK)
    starts = np.cumsum(sizes, axis=1) - sizes
    offsets = SUPERBLOCK * np.arange(len(starts))[:, None]
    return (starts + offsets)[starts < SUPERBLOCK]


def _kinds(sizes: Integers, draws: Floats) -> Integers:
    two = sizes == _TWO
    couple = draws < np.where(two, 0.74, 0.84)
    return np.where(sizes == 1, _ALONE, np.where(couple, np.where(two, _COUPLE, _FAMILY), _LONE_PARENT))


def _ages(draws: Floats, head_age: Floats, role: Integers, partner: Flags) -> Integers:
    """Ages in whole years: a parent is 18 to 42 years older than a child, whatever the child's age."""
    gap = _quantile(_PARTNER_GAP, draws, np.zeros(len(draws), np.intp))
    youngest = np.maximum(head_age - 42, 0)
    child = youngest + draws * (head_age - _ADULT - youngest)
    age = np.where(role == 0, head_age, np.where(partner, (head_age + gap).clip(_ADULT, _OLDEST), child))
    return age.astype(np.int64)


def _sexes(draws: Floats, kind: Integers, role: Integers, partner: Flags) -> Integers:
    woman = draws < np.where(role == 0, _WOMAN_HEADS[kind], 0.488)
    other = np.concatenate(([False], woman[:-1]))  # a partner stands right behind the head
    return np.where(partner, other ^ (draws > _SAME_SEX), woman).astype(np.int64)


def _educations(draws: Floats, shared: Floats, age: Integers) -> Integers:
    """Cut a latent normal, in part common to the household and with a trend over cohorts, to what an age can reach."""
    latent = _SHARED_SCHOOLING * shared + np.sqrt(1 - _SHARED_SCHOOLING**2) * ndtri(draws) - 0.012 * (age - 45.0)
    return np.searchsorted(_SCHOOLING, latent).clip(_LEAST_SCHOOLING[age], _MOST_SCHOOLING[age])


def _work(draws: Floats, sex: Integers, education: Integers, age: Integers) -> tuple[Flags, Floats]:
    """Who works; and what is left of each draw after that, again a uniform, for the next question."""
    chance = _WORKING[sex, education, age]
    works = draws < chance
    rest = (draws - np.where(works, 0.0, chance)) / np.where(works, chance, 1 - chance)
    return works, np.minimum(rest, _BELOW_ONE)


def _taxes(gross: Integers, draws: Floats) -> Integers:
    """Whole units by progressive brackets, after deductions of up to a fifth: most people deduct little."""
    return np.interp(gross * (1 - 0.2 * draws**2), _BRACKETS, _TAX_AT_BRACKETS).astype(np.int64)


def _slots(rows: Sequence[float] | Floats) -> Integers:
    """For each row of shares a table to draw from: slot floor(1024 u) holds the number of a share."""
    shares = np.asarray(rows, np.float64)
    edges = np.cumsum(shares / shares.sum(axis=-1, keepdims=True), axis=-1)[..., None, :-1]
    return (edges < (np.arange(_SLOTS)[:, None] + 0.5) / _SLOTS).sum(axis=-1)


def _pick(slots: Integers, draws: Floats, row: Integers | int = 0) -> Integers:
    """One number from each draw; ``row`` says by which row of shares."""
    return slots.ravel()[(draws * _SLOTS).astype(np.intp) + _SLOTS * np.asarray(row)]


def _quantile(table: Floats, draws: Floats, row: Integers) -> Floats:
    """Interpolate in a row of evenly spaced quantiles at each draw."""
    steps = table.shape[1] - 1
    step = (draws * steps).astype(np.intp)
    low, high = table[row, step], table[row, step + 1]
    return low + (draws * steps - step) * (high - low)


def _by_age(*knots: tuple[int, float]) -> Floats:
    ages, values = zip(*knots, strict=True)
    return np.interp(_AGES, ages, values)


def _steps(*since: tuple[int, int]) -> Integers:
    ages, values = zip(*since, strict=True)
    return np.asarray(values)[np.searchsorted(ages, _AGES, side="right") - 1]


def _working_chances() -> Floats:
    """Sex x education x age."""
    chance = _by_age((15, 0.08), (18, 0.3), (20, 0.5), (25, 0.78), (30, 0.86), (50, 0.86), (55, 0.8), (60, 0.55),
                     (65, 0.22), (67, 0.12), (70, 0.06), (75, 0.02), (99, 0.0))  # fmt: skip
    chance[:_WORKING_AGE] = 0
    by_sex = np.array([np.ones(len(_AGES)), _by_age((20, 0.97), (30, 0.86), (45, 0.92), (60, 0.85))])
    by_education = np.array([0.70, 0.75, 0.85, 0.95, 1.0, 1.05, 1.08, 1.10])
    return chance * by_sex[:, None, :] * by_education[:, None]


def _hour_shares() -> Floats:
    """(Sex x occupation) x hours: part time in steps of four hours, full time with a tail of long weeks."""
    hours = np.arange(81)
    part = exp(-(((hours - 22) / 8) ** 2) / 2) * np.where(hours % 4, 1, 3)
    part[:4] = part[_FULL_TIME - 5 :] = 0
    part_time = np.outer([0.10, 0.38], [0.4, 0.8, 0.8, 1.1, 1.5, 1.4, 0.7, 0.4, 0.4, 1.4, 0.1]).ravel()
    tail = np.tile([8.0, 4.0, 3.0, 2.0, 3.0, 3.0, 9.0, 2.5, 3.0, 2.0, 5.0], 2)[:, None]
    over = hours - float(_FULL_TIME)
    full = np.where(over <= 0, exp(-(over**2) / 8), exp(-over / tail))
    full[:, : _FULL_TIME - 5] = 0
    shares = part_time[:, None] * part / part.sum() + (1 - part_time)[:, None] * full / full.sum(axis=1, keepdims=True)
    none = np.eye(1, len(hours))  # not working: no hours, with certainty
    return np.vstack([shares[:_NOT_WORKING], none, shares[_NOT_WORKING:], none])


def _incomes() -> tuple[Floats, Floats]:
    """Log of yearly income: occupation x education, and works x sex x age. Not working: benefits and pensions."""
    by_education = np.array([0.0, 0.05, 0.10, 0.20, 0.26, 0.42, 0.58, 0.72])
    by_job = math.log(24_000) + np.array([0.40, 0.22, 0.10, -0.02, -0.18, -0.12, -0.25, 0.0, -0.02, -0.25, 0.10])
    base = np.vstack([by_job[:, None] + by_education, math.log(9_000) + 0.6 * by_education])
    career = np.maximum(0.5 - 0.5 * ((_AGES - 50) / 32) ** 2, -0.3)
    support = _by_age((60, 0.0), (67, 0.45))
    return base, np.array([[support, support - 0.10], [career, career - 0.07]])


_SIZE = _slots([34, 33, 14, 12, 4.5, 1.7, 0.8])
_REGION = _slots([19, 14, 12, 11, 10, 8, 7, 6, 5, 4, 2.5, 1.5])
_REGION_LEVEL = np.array([0.14, 0.08, 0.0, -0.04, 0.02, -0.06, -0.03, 0.05, -0.08, -0.10, -0.12, -0.09])
# Small regions are sampled more densely, as surveys do.
_DESIGN_WEIGHT = np.array([3.2, 2.9, 2.6, 2.5, 2.3, 2.0, 1.8, 1.7, 1.5, 1.3, 1.0, 0.8])
_HEAD_AGES = np.array(
    [
        [19.0, 26, 32, 40, 48, 56, 63, 69, 75, 82, 99],
        [20.0, 28, 34, 45, 54, 60, 65, 69, 74, 79, 94],
        [21.0, 31, 35, 38, 41, 44, 47, 50, 54, 59, 72],
        [20.0, 30, 34, 38, 42, 46, 50, 54, 60, 68, 85],
    ]
)
_PARTNER_GAP = np.array([[-18.0, -6, -4, -3, -2, -1, 0, 1, 2, 4, 14]])
_WOMAN_HEADS = np.array([0.54, 0.35, 0.35, 0.80])
_SCHOOLING = ndtri(np.cumsum([0.02, 0.08, 0.16, 0.28, 0.20, 0.14, 0.10]))
_LEAST_SCHOOLING = _steps((0, 0), (6, 1), (12, 2), (18, 0))
_MOST_SCHOOLING = _steps((0, 0), (6, 1), (12, 2), (15, 3), (19, 4), (21, 5), (23, 6), (27, 7))
_WORKING = _working_chances()
_JOB_SHARES = np.array(
    [
        [1, 0, 1, 2, 14, 9, 12, 13, 13, 34, 1],
        [1, 0, 2, 3, 15, 10, 10, 16, 15, 27, 1],
        [2, 1, 4, 7, 18, 14, 5, 17, 14, 17, 1],
        [5, 4, 11, 16, 17, 15, 3, 12, 8, 7, 2],
        [5, 5, 18, 11, 15, 9, 4, 20, 8, 4, 1],
        [11, 36, 22, 13, 6, 6, 1, 2, 1, 1, 1],
        [19, 57, 12, 6, 2, 2, 0.5, 0.5, 0.3, 0.2, 0.5],
        [15, 80, 3, 1, 0.3, 0.3, 0.1, 0.1, 0.1, 0, 0.1],
    ]
)
_WOMEN_IN_JOBS = np.array([0.6, 1.2, 1.0, 1.9, 2.0, 1.4, 0.5, 0.12, 0.3, 1.1, 0.15])
_JOBS = _slots(np.vstack([_JOB_SHARES, _JOB_SHARES * _WOMEN_IN_JOBS]))
_HOURS = _slots(_hour_shares())
_MOST_HOURS = _steps((0, 0), (15, 16), (18, 80), (70, 40))
_LOG_HOURS = log(np.maximum(np.arange(81), 1) / 38.0) * (np.arange(81) > 0)
_SUPPORTED = _steps((0, 0), (18, 40), (60, 65), (65, 92)) / 100
_BASE, _PROFILE = _incomes()
_BRACKETS = np.array([0.0, 9_000, 25_000, 60_000, _LARGEST_INCOME])
_TAX_AT_BRACKETS = np.concatenate(([0.0], np.cumsum(np.diff(_BRACKETS) * [0.0, 0.18, 0.32, 0.42])))
