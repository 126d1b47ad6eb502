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
_LN2 = math.log(2.0)
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


@compiled(part=True, reassociate=False)
def log2(value: float) -> float:
    """The base-2 logarithm of a positive normal number (at least 2^-1022)."""
    # value = 2^k z with z in [sqrt(1/2), sqrt(2)); log z = 2 atanh((z - 1) / (z + 1)), whose odd series converges fast
    bits = bits_of(value)
    biased = (bits + _TO_ROOT_HALF) >> _MANTISSA
    z = from_bits(bits - (biased << _MANTISSA) + _ONE)
    k = from_bits(biased | _WHOLE) - _WHOLE_OFFSET
    f = (z - 1.0) / (z + 1.0)
    g = f * f
    series = 1.0 / 19.0
    series = series * g + 1.0 / 17.0
    series = series * g + 1.0 / 15.0
    series = series * g + 1.0 / 13.0
    series = series * g + 1.0 / 11.0
    series = series * g + 1.0 / 9.0
    series = series * g + 1.0 / 7.0
    series = series * g + 1.0 / 5.0
    series = series * g + 1.0 / 3.0
    return k + (2.0 * _LOG2E) * (f + f * g * series)


@compiled(part=True, reassociate=False)
def exp2(power: float) -> float:
    """2 to a power of at most 1023. Below 2^-1021 the answer is exactly 0."""
    # 2^power = 2^n 2^f with n the nearest integer: n goes into the exponent bits, 2^f is its Taylor series
    clipped = max(power, _SMALLEST_POWER)
    rounded = clipped + _ROUND
    f = (clipped - (rounded - _ROUND)) * _LN2
    series = 1.0 / 6227020800.0
    series = series * f + 1.0 / 479001600.0
    series = series * f + 1.0 / 39916800.0
    series = series * f + 1.0 / 3628800.0
    series = series * f + 1.0 / 362880.0
    series = series * f + 1.0 / 40320.0
    series = series * f + 1.0 / 5040.0
    series = series * f + 1.0 / 720.0
    series = series * f + 1.0 / 120.0
    series = series * f + 1.0 / 24.0
    series = series * f + 1.0 / 6.0
    series = series * f + 0.5
    series = series * f + 1.0
    series = series * f + 1.0
    result = from_bits(bits_of(series) + (bits_of(rounded) << _MANTISSA))
    return result if power >= _SMALLEST_POWER else 0.0
