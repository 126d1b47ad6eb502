"""Strata joined and patterns merged, against plain references; conditions of edit rules; bounds that reflect."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from dpmask.constraints.conditions import split_rules
from dpmask.constraints.sets import breaks, parse_constraints
from dpmask.constraints.strata import Classing, make_strata
from dpmask.errors import InputError, JobError
from dpmask.kernels.noise import apart_from_zero, reflected, reflection_bias
from dpmask.kernels.patterns import (
    join_strata,
    lost_values,
    merge_patterns,
    pattern_codes,
    patterns_of,
    shard_firsts,
    states,
)
from dpmask.masking.parts import make_parts
from dpmask.table.taxonomy import read_taxonomy


def merged_plainly(patterns, counts, least):
    """While one is too rare, the rarest goes where the fewest values are lost: records and states in Python."""
    groups = {at: (tuple(one), int(n), [at]) for at, (one, n) in enumerate(zip(patterns.tolist(), counts, strict=True))}
    while len(groups) > 1 and min(n for _, n, _ in groups.values()) < least:
        one = min(groups, key=lambda at: (groups[at][1], at))
        mine, size, members = groups.pop(one)
        best = None
        for at, (theirs, count, _) in groups.items():
            both = tuple(map(max, mine, theirs))
            lost = size * sum(a != b for a, b in zip(mine, both, strict=True))
            lost += count * sum(a != b for a, b in zip(theirs, both, strict=True))
            if best is None or lost < best[0]:
                best = (lost, at, both)
        _, at, both = best
        groups[at] = (both, groups[at][1] + size, groups[at][2] + members)
    return {member: pattern for pattern, _, members in groups.values() for member in members}


@pytest.mark.parametrize("seed", range(20))
def test_patterns_are_merged_as_the_plain_reference_does(seed):
    rng = np.random.default_rng(seed)
    patterns = np.unique(rng.integers(0, 3, (12, 4)), axis=0).astype(np.uint8)
    counts = rng.integers(1, 12, len(patterns))
    place, now = merge_patterns(patterns, counts, 5)
    assert {at: tuple(now[place[at]]) for at in range(len(patterns))} == merged_plainly(patterns, counts.tolist(), 5)
    sizes = Counter()
    for at, count in zip(place.tolist(), counts.tolist(), strict=True):
        sizes[at] += count
    assert min(sizes.values()) >= 5
    assert (now[place] >= patterns).all(), "a zero stays zero or is missing; what is missing stays so"


def test_a_pattern_is_merged_with_the_nearest_that_covers_it():
    patterns = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 1]], np.uint8)
    place, now = merge_patterns(patterns, np.array([2, 50, 90]), 5)
    assert place.tolist() == [1, 1, 2]
    assert now[1].tolist() == [0, 0, 1]
    assert lost_values(patterns, now[place], np.array([2, 50, 90])) == (2, 0)


def test_a_rare_pattern_that_none_covers_may_be_left():
    patterns = np.array([[0, 2], [0, 1], [1, 1]], np.uint8)
    assert merge_patterns(patterns, np.array([2, 50, 90]), 5, covered=True).place.tolist() == [0, 1, 2]
    place, now = merge_patterns(patterns, np.array([2, 3, 90]), 5)
    assert (place.tolist(), now[1].tolist()) == ([1, 1, 2], [0, 2])


def test_rare_patterns_are_masked_across_strata_rather_than_at_the_cost_of_others():
    """Two men and four women lack a value; zeros of others must not go for it."""
    strata = make_strata(["sex"], (), ["pay"], "test")
    counts = {(0, (sex,), code): n for sex, code, n in [
        ("m", 0, 40), ("m", 1, 30), ("m", 2, 2), ("w", 0, 50), ("w", 2, 4),
    ]}  # fmt: skip
    parts = make_parts(counts, 0, ("pay",), strata, True, 5)
    assert parts.patterns.ravel().tolist() == [0, 1, 0, 2]
    assert parts.sizes.tolist() == [40, 30, 50, 6]
    assert parts.places[("m",), 2] == parts.places[("w",), 2] == 3
    assert parts.report == (2, 0, 0, 5, 2, 6, 0, 0, 6)
    few = {(0, ("m",), 0): 40, (0, ("m",), 1): 2, (0, ("w",), 0): 50}
    parts = make_parts(few, 0, ("pay",), strata, True, 5)
    assert (parts.patterns.ravel().tolist(), parts.sizes.tolist()) == ([0, 0], [42, 50]), "two zeros are values"
    with pytest.raises(InputError, match="fewer than 5 records lack the same values"):
        make_parts({**few, (0, ("w",), 2): 1}, 0, ("pay",), strata, True, 5)


def test_a_pattern_that_is_rare_in_a_stratum_is_masked_with_the_same_of_the_nearest():
    """No value becomes zero for it; of strata as near, small ones are joined first; other rules are not mixed."""
    rules = split_rules(["if age < 15 then pay = 0"])[1]
    strata = make_strata(["sex", {"age": [15, 30, 65]}], rules, ["pay"], "test")
    there, zero = 0, 1
    counts = {
        (0, ("m", 0, True), zero): 50, (0, ("w", 0, True), zero): 50, (0, ("w", 0, True), there): 2,
        (0, ("m", 1, False), there): 3, (0, ("m", 1, False), zero): 40, (0, ("m", 2, False), there): 90,
        (0, ("w", 1, False), there): 70, (0, ("w", 2, False), there): 4, (0, ("w", 2, False), zero): 60,
        (0, ("w", 3, False), there): 1, (0, ("w", 3, False), zero): 30,
    }  # fmt: skip
    parts = make_parts(counts, 0, ("pay",), strata, (True,), 5)
    at = {name: parts.places[name] for name in parts.places}
    assert at[("w", 2, False), there] == at[("w", 3, False), there], "four and one are five"
    assert at[("m", 1, False), there] == at[("m", 2, False), there] != at[("w", 1, False), there]
    assert at[("w", 0, True), there] == at[("w", 0, True), zero], "two wages that the rule forbids become zero"
    assert (parts.report.values_to_zero, parts.report.values_to_missing) == (2, 0)
    assert parts.report.records_across == 4 + 1 + 3 + 90
    assert parts.sizes.sum() == sum(counts.values())
    assert parts.sizes.min() >= 5


def test_codes_of_patterns():
    values = np.array([[0.0, 5, np.nan], [1, 0, 0], [np.nan, 2, 0]])
    assert states(values, True).T.tolist() == [[1, 0, 2], [0, 1, 0], [2, 1, 1]]
    assert states(values, False).T.tolist() == [[0, 0, 2], [0, 0, 0], [2, 0, 0]]
    assert states(values, (True, False, False)).T.tolist() == [[1, 0, 2], [0, 0, 0], [2, 0, 0]]
    codes = pattern_codes(states(values, True))
    assert codes.tolist() == [1 + 2 * 9, 3, 2 + 3 + 9]
    assert patterns_of(codes, 3).tolist() == states(values, True).T.tolist()


def test_small_strata_join_the_nearest():
    gaps = np.abs(np.subtract.outer([0.0, 1, 5, 6, 20], [0.0, 1, 5, 6, 20]))
    assert join_strata(gaps, np.array([3, 40, 40, 40, 2]), 10).tolist() == [0, 0, 2, 3, 3]
    assert join_strata(gaps, np.array([3, 3, 3, 3, 3]), 100).tolist() == [0] * 5, "all, if there are no more"
    assert join_strata(gaps, np.array([3, 3, 40, 40, 40]), 7).tolist() == [0, 0, 0, 3, 4]


def test_shards_are_shared_by_small_parts_only():
    firsts, total = shard_firsts(np.array([1, 1, 3, 1, 1]), np.array([40, 50, 300, 70, 60]), 100)
    assert (firsts.tolist(), total) == ([0, 0, 1, 4, 5], 6)


def test_nearness_by_bands_and_taxonomies():
    assert Classing("age", edges=(15.0, 25, 65)).distances([0, 1, 3, None])[0].tolist() == [0, 1 / 3, 1, 1]
    tree = read_taxonomy({"land": {"coast": ["north", "east"], "inland": ["south"]}}, "test")
    assert Classing("region", tree=tree).distances(["north", "east", "south"])[0].tolist() == [0, 1 / 3, 2 / 3]
    assert Classing("sex").distances(["m", "w", None])[0].tolist() == [0, 1, 1]


def test_strata_of_a_block():
    rows = pa.table({"sex": ["m", "w", "m", None], "age": [14, 15, 80, None], "wage": [0, 0, 9, 1]})
    _, rules = split_rules(["net >= 0", "if age < 15 then wage = 0"])
    strata = make_strata(["sex", {"age": [15, 65]}], rules, ["wage"], "test")
    numbers, found = strata.of(rows)
    assert [found[one] for one in numbers] == [("m", 0, True), ("w", 1, False), ("m", 2, False), (None, None, False)]
    assert strata.columns == ("sex", "age")
    gaps = strata.distances([("m", 0, True), ("m", 2, True), ("m", 0, False)])
    assert gaps[0].tolist() == [0, 1, 1000], "strata with other rules are joined last"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if status = single then wage = 0", [True, False, False]),
        ("IF `status` != 'single' THEN wage = 0", [False, True, False]),
        ("if age >= 15 and status = married then wage = 0", [False, True, False]),
        ("if age < 15 then 2*wage <= 8", [True, False, False]),
    ],
)
def test_conditions(text, expected):
    rows = pa.table({"status": ["single", "married", None], "age": [14, 15, None], "wage": [1, 2, 3]})
    _, (rule,) = split_rules([text])
    assert rule.applies(rows).tolist() == expected
    parse_constraints([rule.constraint], ["wage"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("if status single then wage = 0", "must read COLUMN = VALUE"),
        ("if status = single wage = 0", "must read 'if COLUMN = VALUE then CONSTRAINT'"),
    ],
)
def test_rules_that_are_none(text, message):
    with pytest.raises(JobError, match=message):
        split_rules([text])


def test_a_missing_value_breaks_only_what_binds_it():
    values = np.array([[1.0, 1, np.nan], [1, 2, 2], [2, 2, np.nan], [np.nan, np.nan, -1]])
    names = ["net", "tax", "gross", "other"]
    assert breaks(parse_constraints(["net + tax = gross"], names), 1e-15, values).tolist() == [False, True, False]
    assert breaks(parse_constraints(["other >= 0"], names), 1e-15, values).tolist() == [False, False, True]


def test_values_stay_apart_from_zero():
    """By a plain rule: what would be rounded or held to zero is one unit, where the noise went, or else its own side."""
    rng = np.random.default_rng(1)
    values = rng.integers(-2, 3, 3000).astype(float)
    noisy = values + np.where(values == 0, 0.0, rng.normal(0, 1, 3000))
    noisy[:50] = 0.0
    for low, high in ((-np.inf, np.inf), (0.0, np.inf), (-128.0, 0.0), (-np.inf, 0.3)):
        fitting = (values >= low) & (values <= high)
        own, draws = values[fitting], noisy[fitting]

        def released(value, draw, low=low, high=high):
            draw = float(draw)
            if value == 0 or round(min(max(draw, low), high)) != 0:
                return draw
            side = np.sign(draw)
            return side if side != 0 and low <= side <= high else np.sign(value)

        expected = [released(*pair) for pair in zip(own, draws, strict=True)]
        np.testing.assert_array_equal(apart_from_zero(draws.copy(), own, 1.0, low, high), expected)


def test_reflection_and_its_bias():
    assert reflected(np.array([-1.0, 2, 11, 21, -11]), 0.0, 10.0).tolist() == [1, 2, 9, 1, 9]
    assert reflected(np.array([-1.0, 2]), 0.0, np.inf).tolist() == [1, 2]
    assert reflected(np.array([-1.0, 2]), -np.inf, 1.0).tolist() == [-1, 0]
    normals = np.random.default_rng(1).normal(size=400_000)
    for value in (0.0, 0.5, 3.0):
        measured = (reflected(value + 2 * normals, 0.0, np.inf) - value).mean()
        (expected,) = reflection_bias(np.array([value]), 2.0, 0.0, np.inf)
        assert measured == pytest.approx(expected, abs=0.012), "three standard errors"
