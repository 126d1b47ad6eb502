"""All rows counted with their suppressed cells missing, as a release will have them: which groups break a model then.

A row's records are those that match it (table/matching.py). Values that were missing already are so, too, where other
cells of their column are suppressed: a release does not distinguish them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from dpmask.kernels.arrays import Counts, Flags, Floats
from dpmask.kernels.keys import RowKeys, grouped, new_keys
from dpmask.kernels.matching import PartialRows, different_rows, whole_keys
from dpmask.kernels.models import judged
from dpmask.kernels.refinement.cells import NOBODY
from dpmask.kernels.refinement.dropped import contains, sorted_keys
from dpmask.kernels.refinement.grouping import Codes, Integers, keys_of
from dpmask.kernels.refinement.local import Columns
from dpmask.masking.refinement.attributes import Attribute
from dpmask.masking.refinement.blocks import CodedTable
from dpmask.masking.refinement.requests import CodedBlock, Request
from dpmask.masking.refinement.suppressed_cells import Suppression
from dpmask.table.matching import RowSource, matched_rows


class Recount(NamedTuple):
    """The rows of one quasi-identifier: the fewest matches, the worst figures, records in broken rows, their groups.

    ``complete``: how many of these records have no suppressed cell. ``groups``: the keys of their groups.
    """

    smallest: int
    worst: Floats
    broken: int
    complete: int
    groups: RowKeys


class _ReleasedBlock(NamedTuple):
    """A block's nodes and which of its cells are missing (columns x rows), and its codes, for sensitive columns."""

    nodes: Integers
    missing: Flags
    codes: Codes


def recounted(
    table: CodedTable,
    attributes: Sequence[Attribute],
    missing: Sequence[bool],
    requests: Sequence[Request],
    found: Suppression,
) -> list[Recount]:
    """Each quasi-identifier with these cells missing; three passes, and one more for groups that are broken."""
    quasis = [one.columns for one in requests]
    nulls = {number: _null(attributes[number], missing[number]) for number in found.wild(quasis)}
    release = partial(_released, tuple(one.nodes for one in attributes), quasis, found, nulls)
    size = table.rows * (5 * len(attributes) + 2 * table.columns)
    blocks = table.records.persist(release, "refinement: released rows", size=size)
    counts = []
    for one in requests:
        source = RowSource(blocks.transform(partial(_rows, one)), table.rows, one.sensitive.counts)
        mine, others = matched_rows(source, partial(_judged, one), _merged, "refinement: matches")
        both = _merged(mine, others)
        if both.broken:
            find = partial(_groups, one, sorted_keys(both.groups))
            both = both._replace(groups=blocks.reduce(find, _different, "refinement: broken rows"))
        counts.append(both._replace(complete=others.broken))
    return counts


def _null(attribute: Attribute, missing: bool) -> int:
    """The node that is released as missing: that of missing values, where it is theirs alone; -1 without one."""
    last = int(attribute.nodes[-1])
    alone = last > 0 if attribute.apart else int((attribute.nodes == last).sum()) == 1
    return last if missing and alone else -1


def _released(
    nodes: tuple[Integers, ...], quasis: Sequence[Columns], found: Suppression, nulls: dict[int, int], block: CodedBlock
) -> _ReleasedBlock:
    masked = np.array([one[codes] for one, codes in zip(nodes, block.codes, strict=False)])
    flags = found.flags(quasis, list(masked))
    for number, null in nulls.items():
        flags[number] |= masked[number] == null
    return _ReleasedBlock(masked, flags, block.codes)


def _all_rows(request: Request, block: _ReleasedBlock) -> PartialRows:
    columns, sensitive = list(request.columns), request.sensitive
    codes = np.zeros((block.nodes.shape[1], max(len(sensitive.columns), 1)), np.int64)
    for place, (column, offset) in enumerate(zip(sensitive.columns, sensitive.offsets, strict=True)):
        codes[:, place] = block.codes[column].astype(np.int64) + offset
    words = block.nodes[columns].T.astype(np.uint64)
    return PartialRows(words, block.missing[columns].T, np.ones(len(words), np.int64), codes)


def _rows(request: Request, block: _ReleasedBlock) -> PartialRows:
    return different_rows(_all_rows(request, block))


def _judged(request: Request, rows: PartialRows, counts: Counts) -> Recount:
    found = judged(counts if request.conditions else counts[:, 0], request.k, request.conditions)
    worst = np.array([one.max(initial=-np.inf) for one in found.figures])
    keys = whole_keys(rows).at(found.broken)
    return Recount(int(found.sizes.min(initial=NOBODY)), worst, int(rows.times[found.broken].sum()), 0, keys)


def _merged(left: Recount, right: Recount) -> Recount:
    keys = RowKeys(*(np.concatenate(pair) for pair in zip(left.groups, right.groups, strict=True)))
    worst = np.maximum(left.worst, right.worst)
    return Recount(min(left.smallest, right.smallest), worst, left.broken + right.broken, 0, keys)


def _groups(request: Request, broken: RowKeys, block: _ReleasedBlock) -> RowKeys:
    """The keys of the groups that broken rows belong to."""
    here = np.flatnonzero(contains(whole_keys(_all_rows(request, block)), broken))
    keys = keys_of([block.nodes[number, here] for number in request.columns], len(here))
    return _different(keys, new_keys(0))


def _different(left: RowKeys, right: RowKeys) -> RowKeys:
    keys = RowKeys(*(np.concatenate(pair) for pair in zip(left, right, strict=True)))
    return keys.at(grouped(keys).firsts)
