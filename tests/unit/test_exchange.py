"""Rows that move between tasks: pieces meet in block order, in memory, in files and on a cluster, also when workers die."""

import os
import signal
from functools import partial
from pathlib import Path
from typing import NamedTuple

import dask
import numpy as np
import pytest

from dpmask.engine.collection import Collection, itself
from dpmask.engine.tasks import Block, Position
from dpmask.errors import DpmaskError, InputError, StorageError

TARGETS = [Position(number, 1000 * number) for number in range(5)]


class Sent(NamedTuple):
    """A piece of its own kind: which block it came from, a matrix, bytes that leave what follows them unaligned."""

    block: np.ndarray
    values: np.ndarray
    flags: np.ndarray
    words: np.ndarray


def blocks(count=21):
    """Blocks of different lengths, the fourth one empty."""
    rng = np.random.default_rng(0)
    sizes = [0 if number == 3 else 1 + 7 * number % 40 for number in range(count)]
    return Collection(
        [Block(sum(sizes[:n]), size, rng.integers(0, 1000, size)) for n, size in enumerate(sizes)], positioned=True
    )


def split(content, position):
    """The numbers by their remainder; nothing goes to the last target."""
    parts = [content[content % 4 == number] for number in range(4)] + [content[:0]]
    return [
        Sent(np.full(1, position.number), np.stack([part, part / 3], axis=1).T, part > 500, part.astype(np.uint64))
        for part in parts
    ]


def join(pieces):
    assert all(type(piece) is Sent for piece in pieces)
    return Sent(*(np.concatenate(parts, axis=-1) for parts in zip(*pieces, strict=True)))


def join_with_more(pieces, more):
    joined = join(pieces)
    return joined._replace(values=joined.values + more)


def listed(content, position):
    return [*position, type(content).__name__, *(part.tolist() for part in content)]


def lists(collection):
    return collection.with_positions().map(listed, "list")


def expected(given, add=0.0):
    contents = [block.content for block in given.blocks]
    result = []
    for target in TARGETS:
        numbers = np.concatenate([c[c % 4 == target.number] if target.number < 4 else c[:0] for c in contents])
        values = [(numbers + add).tolist(), (numbers / 3 + add).tolist()]
        own = [list(range(len(contents))), values, (numbers > 500).tolist(), numbers.tolist()]
        result.append([*target, "Sent", *own])
    return result


def exchanged(given, join=join, **options):
    return given.exchange(split, join, TARGETS, "move", size=1000, **options)


@pytest.fixture(params=["embedded", "files", "cluster"])
def kind(request, limit):
    """Where pieces lie."""
    if request.param == "files":
        limit(memory_share=0.0)
    return request.getfixturevalue("client") if request.param == "cluster" else request.param


@pytest.mark.parametrize("count", [1, 4, 21])
def test_pieces_meet_in_block_order(kind, count):
    given = blocks(count)
    assert lists(exchanged(given)) == expected(given)


def test_pieces_of_persisted_blocks_and_targets_are_blocks_again(kind):
    given = blocks()
    once = exchanged(given.persist(lambda content, position: content, "persist").with_positions())
    assert lists(once) == expected(given)
    again = once.exchange(back, join, TARGETS[:2], "back", size=1000)
    total = again.reduce(lambda content: content.words.sum(), lambda one, other: one + other, "sum")
    assert total == sum(block.content.sum() for block in given.blocks)


def back(content):
    half = content.words.size // 2
    return [
        Sent(content.block, content.values[:, part], content.flags[part], content.words[part])
        for part in (slice(half), slice(half, None))
    ]


def test_one_more_argument_of_join(kind):
    given = blocks()
    more = Collection.of([0.5] * 5).persist(itself, "more")
    assert lists(exchanged(given, join=join_with_more, beside=more)) == expected(given, add=0.5)


def test_contents_with_others_beside_them(kind):
    contents = exchanged(blocks()).as_contents(lambda name, piece: (name, piece.words), "abcde")
    found = Collection.of(contents).map(lambda content: (content[0], content[1].tolist()), "x")
    assert found == [(name, line[-1]) for name, line in zip("abcde", expected(blocks()), strict=True)]


def is_mapped(content):
    return not content.values.flags.writeable


def test_pieces_lie_in_files_only_where_they_do_not_fit(limit):
    assert exchanged(blocks()).map(is_mapped, "x") == [False] * 5
    limit(memory_share=0.0)
    assert exchanged(blocks()).map(is_mapped, "x") == [True] * 4 + [False], "nothing goes to the last"


def test_files_have_no_name(limit, tmp_path):
    limit(memory_share=0.0)
    with dask.config.set(temporary_directory=str(tmp_path)):
        found = exchanged(blocks())
        assert list(tmp_path.iterdir()) == []
        maps = Path("/proc/self/maps")
        assert not maps.exists() or str(tmp_path) in maps.read_text(), "pieces lie in this folder all the same"
    assert lists(found) == expected(blocks())


def quoting(content, *_):
    raise ValueError("Ms Smith, 4711")


def refusing(content, *_):
    raise InputError("not this one")


@pytest.mark.parametrize("place", ["split", "join"])
def test_errors_come_out_as_ours_without_values(kind, place, capfd):
    for function, error, text in (
        (quoting, DpmaskError, "Unexpected ValueError"),
        (refusing, InputError, "not this one"),
    ):
        both = {"split": split, "join": join} | {place: function}
        with pytest.raises(error, match=text) as caught:
            blocks().exchange(both["split"], both["join"], TARGETS, "move", size=1000)
        assert caught.value.__cause__ is None
        assert "4711" not in str(caught.value) + "".join(capfd.readouterr())


def test_failed_storage_is_tried_again(limit):
    limit(retry_seconds=0.0)
    tried = []

    def flaky(pieces):
        tried.append(len(pieces))
        if len(tried) < 3:
            raise StorageError("down")
        return join(pieces)

    with dask.config.set(scheduler="synchronous"):
        found = exchanged(blocks(), join=flaky)
    assert lists(found) == expected(blocks())


def dying(marker, pieces):
    """The join, whose worker dies at one target the first time."""
    if any((piece.words % 4 == 3).any() for piece in pieces) and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return join(pieces)


def test_a_worker_that_dies_in_the_middle(tmp_path):
    """Its pieces are lost with it, and what it joined before: all of it is computed again."""
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        found = exchanged(blocks(), join=partial(dying, tmp_path / "died"))
        assert (tmp_path / "died").exists()
        assert lists(found) == expected(blocks())
