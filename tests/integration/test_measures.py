"""Every measure of the registry keeps the contract, on a real cluster and on its own."""

import pickle

import numpy as np
import pandas as pd
import pytest

import dpmask
from dpmask.guide import page
from dpmask.measures import LOSSES, MEASURES, RISKS, find_measure
from dpmask.testing.measures import check_measure

PARAMETERS = {
    "groups": {"quasi": ["age", "region"], "sensitive": ["income"]},
    "households": {"household": "age", "columns": ["region", "income"], "sample": 30},
    "attribute_inference": {"columns": ["age", "hours"], "target": "income", "sample": 50},
    "noise_filter": {"scale": 0.1, "sample": 100},
    "rank_linkage": {"window": 0.1, "share": 0.9, "sample": 100},
    "repeated_linkage": {"columns": ["income", "age", "region"], "repeated": ["age", "region"]},
    "residual_linkage": {
        "columns": ["income", "hours"],
        "independents": ["age", "region"],
        "clusters": 2,
        "sample": 100,
    },
    "known_records": {"columns": ["income", "hours"], "known": 5},
    "distance_linkage": {"columns": ["income", "age", "region"]},
    "cluster_distance": {"clusters": 3, "starts": 1, "shift": 1e-5},
    "misclassification": {"clusters": 3, "starts": 1},
    "partition_agreement": {"clusters": 2, "repeats": 1},
}


@pytest.fixture(scope="module")
def tables():
    """Some people, and the same with noise; incomes have many digits, so that one in a message is found."""
    rng = np.random.default_rng(3)
    original = pd.DataFrame(
        {
            "income": rng.lognormal(9, 1, 300) + 1000,
            "hours": rng.normal(30, 8, 300),
            "age": rng.integers(20, 70, 300),
            "region": rng.choice(["northern", "southern", "western"], 300),
        }
    )
    noise = {name: original[name] + rng.normal(size=300) * original[name].std() / 10 for name in ("income", "hours")}
    return original, original.assign(**noise)


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_keeps_the_contract(name, tables, client):
    given = PARAMETERS.get(name, {})
    if name == "differencing":  # of an earlier release, which lacks some
        original, masked = tables
        other = masked.assign(income=2 * original["income"] - masked["income"])
        given = {"columns": ["income", "hours"], "labels": ["region"], "earlier": [other[:250]]}
    check_measure(find_measure(name), *tables, client=client, **given)


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_has_its_page_and_its_help(name):
    measure = find_measure(name)
    public = getattr(dpmask.risk if name in RISKS else dpmask.utility, name)
    assert public is measure.function
    assert page(name).startswith(f"# {name}:")
    for section in ("Parameters\n", "Returns\n", "Examples\n"):
        assert section in public.__doc__
    assert measure.result.about.definition
    assert "Any" not in str(public.__annotations__["return"])


def test_names_stay_callable(tables):
    """Neither importing a result's class nor unpickling a result puts a module in place of a function."""
    from dpmask.measures.utility.il1s import StandardisedLoss

    found = pickle.loads(pickle.dumps(dpmask.utility.il1s(*tables, columns=["income"])))
    assert isinstance(found, StandardisedLoss)
    assert dpmask.utility.il1s(*tables, columns=["income"]) == found


def test_public_modules_list_measures_only():
    assert dir(dpmask.risk) == sorted(dpmask.risk.__all__) == sorted(RISKS)
    assert dir(dpmask.utility) == sorted(dpmask.utility.__all__) == sorted([*LOSSES, "summarise"])
    with pytest.raises(AttributeError, match=r"module 'dpmask.risk' has no attribute 'luck'"):
        dpmask.risk.luck  # noqa: B018


def test_results_in_a_notebook(tables):
    risk = dpmask.risk.distance_linkage(*tables, columns=["income"], sample=100)
    assert risk.to_frame().set_index("number").loc["rate", "high"] == risk.interval[1]
    assert risk._repr_html_().count("<svg") == len(risk.judged)
    assert "guessing" in risk._repr_html_()
    assert "<script" not in risk._repr_html_()
    several = dpmask.utility.summarise(*tables, columns=["income", "hours"], measures=["il1s", "moments"])
    assert repr(several) == "SharedResults(il1s, moments; of income, hours)"
    assert several.to_frame().loc["moments"]["number"].tolist() == ["value", "means", "variances"]
    assert several._repr_html_().count("<table") == 2
