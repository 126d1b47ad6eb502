"""exp2 and log2 as plain arithmetic, so that a loop over them becomes vector instructions.

Numba sends `math.exp` and `math.log` to the C library one number at a time, which costs more than a whole fuzzy c-means
step. Both functions here are good to about two units in the last place (tests/unit/test_fuzzy_kernel.py measures it).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.compile import bits_of, compiled, from_bits

# The bit layout of a float64: 52 bits of mantissa, then the exponent plus 1023, then the sign.
_MANTISSA = np.uint64(52)
_ONE = np.uint64(1023 << 52)
_TO_ROOT_HALF = np.uint64((1023 << 52) - int(np.float64(math.sqrt(0.5)).view(np.uint64)))
_WHOLE = np.uint64((1023 + 52) << 52)  # or-ed with a small integer n these are the bits of 2^52 + n
_WHOLE_OFFSET = 2.0**52 + 1023.0
_ROUND = 1.5 * 2.0**52  # adding it pushes everything behind the decimal point out of the mantissa

_LOG2E = 1.0 / math.log(2.0)
_SMALLEST_POWER = -1021.0


@compiled(part=True)
def total_of(values: NDArray[np.float64], count: int) -> float:
    """The sum of the first values, by a loop that stores nothing.

    One that does is run as vectors or not, by where its arrays happen to lie, and so its sum would depend on that.
    """
    total = 0.0
    for at in range(count):
        total += values[at]
    return total


@compiled(part=True)
def copy_columns(block: NDArray[np.float64], first: int, count: int, tile: NDArray[np.float64]) -> None:
    """Columns of a block from `first` on, zeros behind `count` of them."""
    for s in range(len(block)):
        values = block[s, first:]  # from a place like first + k, which may be negative, no vector is loaded
        for k in range(count):
            tile[s, k] = values[k]
        for k in range(count, tile.shape[1]):
            tile[s, k] = 0.0


@compiled(part=True, reassociate=False)
def log2(value: float) -> float:
    """The base-2 logarithm of a positive normal number (at least 2^-1022)."""
    # value = 2^k z with z in [sqrt(1/2), sqrt(2)); log z = 2 atanh(f) with f = (z - 1) / (z + 1), and atanh(f) =
    # f + f^3 s(f^2), where s is a polynomial that interpolates at Chebyshev's points: two terms less than the series
    bits = bits_of(value)
    biased = (bits + _TO_ROOT_HALF) >> _MANTISSA
    z = from_bits(bits - (biased << _MANTISSA) + _ONE)
    k = from_bits(biased | _WHOLE) - _WHOLE_OFFSET
    f = (z - 1.0) / (z + 1.0)
    g = f * f
    series = 0.07308224842521703
    series = series * g + 0.07665860800278021
    series = series * g + 0.09091444562630861
    series = series * g + 0.1111110556739754
    series = series * g + 0.14285714312987743
    series = series * g + 0.19999999999949752
    series = series * g + 0.3333333333333335
    return k + (2.0 * _LOG2E) * (f + f * g * series)


@compiled(part=True, reassociate=False)
def exp2(power: float) -> float:
    """2 to a power of at most 1023. Below 2^-1021 the answer is exactly 0."""
    # 2^power = 2^n 2^f with n the nearest integer: n goes into the exponent bits, 2^f is a polynomial that
    # interpolates at Chebyshev's points of [-1/2, 1/2]
    clipped = power if power > _SMALLEST_POWER else _SMALLEST_POWER
    rounded = clipped + _ROUND
    f = clipped - (rounded - _ROUND)
    series = 4.4558179083360645e-10
    series = series * f + 7.074194297288521e-09
    series = series * f + 1.0178057087733941e-07
    series = series * f + 1.3215432535912375e-06
    series = series * f + 1.5252733841556773e-05
    series = series * f + 0.00015403530463724353
    series = series * f + 0.001333355814640647
    series = series * f + 0.009618129107587256
    series = series * f + 0.055504108664821625
    series = series * f + 0.24022650695910158
    series = series * f + 0.6931471805599453
    series = series * f + 1.0
    result = from_bits(bits_of(series) + (bits_of(rounded) << _MANTISSA))
    return result if power >= _SMALLEST_POWER else 0.0
