"""Households rebuilt from equal weights: people of one household who share a weight that nobody else has."""

import numpy as np


def attack(release, household, owner):
    """Of the true pairs of a household, the share found; and of the pairs found, the share that is true.

    ``owner`` is the person of each row, and only scores.
    """
    homes = household.to_numpy()[owner]
    found = both = 0
    _, sizes = np.unique(homes, return_counts=True)
    true = int((sizes * (sizes - 1) // 2).sum())
    for some in release.rows.groupby("weight").indices.values():
        if 2 <= len(some) <= 8:
            pairs = [(one, other) for at, one in enumerate(some) for other in some[:at]]
            found += len(pairs)
            both += sum(homes[one] == homes[other] for one, other in pairs)
    return both / max(true, 1), both / max(found, 1)
