"""Which rows make a block: decided by the sizes of the row groups and ``block_rows``, and by nothing else."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple


class Piece(NamedTuple):
    """Rows start..start+rows-1 of one row group of one file."""

    file: int
    group: int
    start: int
    rows: int


def plan_blocks(
    files: Sequence[Sequence[int]], block_rows: int, skipped: Container[tuple[int, int]] = ()
) -> list[list[Piece]]:
    """Blocks as lists of pieces, in position order: small row groups joined, large ones sliced, empty ones left out.

    ``files`` holds the row counts of each file's row groups. No block is larger than ``block_rows``, and no row group
    that fits in a block is ever cut, so none is decoded twice. Row groups that are ``skipped``, by file and number, are
    left out.
    """
    blocks: list[list[Piece]] = []
    room = 0
    for piece in _pieces(files, block_rows):
        if (piece.file, piece.group) in skipped:
            continue
        if not blocks or piece.rows > room:
            blocks.append([])
            room = block_rows
        blocks[-1].append(piece)
        room -= piece.rows
    return blocks


def _pieces(files: Sequence[Sequence[int]], block_rows: int) -> Iterator[Piece]:
    for file, groups in enumerate(files):
        for group, rows in enumerate(groups):
            slices = -(-rows // block_rows)
            for number in range(slices):
                start = rows * number // slices
                yield Piece(file, group, start, rows * (number + 1) // slices - start)
