"""dpmask taxonomy check, and the taxonomies that come with the jobs."""

from pathlib import Path

import pyarrow as pa
import pytest

from dpmask.table.taxonomy import read_taxonomy

JOBS = Path(__file__).parents[2] / "jobs"


def test_a_tree_that_covers_the_lake(place):
    place.lake()
    (place.folder / "region.yaml").write_text("land: {coast: [north, east], inland: [south]}", encoding="utf-8")
    ended = place.dpmask("taxonomy", "check", "region.yaml", "lake")
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[:3] == ["land: 600", "  coast: 400", "    north: 200"]
    assert "3 values on 3 levels, 3 of them in the lake; 600 of 600 records covered, 0 missing" in ended.out


def test_a_tree_that_lacks_values(place):
    """Rare values are counted, not told."""
    values = ["a"] * 50 + ["b"] * 12 + ["secret"] * 3
    place.lake(pa.table({"kind": values}), files=1)
    (place.folder / "tree.yaml").write_text("all: [a]", encoding="utf-8")
    ended = place.dpmask("taxonomy", "check", "tree.yaml", "lake", "--column", "kind")
    assert ended.code == 4
    assert "lacks 'b' (12 records) and 1 values in 3 records." in ended.err
    assert "secret" not in ended.err + ended.out


@pytest.mark.parametrize(
    "path", sorted((JOBS / "refined_adult" / "taxonomies").glob("*.yaml")), ids=lambda path: path.stem
)
def test_trees_for_adult_cover_it(path, reference):
    import pyarrow.parquet as pq

    values = set(pq.read_table(reference / "adult.parquet").column(path.stem).to_pylist())
    assert values - {"?"} <= set(read_taxonomy(str(path), "test").values())
