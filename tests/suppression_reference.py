"""Local suppression by its definition, matches of records pair by pair, and sdcMicro's rule, all plainly."""

from itertools import combinations

import numpy as np


def matches(frame):
    """How many records agree with each one wherever both have a value."""
    return np.array([len(one) for one in matching(frame)])


def matching(frame):
    """For each record those that agree with it wherever both have a value, by their place."""
    values, missing = frame.apply(lambda column: column.factorize()[0]).to_numpy(), frame.isna().to_numpy()
    return [np.flatnonzero(((values == values[row]) | missing | missing[row]).all(axis=1)) for row in range(len(frame))]


def wildcards(frame, columns, suppressed):
    """The columns of a frame; missing is a value of its own in those whose cells were not suppressed."""
    return frame[columns].fillna(dict.fromkeys(set(columns) - set(suppressed), "missing"))


def suppressed(frame, k, worth, ill=None, least=1):
    """Of each record in a broken group the cheapest set of cells without which enough records agree with it.

    Enough are k records of the frame, which have at least so many different values of ``ill``.
    """
    columns = list(frame)
    ill = np.zeros(len(frame)) if ill is None else np.asarray(ill)
    sets = [one for size in range(1, len(columns) + 1) for one in combinations(columns, size)]
    sets.sort(key=lambda one: (round(sum(worth[name] for name in one), 9), len(one), [columns.index(c) for c in one]))
    plain = frame.astype(object).where(frame.notna(), "missing")
    found = np.zeros(frame.shape, bool)
    for row in range(len(frame)):
        for one in [(), *sets]:
            rest = [name for name in columns if name not in one]
            agree = (plain[rest] == plain[rest].iloc[row]).all(axis=1)
            if agree.sum() >= k and len(set(ill[agree])) >= least:
                found[row, [columns.index(name) for name in one]] = True
                break
    return found


def candidates(released, known):
    """How many released records each person may be to an intruder who knows all values: equal ones, or missing cells."""
    return np.array([((released == one) | (released < 0)).all(axis=1).sum() for one in known])


def by_importance(codes, k):
    """A matrix of codes after sdcMicro's local suppression (localSuppression, kAnon); -1 is missing.

    Records that match fewer than k, the rarest first, lose one value each: of the records nearest to it, which differ
    in the fewest columns, that of the column with most values in which one of them differs. Then all is counted again.
    """
    codes = codes.copy()
    order = np.argsort([-len(np.unique(column)) for column in codes.T], kind="stable")
    while True:
        fewer = {}
        for row in range(len(codes)):
            found = _matching(codes, row).sum()
            if found < k:
                fewer[row] = found
        if not fewer:
            return codes
        for row in sorted(fewer, key=fewer.get):
            differs = (codes != codes[row]) & (codes >= 0) & (codes[row] >= 0)
            distance = differs.sum(axis=1)
            near = distance == distance[distance > 0].min() if distance.any() else np.zeros(len(codes), bool)
            column = next((c for c in order if differs[near, c].any()), None)
            if column is not None:
                codes[row, column] = -1


def _matching(codes, row):
    return ((codes == codes[row]) | (codes < 0) | (codes[row] < 0)).all(axis=1)
