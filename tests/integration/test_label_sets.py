"""What released labels stand for: a refinement says it, jobs and evaluate attack by it, integer codes with a taxonomy too."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from conftest import people, refinement_step
from linkage_reference import linked, standardised

import dpmask
from dpmask.table.label_sets import through_steps

TREE = {"any": {"low": ["0", "1"], "high": ["2", "3", "4"]}}


def persons(rows=400, seed=3):
    rng = np.random.default_rng(seed)
    towns = np.array(["a", "b", "c", "d", "e", None], object)
    return pd.DataFrame(
        {
            "age": rng.integers(0, 100, rows),
            "children": rng.integers(0, 5, rows),
            "town": towns[np.minimum(rng.geometric(0.4, rows) - 1, 5)],
            "born": pd.to_datetime("1970-01-01") + pd.to_timedelta(rng.integers(0, 9000, rows), "D"),
            "income": rng.lognormal(9, 1, rows).round(2),
        }
    ).astype({"born": "datetime64[s]"})


def refined(frame, form="label", k=8):
    method = dpmask.TopDownRefinement(
        requirements=[(["age", "children"], k), (["town", "born"], k)],
        taxonomies={"children": TREE},
        domains={"age": [0, 100], "born": ["1970-01-01", "2000-01-01"]},
        intervals=form,
    )
    fitted = method.fit(frame, seed=1)
    return fitted, fitted.mask(frame)


def inside(sets, value, label):
    """Whether a label may stand for a value, written plainly."""
    value = None if pd.isna(value) else value
    if label is None:
        return value is None
    members = sets.get(label, [label])
    if members is None:
        return str(value) not in {str(one) for other in sets.values() for one in other or ()}
    for one in members:
        if isinstance(one, str) and one.startswith("["):
            low, high = one.strip("[)").split(", ")
            found = low <= str(value)[:10] < high if "-" in low else float(low) <= value < float(high)
        else:
            found = one is None if value is None else one == str(value)
        if found:
            return True
    return False


@pytest.mark.parametrize("form", ["label", "midpoint"])
def test_every_value_is_in_the_set_of_its_label_and_in_no_other(form):
    frame = persons()
    fitted, masked = refined(frame, form)
    sets = fitted.label_sets()
    assert set(sets) == {"age", "children", "town", "born"}
    assert sets["town"]["*"] is None
    for column in ("age", "children", "town", *(["born"] if form == "label" else [])):
        labels = {None if pd.isna(one) else one for one in masked[column]}
        assert len(labels) > 1
        for value, own in zip(frame[column], masked[column], strict=True):
            texts = {
                one if one is None else repr(float(one)) if column == "age" and form == "midpoint" else one
                for one in labels
            }
            fits = {one for one in texts if inside(sets[column], value, one)}
            own_text = None if pd.isna(own) else repr(float(own)) if column == "age" and form == "midpoint" else own
            assert fits == {own_text}


@pytest.mark.parametrize("form", ["label", "midpoint"])
def test_linkage_reads_labels_as_their_sets(form):
    frame = persons()
    fitted, masked = refined(frame, form)
    masked = masked.assign(income=frame["income"] * 1.3 + 500 * np.sin(frame["income"]))
    columns = ["children", "town", "age", "income"]
    sets = {name: one for name, one in fitted.label_sets().items() if name in columns}
    found = dpmask.risk.distance_linkage(frame, masked, columns=columns, sets=sets)
    squares = np.zeros((len(frame), len(masked)))
    labels = masked["age"] if form == "label" else masked["age"].map(lambda one: repr(float(one)))
    for column, released in (("children", masked["children"]), ("town", masked["town"]), ("age", labels)):
        for label in released.unique():
            here = released.isna() if label is None else released == label
            outside = [not inside(sets[column], value, label) for value in frame[column]]
            gap = np.array(outside, float)
            if column == "age":
                low, high = map(float, sets["age"][label][0].strip("[)").split(","))
                sd = frame["age"].std(ddof=0)
                gap *= np.maximum(np.maximum(low - frame["age"], frame["age"] - high) / sd, 0.001).to_numpy()
            squares[:, here] += (gap**2)[:, None]
    squares += np.subtract.outer(*(standardised(one["income"].to_numpy()) for one in (frame, masked))) ** 2
    assert found.known[-1] == pytest.approx(linked(squares, np.arange(len(frame))).mean(), abs=1e-12)


def test_dates_are_compared_by_day():
    frame = persons()
    fitted, masked = refined(frame)
    sets = {"born": fitted.label_sets()["born"]}
    by_labels = dpmask.risk.distance_linkage(frame, masked, columns=["born"], sets=sets)
    days = frame.assign(born=(frame["born"] - pd.Timestamp("1970-01-01")).dt.days)
    edges = [(pd.Timestamp(one) - pd.Timestamp("1970-01-01")).days for one in fitted.cuts["born"]]
    numbers = masked.assign(
        born=[f"[{edges[n - 1]}, {edges[n]})" for n in np.searchsorted(edges, days["born"], side="right")]
    )
    assert by_labels.known == dpmask.risk.distance_linkage(days, numbers, columns=["born"]).known
    assert dpmask.risk.distance_linkage(frame, frame, columns=["born"]).known[0] > 0.9


def test_a_later_step_takes_labels_away():
    frame = persons()
    fitted, masked = refined(frame, "midpoint")
    noise = dpmask.NoiseAddition(columns=("age",), scale=0.1).fit(masked, seed=2)
    assert set(through_steps([fitted, noise])) == {"children", "town", "born"}


def test_a_job_and_evaluate_know_the_cuts(place):
    """Integer codes with a taxonomy, `*`, dates: all of them attacked, in a job and by the release's own manifest."""
    table = people(1000)
    place.lake(table)
    step = refinement_step(20, 10)
    del step["domains"]["children"]
    step["taxonomies"] |= {"children": {"any": {"few": ["0", "1"], "more": ["2", "3", "4"]}}}
    columns = ["age", "region", "children", "born", "income"]
    ended = place.run(mask=[step], measure=[{"measure": "distance_linkage", "columns": columns}])
    assert ended.code == 0, ended.err
    result = json.loads((place.folder / "private/result.json").read_text())
    found = result["measures"][0]["values"]
    masked = place.by_original(table)
    solution = place.released()[0]["steps"][0]["solution"]
    cut = solution["cuts"]["children"]
    assert len(cut) > 1
    tree = {"any": [*"01234", None], "few": ["0", "1"], "more": ["2", "3", "4"], "missing": [None]}
    own = {
        "children": {label: tree.get(label, [label]) for label in cut},
        "region": {"land": ["north", "east", "south"], "coast": ["north", "east"], "inland": ["south"]},
    }
    tables = [dpmask.read_lake(str(place.folder / "lake"))]
    pq.write_table(masked, place.folder / "masked.parquet")
    tables.append(dpmask.read_lake(str(place.folder / "masked.parquet")))
    assert found["known"] == pytest.approx(
        dpmask.risk.distance_linkage(*tables, columns=columns, sets=own).known, abs=1e-12
    )
    names = ",".join(columns)
    for arguments in (["release", "--paired-by", "private"], ["masked.parquet", "--cuts", "release"]):
        ended = place.dpmask("evaluate", "lake", *arguments, "--columns", names, "--json", "-")
        assert ended.code == 0, ended.err
        again = next(one for one in ended.json["measures"] if one["measure"] == "distance_linkage")
        assert again["values"]["known"] == pytest.approx(found["known"], abs=1e-12)
    ended = place.dpmask("evaluate", "lake", "masked.parquet", "--cuts", "lake")
    assert ended.code == 2
    assert "is no dpmask release" in ended.err
