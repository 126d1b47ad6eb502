"""Blocks held in memory between passes: the same tree, and what fails is told."""

import pytest
from dask.delayed import delayed

from dpmask.engine import passes
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
