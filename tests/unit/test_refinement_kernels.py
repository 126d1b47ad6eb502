"""Refinement against its definition, on random tables of every kind of attribute; and what its parameters refuse."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from refinement_reference import Reference

import dpmask
from dpmask.engine.collection import Collection
from dpmask.engine.limits import limits
from dpmask.errors import InputError, JobError
from dpmask.kernels.refinement.cells import CellGroups, Sensitive, count_cells
from dpmask.kernels.refinement.derived import KnownCells, Refinement, largest_child, only_place, with_derived
from dpmask.kernels.refinement.grouping import group_rows, split_groups
from dpmask.masking.refinement.attributes import Ranged
from dpmask.masking.refinement.suppressed import Suppressed
from dpmask.table.taxonomy import Branch

A, B, C, D, E, F = ((leaf, ()) for leaf in "abcdef")
TREE = ("any", (("ab", (A, B)), C, ("def", (D, E, F))))


def as_mapping(branch):
    value, children = branch
    return {"value": value, "children": [as_mapping(child) for child in children]}


def random_case(seed, most=120):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(30, most))
    frame = pd.DataFrame(
        {
            "kind": rng.choice(list("abcdef"), rows, p=[0.3, 0.1, 0.2, 0.2, 0.15, 0.05]),
            "town": rng.choice(["x", "y", "z", "w"], rows, p=[0.4, 0.3, 0.2, 0.1]),
            "age": rng.integers(0, 20, rows).astype(float),
            "size": rng.choice([1.5, 2.5, 4.0], rows),
        }
    )
    if seed % 3 == 0:
        for name in ("kind", "town", "age"):
            frame.loc[rng.random(rows) < 0.25, name] = None
    frame["class"] = (frame["age"].fillna(5) / 7).astype(int).astype(str) + rng.choice(["", "q"], rows, p=[0.8, 0.2])
    sets = [["kind", "town", "age", "size"], ["kind", "town"], ["age", "size"], ["town", "age"], ["size"], ["kind"]]
    picked = rng.choice(len(sets), int(rng.integers(1, 4)), replace=False)
    requirements = [(sets[n], int(rng.integers(2, 9))) for n in sorted(picked)]
    return frame, requirements


def fitted(frame, requirements, guide, **options):
    names = dict.fromkeys(name for columns, _ in requirements for name in columns)
    method = dpmask.TopDownRefinement(
        requirements=requirements,
        taxonomies={"kind": as_mapping(TREE)} if "kind" in names else {},
        domains={name: [0, 25] for name in ("age", "size") if name in names},
        guide=guide,
        **options,
    )
    return method.fit(frame, seed=0)


def reference(frame, requirements, guided, allowed=0):
    names = dict.fromkeys(name for columns, _ in requirements for name in columns)
    kinds = {"kind": TREE, "town": None, "age": [0, 25], "size": [0, 25]}
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    covered = [
        (columns, k)
        for columns, k in requirements
        if not any(set(columns) < set(more) and k <= most for more, most in requirements)
    ]
    return Reference(records, {name: kinds[name] for name in names}, covered, list(frame["class"]), guided, allowed)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("guided", [True, False])
def test_against_the_definition(seed, guided):
    frame, requirements = random_case(seed)
    found = fitted(frame, requirements, {"column": "class"} if guided else "distortion")
    plain = reference(frame, requirements, guided)
    expected = plain.run()
    assert [(step.attribute, step.smallest) for step in found.steps] == [(name, small) for name, _, small in expected]
    assert [step.score for step in found.steps] == pytest.approx(
        [score for _, score, _ in expected], rel=1e-9, abs=1e-12
    )
    masked = found.mask(frame)
    for columns, k in requirements:
        ours = masked.groupby(columns, dropna=False).size()
        theirs = pd.DataFrame({name: list(map(str, plain.masked[name])) for name in columns}).groupby(columns).size()
        assert sorted(ours) == sorted(theirs)
        assert ours.min() >= k


def test_a_budget_of_no_records_takes_the_steps_without_one(monkeypatch):
    """On 40 tables one search gives the definition's sequence, scores and smallest groups, also if it might drop.

    A share of records that is less than one record allows none; the same cells are counted, and nothing is tried.
    """
    passes = []
    reduce = Collection.reduce

    def recorded(records, function, merge, label):
        passes.append((label, len(records.positions)))
        return reduce(records, function, merge, label)

    monkeypatch.setattr(Collection, "reduce", recorded)
    for seed in range(100, 140):
        frame, requirements = random_case(seed)
        guided = seed % 2 == 0
        guide = {"column": "class"} if guided else "distortion"
        without = fitted(frame, requirements, guide)
        counted, passes[:] = list(passes), []
        none = fitted(frame, requirements, guide, suppress_records=0.9 / len(frame))
        assert (none.steps, none.figures, none.cuts, none.dropped) == (
            without.steps,
            without.figures,
            without.cuts,
            None,
        )
        assert passes == counted
        assert not any(label == "refinement: drop" for label, _ in passes)
        passes.clear()
        if seed % 5 == 0:
            expected = reference(frame, requirements, guided).run()
            dropping = reference(frame, requirements, guided, allowed=0).run_dropping()
            assert [step[::2] for step in dropping] == [step[::2] for step in expected]
            assert [(step.attribute, step.smallest) for step in none.steps] == [step[::2] for step in expected]
            assert [step.score for step in none.steps] == pytest.approx(
                [s for _, s, _ in expected], rel=1e-9, abs=1e-12
            )


@cache
def usually(seed, suppress):
    return fitted(*random_case(seed), {"column": "class"}, suppress_records=suppress)


@pytest.mark.parametrize("suppress", [0.0, 0.05])
@pytest.mark.parametrize(
    "changed",
    [
        {"refinement_cells": 8},
        {"refinement_cells": 8, "refinement_shard_rows": 10},
        {"memory_share": 0.0},
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_limits_change_nothing(seed, changed, suppress):
    """Rows exchanged by group, coded again in every pass: the same result."""
    frame, requirements = random_case(seed)
    usual = usually(seed, suppress)
    with limits(**changed):
        found = fitted(frame, requirements, {"column": "class"}, suppress_records=suppress)
    assert found.steps == usual.steps
    assert replace(found.figures, alternatives=()) == replace(usual.figures, alternatives=())  # which need all cells
    assert found.mask(frame).equals(usual.mask(frame))


def by_group(cells, values):
    """The counts of each group's cells, by the nodes that it is masked to."""
    widths = sum(one.widths[cells.nodes[:, place]] for place, one in enumerate(values))
    places = zip(cells.nodes.tolist(), widths, np.cumsum(widths), strict=True)
    return {tuple(nodes): cells.counts[end - width : end].tolist() for nodes, width, end in places}


@pytest.mark.parametrize("sensitive", [Sensitive(), Sensitive((3, 0), (0, 5), 11)])
@pytest.mark.parametrize("seed", range(5))
def test_derived_cells_are_those_counted(seed, sensitive):
    """After each refinement the largest child's cells, by difference, are those of a count of all groups anew."""
    rng = np.random.default_rng(seed)
    codes, ones = rng.integers(0, rng.integers(2, 6, 4)[:, None], (4, 200)).astype(np.uint16), np.ones((6, 1), np.int64)
    leaves = [Branch(name) for name in "abcdef"]
    tree = Branch("any", (Branch("abc", tuple(leaves[:3])), Branch("def", tuple(leaves[3:]))))
    attributes = [Ranged("tree", ones, tree, False), Suppressed("town", ones, str), Ranged("other", ones, tree, False)]
    columns, groups, known = [0, 1, 2], None, None
    while open_ones := [(place, one) for place, each in enumerate(attributes) for one in each.candidates()]:
        place, candidate = open_ones[rng.integers(len(open_ones))]
        values = tuple(one.values for one in attributes)
        if known is None:
            groups = group_rows(codes, columns, values)
            counted = CellGroups(np.arange(len(groups.nodes)), values)
            known = KnownCells(values, *count_cells(codes, columns, groups, counted, sensitive))
        if rng.random() < 0.2:
            attributes[place].finish(candidate)
            continue
        last = Refinement(place, *attributes[place].refine(candidate))
        values = tuple(one.values for one in attributes)
        groups = split_groups(groups, codes[place], *last, values[place])
        derived, _ = largest_child(known, last, values[place])
        there = groups.nodes[:, place]
        others = [child for child in last.children if child != derived]
        counted = CellGroups(np.flatnonzero(np.isin(there, others)), values)
        own = CellGroups(np.flatnonzero(there == derived), only_place(values, place))
        parts = count_cells(codes, columns, groups, counted, sensitive, own)
        changed, known = with_derived(known, last, derived, values, *parts)
        anew = group_rows(codes, columns, values)
        (every,) = count_cells(codes, columns, anew, CellGroups(np.arange(len(anew.nodes)), values), sensitive)
        expected = by_group(every, values)
        assert by_group(known.cells, values) == expected
        assert by_group(changed, values) == {key: of for key, of in expected.items() if key[place] in last.children}


def test_no_column_ends_coarser_where_records_may_be_dropped():
    """On 50 tables: of the records that remain, each column tells at least as many apart as it does without drops."""
    finer = 0
    for seed in range(50):
        frame, requirements = random_case(seed)
        guide = {"column": "class"} if seed % 2 else "distortion"
        found = fitted(frame, requirements, guide, suppress_records=[0.02, 0.05, 0.2][seed % 3]).mask(frame)
        without = fitted(frame, requirements, guide).mask(frame).loc[found.index]
        values = {name: (without[name].nunique(dropna=False), found[name].nunique(dropna=False)) for name in found}
        assert all(before <= after for before, after in values.values()), (seed, values)
        finer += any(before < after for before, after in values.values())
    assert finer > 12


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("guided", [True, False])
def test_dropping_against_the_definition(seed, guided):
    """What is left is the largest set of records whose groups are all large enough, by trying every candidate."""
    frame, requirements = random_case(seed)
    share = [0.02, 0.05, 0.2][seed % 3]
    found = fitted(frame, requirements, {"column": "class"} if guided else "distortion", suppress_records=share)
    allowed = int(share * len(frame) + 1e-9)
    plain = reference(frame, requirements, guided, allowed)
    expected = plain.run_best()
    assert [(step.attribute, step.smallest) for step in found.steps] == [(name, small) for name, _, small in expected]
    assert [step.score for step in found.steps] == pytest.approx(
        [score for _, score, _ in expected], rel=1e-9, abs=1e-12
    )
    masked = found.mask(frame)
    assert set(masked.index) == plain.left
    assert {name: found.cuts[name] for name in found.method.domains} == {
        name: plain.edges(name) for name in found.method.domains
    }
    assert found.figures.dropped == len(frame) - len(masked) <= allowed
    for columns, k in requirements:
        assert masked.groupby(columns, dropna=False).size().min() >= k


SMALL = pd.DataFrame({"a": ["x", "y", None, "x"] * 10, "n": [1.0, 2.0, np.nan, 4.0] * 10, "c": [1] * 40})


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"requirements": []}, "requirements must be a list"),
        ({"requirements": [(["a", "a"], 2)]}, "a requirement must be"),
        ({"requirements": [(["a"], 0)]}, "a requirement must be"),
        ({"requirements": [(["a"], True)]}, "a requirement must be"),
        ({"requirements": [("a", 2)]}, "a requirement must be"),
        ({"taxonomies": {"b": None}}, "taxonomies names column 'b', which no requirement does"),
        ({"taxonomies": ["a"]}, "taxonomies must map columns"),
        ({"taxonomies": {"a": None}, "domains": {"a": [0, 1]}}, "has a taxonomy and a domain"),
        ({"domains": {"n": [3, 1]}}, "the lower one first"),
        ({"domains": {"n": [0, float("inf")]}}, "the lower one first"),
        ({"domains": {"n": ["1990-13-01", "2000-01-01"]}}, "two dates"),
        ({"domains": {"n": 5}}, "must be \\[low, high\\]"),
        ({"guide": {"clusters": 1}}, "clusters must be an integer from 2"),
        ({"guide": {"clusters": 3, "algorithm": "luck"}}, "algorithm must be"),
        ({"guide": {"clusters": 3, "columns": "a"}}, "columns must be a list"),
        ({"intervals": "middle"}, "intervals must be"),
    ],
)
def test_parameters_check_themselves(options, text):
    with pytest.raises(JobError, match=text):
        dpmask.TopDownRefinement(**{"requirements": [(["a", "n"], 2)], "domains": {}} | options)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"domains": {"n": [0, 4]}}, InputError, "values outside its domain in 10 records"),
        ({"domains": {}}, JobError, "column 'n' is double: declare its domain"),
        ({"domains": {"n": ["1990-01-01", "2000-01-01"]}}, JobError, "must be two numbers"),
        ({"requirements": [(["a", "n"], 41)]}, InputError, "40 records, fewer than k = 41"),
        ({"requirements": [(["a", "m"], 2)], "domains": {"m": [0, 9]}}, JobError, "no column 'm'"),
        ({"taxonomies": {"a": ["x"]}}, InputError, "the taxonomy lacks 'y' \\(10 records\\)"),
        ({"guide": {"column": "nobody"}}, JobError, "no column 'nobody'"),
    ],
)
def test_tables_are_checked(options, error, text):
    given = {"requirements": [(["a", "n"], 2)], "domains": {"n": [0, 5]}} | options
    with pytest.raises(error, match=text):
        dpmask.TopDownRefinement(**given).fit(SMALL, seed=1)


def test_missing_values_are_told_or_hidden():
    """As a value of their own where k allows it; otherwise all of a column's values are hidden with them."""
    told = dpmask.TopDownRefinement(requirements=[(["a", "n"], 10)], domains={"n": [0, 5]}).fit(SMALL, seed=1)
    masked = told.mask(SMALL)
    assert masked["n"].isna().equals(SMALL["n"].isna())
    assert masked["a"].isna().equals(SMALL["a"].isna())
    few = SMALL.assign(n=[np.nan] * 3 + [1.0] * 37)
    hidden = dpmask.TopDownRefinement(requirements=[(["n"], 10)], domains={"n": [0, 5]}).fit(few, seed=1)
    assert hidden.mask(few)["n"].isna().all()
    assert "'n' could not be refined" in hidden.warnings()[0]
    assert "taxonomy" not in hidden.warnings()[0]  # intervals have steps between
    flat = dpmask.TopDownRefinement(requirements=[(["a"], len(SMALL) - 1)]).fit(SMALL, seed=1)
    assert "give it a taxonomy" in flat.warnings()[0]


def test_one_value_and_one_row():
    """A constant column and a table of one record: nothing to refine, nothing to fail at."""
    constant = dpmask.TopDownRefinement(requirements=[(["c"], 5)], domains={"c": [0, 9]}).fit(SMALL, seed=1)
    assert (constant.steps, constant.cuts) == ((), {"c": [0.0, 9.0]})
    alone = dpmask.TopDownRefinement(requirements=[(["a"], 1)]).fit(SMALL.head(1), seed=1)
    assert alone.mask(SMALL.head(1))["a"].tolist() == ["x"]


def test_values_that_were_not_there_at_the_fit():
    fitted = dpmask.TopDownRefinement(requirements=[(["a"], 5)], taxonomies={"a": ["x", "y", "z"]}).fit(SMALL, seed=1)
    with pytest.raises(InputError, match="a value in 1 records"):
        fitted.mask(SMALL.head(1).assign(a="w"))
    suppressed = dpmask.TopDownRefinement(requirements=[(["a"], 5)]).fit(SMALL, seed=1)
    assert suppressed.mask(SMALL.head(5).assign(a="w"))["a"].tolist() == ["*"] * 5
    numbers = dpmask.TopDownRefinement(requirements=[(["c"], 5)], domains={"c": [0, 9]}).fit(SMALL, seed=1)
    with pytest.raises(InputError, match="outside its domain in 1 records"):
        numbers.mask(SMALL.head(1).assign(c=12))


def test_many_different_numbers_are_cut_at_quantiles(limit):
    """Cuts are at values that occur, and groups hold, though not every value is a place to cut."""
    limit(code_values=50, cut_places=16)
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"n": rng.normal(size=500)})
    found = dpmask.TopDownRefinement(requirements=[(["n"], 40)], domains={"n": [-9, 9]}).fit(frame, seed=1)
    edges = found.cuts["n"]
    assert len(edges) > 6
    assert set(edges[1:-1]) <= set(frame["n"])
    assert found.mask(frame)["n"].value_counts().min() >= 40
