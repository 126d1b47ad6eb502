"""Why records are at risk: rows that fit against plain counts, any partitioning; and what is written where."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pyarrow as pa
from conftest import write_lake

import dpmask
from dpmask.measures.risk.exposure import exposure
from dpmask.report.numbers import FIELDS, csv_of
from dpmask.table.table import as_table

COLUMNS = ["age", "region", "net"]


def table(rows=600):
    rng = np.random.default_rng(4)
    return pa.table(
        {
            "age": rng.integers(0, 30, rows),
            "region": rng.choice(["north", "south", "east"], rows),
            "net": rng.integers(0, 8, rows).astype(float),
        }
    )


def lake(folder, content, block_rows=10**6):
    return dpmask.read_lake(str(write_lake(folder, content)), block_rows=block_rows)


def noisy(content):
    net = content["net"].to_numpy() + np.random.default_rng(5).normal(0, 0.4, content.num_rows)
    return content.set_column(2, "net", pa.array(net))


def test_rows_that_fit_an_unmasked_record_are_those_equal_to_it(tmp_path):
    content = table()
    same = lake(tmp_path / "a", content)
    linked = dpmask.risk.distance_linkage(same, same, columns=COLUMNS)
    assert linked.riskiest
    assert "riskiest" not in linked.to_dict()
    assert "riskiest" not in repr(linked)
    found = exposure(same, same, columns=COLUMNS, linkage=linked, sensitive=["net", "region"])
    frame = content.to_pandas()
    sizes = frame.groupby(COLUMNS)["age"].transform("size")
    assert len(found.records) == 12
    assert [one.chance for one in found.records] == sorted(1 / sizes)[::-1][:12]
    for record in found.records:
        own, known = frame.iloc[record.position], []
        for step in record.steps:
            known.append(step.column)
            equal = (frame[known] == own[known]).all(axis=1).sum()
            assert (step.candidates, step.chance) == (equal, 1 / equal)
        assert record.rows == 600
    assert found.given_away.own == 1.0
    assert found.given_away.stranger < 0.6


def test_the_same_for_any_partitioning_and_where_it_runs(tmp_path, client):
    content = table()
    found = []
    for block_rows in (10**6, 170):
        original, masked = lake(tmp_path / "a", content, block_rows), lake(tmp_path / "b", noisy(content), block_rows)
        linked = dpmask.risk.distance_linkage(original, masked, columns=COLUMNS)
        found.append(exposure(original, masked, columns=COLUMNS, linkage=linked, sensitive=["net"]))
    assert found[0] == found[1]
    assert all(one.candidates >= 1 for record in found[0].records for one in record.steps)
    assert found[0].given_away.own > found[0].given_away.stranger


def test_what_a_run_writes_and_where(place):
    place.lake()
    assert place.run().code == 0
    (folder,) = (path.parent for path in place.folder.glob("private/*/report.html"))
    page = (folder / "records.html").read_text(encoding="utf-8")
    numbers = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert numbers["format"] == "dpmask report 1"
    assert numbers["verdict"]["allowed"]
    assert [one["question"] for one in numbers["headline"]] == [
        "Who could be found", "What could be learned", "What was lost",
    ]  # fmt: skip
    assert numbers["records"]
    for record in numbers["records"]:
        assert f"Record {record['position']:,}" in page
        assert record["known"][-1]["chance"] == record["chance"]
    rows = list(csv.DictReader((folder / "report.csv").read_text(encoding="utf-8").splitlines()))
    assert tuple(rows[0]) == FIELDS
    sections = {row["section"] for row in rows}
    assert sections >= {"run", "headline", "policy", "measure", "distribution", "record"}
    judged = {
        row["name"]: float(row["value"]) for row in rows if (row["section"], row["number"]) == ("policy", "judged")
    }
    assert judged == {one["rule"]: one["judged"] for one in numbers["policy"]}
    public = [path for path in (place.folder / "release").rglob("*") if path.is_file()]
    assert {path.name.split("-")[0] for path in public if "data" not in path.parts} == {
        "croissant",
        "dcat",
        "ddi",
        "manifest.json",
        "statement.md",
        "report.html",
    }
    for path in public:
        text = path.read_bytes()
        assert b"candidates" not in text
        assert b"records.html" not in text


def test_a_refused_run_says_what_to_do(place):
    place.lake()
    assert place.run(policy=["gate.linkage <= 0.0000001"]).code == 3
    page = next(place.folder.glob("private/*/report.html")).read_text(encoding="utf-8")
    order = [
        page.index(text)
        for text in ("Refused:", "Who could be found", "What to do", "Attacks on the release", "Sign-off")
    ]
    assert order[:4] == sorted(order[:4])
    assert "No single column decides" in page, "all are linked, whichever is left out"


def test_texts_that_a_spreadsheet_would_obey():
    numbers = {
        "name": "=cmd()", "rows": 3, "verdict": {"allowed": True}, "headline": [], "policy": [], "measures": [], "steps": [],
        "distributions": [{"column": "+x", "bars": [{"value": "@y", "before": -0.5, "after": 0.5}]}],
        "correlations": [], "records": [],
    }  # fmt: skip
    frame = pd.read_csv(io.StringIO(csv_of(numbers)))
    assert frame["name"].tolist() == ["'=cmd()", "'=cmd()", "'+x", "'+x"]
    assert frame["part"].tolist()[-1] == "'@y"
    assert frame["value"].tolist()[-2:] == [-0.5, 0.5]


def test_single_columns_of_many_are_ranked_as_one_by_one(monkeypatch):
    """By their order, where all are numbers; and by every distance."""
    rng = np.random.default_rng(3)
    names = [f"v{number}" for number in range(110)]
    values = rng.lognormal(size=(500, 5)) @ rng.lognormal(size=(5, 110))
    values[:, 3] = np.round(values[:, 3])
    original = pd.DataFrame(values, columns=names)
    masked = dpmask.NoiseAddition(columns=names, scale=0.3).fit(original, seed=1).mask(original)
    tables = [as_table(one, "test") for one in (original, masked)]
    linkage = dpmask.risk.distance_linkage(original, masked, columns=names)
    found = exposure(*tables, columns=names, linkage=linkage)
    monkeypatch.setattr("dpmask.measures.risk.exposure._single_points", lambda *_: None)
    assert exposure(*tables, columns=names, linkage=linkage) == found
    assert found.records
