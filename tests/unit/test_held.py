"""Blocks held in memory between passes: the same tree, and what fails is told."""

from typing import NamedTuple

import numpy as np
import pytest
from dask.delayed import delayed

from dpmask.engine import exchange, passes
from dpmask.engine.exchange import Source, exchange_blocks
from dpmask.engine.passes import Block, hold_beside, hold_blocks, hold_joined, map_blocks, merge_tree, reduce_blocks
from dpmask.errors import InputError, StorageError


def upper(content, span):
    return content.upper()


def bracket(left, right):
    return f"({left}{right})"


def itself(content, span):
    return f"{content}{span.number}"


def refuse(content, span):
    if content == "c":
        raise InputError("not c")
    return content


BLOCKS = [Block(10 * n, 10, chr(97 + n)) for n in range(21)]


@pytest.fixture(params=["embedded", "cluster"])
def kind(request):
    return request.getfixturevalue("client") if request.param == "cluster" else None


def test_a_pass_over_held_blocks_is_a_pass_over_blocks(kind):
    held = hold_blocks(upper, BLOCKS, "hold")
    plain = [block._replace(content=block.content.upper()) for block in BLOCKS]
    assert reduce_blocks(itself, bracket, held, "x") == reduce_blocks(itself, bracket, plain, "x")
    assert map_blocks(itself, held, "x") == map_blocks(itself, plain, "x")


def test_joined_blocks_are_in_order(kind):
    held = hold_joined(upper, "".join, BLOCKS, "join")
    assert map_blocks(lambda content, span: content, held, "x") == ["ABCDEFGHIJKLMNOPQRSTU"]


def test_what_fails_while_holding_is_told(kind):
    with pytest.raises(InputError, match="not c"):
        hold_blocks(refuse, BLOCKS, "hold")
    with pytest.raises(InputError, match="not c"):
        hold_joined(refuse, "".join, BLOCKS, "join")


def vowels_first(content, span):
    return [content, ""] if content in "aeiou" else ["", content]


def numbered(content, span):
    return [str(span.number), "-"]


def meet(letters, numbers):
    return "".join(letters) + "/" + "".join(numbers)


def test_parts_meet_in_their_shard_in_block_order(kind):
    shards = exchange_blocks([Source(vowels_first, BLOCKS), Source(numbered, BLOCKS[:3])], meet, 2, "exchange", size=0)
    assert map_blocks(lambda content, span: (content, span.number), shards, "x") == [
        ("aeiou/012", 0),
        ("bcdfghjklmnpqrst/---", 1),
    ]
    again = exchange_blocks([Source(lambda content, span: [content] * 2, shards)], "".join, 2, "again", size=0)
    assert map_blocks(lambda content, span: content, again, "x") == ["aeiou/012bcdfghjklmnpqrst/---"] * 2


def test_what_fails_in_an_exchange_is_told(kind):
    with pytest.raises(InputError, match="not c"):
        exchange_blocks(
            [Source(lambda content, span: 2 * [refuse(content, span)], BLOCKS)], "".join, 2, "exchange", size=0
        )
    with pytest.raises(InputError, match="not c"):
        exchange_blocks([Source(vowels_first, BLOCKS)], lambda parts: refuse("c", None), 2, "exchange", size=0)


class Part(NamedTuple):
    rows: tuple
    count: int


def halves(content, span):
    numbers = np.arange(span.number, span.number + 4.0)
    return [Part((numbers[:2], numbers[:0]), 1), Part((numbers[2:], numbers[:0].astype(np.int8)), 2)]


def together(parts):
    return Part(
        tuple(np.concatenate(some) for some in zip(*(part.rows for part in parts), strict=True)),
        sum(p.count for p in parts),
    )


def test_pieces_of_any_depth_lie_in_files_where_memory_is_short(monkeypatch):
    def found():
        shards = exchange_blocks([Source(halves, BLOCKS[:3])], together, 2, "exchange", size=1)
        return map_blocks(lambda content, span: content, shards, "x")

    plain = found()
    monkeypatch.setattr(exchange, "fits_in_memory", lambda size: False)
    mapped = found()
    assert [type(part).__name__ for part in mapped] == ["Part", "Part"]
    for one, other in zip(plain, mapped, strict=True):
        assert one.count == other.count
        for array, same in zip(one.rows, other.rows, strict=True):
            assert (array.dtype, array.tolist()) == (same.dtype, same.tolist())
    assert plain[1].rows[0].tolist() == [2, 3, 3, 4, 4, 5]
    assert not mapped[0].rows[0].flags.writeable


def beside(held, content, span):
    return f"{''.join(held)}{content}{span.number}"


def kept(held, summary):
    return [f"{one}:{summary}" for one in held]


def contents_of(held):
    return map_blocks(lambda content, span: content, held, "x")


@pytest.mark.parametrize("lazy", [False, True])
def test_held_contents_meet_every_block(kind, lazy):
    """Each held run by itself, merged over all blocks in the one tree; what becomes of it is held in its place."""
    blocks = [block._replace(content=delayed(block.content)) for block in BLOCKS] if lazy else BLOCKS
    for held in (hold_joined(upper, "".join, BLOCKS[:3], "join"), hold_blocks(upper, BLOCKS[:3], "hold")):
        found = contents_of(hold_beside(beside, bracket, kept, held, blocks, "x"))
        trees = [
            merge_tree([f"{one}{block.content}{n}" for n, block in enumerate(BLOCKS)], bracket)
            for one in contents_of(held)
        ]
        assert found == [f"{one}:{tree}" for one, tree in zip(contents_of(held), trees, strict=True)]


def test_what_met_some_blocks_may_meet_others(kind):
    held = hold_blocks(upper, BLOCKS[:1], "hold")
    once = hold_beside(beside, bracket, kept, held, BLOCKS[:1], "x")
    assert contents_of(hold_beside(beside, bracket, kept, once, BLOCKS[1:2], "x")) == ["A:Aa0:A:Aa0b0"]


def refuse_beside(held, content, span):
    return refuse(content, span)


def refuse_to_keep(held, summary):
    raise InputError("not kept")


def test_what_fails_beside_is_told(kind):
    held = hold_blocks(upper, BLOCKS[:2], "hold")
    with pytest.raises(InputError, match="not c"):
        hold_beside(refuse_beside, bracket, kept, held, BLOCKS, "x")
    with pytest.raises(InputError, match="not kept"):
        hold_beside(beside, bracket, refuse_to_keep, held, BLOCKS, "x")


def test_failed_storage_beside_is_tried_again(monkeypatch):
    monkeypatch.setattr(passes.time, "sleep", lambda seconds: None)
    failures = iter([StorageError("down"), StorageError("down")])

    def flaky(held, content, span):
        for failure in failures:
            raise failure
        return content

    held = hold_beside(flaky, bracket, kept, hold_blocks(upper, BLOCKS[:1], "hold"), BLOCKS[:2], "x")
    assert contents_of(held) == ["A:(ab)"]
