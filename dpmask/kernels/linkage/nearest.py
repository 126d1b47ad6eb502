"""Distance-based record linkage of one block: whether a masked record is closer than the true one, or how many tie.

No nearest neighbour is needed. A link is right when no masked record is closer than the true one, so the radius of the
search is known; and the search ends at the first closer record, which is mostly in the leaf where it begins. What each
block answers merges by addition, or by "beaten" where one of them found so.

A masked value is a point or a range. The gap between a known value and a range is 0 inside and otherwise
min(max(scale * distance to the nearest end, least), cap): with scale 1 and cap 1 that is a category, 0 or 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Flags, Floats, Integers
from dpmask.kernels.compile import compiled, plain, read_only
from dpmask.kernels.linkage.record_tree import DEPTH, LEAF, RecordTree, build_tree
from dpmask.kernels.linkage.scores import Scores

BEATEN = -1
WIDE = 100
"""From so many points on products of matrices turn records, and say which ones are worth a look."""
_FEW = 1024
_SAME = 1e-9  # relative: distances that agree this far are one tie, whatever the blocks did to a mean's last digits
_ROUNDING = 1e-12  # what rounding may add to a distance, relative to the length of a record
_TURNED = 1 << 10  # records that stay in the processor's cache while they are turned
_QUERIES, _TILE = 128, 4096  # queries and records that are compared at once
_FIRST = 8  # records by which a query is most likely beaten
_ROUND_UP = 1.0 + 1e-6  # of radii in single precision
_PAIRS = 512  # pairs whose gaps are in memory at once
_QUARTER = 4
_SHARES = (16, _QUARTER, 1)  # the shares of points by which pairs are compared roughly, one after the other
_MANY = 0.002  # the share of pairs above which one more product is less work than to compare them


class Masked(NamedTuple):
    """Masked records as columns x rows: points, and ranges from low to high."""

    points: Floats
    low: Floats
    high: Floats


class Metric(NamedTuple):
    """A distance over some of the columns: points are turned by a matrix first, if there is one.

    Known points may be turned by a matrix of their own, and moved: to where the masked ones are expected. With scores
    all columns are taken, numbers by their ranks, and the pattern of zeros may be one range more.
    """

    points: int  # how many of the points it takes
    turn: Floats | None
    scale: Floats  # one for each range it takes
    least: Floats
    cap: Floats
    known_turn: Floats | None = None
    shift: Floats | None = None
    chosen: tuple[Integers, Integers] | None = None  # which points and ranges; None: the first ones
    scores: Scores | None = None

    @property
    def as_it_is(self) -> bool:
        """Whether the first columns are compared as they are, so that one of more columns has the same in it."""
        return self.turn is None and self.chosen is None and self.scores is None

    def takes_all(self, points: int, ranges: int) -> bool:
        """Whether it is about all of so many points and ranges."""
        return self.scores is not None or (self.points, len(self.scale)) == (points, ranges)

    def known(self, points: Floats, ranges: Floats) -> Floats:
        """Known records in this metric, columns x rows: points, then ranges."""
        if self.scores is not None:
            points, ranges = self.scores.of_known(points, ranges)
        found = turned(self._points(points), self.turn if self.known_turn is None else self.known_turn)
        if self.shift is not None:
            found = found + self.shift[:, None]
        return self._joined(found, ranges)

    def masked(self, masked: Masked) -> tuple[Floats, Floats]:
        """Masked records likewise: where points are and ranges begin, and where ranges end."""
        points, low, high = self.prepared(masked)
        return turned_beside(points, self.turn, low), high

    def prepared(self, masked: Masked) -> Masked:
        """The points and ranges that it takes of masked records, points not yet turned."""
        if self.scores is not None:
            masked = Masked(*self.scores.of_masked(*masked))
        return Masked(self._points(masked.points), self._ranges(masked.low), self._ranges(masked.high))

    def _joined(self, points: Floats, ranges: Floats) -> Floats:
        return np.concatenate([points, self._ranges(ranges)]) if len(self.scale) else points

    def _points(self, columns: Floats) -> Floats:
        return columns[: self.points] if self.chosen is None else _some(columns, self.chosen[0])

    def _ranges(self, columns: Floats) -> Floats:
        return columns[: len(self.scale)] if self.chosen is None else _some(columns, self.chosen[1])


def _some(columns: Floats, places: Integers) -> Floats:
    """The columns at these places, which are in order; all of them are not copied."""
    return columns if len(places) == len(columns) else columns[places]


def principal(metric: Metric, covariance: Floats) -> Metric:
    """The same distances among many points, turned to the axes in which masked records lie, the longest one last.

    Given is the covariance of the points that the metric takes of masked records. Few points are left as they are.
    """
    if metric.points < WIDE:
        return metric
    turn = np.eye(metric.points) if metric.turn is None else metric.turn
    axes = np.linalg.eigh(turn @ covariance @ turn.T)[1].T
    known = None if metric.known_turn is None else axes @ metric.known_turn
    shift = None if metric.shift is None else axes @ metric.shift
    return metric._replace(turn=axes @ turn, known_turn=known, shift=shift)


def turned(points: Floats, turn: Floats | None) -> Floats:
    """Points, columns x rows, turned by a matrix, if there is one: few without BLAS, so that equal ones stay equal."""
    if turn is None:
        return points
    if len(points) >= WIDE:
        return turn @ points  # rounding may separate equal records: radii have room for it
    found = np.zeros((len(turn), points.shape[1]))
    _turn(read_only(points), read_only(turn), found)
    return found


def turned_beside(points: Floats, turn: Floats | None, ranges: Floats) -> Floats:
    """Turned points, and ranges below them, in one array that is written once."""
    if not len(ranges):
        return turned(points, turn)
    if turn is None or len(points) >= WIDE:
        return np.concatenate([turned(points, turn), ranges])
    found = np.zeros((len(turn) + len(ranges), points.shape[1]))
    _turn(read_only(points), read_only(turn), found[: len(turn)])
    found[len(turn) :] = ranges
    return found


@compiled(reassociate=False, contract=False)
def _turn(points: Floats, turn: Floats, found: Floats) -> None:
    rows = points.shape[1]
    for start in range(0, rows, _TURNED):
        end = min(start + _TURNED, rows)
        for number in range(len(turn)):
            for column in range(len(points)):
                weight = turn[number, column]
                for row in range(start, end):
                    found[number, row] += weight * points[column, row]


class Radii(NamedTuple):
    """For each query the squared distances below which a record is closer, and up to which it is as close."""

    inner: Floats
    outer: Floats


def true_radii(metric: Metric, known: Floats, masked: Masked) -> Radii:
    """The radii of records whose true masked record stands in the same place."""
    return own_radii(metric, known, *metric.masked(masked))


def own_radii(metric: Metric, known: Floats, low: Floats, high: Floats) -> Radii:
    """The same of masked records that are given in the metric."""
    points = len(low) - len(high)
    squares = np.zeros(known.shape[1])
    for gap in known[:points] - low[:points]:
        squares += gap * gap
    for gap in range_gaps(known[points:], low[points:], high, metric.scale, metric.least, metric.cap):
        squares += gap * gap
    distance = np.sqrt(squares)
    slack = _SAME * distance + _ROUNDING * np.sqrt((known[:points] ** 2).sum(axis=0))
    return Radii(np.maximum(distance - slack, 0.0) ** 2, (distance + slack) ** 2)


def range_gaps(known: Floats, low: Floats, high: Floats, scale: Floats, least: Floats, cap: Floats) -> Floats:
    """How far known values are from ranges, ranges x rows; an unknown (NaN) value is in every range."""
    outside = np.maximum(low - known, known - high)
    far = np.minimum(np.maximum(outside * scale[:, None], least[:, None]), cap[:, None])
    return np.where(outside > 0.0, far, 0.0)


def as_close(
    metric: Metric,
    known: Floats,
    radii: Radii,
    masked: Masked,
    *,
    collapse: bool | None = None,
) -> Integers:
    """For each query how many masked records are as close as the true one, or BEATEN where one is closer.

    Rows that are equal in the metric are collapsed, unless they are fewer than that is worth.
    """
    if not masked.points.shape[1]:
        return np.zeros(known.shape[1], np.int64)
    if metric.points >= WIDE:
        return search_all(metric, known, radii, masked, np.ones(masked.points.shape[1], np.int64))
    return search(tree_of(metric, masked, collapse=collapse), metric, known, radii)


def tree_of(
    metric: Metric, masked: Masked, *, counts: Integers | None = None, collapse: bool | None = None
) -> RecordTree:
    """The tree of masked records, of which there is one at least, in a metric."""
    low, high = metric.masked(masked)
    if collapse is None:
        whole = metric.takes_all(len(masked.points), len(masked.low))
        collapse = low.shape[1] > _FEW and not (whole and counts is not None)
    return build_tree(low, high, metric.scale, metric.cap, collapse=collapse, counts=counts)


def search(tree: RecordTree, metric: Metric, known: Floats, radii: Radii) -> Integers:
    """What ``as_close`` finds, in a tree that was built before."""
    found = np.empty(known.shape[1], np.int64)
    queries, inner, outer = plain(known.T), plain(radii.inner), plain(radii.outer)
    stack, squares = np.empty(DEPTH, np.int64), np.empty(LEAF)
    ranges = plain(metric.scale), plain(metric.least), plain(metric.cap)
    _search(*tree, queries, inner, outer, *ranges, stack, squares, found)
    return found


def search_all(metric: Metric, known: Floats, radii: Radii, masked: Masked, counts: Integers) -> Integers:
    """What ``as_close`` finds among masked records, by products of matrices: for many columns.

    Each masked record counts so often. A tile of them at a time is turned, as far as that is needed; who is beaten is
    not compared again.
    """
    found = np.zeros(known.shape[1], np.int64)
    for start in range(0, len(counts), _TILE):
        part, left = slice(start, start + _TILE), np.flatnonzero(found != BEATEN)
        tile = WideTile(metric, Masked(*(columns[:, part] for columns in masked)))
        for first in range(0, len(left), _QUERIES):
            some = left[first : first + _QUERIES]
            reach = Radii(radii.inner[some], radii.outer[some])
            found[some] = merge_found(found[some], _compared(tile, known[:, some], reach, counts[part]))
    return found


class Rough(NamedTuple):
    """Some points of records in single precision, in a unit of their own; then the sum of their squares, and a one."""

    points: NDArray[np.float32]
    unit: float

    def least_squares(self, queries: Floats) -> NDArray[np.float32]:
        """The squared distances of queries and records in that unit, less what rounding may have added.

        |q - r|^2 = |q|^2 + |r|^2 - 2 q r in one product of matrices, whose error is that of so many products at most.
        """
        count, queries = len(queries), queries / self.unit
        kept = 1.0 - 4.0 * (count + 8) * float(np.finfo(np.float32).eps)
        given = np.empty((queries.shape[1], count + 2), np.float32)
        given[:, :count] = -2.0 * queries.T
        given[:, count] = kept
        given[:, count + 1] = kept * (queries * queries).sum(axis=0)
        found: NDArray[np.float32] = given @ self.points
        return found


class WideTile:
    """Some masked records in a metric of many points. Coordinates are computed for those who need them."""

    def __init__(self, metric: Metric, masked: Masked) -> None:
        self.metric = metric
        self.given, self.low, self.high = metric.prepared(masked)
        self.rows = self.given.shape[1]
        self._last: dict[int, Rough] = {}
        self._whole = np.empty((self.rows, metric.points))
        self._known = np.zeros(self.rows, np.bool_)

    def last(self, count: int) -> Rough:
        """So many of the last points of all records, which separate records most (``principal``)."""
        if count not in self._last:
            turn = self.metric.turn
            points = turned(self.given, None if turn is None else turn[-count:])[-count:]
            unit = float(np.abs(points).max(initial=0.0)) or 1.0
            found = np.ones((count + 2, self.rows), np.float32)
            found[:count] = points / unit
            found[count] = ((points / unit) ** 2).sum(axis=0)
            self._last[count] = Rough(found, unit)
        return self._last[count]

    def points(self, rows: Integers) -> Floats:
        """All points of these records, records x points."""
        new = np.unique(rows[~self._known[rows]])
        if len(new):
            self._whole[new] = turned(self.given[:, new], self.metric.turn).T
            self._known[new] = True
        return self._whole[rows]

    def squares(self, known: Floats, queries: Integers, rows: Integers) -> Floats:
        """The squared distances of pairs of a known record and one of the tile."""
        metric, found = self.metric, np.empty(len(rows))
        for start in range(0, len(rows), _PAIRS):
            part = slice(start, start + _PAIRS)
            query = known[:, queries[part]]
            gaps = self.points(rows[part]) - query[: metric.points].T
            found[part] = (gaps * gaps).sum(axis=1)
            if len(metric.scale):
                ends = query[metric.points :], self.low[:, rows[part]], self.high[:, rows[part]]
                found[part] += (range_gaps(*ends, metric.scale, metric.least, metric.cap) ** 2).sum(axis=0)
        return found

    def near(self, known: Floats, outer: Floats, share: int) -> tuple[NDArray[np.float32], Flags]:
        """By the last points, one of so many, what squared distances are at least, queries x rows, and who is near."""
        count = max(self.metric.points // share, 1)
        rough = self.last(count)
        least = rough.least_squares(known[self.metric.points - count : self.metric.points])
        farthest = (outer / rough.unit**2 * _ROUND_UP).astype(np.float32)
        return least, ~(least > farthest[:, None])


def _compared(tile: WideTile, known: Floats, radii: Radii, counts: Integers) -> Integers:
    """What a tile of records answers to some queries, columns x queries.

    Pairs are compared roughly first, over few of the points, then over more. Who is nearest by a quarter of them may
    beat a query at once; who is not farther than the own record is compared as everywhere.
    """
    queries, beaten = np.arange(known.shape[1]), np.zeros(known.shape[1], np.bool_)
    near = np.ones((len(queries), tile.rows), np.bool_)
    for share in _SHARES:
        least, closer = tile.near(known[:, queries], radii.outer[queries], share)
        near &= closer
        if np.count_nonzero(near) <= _MANY * near.size:
            break
        if share == _QUARTER:
            few = min(_FIRST, tile.rows)
            first = np.argpartition(least, few - 1, axis=1)[:, :few]
            squares = tile.squares(known, np.repeat(queries, few), first.ravel()).reshape(-1, few)
            lost = (squares < radii.inner[queries, None]).any(axis=1)
            beaten[queries[lost]] = True
            queries, near = queries[~lost], near[~lost]
            if not len(queries):
                break
    place, row = np.nonzero(near)
    query = queries[place]
    squares = tile.squares(known, query, row)
    beaten[query[squares < radii.inner[query]]] = True
    ties = squares <= radii.outer[query]
    found = np.bincount(query[ties], counts[row[ties]], known.shape[1]).astype(np.int64)
    return np.where(beaten, BEATEN, found)


def merge_found(left: Integers, right: Integers) -> Integers:
    """What two blocks found, together."""
    return np.where((left == BEATEN) | (right == BEATEN), BEATEN, left + right)


@compiled()
def _search(
    low: Floats,
    high: Floats,
    counts: Integers,
    box_low: Floats,
    box_high: Floats,
    right: Integers,
    queries: Floats,
    inner: Floats,
    outer: Floats,
    scale: Floats,
    least: Floats,
    cap: Floats,
    stack: Integers,
    squares: Floats,
    found: Integers,
) -> None:
    """Depth first, the nearer child first: the leaf a query falls into comes before all others.

    Room for the nodes that wait and for the distances to a leaf's rows is given.
    """
    points = low.shape[1] - high.shape[1]
    for number in range(len(queries)):
        query, reach = queries[number], outer[number]
        found[number] = 0
        stack[0] = 0
        waiting = 1
        while waiting:
            waiting -= 1
            node = stack[waiting]
            after = right[node]
            if after >= 0:
                one = to_box(query, box_low[node + 1], box_high[node + 1], points, scale, least, cap)
                two = to_box(query, box_low[after], box_high[after], points, scale, least, cap)
                near, far = (node + 1, after) if one <= two else (after, node + 1)
                if max(one, two) <= reach:
                    stack[waiting] = far
                    waiting += 1
                if min(one, two) <= reach:
                    stack[waiting] = near
                    waiting += 1
                continue
            leaf = -1 - after
            smallest = to_rows(query, low[leaf], high[leaf], points, scale, least, cap, squares)
            if smallest < inner[number]:
                found[number] = BEATEN
                break
            if smallest <= reach:
                for row in range(LEAF):
                    if squares[row] <= reach:
                        found[number] += counts[leaf, row]


@compiled(part=True)
def to_box(query: Floats, low: Floats, high: Floats, points: int, scale: Floats, least: Floats, cap: Floats) -> float:
    """The squared distance to the nearest record that may be in a box."""
    total = 0.0
    for column in range(points):
        gap = max(low[column] - query[column], query[column] - high[column], 0.0)
        total += gap * gap
    for column in range(points, len(query)):
        at = column - points
        gap = max(low[column] - query[column], query[column] - high[column])
        if gap > 0.0:
            gap = min(max(gap * scale[at], least[at]), cap[at])
            total += gap * gap
    return total


@compiled(part=True)
def to_rows(
    query: Floats, low: Floats, high: Floats, points: int, scale: Floats, least: Floats, cap: Floats, squares: Floats
) -> float:
    """The squared distances to a leaf's rows, and the smallest. What fills a leaf up is no closer than any record."""
    squares[:] = 0.0
    for column in range(points):
        for row in range(LEAF):
            gap = low[column, row] - query[column]
            squares[row] += gap * gap
    for column in range(points, len(query)):
        at = column - points
        for row in range(LEAF):
            gap = max(low[column, row] - query[column], query[column] - high[at, row])
            gap = min(max(gap * scale[at], least[at]), cap[at]) if gap > 0.0 else 0.0
            squares[row] += gap * gap
    smallest = np.inf
    for row in range(LEAF):
        smallest = min(smallest, squares[row])
    return smallest
