"""The block plan: from row groups and block_rows alone."""

import pytest

from dpmask.lake.block_plan import Piece, plan_blocks


def test_small_groups_are_joined_and_large_ones_sliced():
    blocks = plan_blocks([[3, 3], [0, 4], [25]], 10)
    assert blocks[0] == [Piece(0, 0, 0, 3), Piece(0, 1, 0, 3), Piece(1, 1, 0, 4)]
    assert blocks[1:] == [[Piece(2, 0, 0, 8)], [Piece(2, 0, 8, 8)], [Piece(2, 0, 16, 9)]]


def test_no_rows_no_blocks():
    assert plan_blocks([[], [0]], 10) == []


@pytest.mark.parametrize("block_rows", [1, 2, 7, 100, 10**6])
def test_every_row_once_in_order_and_no_block_too_large(block_rows):
    files = [[5, 0, 13], [1], [], [200, 3], [7] * 20]
    pieces = [piece for block in plan_blocks(files, block_rows) for piece in block]
    rows = [(p.file, p.group, p.start + n) for p in pieces for n in range(p.rows)]
    assert rows == [(f, g, n) for f, groups in enumerate(files) for g, size in enumerate(groups) for n in range(size)]
    assert max(sum(p.rows for p in block) for block in plan_blocks(files, block_rows)) <= block_rows


def test_a_group_that_fits_is_never_cut():
    for block in plan_blocks([[60, 60, 60], [90]], 100):
        assert [piece.start for piece in block] == [0]
