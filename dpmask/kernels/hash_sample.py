"""Records chosen by a hash of their values or positions: the same ones, however the table is cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.arrays import Floats, Words
from dpmask.kernels.keys import new_keys, with_word


class HashSample(NamedTuple):
    """Some records: their words, in order, their positions and their values (columns x records)."""

    words: Words
    positions: NDArray[np.int64]
    values: Floats


def record_words_of(columns: Sequence[Floats], draw: int) -> Words:
    """A word for each record, made of its values and the number of the draw."""
    rows = len(columns[0])
    keys = with_word(new_keys(rows), np.full(rows, draw, np.uint64))
    for values in columns:
        keys = with_word(keys, (values + 0.0).view(np.uint64), np.isnan(values))
    return keys.first


def position_words(positions: Floats, draw: int) -> tuple[Words, NDArray[np.int64]]:
    """A word for each record, made of its position: equal records are chosen as often as others. And the position."""
    return record_words_of([positions], draw), positions.astype(np.int64)


def hash_sample(words: Words, positions: NDArray[np.int64], values: Floats, most: int) -> HashSample:
    """The records with the smallest words. Equal ones are in the order of their values, then of their positions."""
    picked = np.argpartition(words, most - 1)[:most] if len(words) > most else np.arange(len(words))
    if len(picked):
        picked = np.flatnonzero(words <= words[picked].max())
    order = picked[np.lexsort((positions[picked], *values[:, picked], words[picked]))][:most]
    return HashSample(words[order], positions[order], values[:, order])


def merge_hash_samples(left: HashSample, right: HashSample, most: int) -> HashSample:
    """The smallest of both."""
    return hash_sample(
        np.concatenate([left.words, right.words]),
        np.concatenate([left.positions, right.positions]),
        np.concatenate([left.values, right.values], axis=1),
        most,
    )
