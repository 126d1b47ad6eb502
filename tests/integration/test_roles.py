"""Roles by wildcards, columns that are left out, and the table of columns that a plan shows."""

import pyarrow as pa
import pytest
from conftest import people, write_lake

MASK = [{"method": "noise", "columns": ["age", "children", "income", "rate", "money"], "scale": 0.1}]
ROLES = {
    "identifier": ["id"],
    "drop": ["wgt_*", "seen"],
    "quasi": ["age", "children", "region", "born"],
    "sensitive": ["income", "rate", "money"],
    "weight": ["wgt_final"],
    "plain": ["name", "member"],
}


@pytest.fixture
def office(place):
    """With ten replicate weights beside the final one."""
    table = people(1000)
    for name in ("wgt_final", *(f"wgt_{n}" for n in range(10))):
        table = table.append_column(name, pa.array(range(1000, 2000)))
    write_lake(place.folder / "lake", table.set_column(1, "age", pa.array([0, 7, 9, 31] * 250, pa.int32())))
    return place


def test_patterns_stand_for_columns_that_have_no_role_of_their_own(office):
    ended = office.run("--json", columns=ROLES, mask=MASK)
    assert ended.code == 0, ended.err
    manifest, released = office.released()
    assert "wgt_final" in released.schema.names
    assert not {"id", "seen", "wgt_0", "wgt_9"} & set(released.schema.names)
    assert manifest["dropped"] == ["id", *(f"wgt_{n}" for n in range(10)), "seen"]


@pytest.mark.parametrize(
    ("roles", "mask", "message"),
    [
        ({"drop": ["seen", "wgt_*", "weight_*"]}, MASK, "the source has no column like 'weight_*'"),
        (
            {"drop": ["seen", "wgt_*"], "plain": ["name", "member", "wgt_1*"]},
            MASK,
            "'wgt_1*' and 'drop: wgt_*' both match column 'wgt_1'. Name it where it belongs",
        ),
        ({}, [{"method": "noise", "columns": ["wgt_3"], "scale": 0.1}], "column 'wgt_3' is declared as dropped"),
    ],
)
def test_what_does_not_fit_is_refused(office, roles, mask, message):
    ended = office.run(columns=ROLES | roles, mask=mask)
    assert ended.code == 2
    assert message in ended.err


def test_a_plan_shows_every_column(office):
    job = office.job(columns=ROLES, mask=MASK)
    ended = office.dpmask("plan", job, "--json")
    assert ended.code == 0, ended.err
    table = {one["name"]: one for one in ended.json["column_table"]}
    age = table["age"]
    assert (age["role"], age["type"], age["nulls"], age["zeros"], age["distinct"]) == ("quasi", "int32", 0, 0.25, 4)
    assert (age["low"], age["high"], age["masked_by"]) == (0, 31, ["noise"])
    assert (table["wgt_0"]["role"], table["wgt_0"]["masked_by"]) == ("drop", [])
    assert (table["wgt_0"]["low"], table["wgt_0"]["high"]) == (1000, 1100), "of the first records, to two digits"
    assert table["name"]["low"] is None
    shown = office.dpmask("plan", job)
    assert shown.code == 0
    assert "masked by" in shown.out
    assert "wgt_final" in shown.out
