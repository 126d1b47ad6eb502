"""What a refinement tells where records are dropped: bounds and values of who is left, and of nobody else."""

import json

import numpy as np
import pandas as pd
import pytest
from test_refinement_kernels import random_case

import dpmask
from dpmask.errors import DpmaskError
from dpmask.kernels.keys import RowKeys
from dpmask.kernels.refinement.dropped import contains, sorted_keys
from dpmask.masking.refinement import search

KINDS = {"any": {"ab": ["a", "b"], "c": [], "def": ["d", "e", "f"]}}


def told_numbers(fitted, name):
    """All intervals and edges that are published of a column, as pairs, and all edges."""
    solution = fitted.solution()
    found = set(zip(fitted.cuts[name], fitted.cuts[name][1:], strict=False))
    texts = [step["value"] for step in solution["refinements"] if step["attribute"] == name]
    nodes = [solution["trees"][name]]
    while nodes:
        texts.append(nodes[-1]["value"])
        nodes += nodes.pop().get("children", [])
    return found | {tuple(json.loads(text.replace(")", "]"))) for text in texts if text != "missing"}


def assert_only_of_who_is_left(frame, fitted, name):
    masked = fitted.mask(frame)
    kept = frame.loc[masked.index, name].dropna()
    low, high = fitted.method.domains[name]
    for start, end in told_numbers(fitted, name):
        assert {start, end} <= {low, high, *kept}
        assert kept.between(start, end, inclusive="left").any() or kept.empty
    labels = {f"[{start:g}, {end:g})" for start, end in zip(fitted.cuts[name], fitted.cuts[name][1:], strict=False)}
    if masked[name].notna().any():
        assert set(masked[name].dropna()) == labels


def dropping(frame, requirements, guided, share):
    names = dict.fromkeys(name for columns, _ in requirements for name in columns)
    return dpmask.TopDownRefinement(
        requirements=requirements,
        taxonomies={"kind": KINDS} if "kind" in names else {},
        domains={name: [0, 25] for name in ("age", "size") if name in names},
        guide={"column": "class"} if guided else "distortion",
        suppress_records=share,
    ).fit(frame, seed=0)


@pytest.mark.parametrize("quantiles", [False, True])
@pytest.mark.parametrize("guided", [True, False])
def test_bounds_are_those_of_records_left(guided, quantiles, limit):
    """Over random tables: every inner bound is a value of a record that is left, and every interval holds one."""
    if quantiles:
        limit(code_values=10, cut_places=7)
    dropped = 0
    for seed in range(12):
        frame, requirements = random_case(seed)
        fitted = dropping(frame, requirements, guided, [0.1, 0.3, 0.5][seed % 3])
        dropped += fitted.figures.dropped
        for name in fitted.method.domains:
            assert_only_of_who_is_left(frame, fitted, name)
    assert dropped > 50


def test_exact_incomes_of_dropped_people_are_not_bounds():
    """A dozen rich people of a rare job; cuts between them were made, and then all of them were dropped."""
    rng = np.random.default_rng(5)
    job = ["clerk"] * 200 + ["cook"] * 200 + ["judge"] * 12
    income = np.concatenate([rng.choice([20.4, 30.4], 400), rng.uniform(80, 180, 12).round(1)])
    frame = pd.DataFrame({"inc": income, "job": job, "sex": rng.choice(["f", "m"], 412)})
    frame["class"] = pd.cut(frame["inc"], [0, 70, 110, 140, 200]).astype(str)
    fitted = dpmask.TopDownRefinement(
        requirements=[(["inc", "job"], 5), (["job", "sex"], 7), (["inc", "sex"], 5)],
        domains={"inc": [0, 200]},
        guide={"column": "class"},
        suppress_records=0.05,
    ).fit(frame, seed=1)
    gone = frame.drop(fitted.mask(frame).index)
    assert len(gone) == 12
    assert_only_of_who_is_left(frame, fitted, "inc")
    published = json.dumps(fitted.solution()) + fitted.statement()
    assert not [value for value in gone["inc"] if f"{value:g}" in published]
    assert "judge" not in published


def test_a_missing_value_that_only_dropped_records_have_is_not_told():
    frame = pd.DataFrame({"kind": ["a", "b"] * 100 + [None] * 6, "age": [1.0, 2.0, 3.0, 4.0] * 50 + [None] * 6})
    frame["sex"] = ["f"] * 100 + ["m"] * 100 + ["f", "m"] * 3
    fitted = dpmask.TopDownRefinement(
        requirements=[(["kind", "sex"], 5), (["age", "sex"], 5)],
        taxonomies={"kind": KINDS},
        domains={"age": [0, 9]},
        suppress_records=0.05,
    ).fit(frame, seed=1)
    assert fitted.figures.dropped == 6
    assert "missing" not in json.dumps(fitted.solution())
    masked = fitted.mask(frame)
    assert masked.notna().all(axis=None)
    assert set(masked["age"]) == {"[0, 2)", "[2, 3)", "[3, 4)", "[4, 9)"}


def test_the_last_count_is_an_error_where_it_fails(monkeypatch):
    """Not an assertion, which may be switched off."""
    frame, _ = random_case(1)
    monkeypatch.setattr(search._Refining, "_accept", lambda *_: True)
    with pytest.raises(DpmaskError, match="last count of all groups"):
        dropping(frame, [(["town", "age"], 5)], True, 0.2)


def test_keys_among_others():
    """As sets of pairs, also where first lanes are shared."""
    rng = np.random.default_rng(2)
    keys, others = (RowKeys(*rng.integers(0, 20, (2, size)).astype(np.uint64)) for size in (200, 60))
    expected = [pair in set(zip(*others, strict=True)) for pair in zip(*keys, strict=True)]
    assert contains(keys, sorted_keys(others)).tolist() == expected
    assert not contains(keys, others.at(np.arange(0))).any()
