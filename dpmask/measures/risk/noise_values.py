"""Values with noise as an intruder reads them who knows the strata it was drawn in.

Noise is a share of a stratum's deviation, so every value is taken in standard deviations of the masked values of its
stratum, from their mean: then the noise is alike in all strata, and they can be filtered as one. Zeros that were kept
have no noise; the strata of all records are taken as known, as an intruder with a register may guess them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from dpmask.constraints.column_strata import ColumnStrata, column_strata
from dpmask.constraints.strata import Strata
from dpmask.kernels.arrays import Flags, Floats, Integers
from dpmask.kernels.keys import float_keys
from dpmask.kernels.moments import Moments, column_moments, merge_moments
from dpmask.kernels.noise import FEWEST_VALUES
from dpmask.lake.reading import Rows
from dpmask.table.columns import floats
from dpmask.table.pairs import POSITION, masked_name
from dpmask.table.routing import rows_by_target
from dpmask.table.table import Table

_APART = 1e6  # between two strata: farther than any estimate


class NoiseUnits(NamedTuple):
    """The strata of each column, and the mean and the deviation of masked values in each; the last has no noise."""

    strata: ColumnStrata
    mean: Sequence[Floats]
    sd: Sequence[Floats]


def noise_units(
    pairs: Table, columns: Sequence[str], strata: Strata, zeros: Sequence[str], who: str
) -> NoiseUnits | None:
    """From two passes over the pairs; None where all values of a column have the same noise."""
    if not strata.classings and not zeros:
        return None
    found = column_strata(pairs, columns, strata, zeros, FEWEST_VALUES, who)
    names = [*columns, *map(masked_name, columns), *strata.columns]
    moments = pairs.select(names).reduce(partial(_moments, found), merge_moments, f"{who}: strata")
    ends = np.cumsum(found.sizes)[:-1]
    means, sds = (np.split(part, ends) for part in (moments.mean, np.where(moments.sd > 0.0, moments.sd, 1.0)))
    return NoiseUnits(found, [np.append(one, 0.0) for one in means], [np.append(one, 1.0) for one in sds])


def _moments(strata: ColumnStrata, rows: Rows) -> Moments:
    parts = []
    for column, count in zip(strata.columns, strata.sizes, strict=True):
        values, lines = floats(rows, masked_name(column)), strata.of(rows, column)[1]
        parts += [values[places] for places in rows_by_target(lines + 1, count + 1)[1:]]
    return column_moments(parts)


class NoisyValues(NamedTuple):
    """Complete records of a block, columns x records, in units of their strata."""

    original: Floats  # as they are
    known: Floats
    masked: Floats
    unit: Floats  # what one is worth
    lines: Floats  # the stratum of each value, -1 for one without noise
    positions: Floats


def noisy_values(columns: Sequence[str], units: NoiseUnits | None, rows: Rows) -> NoisyValues:
    """Records without a missing or infinite value."""
    original = np.array([floats(rows, column) for column in columns])
    masked = np.array([floats(rows, masked_name(column)) for column in columns])
    unit, lines, known, values = *(np.broadcast_to(one, original.shape) for one in (1.0, 0.0)), original, masked
    if units is not None:
        found: list[Integers] = [units.strata.of(rows, column)[1] for column in columns]
        mean, unit = (np.array([one[line] for one, line in zip(some, found, strict=True)]) for some in units[1:])
        lines, known, values = np.array(found, np.float64), (original - mean) / unit, (masked - mean) / unit
    positions, whole = floats(rows, POSITION), np.isfinite(original).all(axis=0) & np.isfinite(masked).all(axis=0)
    if whole.all():
        return NoisyValues(original, known, values, unit, lines, positions)
    original, known, values, unit, lines = (part[:, whole] for part in (original, known, values, unit, lines))
    return NoisyValues(original, known, values, unit, lines, positions[whole])


def patterns(lines: Floats) -> list[tuple[Flags, Integers]]:
    """Which columns have noise in some of the records, and which records these are."""
    if (lines >= 0.0).all():
        return [(np.ones(len(lines), np.bool_), np.arange(lines.shape[1]))] if lines.shape[1] else []
    codes = float_keys((lines >= 0.0).astype(np.float64)).first
    _, firsts, places = np.unique(codes, return_index=True, return_inverse=True)
    return [(lines[:, first] >= 0.0, np.flatnonzero(places == number)) for number, first in enumerate(firsts)]


def apart(lines: Floats) -> Floats:
    """One more coordinate, by which records of different strata are far from each other."""
    return (float_keys(lines).first >> np.uint64(12)).astype(np.float64)[None] * _APART
