"""One person more: what two releases with different keys say, in the numbers beside the data, of the one they differ by."""

import numpy as np


def public_numbers(manifest):
    """All numbers of the manifest that are measured, by where they stand."""
    found = {}

    def walk(value, path):
        if isinstance(value, dict):
            for key, part in value.items():
                walk(part, (*path, key))
        elif isinstance(value, list):
            for number, part in enumerate(value):
                walk(part, (*path, number))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[path] = value

    for key in ("information_loss", "steps"):
        walk(manifest[key], (key,))
    return found


def attack(without, added):
    """Guesses at the value of the one who was added: each mean, sum or mean square taken for what it may be."""
    before, after = public_numbers(without), public_numbers(added)
    rows = added["rows"]
    guesses = []
    for path in before.keys() & after.keys():
        one, other = before[path], after[path]
        change = rows * other - (rows - 1) * one
        guesses += [other - one, change, np.sqrt(abs(change)), change * other]
    return np.array(guesses)
