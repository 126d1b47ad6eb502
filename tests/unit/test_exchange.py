"""Rows that move between tasks: pieces meet in block order, in memory, in files and on a cluster, also when workers die."""

import os
import signal
from functools import partial
from pathlib import Path
from typing import NamedTuple

import dask
import numpy as np
import pytest

from dpmask.engine import exchange, passes
from dpmask.engine.exchange import beside, hold_exchanged
from dpmask.engine.passes import Block, Span, hold_blocks, map_blocks, reduce_blocks
from dpmask.errors import DpmaskError, InputError, StorageError

TARGETS = [Span(number, 1000 * number) for number in range(5)]


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
    return [Block(sum(sizes[:n]), size, rng.integers(0, 1000, size)) for n, size in enumerate(sizes)]


def split(content, span):
    """The numbers by their remainder; nothing goes to the last target."""
    parts = [content[content % 4 == number] for number in range(4)] + [content[:0]]
    return [
        Sent(np.full(1, span.number), np.stack([part, part / 3], axis=1).T, part > 500, part.astype(np.uint64))
        for part in parts
    ]


def join(pieces, span):
    assert all(type(piece) is Sent for piece in pieces)
    return Sent(*(np.concatenate(parts, axis=-1) for parts in zip(*pieces, strict=True)))


def join_beside(pieces, span, more):
    joined = join(pieces, span)
    return joined._replace(values=joined.values + more)


def listed(content, span):
    return [*span, type(content).__name__, *(part.tolist() for part in content)]


def expected(made, add=0.0):
    contents = [block.content for block in made]
    result = []
    for span in TARGETS:
        numbers = np.concatenate([c[c % 4 == span.number] if span.number < 4 else c[:0] for c in contents])
        values = [(numbers + add).tolist(), (numbers / 3 + add).tolist()]
        own = [list(range(len(made))), values, (numbers > 500).tolist(), numbers.tolist()]
        result.append([*span, "Sent", *own])
    return result


def exchanged(made, **options):
    return hold_exchanged(split, options.pop("join", join), made, TARGETS, "move", size=1000, **options)


@pytest.fixture(params=["embedded", "files", "cluster"])
def kind(request, monkeypatch):
    """Where pieces lie."""
    if request.param == "files":
        monkeypatch.setattr(exchange, "fits_in_memory", lambda size: False)
    return request.getfixturevalue("client") if request.param == "cluster" else request.param


@pytest.mark.parametrize("count", [1, 4, 21])
def test_pieces_meet_in_block_order(kind, count):
    made = blocks(count)
    assert map_blocks(listed, exchanged(made), "list") == expected(made)


def test_pieces_of_held_blocks_and_what_is_made_is_a_block_again(kind):
    made = blocks()
    held = hold_blocks(lambda content, span: content, made, "hold")
    once = exchanged(held)
    assert map_blocks(listed, once, "list") == expected(made)
    again = hold_exchanged(back, join, once, TARGETS[:2], "back", size=1000)
    total = reduce_blocks(lambda content, span: content.words.sum(), lambda one, other: one + other, again, "sum")
    assert total == sum(block.content.sum() for block in made)


def back(content, span):
    half = content.words.size // 2
    return [
        Sent(content.block, content.values[:, part], content.flags[part], content.words[part])
        for part in (slice(half), slice(half, None))
    ]


def test_one_more_argument_of_join(kind):
    made = blocks()
    more = hold_blocks(lambda content, span: content, [Block(n, 1, 0.5) for n in range(5)], "more")
    assert [run.spans[0].number for run in more] == [span.number for span in TARGETS]
    found = exchanged(made, join=join_beside, beside=more)
    assert map_blocks(listed, found, "list") == expected(made, add=0.5)


def test_a_block_with_what_is_held_beside_it(kind):
    held = exchanged(blocks())
    made = [
        Block(0, 1, beside(lambda name, piece: (name, piece.words), name, run))
        for name, run in zip("abcde", held, strict=True)
    ]
    found = map_blocks(lambda content, span: (content[0], content[1].tolist()), made, "x")
    assert found == [(name, line[-1]) for name, line in zip("abcde", expected(blocks()), strict=True)]


def test_pieces_lie_in_files_only_where_they_do_not_fit(monkeypatch):
    made, asked = blocks(), []
    monkeypatch.setattr(exchange, "fits_in_memory", asked.append)
    (run, *_) = exchanged(made)
    assert asked == [2000]
    assert not run.contents[0].values.flags.writeable
    monkeypatch.setattr(exchange, "fits_in_memory", lambda size: True)
    (run, *_) = exchanged(made)
    assert run.contents[0].values.flags.writeable


def test_files_have_no_name(monkeypatch, tmp_path):
    monkeypatch.setattr(exchange, "fits_in_memory", lambda size: False)
    with dask.config.set(temporary_directory=str(tmp_path)):
        held = exchanged(blocks())
        assert list(tmp_path.iterdir()) == []
        maps = Path("/proc/self/maps")
        assert not maps.exists() or str(tmp_path) in maps.read_text(), "pieces lie in this folder all the same"
    assert map_blocks(listed, held, "list") == expected(blocks())


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
            hold_exchanged(both["split"], both["join"], blocks(), TARGETS, "move", size=1000)
        assert caught.value.__cause__ is None
        assert "4711" not in str(caught.value) + "".join(capfd.readouterr())


def test_failed_storage_is_tried_again(monkeypatch):
    monkeypatch.setattr(passes.time, "sleep", lambda seconds: None)
    tried = []

    def flaky(pieces, span):
        tried.append(span.number)
        if len(tried) < 3:
            raise StorageError("down")
        return join(pieces, span)

    with dask.config.set(scheduler="synchronous"):
        found = exchanged(blocks(), join=flaky)
    assert map_blocks(listed, found, "list") == expected(blocks())


def dying(marker, pieces, span):
    """The join, whose worker dies at one target the first time."""
    if span.number == 3 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return join(pieces, span)


def test_a_worker_that_dies_in_the_middle(tmp_path):
    """Its pieces are lost with it, and what it joined before: all of it is made again."""
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        held = exchanged(blocks(), join=partial(dying, tmp_path / "died"))
        assert (tmp_path / "died").exists()
        assert map_blocks(listed, held, "list") == expected(blocks())
