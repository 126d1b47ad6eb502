"""A Collection against a plain loop, whatever the blocks, their contents, the threads and the scheduler."""

import numpy as np
import pytest
from dask.delayed import delayed

from dpmask.engine.collection import Collection, concatenated, exchange, itself
from dpmask.engine.journal import Journal, flush, journalled
from dpmask.engine.limits import current_limits, limits
from dpmask.engine.tasks import Block, Position, merge_tree

COUNTS = [1, 2, 5, 21]


@pytest.fixture(params=["one thread", "many threads", "memory is short", "cluster"])
def kind(request, limit):
    if request.param == "cluster":
        return request.getfixturevalue("client")
    return limit(
        tasks_per_thread=1,
        threads=50 if request.param == "many threads" else 1,
        memory_share=0.0 if request.param == "memory is short" else 0.4,
    )


def numbers(count):
    """Arrays of different lengths, the second one empty."""
    rng = np.random.default_rng(0)
    return [rng.integers(0, 100, 0 if number == 1 else 1 + 3 * number % 11) for number in range(count)]


def blocks(count, lazy=False):
    """Blocks of these, and of values that Dask is to compute."""
    contents = numbers(count)
    firsts = np.cumsum([0, *map(len, contents)]).tolist()
    made = [delayed(content) if lazy else content for content in contents]
    return Collection([Block(*one) for one in zip(firsts, map(len, contents), made, strict=False)])


def doubled(content):
    return 2 * content


def listed(content):
    return content.tolist()


def at(content, position):
    return position.number, position.first, content.tolist()


def bracket(left, right):
    return [left, right]


def expected_positions(contents):
    return [Position(number, sum(map(len, contents[:number]))) for number in range(len(contents))]


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("count", COUNTS)
def test_map_and_reduce(kind, count, lazy):
    given, plain = blocks(count, lazy), numbers(count)
    assert given.positions == expected_positions(plain)
    assert given.map(listed, "x") == [content.tolist() for content in plain]
    assert given.reduce(listed, bracket, "x") == merge_tree([content.tolist() for content in plain], bracket)
    assert given.transform(doubled).map(listed, "x") == [(2 * content).tolist() for content in plain]


@pytest.mark.parametrize("count", COUNTS)
def test_positions_are_given_to_who_asks(kind, count):
    given, plain = blocks(count), numbers(count)
    wanted = [(*position, content.tolist()) for position, content in zip(expected_positions(plain), plain, strict=True)]
    assert given.with_positions().map(at, "x") == wanted
    assert given.with_positions().reduce(at, bracket, "x") == merge_tree(wanted, bracket)
    for again in (given.with_positions().transform(at), given.with_positions().persist(at, "x")):
        assert again.map(itself, "x") == wanted, "the next function gets the content alone"
    assert given.transform(doubled).with_positions().map(at, "x")[-1][2] == (2 * plain[-1]).tolist()


@pytest.mark.parametrize("size", [None, 1])
@pytest.mark.parametrize("count", COUNTS)
def test_persisted_or_not_gives_the_same(kind, count, size):
    given, plain = blocks(count), numbers(count)
    persisted = given.persist(doubled, "x", size=size)
    assert persisted.positions == given.positions
    assert persisted.map(listed, "x") == [(2 * content).tolist() for content in plain]
    again = persisted.persist(doubled, "x", size=size).with_positions()
    assert [content for *_, content in again.map(at, "x")] == [(4 * content).tolist() for content in plain]


def test_persisted_only_where_it_fits(limit):
    calls = []

    def counted(content):
        calls.append(content)
        return content

    for share, size, expected in ((0.4, 1, 3), (0.4, None, 3), (0.0, None, 3), (0.0, 1, 6)):
        limit(memory_share=share)
        calls.clear()
        persisted = Collection.of("abc").persist(counted, "x", size=size)
        assert persisted.map(itself, "x") == persisted.map(itself, "x") == ["a", "b", "c"]
        assert len(calls) == expected, (share, size)


@pytest.mark.parametrize("count", COUNTS)
def test_joined_in_one_place(kind, count):
    (found,) = blocks(count).persist_joined(doubled, np.concatenate, "x").map(listed, "x")
    assert found == (2 * np.concatenate(numbers(count))).tolist()


def by_remainder(content):
    return [content[content % 3 == target] for target in range(3)]


def by_remainder_with_positions(content, position):
    return [np.full((content % 3 == target).sum(), position.first) for target in range(3)]


def joined(pieces):
    return np.concatenate(pieces)


def joined_and_more(pieces, more):
    return np.concatenate(pieces) + more


def side_by_side(ours, theirs):
    return np.concatenate([*ours, *theirs])


@pytest.mark.parametrize("count", COUNTS)
def test_an_exchange(kind, count):
    given, plain = blocks(count), numbers(count)
    whole = np.concatenate(plain)
    sorted_out = [whole[whole % 3 == target].tolist() for target in range(3)]
    found = given.exchange(by_remainder, joined, 3, "x", size=8)
    assert found.positions == [Position(0, 0), Position(1, 0), Position(2, 0)]
    assert found.map(listed, "x") == sorted_out
    targets = [Position(number, 10 * number) for number in range(3)]
    more = Collection.of([1, 2, 3]).exchange(lambda number: [number] * 3, max, 3, "x", size=8)
    found = given.exchange(by_remainder, joined_and_more, targets, "x", size=8, beside=more)
    assert found.with_positions().map(at, "x") == [
        (*target, [value + 3 for value in part]) for target, part in zip(targets, sorted_out, strict=True)
    ]
    firsts = np.repeat([position.first for position in given.positions], list(map(len, plain)))
    theirs = given.with_positions().transform(by_remainder_with_positions)
    both = exchange([given.transform(by_remainder), theirs], side_by_side, 3, "x", size=8)
    assert both.map(listed, "x") == [
        part + firsts[whole % 3 == target].tolist() for target, part in enumerate(sorted_out)
    ]


def crossed(content, other):
    return f"{content}{len(other)}"


def added(left, right):
    return f"({left}{right})"


def finished(content, summary):
    return f"{content}:{summary}"


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("count", COUNTS)
def test_each_block_meets_all_others(kind, count, lazy):
    letters = Collection.of("abcde").persist(str.upper, "x")
    found = letters.meet_all(blocks(count, lazy).transform(doubled), crossed, added, finished, "x")
    wanted = [
        finished(letter, merge_tree([crossed(letter, other) for other in numbers(count)], added)) for letter in "ABCDE"
    ]
    assert found.map(itself, "x") == wanted
    some = letters.meet_all(blocks(count, lazy)[:1], crossed, added, finished, "x")
    assert some.map(itself, "x")[0] == f"A:A{len(numbers(1)[0])}"
    assert concatenated([letters, some]).map(itself, "x")[4:6] == ["E", some.map(itself, "x")[0]]


@pytest.mark.parametrize("count", COUNTS)
def test_as_contents_of_a_table(kind, count):
    names = [f"block {number}" for number in range(count)]
    plain = [(name, (2 * content).tolist()) for name, content in zip(names, numbers(count), strict=True)]
    for given in (blocks(count), blocks(count, lazy=True), blocks(count).persist(itself, "x")):
        contents = given.transform(doubled).as_contents(lambda name, content: (name, content.tolist()), names)
        assert Collection.of(contents).map(itself, "x") == plain
        assert Collection.of(given.as_contents(doubled)).map(listed, "x") == [content for _, content in plain]
        placed = Collection.of(given.with_positions().as_contents(lambda name, *one: at(*one), names))
        assert placed.map(itself, "x") == given.with_positions().map(at, "x")


class Store(dict):
    """Files of a journal, in memory."""

    def put(self, name, data):
        self[name] = data


def test_a_journal_knows_checkpointed_shards_and_passes():
    calls, entries, store = [], {}, Store()

    def counted(content):
        calls.append(content)
        return content.upper()

    def run(resumed):
        calls.clear()
        with journalled(Journal(entries, entries.update, store, resumed=resumed)):
            shards = Collection.of("abc").exchange(list, "".join, 1, "x", size=0)
            found = shards.persist_checkpointed(counted, "dear")
            seen = found.reduce(itself, bracket, "read"), found.map(itself, "read")
            flush()
        return seen

    first = run(resumed=False)
    assert first == ("ABC", ["ABC"])
    assert calls == ["abc"]
    assert run(resumed=True) == first
    assert calls == []
    entries.clear()
    assert run(resumed=True) == first, "passes that were lost are computed from the files"
    assert calls == []
    store.clear()
    assert run(resumed=True) == first
    assert calls == [], "nobody needs the shards while the passes over them are known"
    entries.clear()
    assert run(resumed=True) == first
    assert calls == ["abc"]
    assert Collection.of(["abc"]).persist_checkpointed(counted, "without a journal").map(itself, "x") == ["ABC"]


def test_limits_are_set_for_a_while():
    before = current_limits()
    with limits(tries=1) as outer, limits(threads=3):
        assert (outer.tries, current_limits().tries, current_limits().threads) == (1, 1, 3)
    assert current_limits() == before
    with pytest.raises(TypeError, match="no_limit"), limits(no_limit=1):
        pass


def test_a_repr_shows_no_content():
    assert repr(Collection.of(["Ms Smith"])) == "<Collection: 1 blocks>"
