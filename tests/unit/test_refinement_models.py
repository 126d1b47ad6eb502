"""Models inside the search: against their definitions on random tables, in any mixture, and what is refused."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from models_reference import ModelReference
from scipy.optimize import linprog
from test_refinement_kernels import TREE, as_mapping, random_case

import dpmask
from dpmask.engine.limits import limits as changed_limits
from dpmask.errors import InputError, JobError
from dpmask.kernels.models import Condition, figures
from dpmask.table.encoders.category import CategoryEncoder
from dpmask.table.sensitive import SensitiveColumn
from dpmask.table.taxonomy import read_taxonomy

ILLS = ("any", (("lung", (("flu", ()), ("cold", ()))), ("HIV", ()), ("none", ())))
KINDS = {"kind": TREE, "town": None, "age": [0, 25], "size": [0, 25]}


def random_models(rng):
    all_models = [
        {"model": "distinct_l", "column": "ill", "l": int(rng.integers(2, 4))},
        {"model": "entropy_l", "column": "ill", "l": float(rng.choice([1.5, 2.0, 2.5]))},
        {
            "model": "recursive_l",
            "column": "ill",
            "c": float(rng.choice([1.0, 2.0, 4.0])),
            "l": int(rng.integers(2, 4)),
        },
        {"model": "confidence", "column": "ill", "values": {"HIV": float(rng.choice([0.2, 0.35])), "nobody": 0.1}},
        {"model": "confidence", "column": "ill", "values": {"flu": 0.6}, "most": 0.8},
        {"model": "confidence", "column": "pay", "most": float(rng.choice([0.3, 0.6]))},
        {"model": "t_closeness", "column": "pay", "t": float(rng.choice([0.15, 0.3])), "distance": "ordered"},
        {"model": "t_closeness", "column": "ill", "t": float(rng.choice([0.2, 0.4])), "distance": "equal"},
        {"model": "t_closeness", "column": "ill", "t": float(rng.choice([0.15, 0.3])), "distance": "hierarchical"},
        {"model": "distinct_l", "column": "pay", "l": 3},
    ]
    return [all_models[n] for n in rng.choice(len(all_models), int(rng.integers(1, 4)), replace=False)]


def model_case(seed):
    """A table, requirements with mixtures of models, and importances."""
    frame, pairs = random_case(seed, most=60)
    rng = np.random.default_rng(10_000 + seed)
    frame["ill"] = rng.choice(["flu", "cold", "HIV", "none"], len(frame), p=[0.3, 0.2, 0.15, 0.35])
    frame["pay"] = np.round(np.exp(rng.normal(size=len(frame))) * 100)
    if seed % 2:
        frame.loc[rng.random(len(frame)) < 0.1, ["ill"]] = None
        frame.loc[rng.random(len(frame)) < 0.1, ["pay"]] = np.nan
    requirements = []
    for columns, k in pairs:
        one = {"columns": columns, "k": min(k, 4)}
        if rng.random() < 0.8:
            one["models"] = random_models(rng)
        if len(columns) > 2 and rng.random() < 0.5:
            one["known"] = int(rng.integers(1, len(columns)))
        requirements.append(one)
    return frame, requirements, {"age": 3.0, "town": 0.5} if seed % 4 == 0 else {}


def method(frame, requirements, guide, importance, **options):
    names = dict.fromkeys(name for one in requirements for name in one["columns"])
    trees = {"kind": as_mapping(TREE)} if "kind" in names else {}
    if any(model["column"] == "ill" for one in requirements for model in one.get("models", ())):
        trees["ill"] = as_mapping(ILLS)
    return dpmask.TopDownRefinement(
        requirements=requirements,
        taxonomies=trees,
        domains={name: [0, 25] for name in ("age", "size") if name in names},
        guide=guide,
        importance={name: weight for name, weight in importance.items() if name in names},
        **options,
    )


def reference(frame, requirements, guided, importance):
    names = dict.fromkeys(name for one in requirements for name in one["columns"])
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    kinds = {name: KINDS[name] for name in names}
    return ModelReference(records, kinds, requirements, list(frame["class"]), guided, {"ill": ILLS}, importance)


def agrees_with_the_release(found, frame):
    """What the measure counts in the released table is what the search reports."""
    trees = {"ill": as_mapping(ILLS)}
    given = {"requirements": found.method.parameters()["requirements"], "taxonomies": trees}
    measured = dpmask.risk.groups(frame, found.mask(frame), **given)
    assert measured.unmet == 0
    assert measured.smallest >= 1
    for one in found.figures.models:
        part = measured.parts[f"{one.requirement}: {one.limited} (limit {one.limit:g})"]
        assert part == pytest.approx(one.figure, rel=1e-12)
    for name, size in found.figures.groups.items():
        assert (
            min(value for key, value in measured.parts.items() if key.startswith(f"{name}: smallest group of")) == size
        )


@pytest.mark.filterwarnings("ignore:TopDownRefinement")
@pytest.mark.parametrize("part", range(10))
def test_mixtures_of_models_against_their_definitions(part):
    """Steps, scores, smallest groups and worst figures of 200 random tables; no valid candidate is left at the end."""
    refined = 0
    for seed in range(20 * part, 20 * part + 20):
        frame, requirements, importance = model_case(seed)
        guided = seed % 3 > 0
        guide = {"column": "class"} if guided else "distortion"
        plain = reference(frame, requirements, guided, importance)
        expected = plain.run()
        if expected is None:
            with pytest.raises(InputError, match="before anything is refined"):
                method(frame, requirements, guide, importance).fit(frame, seed=0)
            continue
        found = method(frame, requirements, guide, importance).fit(frame, seed=0)
        assert [(step.attribute, step.smallest) for step in found.steps] == [one[::2] for one in expected], seed
        scores = [score for _, score, _ in expected]
        assert [step.score for step in found.steps] == pytest.approx(scores, rel=1e-9, abs=1e-12)
        refined += len(expected)
        if seed % 4 == 1:
            agrees_with_the_release(found, frame)
        for *_, masked in plain.candidates():
            assert not all(plain.counted(names, one, masked)[2] for names, one in plain.sets)
    assert refined > 20


def transported(p, q, costs):
    """The earth mover's distance by its definition, a linear program."""
    m = len(p)
    rows = np.kron(np.eye(m), np.ones(m)), np.kron(np.ones(m), np.eye(m))
    return linprog(costs.ravel(), A_eq=np.vstack(rows), b_eq=np.concatenate([p, q])).fun


def test_distances_are_what_it_costs_to_move_shares():
    """Equal, ordered and hierarchical distance against the linear program of Li et al. 2007, with missing values."""
    tree = read_taxonomy(as_mapping(ILLS), "test")
    known = {value: code for code, value in enumerate(tree.values())}
    levels = {"flu": ("lung", "any"), "cold": ("lung", "any"), "HIV": ("any",), "none": ("any",), None: ("any",)}
    names, rng = [*known, None], np.random.default_rng(5)
    heights = {"lung": 0.5, "any": 1.0}

    def apart(one, other):
        return 0.0 if one == other else min(heights[node] for node in set(levels[one]) & set(levels[other]))

    by_tree = np.array([[apart(one, other) for other in names] for one in names])
    in_order = np.abs(np.subtract.outer(np.arange(5), np.arange(5))) / 4
    for _ in range(20):
        counts = rng.integers(0, 20, 5) + np.eye(5, dtype=int)[0]
        q = rng.dirichlet(np.ones(5))
        column = SensitiveColumn(CategoryEncoder("ill", known, True), q, tree, False, None)
        conditions = {
            "equal": (Condition("t_closeness", 0, 5, 1.0, shares=q), 1.0 - np.eye(5)),
            "ordered": (Condition("t_closeness", 0, 5, 1.0, shares=q, steps=column.steps), in_order),
            "hierarchical": (Condition("t_closeness", 0, 5, 1.0, shares=q, tree=column.nodes), by_tree),
        }
        for condition, costs in conditions.values():
            expected = transported(counts / counts.sum(), q, costs)
            assert figures(counts[None], condition)[0] == pytest.approx(expected, abs=1e-7)


@pytest.mark.filterwarnings("ignore:TopDownRefinement")
@pytest.mark.parametrize(
    "changed",
    [
        {"refinement_cells": 8},
        {"refinement_cells": 8, "refinement_shard_rows": 10},
        {"frame_rows": 7},
        {"memory_share": 0.0},
    ],
)
@pytest.mark.parametrize("seed", [3, 6])
def test_partitions_and_limits_change_nothing(seed, changed):
    frame, requirements, importance = model_case(seed)
    usual = method(frame, requirements, {"column": "class"}, importance).fit(frame, seed=0)
    with changed_limits(**changed):
        found = method(frame, requirements, {"column": "class"}, importance).fit(frame, seed=0)
    assert (found.steps, found.figures.models, found.figures.stops) == (
        usual.steps,
        usual.figures.models,
        usual.figures.stops,
    )
    assert found.mask(frame).equals(usual.mask(frame))


@pytest.mark.filterwarnings("ignore:TopDownRefinement")
@pytest.mark.parametrize("seed", range(0, 40, 8))
def test_records_may_be_dropped_for_models(seed):
    """What is left keeps every requirement, as the measure counts it, and no more is dropped than allowed."""
    frame, requirements, _ = model_case(seed)
    for one in requirements:
        one["models"] = [model for model in one.get("models", ()) if model["model"] != "t_closeness"]
    if reference(frame, requirements, True, {}).run() is None:
        pytest.skip("broken as a whole")
    found = method(frame, requirements, {"column": "class"}, {}, suppress_records=0.1).fit(frame, seed=0)
    masked = found.mask(frame)
    assert found.figures.dropped == len(frame) - len(masked) <= 0.1 * len(frame)
    measured = dpmask.risk.groups(frame, masked, requirements=requirements, taxonomies={"ill": as_mapping(ILLS)})
    assert measured.unmet == 0


@pytest.mark.filterwarnings("ignore:TopDownRefinement")
@pytest.mark.parametrize("seed", range(1, 19, 2))
def test_stops_and_alternatives_are_counted_from_scratch(seed):
    """A candidate that a change of k or of columns is said to allow is valid with that change, and not without."""
    frame, requirements, importance = model_case(seed)
    guide = {"column": "class"}
    plain = reference(frame, requirements, True, importance)
    if plain.run() is None:
        return
    found = method(frame, requirements, guide, importance).fit(frame, seed=0)
    explained = found.explain()
    open_columns = {name for name, *_ in plain.candidates()}
    assert {one.column for one in found.figures.stops} == open_columns
    assert all(f"{column}: '" in explained for column in open_columns)
    for one in found.figures.alternatives:
        if one.change.startswith("without column "):
            column = one.change.removeprefix("without column ")
            plain.sets = [
                (tuple(name for name in names if name != column), each)
                for names, each in reference(frame, requirements, True, importance).sets
                if not ("known" in each and column in names)
            ]
            plain.sets = [(names, each) for names, each in plain.sets if names]
        elif one.change.startswith("k = "):
            k, name = one.change.removeprefix("k = ").split(" for ")
            plain.sets = [
                (names, each | {"k": int(k)} if label(each) == name and each["k"] == int(k) + 1 else each)
                for names, each in reference(frame, requirements, True, importance).sets
            ]
        else:
            continue
        gains = [plain_gain(plain, name, new) for name, _, _, new, masked in plain.candidates()
                 if name == one.column and all(plain.counted(names, each, masked)[2] for names, each in plain.sets)]  # fmt: skip
        assert any(gain == pytest.approx(one.gain, abs=1e-9) for gain in gains), (one, gains)


def label(one):
    columns = " + ".join(one["columns"])
    return (
        f"any {one['known']} of {columns}" if one.get("known", len(one["columns"])) < len(one["columns"]) else columns
    )


def plain_gain(plain, name, new):
    from refinement_reference import gain

    parts = {}
    for n, value in new.items():
        parts.setdefault(value, []).append(plain.classes[n])
    return plain.importance.get(name, 1.0) * gain(list(parts.values()))


PEOPLE = pd.DataFrame(
    {
        "age": np.arange(200) % 80,
        "sex": ["f", "m"] * 100,
        "job": [f"j{n * n % 7}" for n in range(200)],
        "ill": ["flu", "cold", "HIV", None] * 50,
        "pay": np.arange(200.0) * 10,
        "flag": [0, 1] * 100,
    }
)


def refined(**options):
    given = {"requirements": [{"columns": ["age", "sex", "job"], "k": 4}], "domains": {"age": [0, 80]}}
    return dpmask.TopDownRefinement(**given | options).fit(PEOPLE, seed=1)


@pytest.mark.filterwarnings("ignore:TopDownRefinement")
def test_fixed_recodings():
    """Declared bands are the finest, kept columns stay as they are, and too coarse ones are refused with the reason."""
    bands = [0, 18, 25, 35, 45, 65, 80]
    start = refined(start={"age": bands}, domains={}, requirements=[{"columns": ["age"], "k": 2}])
    assert start.cuts["age"] == bands
    kept = refined(keep=["sex", "job"])
    masked = kept.mask(PEOPLE)
    pd.testing.assert_frame_equal(masked[["sex", "job"]], PEOPLE[["sex", "job"]])
    assert set(kept.cuts) == {"age"}
    assert masked.groupby(["age", "sex", "job"]).size().min() >= 4
    assert kept.changes == kept.method.masks == ("age",)
    assert kept.claims() == [{"columns": ["age", "sex", "job"], "smallest_group": 4}]
    with pytest.raises(InputError, match=r"sex, job kept as declared leaves .* records in groups of fewer than k = 40"):
        refined(keep=["sex", "job"], requirements=[{"columns": ["age", "sex", "job"], "k": 40}])
    with pytest.raises(InputError, match=r"left with 4 values, and must .* at least 79. Of .* a group of 3 would"):
        refined(at_least={"age": 79})
    assert refined(at_least={"age": 2}).steps


@pytest.mark.filterwarnings("ignore:TopDownRefinement")
def test_many_sets_of_known_columns_have_stops_without_alternatives():
    """35 sets of three of seven columns: every set of three is large enough, as pandas counts it."""
    rng = np.random.default_rng(2)
    names = [f"c{n}" for n in range(7)]
    frame = pd.DataFrame({name: rng.choice(list("abcd"), 400, p=[0.5, 0.3, 0.15, 0.05]) for name in names})
    method = dpmask.TopDownRefinement(requirements=[{"columns": names, "k": 8, "known": 3}])
    found = method.fit(frame, seed=1)
    masked = found.mask(frame)
    assert found.figures.smallest == min(masked.groupby(list(three)).size().min() for three in combinations(names, 3))
    assert found.figures.stops
    assert not found.figures.alternatives
    assert all(one.group < 8 for one in found.figures.stops)


@pytest.mark.filterwarnings("ignore:TopDownRefinement")
def test_nothing_is_said_of_values_that_only_dropped_records_have():
    frame = pd.DataFrame({"a": ["x"] * 50 + ["y"] * 49 + ["z"], "b": ["p", "q"] * 49 + ["r", "s"]})
    tree = {"any": {"xy": ["x", "y"], "rest": {"zs": ["z", "w"], "v": None}}}
    method = dpmask.TopDownRefinement(requirements=[(["a", "b"], 5)], taxonomies={"a": tree}, suppress_records=0.02)
    found = method.fit(frame, seed=1)
    assert found.figures.dropped == 2
    assert "zs" not in found.explain()


@pytest.mark.filterwarnings("ignore:TopDownRefinement")
def test_what_is_important_is_refined_first():
    first = {name: refined(importance={name: 1000}).steps[0].attribute for name in ("age", "sex", "job")}
    assert first == {name: name for name in first}


@pytest.mark.parametrize(
    ("models", "text"),
    [
        (
            [{"model": "distinct_l", "column": "ill", "l": 5}],
            "whole table breaks .* distinct_l of ill is 4, the limit is 5",
        ),
        ([{"model": "confidence", "column": "ill", "values": {"HIV": 0.2}}], "confidence of ill = HIV is 0.25"),
        ([{"model": "confidence", "column": "ill", "values": {None: 0.2}}], "confidence of ill = missing is 0.25"),
        ([{"model": "confidence", "column": "flag", "values": {1: 0.2}}], "confidence of flag = 1 is 0.5"),
        ([{"model": "confidence", "column": "pay", "most": 0.05}], "confidence of pay is 0.1,"),
        ([{"model": "recursive_l", "column": "ill", "c": 0.3, "l": 2}], "recursive_l of ill is 0.333333, the limit"),
    ],
)
@pytest.mark.filterwarnings("ignore:TopDownRefinement")
def test_a_table_that_breaks_a_model_as_a_whole_is_refused_with_the_figure(models, text):
    with pytest.raises(InputError, match=text):
        refined(requirements=[{"columns": ["age"], "models": models}])


def test_a_limited_value_that_nobody_has_is_warned_about():
    models = [{"model": "confidence", "column": "ill", "values": {"hiv": 0.3, "HIV": 0.3}}]
    with pytest.warns(UserWarning, match="no record has 'hiv' in 'ill'"):
        found = refined(requirements=[{"columns": ["sex"], "models": models}], domains={})
    assert [one.limited for one in found.figures.models] == ["confidence of ill = HIV"]


def test_numbers_are_counted_in_bands():
    """Declared ones by where they begin, deciles otherwise, single values where there are at most ten."""
    model = {"model": "t_closeness", "column": "pay", "t": 1.0, "distance": "ordered"}
    given = [{"columns": ["age"], "k": 2, "models": [model]}]
    assert refined(requirements=given).bands == {"pay": [200.0 * n for n in range(1, 10)]}
    assert refined(requirements=given, bands={"pay": [500, 1500]}).bands == {"pay": [500.0, 1500.0]}
    assert refined(requirements=[{"columns": ["age"], "models": [model | {"column": "flag"}]}]).bands == {}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"requirements": [{"columns": ["age"], "models": [{"model": "distinct", "column": "ill"}]}]}, "Did you mean 'distinct_l'"),
        ({"requirements": [{"columns": ["age"], "models": [{"model": "distinct_l", "column": "ill", "l": 1}]}]}, "integer >= 2"),
        ({"requirements": [{"columns": ["age"], "models": [{"model": "entropy_l", "column": "age", "l": 2}]}]}, "beside the requirement's own"),
        ({"requirements": [{"columns": ["age"], "models": [{"model": "confidence", "column": "ill"}]}]}, "most: a share"),
        ({"requirements": [{"columns": ["age"], "models": [{"model": "t_closeness", "column": "ill", "t": 2}]}]}, "t: a share"),
        ({"requirements": [{"columns": ["age"], "models": [{"model": "t_closeness", "column": "ill", "t": 0.2, "distance": "ordered"}]}]}, "has no order"),
        ({"requirements": [{"columns": ["age"], "models": [{"model": "t_closeness", "column": "ill", "t": 0.2, "distance": "hierarchical"}]}]}, "needs a tree"),
        ({"requirements": [{"columns": ["age"], "k": 2, "models": [{"model": "t_closeness", "column": "ill", "t": 0.2}]}], "suppress_records": 0.1}, "suppress_records: 0"),
        ({"requirements": [{"columns": ["age", "sex"], "k": 2, "known": 3}]}, "known must be an integer from 1 to 2"),
        ({"requirements": [{"columns": ["age", "sex"], "k": 2, "of": "families"}]}, "a requirement must be"),
        ({"requirements": [{"columns": ["age", "sex"], "k": 2, "of": "households"}]}, "household"),
        ({"requirements": [{"columns": ["age"], "k": 2, "of": "households"}], "household": "home", "search": "mondrian"}, "for search: one_cut"),
        ({"requirements": [{"columns": ["age"]}]}, "a requirement must be"),
        ({"importance": {"age": 0}}, "importance of 'age' must be a number > 0"),
        ({"importance": {"nobody": 1}}, "importance names column 'nobody'"),
        ({"at_least": {"age": 0}}, "at_least of 'age' must be a number >= 1"),
        ({"keep": ["nobody"]}, "keep must list some columns"),
        ({"keep": ["age"]}, "'age' is kept as it is, so that it has no domains"),
        ({"start": {"age": [0, 5, 3]}}, "start of 'age' must be the edges"),
        ({"start": {"age": [0, 5, 90]}}, "must begin and end with its domain"),
        ({"bands": {"pay": [3, 1]}}, "must be rising"),
    ],
)  # fmt: skip
def test_parameters_are_checked(options, text):
    with pytest.raises(JobError, match=text):
        refined(**options)


def test_jobs_with_k_alone_are_spelled_as_before():
    """Draws are bound to the parameters: what is not asked for must not appear among them."""
    method = dpmask.TopDownRefinement(requirements=[(["sex", "job"], 3)])
    assert set(method.parameters()) == {
        "requirements",
        "taxonomies",
        "domains",
        "guide",
        "intervals",
        "suppress_records",
    }
    assert method.parameters()["requirements"] == ({"columns": ["sex", "job"], "k": 3},)
