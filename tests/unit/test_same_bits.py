"""The same numbers give the same bits, wherever in memory they lie.

A compiled loop that stores and also sums is run as vectors or not, by where its arrays happen to lie; sums may then be
taken in another order. So every kernel with floating-point arithmetic is called many times over copies of its input,
at other addresses each time.
"""

import numpy as np
import pytest
from other_processors import OTHERS, computed, computed_on

from dpmask.kernels.cells import grow_tree, principal_direction, projections
from dpmask.kernels.comoments import comoments
from dpmask.kernels.compile import read_only
from dpmask.kernels.covariance import covariance_sums
from dpmask.kernels.deviation import gaps
from dpmask.kernels.fuzzy.center_sums import center_sums, memberships
from dpmask.kernels.fuzzy.draws import closeness, draw_centers
from dpmask.kernels.fuzzy.labels import labels
from dpmask.kernels.fuzzy.starts import spread_out
from dpmask.kernels.linkage.nearest import Masked, Metric, as_close, true_radii
from dpmask.kernels.linkage.neighbours import Queries, nearest
from dpmask.kernels.linkage.recovery import linear, recovered, rotation
from dpmask.kernels.membership import gaussian, s_shape
from dpmask.kernels.microaggregation import mdav, merge_small
from dpmask.kernels.moments import column_moments
from dpmask.kernels.normal import normals_of
from dpmask.kernels.regression.gram import errors_at, gram_of, model_sums, shares_at, start_sums, values_at
from dpmask.kernels.regression.logistic import basis, fitted_chances
from dpmask.kernels.rotation import rotated
from dpmask.kernels.ward import merge_all

ROWS, COLUMNS, CLUSTERS = 3001, 5, 3
TIMES = 150
# such as kernels take for their work
SIZES = (5, 10, 128, 256, 384, 512, 640, 768, 1280, 2560, 5120, ROWS, COLUMNS * ROWS)
MODELS = {
    "crisp": {"fuzziness": 1.0},
    "fuzzy-2": {"fuzziness": 2.0},
    "fuzzy-1.5": {"fuzziness": 1.5},
    "fuzzy-whole": {"fuzziness": 1.25},
    "fuzzy": {"fuzziness": 1.7},
    "entropy": {"entropy": 0.7},
}

rng = np.random.default_rng(4)
BLOCK = rng.lognormal(0, 1, (COLUMNS, ROWS))
BLOCK[1] += 0.5 * BLOCK[0]
GAPS = np.where(rng.random(BLOCK.shape) < 0.1, np.nan, BLOCK)
MASKED = BLOCK + rng.normal(0, 0.1, BLOCK.shape)
WEIGHTS = rng.random(ROWS)
WORDS = rng.integers(0, 1 << 63, ROWS, np.uint64)
CENTERS = BLOCK[:, :CLUSTERS].T.copy()
STARTS = np.stack([CENTERS, CENTERS + 0.1])
REGRESSIONS = rng.normal(size=(CLUSTERS, COLUMNS, 2))
SHARES = rng.dirichlet(np.ones(CLUSTERS), ROWS).T.copy()
LABELS = rng.integers(0, CLUSTERS, ROWS)
FEW = BLOCK[:, :301].copy()


def normals(words):
    out = np.empty(len(words))
    normals_of(read_only(words), out)
    return out


def linked(known, masked):
    """Two columns are points that are turned, the others ranges."""
    turn, ends = np.array([[1.1, 0.0], [0.3, 0.7]]), Masked(masked[:2], masked[2:], masked[2:] + 0.1)
    metric = Metric(2, turn, np.full(3, 0.3), np.zeros(3), np.full(3, 2.0))
    queries = metric.known(known[:2], known[2:])
    radii = true_radii(metric, queries, ends)
    return (*radii, as_close(metric, queries, radii, ends))


def guessed(known, records, values):
    at = np.arange(0, ROWS, 100)
    return nearest(Queries(known[:, at], at, values[at]), records, values, 0, 0.1)


def undone(original, masked):
    maps = [rotation(original[:, :99], masked[:, :99]), linear(original[:, :99], masked[:, :99])]
    moments = column_moments(list(original))
    return maps, [recovered(one, original, masked, moments, 0.1, original.max(axis=1)) for one in maps]


def told_apart(original, masked):
    columns = basis(np.concatenate([original, masked], axis=1).T)
    return fitted_chances(columns, np.repeat([0.0, 1.0], original.shape[1]))


CASES = {
    "comoments": (lambda block: comoments(list(block), 4), BLOCK),
    "comoments-gaps": (lambda block: comoments(list(block), 4), GAPS),
    "moments": (lambda block: column_moments(list(block)), GAPS),
    "spread": (lambda block, weights: covariance_sums(list(block), weights), GAPS, WEIGHTS),
    "gaps": (lambda x, y: gaps([*x, *y]), BLOCK, MASKED),
    "direction": (principal_direction, BLOCK),
    "projections": (projections, BLOCK, CENTERS[0]),
    "tree": (lambda block, words: grow_tree(block, words, 20), BLOCK, WORDS),
    "normals": (normals, WORDS),
    "ward": (lambda block, weights: merge_all(block, weights + 0.5, 300), FEW, WEIGHTS[: FEW.shape[1]]),
    "starts": (spread_out, BLOCK, WEIGHTS, WEIGHTS[:18].reshape(9, 2)),
    "membership": (lambda values: (s_shape(values, 0.5, 2.0), gaussian(values, 1.0, 0.7)), BLOCK[0]),
    "rotated": (lambda block, matrix: rotated(list(block), matrix), BLOCK, BLOCK[:, :COLUMNS]),
    "draws": (lambda *given: draw_centers(*given, fuzziness=1.7), BLOCK, CENTERS, WEIGHTS),
    "labels": (labels, BLOCK, CENTERS),
    "linkage": (linked, BLOCK, MASKED),
    "neighbours": (guessed, BLOCK, MASKED, WEIGHTS),
    "merge": (lambda rows, sizes: merge_small(rows, sizes, np.arange(1.0, 6.0), 9), FEW.T, LABELS[:301]),
    "mdav": (lambda block: mdav(block, 3), FEW),
    "regression-start": (lambda *given: start_sums(*given[:3], 1.7, given[3]), BLOCK, MASKED[:2], SHARES, WEIGHTS),
    "gram": (gram_of, BLOCK, WEIGHTS),
    "values": (values_at, BLOCK, REGRESSIONS, LABELS),
    "errors": (errors_at, BLOCK, MASKED[:2], REGRESSIONS),
    "recovery": (undone, BLOCK, MASKED),
    "logistic": (told_apart, FEW, MASKED[:, :301]),
}
for name, model in MODELS.items():
    CASES |= {
        f"sums-{name}": (lambda *given, model=model: center_sums(*given, **model), BLOCK, STARTS),
        f"sums-all-{name}": (
            lambda block, centers, weights, model=model: center_sums(
                block, centers, weights=weights, tolerance=weights, partial=True, **model
            ),
            GAPS[:, :1001],
            STARTS,
            WEIGHTS[:1001],
        ),
        f"memberships-{name}": (lambda *given, model=model: memberships(*given, **model), BLOCK, CENTERS),
        f"closeness-{name}": (lambda *given, model=model: closeness(*given, **model), BLOCK, CENTERS),
    }
for m in (1.5, 4 / 3, 1.7):
    CASES |= {
        f"regression-{m:.1f}": (
            lambda z, y, models, weights, m=m: model_sums(z, y, models, m, models + 1e-3, 1e-9, weights),
            BLOCK,
            MASKED[:2],
            REGRESSIONS,
            WEIGHTS,
        ),
        f"shares-{m:.1f}": (lambda *given, m=m: shares_at(*given, m), BLOCK, MASKED[:2], REGRESSIONS),
    }


def numbers(result):
    """All numbers of a result, as bytes."""
    if isinstance(result, tuple | list):
        return b"".join(map(numbers, result))
    return np.asarray(result).tobytes()


def elsewhere(values, draws):
    """A copy that starts at another multiple of 8 bytes, and is read-only half of the time."""
    offset = draws.integers(0, 9)
    copy = np.empty(values.size + 8, values.dtype)[offset:][: values.size].reshape(values.shape)
    copy[...] = values
    copy.flags.writeable = bool(draws.integers(0, 2))
    return copy


@pytest.mark.parametrize("case", CASES)
def test_the_same_bits_wherever_arrays_lie(case):
    kernel, *given = CASES[case]
    expected, draws, held = numbers(kernel(*given)), np.random.default_rng(1), []
    for _ in range(TIMES):
        held += [np.empty(size) for size in draws.choice(SIZES, 6)]
        draws.shuffle(held)  # those let go leave gaps, which the kernel's own arrays then lie in
        del held[:4]
        assert numbers(kernel(*(elsewhere(values, draws) for values in given))) == expected, case


@pytest.mark.parametrize("host", OTHERS)
def test_the_same_bits_whatever_processor_the_environment_names(host):
    """In processes of the command line; the kernels are those of the tests above, so nothing is compiled again."""
    found = computed_on(OTHERS[host])
    assert found == computed(CASES, numbers)
