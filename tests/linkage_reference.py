"""Distance-based record linkage by all pairs of records, for small frames: plain, slow, and on its own."""

import numpy as np


def standardised(values):
    return (values - values.mean()) / values.std()


def gaps(original, masked, column, sets):
    """Distances between all original and all masked values of a column, original x masked."""
    x, y = original[column], masked[column]
    if x.dtype.kind in "if" and y.dtype.kind in "if":
        return np.abs(np.subtract.outer(standardised(x.to_numpy(float)), standardised(y.to_numpy(float))))
    if x.dtype.kind in "if":
        apart = {label: [to_interval(value, label, x.std(ddof=0)) for value in x] for label in y.unique()}
        return np.array([apart[label] for label in y]).T
    members = sets.get(column, {})
    inside = {label: x.isin(members.get(label, [label])).to_numpy() for label in y.unique()}
    return np.array([~inside[label] for label in y]).T.astype(float)


def to_interval(value, label, sd):
    """Intervals are [low, high); what is not inside is at least a thousandth of a standard deviation away."""
    low, high = map(float, label.strip("[)").split(","))
    return 0.0 if low <= value < high else max((low - value) / sd, (value - high) / sd, 0.001)


def linked(squares, own):
    """Each record's chance to be linked to its own masked record; own is -1 where that was dropped."""
    chances = []
    for row, place in zip(np.sqrt(squares), own, strict=True):
        same = np.isclose(row, row[place], rtol=1e-9, atol=1e-11)
        chances.append(1 / same.sum() if place >= 0 and not (row[~same] < row[place]).any() else 0.0)
    return np.array(chances)


def linkage(original, masked, columns, sets=None):
    """The rates of who knows the first 1, 2, ... columns; the last one knows all."""
    own = masked.index.get_indexer(original.index)
    squares = np.zeros((len(original), len(masked)))
    rates = []
    for column in columns:
        squares = squares + gaps(original, masked, column, sets or {}) ** 2
        rates.append(linked(squares, own).mean())
    return rates


def mahalanobis(original, masked, columns, inverse):
    """The rate in the metric of what the mask did, by this way to invert S."""
    x, y = (
        np.array([standardised(frame[column].to_numpy(float)) for column in columns]) for frame in (original, masked)
    )
    matrix = inverse(np.cov(x - y, ddof=0).reshape(len(columns), -1))
    squares = np.empty((x.shape[1], y.shape[1]))
    for number, record in enumerate(x.T):
        apart = record[:, None] - y
        squares[number] = np.maximum((apart * (matrix @ apart)).sum(axis=0), 0.0)
    return linked(squares, np.arange(x.shape[1])).mean()


def ridge(matrix):
    return np.linalg.inv(matrix + 1e-6 * np.trace(matrix) / len(matrix) * np.eye(len(matrix)))


def mahalanobis_with_missing(original, masked, columns):
    """The guide's definition: columns with a missing value leave S for a gap and a flag, each in its own units."""
    points, ranges = [], []
    for column in columns:
        x, y = (
            (frame[column].to_numpy(float) - frame[column].mean()) / frame[column].std(ddof=0)
            for frame in (original, masked)
        )
        apart = np.subtract.outer(x, y)
        if not np.isnan(apart).any():
            points.append(apart)
        else:
            ranges += [np.nan_to_num(np.abs(apart)), np.not_equal.outer(np.isnan(x), np.isnan(y)).astype(float)]
    covariance = np.cov([np.diag(apart) for apart in points], ddof=0).reshape(len(points), -1)
    squares = np.array([(np.diag(gap) ** 2).mean() for gap in ranges])
    small = 1e-6 * (np.trace(covariance) + squares.sum()) / (len(points) + len(ranges))
    matrix = np.linalg.inv(covariance + small * np.eye(len(points)))
    total = np.einsum("iab,ij,jab->ab", points, matrix, points)
    for gap, square in zip(ranges, squares, strict=True):
        total += gap**2 / (square + small)
    return linked(np.maximum(total, 0.0), np.arange(len(original))).mean()


def t_moments(x, y):
    """Slope, mean and residual covariance of y on x (rows x columns) under a t distribution with 5 degrees of freedom."""
    rows, columns = x.shape
    weight = np.ones(rows)
    for _ in range(10):
        mean_x, mean_y = (np.average(part, axis=0, weights=weight) for part in (x, y))
        weighted = (x - mean_x) * weight[:, None]
        variance = weighted.T @ (x - mean_x) / weight.sum()
        small = np.eye(columns) * (1e-9 * np.trace(variance) / columns + 1e-12)
        slope = np.linalg.solve(variance + small, weighted.T @ (y - mean_y) / weight.sum()).T
        left = y - mean_y - (x - mean_x) @ slope.T
        # with the weighted variance of y less what x explains, which is that of the residuals but for the ridge
        residual = (left * weight[:, None]).T @ left / rows
        residual = residual + np.eye(columns) * (1e-6 * np.trace(residual) / columns + 1e-12)
        weight = (5 + columns) / (5 + np.einsum("ij,jk,ik->i", left, np.linalg.inv(residual), left))
    return slope, mean_y - slope @ mean_x, residual


def likelihood_ratios(original, masked, columns, sets=None):
    """The joint rate: -2 log of the likelihood ratio of all pairs, written out as two densities, numbers and agreements."""
    plain = [c for c in columns if original[c].dtype.kind in "if" and masked[c].dtype.kind in "if"]
    x, y = (np.array([standardised(frame[c].to_numpy(float)) for c in plain]).T for frame in (original, masked))
    slope, constant, residual = t_moments(x, y)
    spread = np.cov(y.T, ddof=0).reshape(len(plain), -1)
    spread = spread + np.eye(len(plain)) * (1e-6 * np.trace(spread) / len(plain) + 1e-12)
    expected = x @ slope.T + constant
    total = np.empty((len(x), len(y)))
    at_random = np.einsum("ij,jk,ik->i", y, np.linalg.inv(spread), y)
    for number, mean in enumerate(expected):
        apart = y - mean
        total[number] = np.einsum("ij,jk,ik->i", apart, np.linalg.inv(residual), apart) - at_random
    for column in columns:
        if column in plain:
            continue
        gap = gaps(original, masked, column, sets or {}) > 0
        true = np.diag(gap).mean()
        random = np.diag(np.roll(gap, -(len(gap) // 2), axis=1)).mean()
        cost = 1e12 if true == 0 else 2 * np.log((1 - true) * random / (true * (1 - random)))
        total += gap * max(cost, 0.0)
    return linked(total - total.min(axis=1, keepdims=True) + 1.0, np.arange(len(x))).mean()
