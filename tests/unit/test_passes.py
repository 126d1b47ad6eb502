"""Passes: the fixed tree, retries, and errors that hold no values."""

import dask
import dask.dataframe as dd
import pandas as pd
import pytest

from dpmask.engine import tasks
from dpmask.engine.journal import Journal, flush, journalled
from dpmask.engine.passes import Block, map_blocks, map_files, merge_tree, reduce_blocks
from dpmask.engine.progress import listening
from dpmask.errors import DpmaskError, InputError, StorageError


def spelled(content, span):
    return f"{content}"


def bracket(left, right):
    return f"({left}{right})"


def letters(count):
    return [Block(n, 1, chr(97 + n)) for n in range(count)]


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13, 26])
@pytest.mark.parametrize("threads", [1, 2, 3, 50])
def test_the_tree_does_not_depend_on_the_workers(monkeypatch, count, threads):
    monkeypatch.setattr(tasks, "threads", lambda: threads)
    monkeypatch.setattr(tasks, "_TASKS_PER_THREAD", 1)
    alone = merge_tree([block.content for block in letters(count)], bracket)
    assert reduce_blocks(spelled, bracket, letters(count), "spell") == alone


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13, 26])
def test_files_are_summarised_by_the_same_tree(monkeypatch, count):
    monkeypatch.setattr(tasks, "threads", lambda: 50)
    files, summary = map_files(
        lambda content, span: (span.number, content), bracket, letters(count), "spell", lambda known: {}
    )
    assert files == list(range(count))
    assert summary == merge_tree([block.content for block in letters(count)], bracket)


def test_the_tree_by_hand():
    assert merge_tree(list("abcde"), bracket) == "(((ab)(cd))e)"


def test_the_same_tree_on_a_cluster(client):
    assert reduce_blocks(spelled, bracket, letters(26), "spell") == merge_tree(
        [b.content for b in letters(26)], bracket
    )


def test_a_block_that_two_runs_noted_counts_once(monkeypatch):
    """A file goes, so its run is made again in other runs, and then comes back: what was noted first is true again."""
    monkeypatch.setattr(tasks, "_TASKS_PER_THREAD", 1)
    noted = {}

    def told(threads, standing):
        monkeypatch.setattr(tasks, "threads", lambda: threads)
        found, new = dict(noted), {}
        with journalled(Journal(found, new.update, None, resumed=True)):
            result = map_files(lambda content, span: (span.number, content), str.__add__, letters(8), "spell", standing)
            flush()
        noted.update({name: entry for name, entry in new.items() if name not in noted})
        return result

    once = told(2, dict)
    assert once == (list(range(8)), "abcdefgh")
    assert told(8, lambda known: {number: file for number, file in known.items() if number != 5}) == once
    assert told(2, dict) == once


def test_map_keeps_block_order_and_tells_where_it_is():
    seen = []
    with listening(lambda label, done, total: seen.append((label, done, total))):
        assert map_blocks(lambda content, span: (content, *span), letters(3), "spell") == [
            ("a", 0, 0),
            ("b", 1, 1),
            ("c", 2, 2),
        ]
    assert seen[0] == ("spell", 0, 3)
    assert seen[-1] == ("spell", 3, 3)


def test_failed_storage_is_tried_again_and_only_what_failed(monkeypatch):
    monkeypatch.setattr(tasks.time, "sleep", lambda seconds: None)
    tried = []

    def flaky(content, span):
        tried.append(content)
        if content == "b" and tried.count("b") < 3:
            raise StorageError("down")
        return content

    with dask.config.set(scheduler="synchronous"):
        assert map_blocks(flaky, letters(3), "flaky") == ["a", "b", "c"]
    assert sorted(tried) == ["a", "b", "b", "b", "c"]


def test_storage_that_stays_down_is_told(monkeypatch):
    monkeypatch.setattr(tasks.time, "sleep", lambda seconds: None)

    def down(content, span):
        raise StorageError("down for good")

    with pytest.raises(StorageError, match="down for good"):
        map_blocks(down, letters(2), "down")


def quoting(content, span):
    raise ValueError(f"cannot convert {content}")


@pytest.mark.parametrize("kind", ["embedded", "cluster"])
def test_foreign_errors_keep_their_text_to_themselves(kind, request, capfd):
    if kind == "cluster":
        request.getfixturevalue("client")
    with pytest.raises(DpmaskError) as caught:
        map_blocks(quoting, [Block(0, 1, "Ms Smith, 4711")], "quote")
    assert "ValueError" in str(caught.value)
    assert caught.value.__cause__ is None
    printed = capfd.readouterr()
    assert "4711" not in str(caught.value) + printed.out + printed.err


def test_a_callers_own_failing_graph_is_an_input_error():
    def fails(frame):
        raise KeyError("4711")

    frame = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0]}), npartitions=1).map_partitions(fails, meta={"a": float})
    blocks = [Block(0, 2, part) for part in frame.to_delayed()]
    with pytest.raises(InputError, match="own Dask tasks failed with KeyError") as caught:
        map_blocks(lambda content, span: 1, blocks, "x")
    assert "4711" not in str(caught.value)
