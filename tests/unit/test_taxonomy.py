"""Taxonomies of every form, what is wrong with them, and how a lake is checked against one."""

import pytest

from dpmask.errors import JobError
from dpmask.table.taxonomy import read_taxonomy

TREE = {
    "value": "any",
    "children": [{"value": "ab", "children": [{"value": "a"}, {"value": "b"}]}, {"value": "c"}],
}
FORMS = {
    "tree.json": '{"attribute": "x", "tree": {"value": "any", "children": [{"value": "ab", "children": [{"value": "a"}, '
    '{"value": "b"}]}, {"value": "c"}]}}',
    "tree.yaml": "any:\n  ab: [a, b]\n  c:\n",
    "tree.yml": "any: [{ab: [a, b]}, c]\n",
    "tree.csv": "a;ab;any\nb;ab;any\nc;c;any\n",
}


@pytest.mark.parametrize("name", FORMS)
def test_forms(tmp_path, name):
    path = tmp_path / name
    path.write_text(FORMS[name], encoding="utf-8")
    tree = read_taxonomy(str(path), "test")
    assert tree.to_dict() == TREE
    assert (list(tree.values()), tree.leaves, tree.levels) == (["a", "b", "c"], 3, 3)
    assert read_taxonomy(TREE, "test") == tree


def test_names():
    """Numbers and truth values as the data spell them; several roots get one of their own."""
    assert list(read_taxonomy({"all": [1, True, "é"]}, "test").values()) == ["1", "true", "é"]
    assert read_taxonomy(["a", "b"], "test").value == "*"


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("gone.yaml", None, "there is no such file"),
        ("bad.yaml", "a: [", "is not valid YAML"),
        ("bad.json", "{", "is not valid JSON"),
        ("bad.csv", "a;b\nc\n", "the same number of parts"),
        ("twice.yaml", "any: [a, a]", "names 'a' more than once"),
        ("none.yaml", "any: [[null]]\nb: {null: a}", "must be text or a number"),
    ],
)
def test_what_is_wrong(tmp_path, name, text, told):
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(JobError, match=told):
        read_taxonomy(str(tmp_path / name), "test")


def test_of_the_reference_data(reference):
    """The authors' trees and ARX's have the leaves that the data's description counts."""
    leaves = {"education": 16, "marital-status": 7, "occupation": 14, "race": 5, "sex": 2, "workclass": 8}
    for name, count in leaves.items():
        assert read_taxonomy(str(reference / "taxonomies" / "adult" / f"{name}.json"), "test").leaves == count
        table = reference / "taxonomies" / "arx" / f"adult_hierarchy_{name}.csv"
        assert read_taxonomy(str(table), "test").leaves == count
