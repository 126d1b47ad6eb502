"""``dpmask attack``: a release attacked by its public folder and a register."""

import json

import pyarrow as pa
import pytest
from conftest import people, refinement_step
from method_examples import EXAMPLES, example

from dpmask.measures import RISKS

NOISE = [{"method": "noise", "columns": ["age", "income"], "scale": 0.05}]
COLUMNS = {
    "identifier": ["id", "children", "rate", "money", "born", "seen"],
    "quasi": ["age", "region"],
    "sensitive": ["income"],
    "plain": ["name", "member"],
}


@pytest.fixture(scope="module")
def noisy(once):
    once.lake()
    return once.run_once(mask=NOISE, columns=COLUMNS)


@pytest.fixture
def released(place, noisy):
    return place.copy_of(noisy)


def attacked(place, *options):
    return place.dpmask("attack", "release", "--register", "lake", "--paired-by", "private", *options)


def test_a_table_of_attacks(released):
    ended = attacked(released)
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert lines[0] == "600 released records, paired with the register by private folder"
    assert lines[1].split() == ["attack", "share", "rate", "95", "%", "interval", "guessing", "attacked", "known"]
    for name in ("linkage, all columns", "linkage, quasi-identifiers", "groups", "noise_filter, step 1"):
        assert any(line.startswith(name) for line in lines), name


def test_it_finds_what_the_run_reported(released):
    """The same attack as that of the gate, from outside."""
    found = json.loads(attacked(released, "--json", "-").out)
    result = json.loads((released.folder / "private" / "result.json").read_text())
    gate = next(one["values"] for one in result["measures"] if one["name"] == "gate")
    joint = [one for one in found["attacks"] if one["attack"] == "linkage, all columns"]
    assert max(one["rate"] for one in joint) == pytest.approx(gate["linkage"], abs=1e-12)
    assert joint[0]["columns"] == ["age", "income", "region"]
    assert gate["linkage"] > 0.5  # noise of a twentieth protects nobody
    assert all(one["low"] <= one["rate"] <= one["high"] for one in found["attacks"])


def test_labels_are_read_by_the_manifest(place):
    table = people(600).append_column("code", pa.array([f"c{n}" for n in range(600)]))
    place.lake(table)
    columns = {"identifier": ["id"], "quasi": ["age", "region", "children", "born"], "plain": ["code", "member"]}
    columns["identifier"] += ["income", "rate", "money", "name", "seen"]
    mask = [refinement_step(10, 5)]
    assert place.run(mask=mask, columns=columns).code == 0
    by_folder, by_column = (
        place.dpmask("attack", "release", "--register", "lake", "--paired-by", by, "--json", "-")
        for by in ("private", "code")
    )
    assert by_folder.code == by_column.code == 0, by_column.err
    rates = [
        [one["rate"] for one in ended.json["attacks"] if "linkage" in one["attack"]] for ended in (by_folder, by_column)
    ]
    assert rates[0] == pytest.approx(rates[1], abs=1e-9)
    assert rates[0][0] > 10 / 600  # guessing knows nothing of labels


WRONG = {
    "no release": (["attack", "lake", "--register", "lake", "--paired-by", "id"], 4, "is no dpmask release"),
    "position": (["attack", "release", "--register", "lake", "--paired-by", "position"], 2, "not in the order"),
    "no pairing": (["attack", "release", "--register", "lake", "--paired-by", "elsewhere"], 2, "no pairing of this"),
    "another register": (
        ["attack", "release", "--register", "other", "--paired-by", "private"],
        4,
        "none of the columns",
    ),
    "no register": (["attack", "release", "--register", "nowhere", "--paired-by", "private"], 4, "nowhere"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said(released, case):
    released.lake(pa.table({"x": list(range(600))}), name="other")
    arguments, code, text = WRONG[case]
    ended = released.dpmask(*arguments)
    assert ended.code == code, ended.err
    assert text in ended.err


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_attack_on_a_method_is_known_from_what_a_manifest_shows(name):
    """The method's own, though some of its parameters are withheld."""
    method = example(name)
    shown = {key: value for key, value in method.parameters().items() if key not in method.withheld}
    attacks = type(method)(**json.loads(json.dumps(shown))).attacks()
    assert attacks == method.attacks()
    assert set(attacks) <= set(RISKS)


def test_a_plan_counts_the_attacks_of_methods(place):
    """As many passes whether a job asks for the attack itself or leaves it to the gate; fewer without the attack."""
    place.lake()
    noise = {"method": "noise", "columns": ["income"], "scale": 0.5}
    asked = [{"measure": "noise_filter", "columns": ["income"], "scale": 0.5}]
    passes = {}
    for name, changes in {
        "left": {"mask": [noise], "measure": []},
        "asked": {"mask": [noise], "measure": asked},
        "none": {"mask": [{"method": "microaggregation", "columns": ["income"], "k": 5}], "measure": []},
        "none, asked": {"mask": [{"method": "microaggregation", "columns": ["income"], "k": 5}], "measure": asked},
    }.items():
        planned = place.dpmask("plan", place.job(**changes, policy=[]), "--json")
        assert planned.code == 0, planned.err
        passes[name] = planned.json["passes"]
    assert passes["left"] == passes["asked"]
    assert passes["none, asked"] - passes["none"] == 2
