"""Normal draws from random words: the inverse of the normal distribution function, to the last digits and fast.

Wichura (1988), Algorithm AS 241, PPND16: relative accuracy about 1e-16. The rational function of the middle is computed
for every draw, without a branch, so that it becomes vector instructions; the tails, 15 % of all draws, are gathered,
done by theirs in the same way, and put back.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.compile import compiled, read_only
from dpmask.kernels.vector_math import log2

_TILE = 4096  # draws whose temporaries stay in the cache
_HALF_MIDDLE = 0.425
_NEAR_TAIL = 5.0
_NEAR_SHIFT = 1.6
_LN2 = math.log(2.0)
_BELOW_ONE = 1.0 - 2.0**-53
_MIDDLE_OVER = (
    2509.0809287301226727,
    33430.575583588128105,
    67265.770927008700853,
    45921.953931549871457,
    13731.693765509461125,
    1971.5909503065514427,
    133.14166789178437745,
    3.3871328727963666080,
)
_MIDDLE_UNDER = (
    5226.4952788528545610,
    28729.085735721942674,
    39307.895800092710610,
    21213.794301586595867,
    5394.1960214247511077,
    687.18700749205790830,
    42.313330701600911252,
    1.0,
)
_NEAR_OVER = (
    7.74545014278341407640e-4,
    2.27238449892691845833e-2,
    2.41780725177450611770e-1,
    1.27045825245236838258,
    3.64784832476320460504,
    5.76949722146069140550,
    4.63033784615654529590,
    1.42343711074968357734,
)
_NEAR_UNDER = (
    1.05075007164441684324e-9,
    5.47593808499534494600e-4,
    1.51986665636164571966e-2,
    1.48103976427480074590e-1,
    6.89767334985100004550e-1,
    1.67638483018380384940,
    2.05319162663775882187,
    1.0,
)
_FAR_OVER = (
    2.01033439929228813265e-7,
    2.71155556874348757815e-5,
    1.24266094738807843860e-3,
    2.65321895265761230930e-2,
    2.96560571828504891230e-1,
    1.78482653991729133580,
    5.46378491116411436990,
    6.65790464350110377720,
)
_FAR_UNDER = (
    2.04426310338993978564e-15,
    1.42151175831644588870e-7,
    1.84631831751005468180e-5,
    7.86869131145613259100e-4,
    1.48753612908506148525e-2,
    1.36929880922735805310e-1,
    5.99832206555887937690e-1,
    1.0,
)


@compiled(part=True, reassociate=False)
def _polynomial(c: tuple[float, ...], r: float) -> float:
    """Horner's rule, the highest power first."""
    return ((((((c[0] * r + c[1]) * r + c[2]) * r + c[3]) * r + c[4]) * r + c[5]) * r + c[6]) * r + c[7]


def uniforms_of(words: NDArray[np.uint64], out: NDArray[np.float64]) -> None:
    """((w >> 11) + 0.5) 2^-53, kept below 1: the largest words plus one half would round up to it."""
    _fill_uniforms(read_only(words), out)


def normals_of(words: NDArray[np.uint64], out: NDArray[np.float64]) -> None:
    """The z with P(Z < z) = u for the uniform u of each word."""
    _fill_normals(read_only(words), out, np.empty(_TILE), np.empty(_TILE, np.int64))


@compiled(reassociate=False)
def _fill_uniforms(words: NDArray[np.uint64], out: NDArray[np.float64]) -> None:
    _uniforms(words, out)


@compiled(part=True, reassociate=False)
def _uniforms(words: NDArray[np.uint64], out: NDArray[np.float64]) -> None:
    for i in range(len(words)):
        out[i] = _uniform(words[i])


@compiled(part=True, reassociate=False)
def _uniform(word: np.uint64) -> float:
    uniform = np.float64(np.int64(word >> np.uint64(11))) * 2.0**-53 + 2.0**-54
    return uniform if uniform < _BELOW_ONE else _BELOW_ONE


@compiled(reassociate=False)
def _fill_normals(
    words: NDArray[np.uint64], out: NDArray[np.float64], tails: NDArray[np.float64], places: NDArray[np.int64]
) -> None:
    for start in range(0, len(words), _TILE):
        _normals_of_tile(words[start : start + _TILE], out[start : start + _TILE], tails, places)


@compiled(part=True, reassociate=False)
def _normals_of_tile(
    words: NDArray[np.uint64], out: NDArray[np.float64], tails: NDArray[np.float64], places: NDArray[np.int64]
) -> None:
    _uniforms(words, out)
    count = 0
    for i in range(len(out)):
        tails[count], places[count] = out[i], i
        count += abs(out[i] - 0.5) > _HALF_MIDDLE
    for i in range(len(out)):
        q = out[i] - 0.5
        r = _HALF_MIDDLE * _HALF_MIDDLE - q * q
        out[i] = q * _polynomial(_MIDDLE_OVER, r) / _polynomial(_MIDDLE_UNDER, r)
    for j in range(count):
        r = math.sqrt(-_LN2 * log2(tails[j] if tails[j] < 1.0 - tails[j] else 1.0 - tails[j])) - _NEAR_SHIFT
        z = _polynomial(_NEAR_OVER, r) / _polynomial(_NEAR_UNDER, r)
        tails[j] = z if tails[j] > 0.5 else -z  # noqa: PLR2004
    _far(words, tails, places, int(count))  # not also compiled for the literal 0 that it begins as
    for j in range(count):
        out[places[j]] = tails[j]


@compiled(part=True, reassociate=False)
def _far(words: NDArray[np.uint64], tails: NDArray[np.float64], places: NDArray[np.int64], count: int) -> None:
    """The few beyond about 6.7 standard deviations, by the function for these."""
    for j in range(count):
        if abs(tails[j]) > 6.5:  # noqa: PLR2004 - a little before the two functions meet at r = 5
            uniform = _uniform(words[places[j]])
            r = math.sqrt(-math.log(uniform if uniform < 1.0 - uniform else 1.0 - uniform))
            if r > _NEAR_TAIL:
                r -= _NEAR_TAIL
                z = _polynomial(_FAR_OVER, r) / _polynomial(_FAR_UNDER, r)
                tails[j] = z if uniform > 0.5 else -z  # noqa: PLR2004
