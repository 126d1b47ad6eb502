"""The gate is closed to plain columns that identify people together, or give away what is masked, until they are accepted."""

import numpy as np
import pyarrow as pa
import pytest
from conftest import people

REASON = "invented people, made for a test"
DROPPED = ["id", "name", "member", "born", "seen", "children", "money", "rate"]
MASK = [{"method": "noise", "columns": ["age", "income"], "scale": 3.0}]
COLUMNS = {"identifier": DROPPED, "quasi": ["age"], "sensitive": ["income"]}
JOB = {"mask": MASK, "accept": {}, "policy": ["gate.linkage <= 1", "gate.attacks <= 1"]}
PEOPLE = 600


def with_columns(**columns):
    """The people with more columns."""
    table = people()
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    return table


def declared(*plain, **changes):
    return JOB | {"columns": COLUMNS | {"plain": ["region", *plain]}} | changes


def income():
    return np.nan_to_num(people()["income"].to_numpy(zero_copy_only=False).astype(float))


def test_columns_that_identify_together_are_named_together(place):
    """Two of thirty and twenty values: each value has many people, each pair one."""
    rng = np.random.default_rng(1)
    street, shoe = rng.integers(0, 30, PEOPLE), rng.integers(0, 20, PEOPLE)
    place.lake(with_columns(street=street, shoe=shoe, pet=rng.integers(0, 2, PEOPLE)))
    ended = place.run(**declared("street", "shoe", "pet"))
    assert ended.code == 3
    assert "street: Together with shoe it identifies people" in ended.err
    assert "pet" not in ended.err
    assert place.run("--overwrite", **declared("street", "shoe", "pet", accept={"street": REASON})).code == 0


TELLING = {
    "a rescaled copy": lambda: np.floor(income() / 700) * 7,
    "its rank": lambda: np.argsort(np.argsort(income())) // 20,
    "a text": lambda: [f"band {int(one // 700)}" for one in income()],
}


@pytest.mark.parametrize("what", TELLING)
def test_a_column_that_tells_what_is_masked_is_refused_until_it_is_accepted(place, what):
    place.lake(with_columns(copy=TELLING[what]()))
    for command in ("run", "plan"):
        ended = place.dpmask(command, place.job(**declared("copy")))
        assert ended.code == 3, ended.out
        assert "It gives income away, which is masked" in ended.err
        assert "accept" in ended.err
    assert place.run(**declared("copy", accept={"copy": REASON})).code == 0


def test_a_code_of_a_masked_category_is_refused(place):
    regions = people()["region"].to_pylist()
    codes = {name: number for number, name in enumerate(sorted(set(regions)))}
    place.lake(with_columns(code=[codes[one] for one in regions]))
    labels = {"method": "refinement", "requirements": [{"columns": ["region"], "k": 5}], "taxonomies": {}}
    said = declared("code", mask=[*MASK, labels])
    said["columns"] = COLUMNS | {"quasi": ["age", "region"], "plain": ["code"]}
    ended = place.run(**said)
    assert ended.code == 3
    assert "code: It gives region away, which is masked" in ended.err


def test_parts_of_a_masked_sum_are_refused_together(place):
    """Neither part shows much, their sum everything."""
    rng = np.random.default_rng(2)
    part = np.round(rng.normal(0, 4, PEOPLE)) * 4000.0
    place.lake(with_columns(first=part, rest=np.round(income() / 4000) * 4000 - part))
    ended = place.run(**declared("first", "rest"))
    assert ended.code == 3
    assert "first: With rest it gives income away, which is masked" in ended.err


def test_what_tells_nothing_is_released(place):
    place.lake(with_columns(shoe=np.random.default_rng(3).integers(0, 20, PEOPLE)))
    assert place.run(**declared("shoe")).code == 0
