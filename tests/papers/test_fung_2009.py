"""Fung, Wang, Wang and Hung 2009, "Privacy-preserving data publishing for cluster analysis": its example, number by number."""

import pandas as pd
import pytest

import dpmask

EDUCATION = {
    "ANY_Edu": {
        "Secondary": {"Junior Sec.": ["9th", "10th"], "Senior Sec.": ["11th", "12th"]},
        "University": {"Bachelors": None, "Grad School": ["Masters", "Doctorate"]},
    }
}
GENDER = {"ANY_Gender": ["M", "F"]}
TABLE_1 = [  # education, gender, age, records of C1, records of C2
    ("9th", "M", 30, 0, 3),
    ("10th", "M", 32, 0, 4),
    ("11th", "M", 35, 2, 3),
    ("12th", "F", 37, 3, 1),
    ("Bachelors", "F", 42, 4, 2),
    ("Bachelors", "F", 44, 4, 0),
    ("Masters", "M", 44, 4, 0),
    ("Masters", "F", 44, 3, 0),
    ("Doctorate", "F", 44, 1, 0),
]
REQUIREMENTS = [(["education", "gender"], 4), (["gender", "age"], 11)]


@pytest.fixture(scope="module")
def table_1():
    rows = [
        (education, gender, age, label)
        for education, gender, age, *counts in TABLE_1
        for label, count in zip(("C1", "C2"), counts, strict=True)
        for _ in range(count)
    ]
    return pd.DataFrame(rows, columns=["education", "gender", "age", "class"])


@pytest.fixture(scope="module")
def fitted(table_1):
    method = dpmask.TopDownRefinement(
        requirements=REQUIREMENTS,
        taxonomies={"education": EDUCATION, "gender": GENDER},
        domains={"age": [1, 99]},
        guide={"column": "class"},
    )
    return method.fit(table_1, seed=0)


def test_example_4_2_refinements(fitted):
    """In the order of their scores; the paper prints the last two in the other order."""
    assert [(step.attribute, step.value) for step in fitted.steps] == [
        ("age", "[1, 99)"),
        ("education", "ANY_Edu"),
        ("education", "Secondary"),
        ("education", "University"),
        ("education", "Senior Sec."),
    ]
    scores = [0.015585, 0.014294, 0.033856, 0.102187, 0.022773]
    assert [step.score for step in fitted.steps] == pytest.approx(scores, abs=5e-7)
    assert [step.smallest for step in fitted.steps] == [12, 12, 7, 7, 4]


def test_example_4_2_solution_set(fitted):
    assert fitted.cuts == {
        "education": ["11th", "12th", "Bachelors", "Grad School", "Junior Sec."],
        "gender": ["ANY_Gender"],
        "age": [1, 37, 99],
    }


def test_table_2(fitted, table_1):
    masked = fitted.mask(table_1)
    found = masked.groupby(["education", "gender", "age"]).size().to_dict()
    assert found == {
        ("Junior Sec.", "ANY_Gender", "[1, 37)"): 7,
        ("11th", "ANY_Gender", "[1, 37)"): 5,
        ("12th", "ANY_Gender", "[37, 99)"): 4,
        ("Bachelors", "ANY_Gender", "[37, 99)"): 10,
        ("Grad School", "ANY_Gender", "[37, 99)"): 8,
    }
    assert masked["class"].equals(table_1["class"])
