"""Passes: the fixed tree, retries, and errors that hold no values."""

import dask
import dask.dataframe as dd
import pandas as pd
import pytest

from dpmask.engine.collection import Collection, itself
from dpmask.engine.files import write_files
from dpmask.engine.journal import Journal, flush, journalled
from dpmask.engine.progress import listening
from dpmask.engine.tasks import Block, Position, merge_tree, reduce_run
from dpmask.errors import DpmaskError, InputError, StorageError


def bracket(left, right):
    return f"({left}{right})"


ALPHABET = [chr(97 + number) for number in range(26)]


def letters(count):
    return Collection([Block(number, 1, letter) for number, letter in enumerate(ALPHABET[:count])])


def written(content, position):
    return position.number, content


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13, 26])
@pytest.mark.parametrize("threads", [1, 2, 3, 50])
def test_the_tree_does_not_depend_on_the_workers(limit, count, threads):
    limit(threads=threads, tasks_per_thread=1)
    assert letters(count).reduce(itself, bracket, "spell") == merge_tree(ALPHABET[:count], bracket)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13, 26])
def test_files_are_summarised_by_the_same_tree(limit, count):
    limit(threads=50)
    blocks = letters(count).with_positions().transform(written)
    files, summary = write_files(blocks, bracket, "spell", lambda known: {})
    assert files == list(range(count))
    assert summary == merge_tree(ALPHABET[:count], bracket)


def test_the_tree_by_hand():
    assert merge_tree(list("abcde"), bracket) == "(((ab)(cd))e)"


def test_the_same_tree_on_a_cluster(client):
    assert letters(26).reduce(itself, bracket, "spell") == merge_tree(ALPHABET, bracket)


def test_a_block_that_two_runs_noted_counts_once(limit):
    """A file goes, so it is written again in other runs, and then comes back: what was noted first is true again."""
    noted = {}

    def resumed(threads, still_there):
        limit(threads=threads, tasks_per_thread=1)
        found, new = dict(noted), {}
        with journalled(Journal(found, new.update, None, resumed=True)):
            blocks = letters(8).with_positions().transform(written)
            result = write_files(blocks, str.__add__, "spell", still_there)
            flush()
        noted.update({name: entry for name, entry in new.items() if name not in noted})
        return result

    once = resumed(2, dict)
    assert once == (list(range(8)), "abcdefgh")
    assert resumed(8, lambda known: {number: file for number, file in known.items() if number != 5}) == once
    assert resumed(2, dict) == once


def test_map_keeps_block_order_and_reports_how_far_it_is():
    seen = []
    with listening(lambda label, done, total: seen.append((label, done, total))):
        assert letters(3).map(str.upper, "spell") == ["A", "B", "C"]
    assert seen[0] == ("spell", 0, 3)
    assert seen[-1] == ("spell", 3, 3)


def test_failed_storage_is_tried_again_and_only_what_failed(limit):
    limit(retry_seconds=0.0)
    tried = []

    def flaky(content):
        tried.append(content)
        if content == "b" and tried.count("b") < 3:
            raise StorageError("down")
        return content

    with dask.config.set(scheduler="synchronous"):
        assert letters(3).map(flaky, "flaky") == ["a", "b", "c"]
    assert sorted(tried) == ["a", "b", "b", "b", "c"]


def test_storage_that_stays_down_is_reported(limit):
    limit(retry_seconds=0.0)

    def down(content):
        raise StorageError("down for good")

    with pytest.raises(StorageError, match="down for good"):
        letters(2).map(down, "down")


def quoting(content):
    raise ValueError(f"cannot convert {content}")


@pytest.mark.parametrize("kind", ["embedded", "cluster"])
def test_foreign_errors_keep_their_text_to_themselves(kind, request, capfd):
    if kind == "cluster":
        request.getfixturevalue("client")
    with pytest.raises(DpmaskError) as caught:
        Collection.of(["Ms Smith, 4711"]).map(quoting, "quote")
    assert "ValueError" in str(caught.value)
    assert caught.value.__cause__ is None
    printed = capfd.readouterr()
    assert "4711" not in str(caught.value) + printed.out + printed.err


def test_a_callers_own_failing_graph_is_an_input_error():
    def fails(frame):
        raise KeyError("4711")

    frame = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0]}), npartitions=1).map_partitions(fails, meta={"a": float})
    with pytest.raises(InputError, match="own Dask tasks failed with KeyError") as caught:
        Collection.of(frame.to_delayed()).map(len, "x")
    assert "4711" not in str(caught.value)


def test_a_run_merges_as_the_tree_does_and_keeps_few_summaries():
    waiting, most = 0, 0

    def counted(content, span):
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        return content

    def merge(left, right):
        nonlocal waiting
        waiting -= 1
        return (left, right)

    for count in range(1, 100):
        waiting = most = 0
        spans, contents = [Position(at, 1) for at in range(count)], list(map(str, range(count)))
        found = reduce_run(counted, merge, spans, contents)
        assert found == merge_tree(contents, lambda left, right: (left, right))
        assert most <= count.bit_length() + 1
