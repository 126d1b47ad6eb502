"""Blocks persisted between passes: the same tree, and what fails is reported."""

from typing import NamedTuple

import numpy as np
import pytest
from dask.delayed import delayed

from dpmask.engine.collection import Collection, exchange, itself
from dpmask.engine.tasks import Block, merge_tree
from dpmask.errors import InputError, StorageError


def bracket(left, right):
    return f"({left}{right})"


def numbered(content, position):
    return f"{content}{position.number}"


def refuse(content):
    if content == "c":
        raise InputError("not c")
    return content


LETTERS = [chr(97 + number) for number in range(21)]
BLOCKS = Collection([Block(10 * number, 10, letter) for number, letter in enumerate(LETTERS)])


@pytest.fixture(params=["embedded", "cluster"])
def kind(request):
    return request.getfixturevalue("client") if request.param == "cluster" else None


def test_a_pass_over_persisted_blocks_is_a_pass_over_blocks(kind):
    persisted = BLOCKS.persist(str.upper, "persist").with_positions()
    plain = BLOCKS.transform(str.upper).with_positions()
    assert persisted.reduce(numbered, bracket, "x") == plain.reduce(numbered, bracket, "x")
    assert persisted.map(numbered, "x") == plain.map(numbered, "x")


def test_joined_blocks_are_in_order(kind):
    assert BLOCKS.persist_joined(str.upper, "".join, "join").map(itself, "x") == ["ABCDEFGHIJKLMNOPQRSTU"]


def test_what_fails_while_persisting_is_reported(kind):
    with pytest.raises(InputError, match="not c"):
        BLOCKS.persist(refuse, "persist")
    with pytest.raises(InputError, match="not c"):
        BLOCKS.persist_joined(refuse, "".join, "join")


def vowels_first(content):
    return [content, ""] if content in "aeiou" else ["", content]


def number_first(content, position):
    return [str(position.number), "-"]


def meet(letters, numbers):
    return "".join(letters) + "/" + "".join(numbers)


def test_parts_meet_in_their_shard_in_block_order(kind):
    sources = [BLOCKS.transform(vowels_first), BLOCKS[:3].with_positions().transform(number_first)]
    shards = exchange(sources, meet, 2, "exchange", size=0)
    assert shards.with_positions().map(numbered, "x") == ["aeiou/0120", "bcdfghjklmnpqrst/---1"]
    again = shards.exchange(lambda content: [content] * 2, "".join, 2, "again", size=0)
    assert again.map(itself, "x") == ["aeiou/012bcdfghjklmnpqrst/---"] * 2


def test_what_fails_in_an_exchange_is_reported(kind):
    with pytest.raises(InputError, match="not c"):
        BLOCKS.exchange(lambda content: 2 * [refuse(content)], "".join, 2, "exchange", size=0)
    with pytest.raises(InputError, match="not c"):
        BLOCKS.exchange(vowels_first, lambda parts: refuse("c"), 2, "exchange", size=0)


class Part(NamedTuple):
    rows: tuple
    count: int


def halves(content, position):
    numbers = np.arange(position.number, position.number + 4.0)
    return [Part((numbers[:2], numbers[:0]), 1), Part((numbers[2:], numbers[:0].astype(np.int8)), 2)]


def together(parts):
    return Part(
        tuple(np.concatenate(some) for some in zip(*(part.rows for part in parts), strict=True)),
        sum(p.count for p in parts),
    )


def test_pieces_of_any_depth_lie_in_files_where_memory_is_short(limit):
    def found():
        return BLOCKS[:3].with_positions().exchange(halves, together, 2, "exchange", size=1).map(itself, "x")

    plain = found()
    limit(memory_share=0.0)
    mapped = found()
    assert [type(part).__name__ for part in mapped] == ["Part", "Part"]
    for one, other in zip(plain, mapped, strict=True):
        assert one.count == other.count
        for array, same in zip(one.rows, other.rows, strict=True):
            assert (array.dtype, array.tolist()) == (same.dtype, same.tolist())
    assert plain[1].rows[0].tolist() == [2, 3, 3, 4, 4, 5]
    assert not mapped[0].rows[0].flags.writeable


def crossed(content, other):
    return f"{content}{other}"


def kept(content, summary):
    return f"{content}:{summary}"


@pytest.mark.parametrize("given", ["ready", "lazy", "persisted"])
def test_persisted_contents_meet_every_block(kind, given):
    """Each by itself, merged over all blocks in the one tree; what becomes of it is persisted in its place."""
    others = Collection.of([delayed(letter) for letter in LETTERS]) if given == "lazy" else BLOCKS
    if given == "persisted":
        others = others.persist(itself, "persist")
    for persisted in (
        BLOCKS[:3].persist_joined(str.upper, "".join, "join"),
        BLOCKS[:3].persist(str.upper, "persist"),
    ):
        contents = persisted.map(itself, "x")
        trees = [merge_tree([f"{content}{letter}" for letter in LETTERS], bracket) for content in contents]
        found = persisted.meet_all(others, crossed, bracket, kept, "x")
        assert found.map(itself, "x") == [f"{one}:{tree}" for one, tree in zip(contents, trees, strict=True)]


def test_what_met_some_blocks_may_meet_others(kind):
    once = BLOCKS[:1].persist(str.upper, "persist").meet_all(BLOCKS[:1], crossed, bracket, kept, "x")
    assert once.meet_all(BLOCKS[1:2], crossed, bracket, kept, "x").map(itself, "x") == ["A:Aa:A:Aab"]


def test_what_fails_in_a_meeting_is_reported(kind):
    persisted = BLOCKS[:2].persist(str.upper, "persist")
    with pytest.raises(InputError, match="not c"):
        persisted.meet_all(BLOCKS, lambda content, other: refuse(other), bracket, kept, "x")
    with pytest.raises(InputError, match="not c"):
        persisted.meet_all(BLOCKS, crossed, bracket, lambda content, summary: refuse("c"), "x")


def test_failed_storage_in_a_meeting_is_tried_again(limit):
    limit(retry_seconds=0.0)
    failures = iter([StorageError("down"), StorageError("down")])

    def flaky(content, other):
        for failure in failures:
            raise failure
        return other

    persisted = BLOCKS[:1].persist(str.upper, "persist")
    assert persisted.meet_all(BLOCKS[:2], flaky, bracket, kept, "x").map(itself, "x") == ["A:(ab)"]
