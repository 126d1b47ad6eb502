"""Several releases whose rows are known to belong together: values by their mean, and by a fit to a few known people."""

import numpy as np

PERCENTS = np.arange(1, 11) / 100


def close(estimates, originals):
    """The share of values within 1 to 10 % of a standard deviation, averaged over the widths."""
    gaps = np.abs(estimates - originals) / originals.std(ddof=1)
    return float(np.mean([np.mean(gaps <= width) for width in PERCENTS]))


def attack(releases, originals, known=100):
    """The closer of the mean of all releases and of the combination that fits the known people best, for the others."""
    inputs = np.column_stack([*releases, np.ones(len(originals))])
    some = np.random.default_rng(0).permutation(len(originals))[:known]
    fitted, *_ = np.linalg.lstsq(inputs[some], originals[some], rcond=None)
    return max(close(np.mean(releases, axis=0), originals), close(inputs @ fitted, originals))
