"""Refinement against its definition, on random tables of every kind of attribute; and what its parameters refuse."""

import numpy as np
import pandas as pd
import pytest
from refinement_reference import Reference

import dpmask
from dpmask.masking import refinement_rounds

A, B, C, D, E, F = ((leaf, ()) for leaf in "abcdef")
TREE = ("any", (("ab", (A, B)), C, ("def", (D, E, F))))


def as_mapping(branch):
    value, children = branch
    return {"value": value, "children": [as_mapping(child) for child in children]}


def random_case(seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(30, 120))
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


def reference(frame, requirements, guided):
    names = dict.fromkeys(name for columns, _ in requirements for name in columns)
    kinds = {"kind": TREE, "town": None, "age": [0, 25], "size": [0, 25]}
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    covered = [
        (columns, k)
        for columns, k in requirements
        if not any(set(columns) < set(more) and k <= most for more, most in requirements)
    ]
    return Reference(records, {name: kinds[name] for name in names}, covered, list(frame["class"]), guided)


@pytest.mark.parametrize("seed", range(24))
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


@pytest.mark.parametrize("seed", range(6))
def test_a_small_budget_changes_nothing(seed, monkeypatch):
    """Groups that meet in shards give the same refinements and scores as cells that are added up."""
    frame, requirements = random_case(seed)
    usual = fitted(frame, requirements, {"column": "class"})
    monkeypatch.setattr(refinement_rounds, "CELL_BUDGET", 8)
    assert fitted(frame, requirements, {"column": "class"}).steps == usual.steps
