"""One call of each kernel on a few numbers, of the types it gets in a run: that compiles it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_ROWS = 8


def _block() -> Any:
    return np.arange(2.0 * _ROWS).reshape(2, _ROWS) % 5.0


def _words() -> Any:
    return np.arange(_ROWS, dtype=np.uint64)


def _draws() -> None:
    from dpmask.kernels.normal import uniforms_of

    uniforms_of(_words(), np.empty(_ROWS))


def _shuffle() -> None:
    from dpmask.kernels.shuffle import places_in_order

    places_in_order(_words())


def _normals() -> None:
    from dpmask.kernels.normal import normals_of

    normals_of(_words(), np.empty(_ROWS))


def _moments() -> None:
    from dpmask.kernels.comoments import comoments

    comoments(list(_block()), 4)


def _moments_with_gaps() -> None:
    from dpmask.kernels.comoments import comoments

    comoments(list(np.where(_block() > 3.0, np.nan, _block())), 4)  # noqa: PLR2004 - some are missing


def _histogram() -> None:
    from dpmask.kernels.order.histogram import even_grid, grid_counts

    grid_counts(_block()[0], even_grid(0.0, 5.0, 4, whole=False))


def _order() -> None:
    from dpmask.kernels.order.edge_lookup import edge_counts, edge_lookup

    edge_counts(_block()[0], edge_lookup(np.array([1.0, 2.0])))


def _crowded_order() -> None:
    from dpmask.kernels.order.float_order import sorted_keys

    sorted_keys(_block()[0])


def _windows() -> None:
    from dpmask.kernels.order.float_order import window

    window(_block()[0], 1.0)


def _cells() -> None:
    from dpmask.kernels.cells import grow_tree, route

    route(_block(), _words(), grow_tree(_block(), _words(), 2))


def _ward() -> None:
    from dpmask.kernels.ward import cut, merge_all

    cut(merge_all(_block(), np.ones(_ROWS)), _ROWS, 2)


def _starts() -> None:
    from dpmask.kernels.fuzzy.starts import spread_out

    spread_out(_block(), np.ones(_ROWS), np.array([[0.5]]))


def _labels() -> None:
    from dpmask.kernels.fuzzy.labels import labels

    labels(_block(), _block()[:, :2].T)


def _small_groups() -> None:
    from dpmask.kernels.microaggregation import merge_small

    merge_small(_block().T.copy(), np.ones(_ROWS, np.int64), np.ones(2), 2)


def _mdav() -> None:
    from dpmask.kernels.microaggregation import mdav

    mdav(_block(), 2)


def _pairs() -> tuple[Any, Any, Any]:
    from dpmask.kernels.linkage.crowds import MetricPairs
    from dpmask.kernels.linkage.nearest import Masked, Metric

    none = np.empty(0)
    metric, masked = Metric(2, None, none, none, none), Masked(_block(), np.empty((0, _ROWS)), np.empty((0, _ROWS)))
    known = metric.known(_block(), np.empty((0, _ROWS)))
    return metric, masked, MetricPairs(np.arange(_ROWS), known, *metric.masked(masked))


def _linkage() -> None:
    from dpmask.kernels.linkage.assignment import assigned
    from dpmask.kernels.linkage.nearest import as_close, true_radii

    metric, masked, pairs = _pairs()
    as_close(metric, pairs.known, true_radii(metric, pairs.known, masked), masked)
    assigned(metric, *pairs[1:])


def _large_trees() -> None:
    from dpmask.kernels.linkage.nearest import turned
    from dpmask.kernels.linkage.record_tree import in_parts

    in_parts(turned(_block(), np.eye(2)), np.ones(2), np.full(2, np.inf), np.arange(_ROWS), 2)


def _crowds() -> None:
    from dpmask.kernels.keys import Grouping
    from dpmask.kernels.linkage.crowds import crowds

    metric, _, pairs = _pairs()
    members, half = Grouping(np.arange(_ROWS), 2 * np.arange(_ROWS // 2)), slice(_ROWS // 2)
    crowds(metric, pairs, np.full(_ROWS, np.inf), pairs.low[:, half], pairs.high[:, half], members, pairs.at)


def _neighbours() -> None:
    from dpmask.kernels.linkage.neighbours import Queries, nearest

    nearest(Queries(_block(), np.arange(_ROWS), _block()[0]), _block(), _block()[0], 0, 0.1)


def _nearer() -> None:
    from dpmask.kernels.linkage.neighbours import Sought, as_near

    as_near(Sought(_block(), _block(), _block()[0]), _block(), _block()[0])


def _swapped() -> None:
    from dpmask.kernels.linkage.swapped import Persons, RankedRecords, candidates, own_costs

    some, worth = RankedRecords(_block(), _block(), _block()), np.zeros((2, _ROWS))
    candidates(Persons(some, worth, *own_costs(some, some, worth, 1, 1.0, 1.0)), some, 1, 1.0, 1.0)


def _rotation() -> None:
    from dpmask.kernels.rotation import rotated

    rotated(list(_block()), np.eye(2))


def _membership() -> None:
    from dpmask.kernels.membership import gaussian, s_shape, triangular

    s_shape(_block()[0], 0.0, 4.0)
    triangular(_block()[0], 0.0, 2.0, 4.0)
    gaussian(_block()[0], 2.0, 1.0)


def _regression() -> None:
    from dpmask.kernels.regression.gram import errors_at, model_sums, start_sums, values_at

    z, y, models = _block(), _block()[:1], np.ones((2, 2, 1))
    start_sums(z, y, np.full((2, _ROWS), 0.5), 2.0)
    model_sums(z, y, models, 2.0, models)
    errors_at(z, y, models)
    values_at(z, models, np.zeros(_ROWS, np.int64))


def _refinement() -> None:
    from dpmask.kernels.refinement.cells import CellGroups, count_cells
    from dpmask.kernels.refinement.grouping import Values, group_rows, split_groups

    codes = np.zeros((1, 100), np.uint16)
    codes[0, :3] = 1
    slots, widths = np.zeros(2, np.int32), np.ones(4, np.int64)
    values = Values(np.array([0, 1], np.int32), slots, widths, False)
    groups = group_rows(codes, [0], [values])
    count_cells(codes, [0], groups, CellGroups(np.arange(2), [values]))
    split_groups(groups, codes[0], 0, 0, [2, 3], values._replace(nodes=np.array([2, 1], np.int32)))


def _models() -> None:
    from dpmask.kernels.refinement.cells import Sensitive
    from dpmask.kernels.refinement.grouping import Values
    from dpmask.kernels.refinement.joint import JointRows

    codes, one = np.zeros((2, 100), np.uint16), np.zeros(1, np.int32)
    values, sensitive = Values(one, one, np.ones(1, np.int64), False), Sensitive((1,), (0,), 1)
    JointRows(codes).cells([0], [values], sensitive)


def _regions() -> None:
    from dpmask.kernels.refinement.growth import Rules, grow
    from dpmask.kernels.refinement.region_cuts import propose_counted
    from dpmask.kernels.refinement.region_records import Level, RowRecords
    from dpmask.kernels.refinement.regions import LeafBoxes, Trees, regions_of, top

    codes, one = np.arange(100, dtype=np.uint16).reshape(1, 100) % 4, np.zeros(1, np.int64)
    trees = Trees(one, one, one + 4, one, one, np.ones(1, np.bool_))
    rules = Rules(2, (), np.ones(1), np.zeros(1), np.arange(5.0), one)
    start = Level(one, one, one + 100, top(trees), np.ones((1, 1), np.bool_), np.empty((1, 0)))
    records = RowRecords(codes, np.zeros(100, np.uint16), 1, np.zeros(100, np.int32), trees)
    tree = grow(records, start, rules).tree
    regions_of(codes, tree)
    LeafBoxes(tree, trees).of(0)
    propose_counted(np.ones((4, 1), np.int64), 0, trees, 1)


def _fuzzy(**model: Any) -> None:
    from dpmask.kernels.fuzzy.center_sums import center_sums

    center_sums(_block(), _block()[:, :2].T[None], **model)


def _memberships(**model: Any) -> None:
    from dpmask.kernels.fuzzy.center_sums import memberships

    memberships(_block(), _block()[:, :2].T, **model)


def _tolerance(**model: Any) -> None:
    from dpmask.kernels.fuzzy.center_sums import memberships

    memberships(_block(), _block()[:, :2].T, tolerance=0.1, **model)


def _drawn_centers(**model: Any) -> None:
    from dpmask.kernels.fuzzy.draws import draw_centers

    draw_centers(_block(), _block()[:, :2].T, np.full(_ROWS, 0.5), **model)


def _in(module: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{module}.{name}" for name in names)


PLAIN: dict[str, tuple[tuple[str, ...], Callable[[], None]]] = {
    "draws": (_in("normal", "_fill_uniforms"), _draws),
    "shuffle": (_in("shuffle", "_sort"), _shuffle),
    "normals": (_in("normal", "_fill_normals"), _normals),
    "moments": (_in("comoments", "_add_products"), _moments),
    "moments with gaps": (_in("comoments", "_add_distances", "_add_pairs"), _moments_with_gaps),
    "histogram": (_in("order.histogram", "_count"), _histogram),
    "order": (_in("order.edge_lookup", "_lay_out", "_count"), _order),
    "crowded order": (_in("order.float_order", "_present_keys"), _crowded_order),
    "windows": (_in("order.float_order", "_last"), _windows),
    "cells": (_in("cells", "_add_products", "_project", "_route"), _cells),
    "starts": (_in("fuzzy.starts", "_choose"), _starts),
    "ward": (_in("ward", "_chain", "_join"), _ward),
    "labels": (_in("fuzzy.labels", "find_labels-False"), _labels),
    "small groups": (_in("microaggregation", "_merge"), _small_groups),
    "mdav": (_in("microaggregation", "_mdav"), _mdav),
    "linkage": (
        (
            *_in("linkage.record_tree", "_fill", "_find_boxes"),
            *("linkage.nearest._search", "linkage.assignment._add_squares"),
        ),
        _linkage,
    ),
    "large trees": ((*_in("linkage.record_tree", "_cut", "_send"), "linkage.nearest._turn"), _large_trees),
    "crowds": (_in("linkage.crowds", "_nearest", "_to_members"), _crowds),
    "neighbours": (_in("linkage.neighbours", "_scan"), _neighbours),
    "nearer": (_in("linkage.neighbours", "_count"), _nearer),
    "swapped": (_in("linkage.swapped", "_own", "_scan"), _swapped),
    "rotation": (_in("rotation", "_turn"), _rotation),
    "membership": (_in("membership", "_rise", "_rise_and_fall", "_bell"), _membership),
    "regression": (_in("regression.gram", "_add_products", "_sum_block", "_all_errors", "_fill_values"), _regression),
    "refinement": (
        (*_in("refinement.cells", "_count"), *_in("refinement.grouping", "_split", "_keys")),
        _refinement,
    ),
    "models": (_in("refinement.joint", "_append", "_count_codes", "_add"), _models),
    "regions": (
        (
            *_in("refinement.region_cuts", "_propose", "_propose_counted"),
            *_in("refinement.regions", "_divide", "_regions_of", "_boxes_in"),
        ),
        _regions,
    ),
}
FUZZY: dict[str, tuple[str, Callable[..., None]]] = {
    "fuzzy": ("fuzzy.center_sums.sum_block-{}-False", _fuzzy),
    "memberships": ("fuzzy.center_sums.find_memberships-{}-False", _memberships),
    "drawn centres": ("fuzzy.draws.draw-{}", _drawn_centers),
    "tolerance": ("fuzzy.tolerance.settle-{}-False", _tolerance),
}
