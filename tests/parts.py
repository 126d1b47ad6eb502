"""Frames in partitions, one of them empty, whose divisions Dask knows: joins of two such frames need no shuffle."""

from itertools import pairwise

import dask.dataframe as dd
import pandas as pd


def in_parts(frame, partitions):
    """The rows of a frame with an index of increasing integers in so many partitions, and an empty one."""
    end = frame.index[-1] + 1
    cuts = [end * number // partitions for number in range(partitions + 1)]
    pieces = [frame.loc[(frame.index >= low) & (frame.index < high)] for low, high in pairwise(cuts)]
    pieces.append(frame.iloc[:0])
    return dd.from_map(lambda piece: piece, pieces, meta=frame.iloc[:0], divisions=(*cuts, end + 1))


def require_same_rows(found, expected):
    """A computed Dask frame has the rows of one of pandas; texts are Dask's own kind of strings there."""
    pd.testing.assert_frame_equal(found, expected.astype(found.dtypes))
