"""Rotations in a job, after another step: what they look at, and what they refuse."""

import numpy as np
import pyarrow as pa
import pytest

from dpmask.lake import table as tables

HYBRID = [
    {"method": "membership_transform", "columns": ["age", "income"], "function": "s"},
    {"method": "rotation", "columns": ["age", "income"]},
]


def test_a_rotation_after_another_step_needs_no_pass_of_its_own(place, monkeypatch):
    """The release is the same as with one; a pass is made where some records leave open what it would find."""
    labels = []
    reduce = tables.Table.reduce

    def noted(self, columns, function, merge, label):
        labels.append(label)
        return reduce(self, columns, function, merge, label)

    monkeypatch.setattr(tables.Table, "reduce", noted)
    numbers = np.arange(3000)
    place.lake(pa.table({"age": numbers % 90, "income": numbers * 3.5}))
    roles = {"quasi": ["age"], "sensitive": ["income"]}
    assert place.run(mask=HYBRID, columns=roles).code == 0
    assert labels == ["membership: bounds", "rotation: look"]
    released = place.bytes()
    monkeypatch.setattr("dpmask.masking.rotation.RandomRotation._surely_even", lambda self, source: None)
    assert place.run(mask=HYBRID, columns=roles, target="other").code == 0
    assert labels[2:] == ["membership: bounds", "rotation: range"]
    assert place.bytes("other") == released


@pytest.mark.parametrize(
    ("income", "text"),
    [
        (lambda n: pa.array(np.where(n == 1100, np.nan, n.astype(float))), "'income' has missing or infinite values"),
        (lambda n: pa.array(n.astype(float), mask=n == 1100), "'income' is missing in 1 records"),
        (lambda n: pa.array(n.astype(float)), "'income' is constant"),
    ],
)
def test_what_a_rotation_after_another_step_refuses(place, income, text):
    """A value that is missing far from the records that are looked at; and a column that a step made constant."""
    numbers = np.arange(3000)
    place.lake(pa.table({"age": numbers % 90, "income": income(numbers)}))
    bounds = {"bounds": {"income": [1e6, 2e6]}} if "constant" in text else {}
    roles = {"quasi": ["age"], "sensitive": ["income"]}
    ended = place.run(mask=[HYBRID[0] | bounds, HYBRID[1]], columns=roles)
    assert ended.code == 4
    assert text in ended.err
    assert not (place.folder / "release").exists()
