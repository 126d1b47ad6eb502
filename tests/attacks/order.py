"""What the file and the place of a row tell of the place of the record in the source."""

import numpy as np
from scipy.stats import chi2_contingency, spearmanr


def attack(release, owner, groups=4):
    """p-values that files, and places, tell nothing: of files against quarters of the source, and of the two orders."""
    quarter = owner * groups // (owner.max() + 1)
    counts = np.zeros((release.files.max() + 1, groups))
    np.add.at(counts, (release.files, quarter), 1)
    by_file = chi2_contingency(counts[counts.sum(axis=1) > 0]).pvalue if len(counts) > 1 else 1.0
    return by_file, spearmanr(np.arange(len(owner)), owner).pvalue
