"""Group risks against pandas, on frames, lakes and a cluster, and in a job."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from conftest import JOB, people, write_lake
from parts import in_parts

import dpmask
from dpmask.errors import InputError, JobError

measure = sys.modules[dpmask.risk.groups.__module__]
QUASI = [["age", "region"], ["children", "member"]]
SENSITIVE = ["name", "income", "children"]


@pytest.fixture(scope="module")
def frame():
    return people(2000).to_pandas()


@pytest.fixture(scope="module")
def masked(frame):
    rng = np.random.default_rng(3)
    coarse = frame.assign(age=frame["age"] // 20 * 20)
    return coarse.assign(income=rng.permuted(frame["income"].to_numpy())).drop(index=range(0, 200))


def coded(column, reference):
    """Values as the measure sees them: numbers with many values in 20 bins of the original."""
    if pd.api.types.is_numeric_dtype(column) and reference.nunique() > 256:
        return pd.Series(np.digitize(column, np.quantile(reference, np.arange(1, 20) / 20)), index=column.index)
    return column.astype(object).where(column.notna(), "none")


def expected(table, register, original, quasi, sensitive):
    """Group sizes, and the worst spread of each sensitive column, by plain pandas and loops."""
    keys = table[quasi].astype(object).where(table[quasi].notna(), "none").apply(tuple, axis=1)
    theirs = register[quasi].astype(object).where(register[quasi].notna(), "none").apply(tuple, axis=1).value_counts()
    sizes = keys.value_counts()
    found = {
        "smallest": sizes.min(),
        "uniques": (sizes == 1).sum(),
        "below": sizes[sizes < 10].sum(),
        "prosecutor": len(sizes) / len(table),
        "journalist": sum(min(f, theirs[key]) / theirs[key] for key, f in sizes.items() if key in theirs) / len(table),
    }
    for name in sensitive:
        codes = coded(table[name], original[name])
        ordered = pd.api.types.is_numeric_dtype(table[name])
        levels = sorted(set(codes), key=lambda v: (isinstance(v, str), v))
        q = codes.value_counts(normalize=True).reindex(levels).to_numpy()
        worst = {"distinct": np.inf, "entropy": np.inf, "confidence": 0.0, "closeness": 0.0}
        for _, part in codes.groupby(keys):
            p = part.value_counts(normalize=True).reindex(levels).fillna(0).to_numpy()
            present = p[p > 0]
            far = (
                np.abs(np.cumsum(p) - np.cumsum(q))[:-1].sum() / (len(levels) - 1)
                if ordered
                else np.abs(p - q).sum() / 2
            )
            worst["distinct"] = min(worst["distinct"], len(present))
            worst["entropy"] = min(worst["entropy"], np.exp(-(present * np.log(present)).sum()))
            worst["confidence"] = max(worst["confidence"], present.max())
            worst["closeness"] = max(worst["closeness"], far)
        found |= {f"{name}: {key}": value for key, value in worst.items()}
    return found


NAMES = {"smallest": "smallest group", "below": "records in groups below k"}


@pytest.mark.parametrize("quasi", QUASI, ids=" ".join)
def test_groups_equal_a_plain_reference(frame, masked, quasi):
    sensitive = [name for name in SENSITIVE if name not in quasi]
    risk = dpmask.risk.groups(frame, masked, quasi=quasi, sensitive=SENSITIVE)
    for table, parts in ((frame, risk.before), (masked, risk.parts)):
        wanted = expected(table, frame, frame, quasi, sensitive)
        label = " + ".join(quasi)
        assert {name: parts[f"{label}: {NAMES.get(name, name)}"] for name in wanted} == pytest.approx(wanted, rel=1e-12)
    after = expected(masked, frame, frame, quasi, sensitive)
    assert (risk.smallest, risk.uniques, risk.below) == (after["smallest"], after["uniques"], after["below"])
    assert risk.distinct == min(after[f"{name}: distinct"] for name in sensitive)
    assert (risk.attacked, risk.guessing, risk.interval) == (1800, 1 / 1800, (risk.smallest, risk.smallest))


def test_by_hand():
    frame = pd.DataFrame({"sex": list("ffmmmm"), "age": [1, 1, 1, 2, 2, 2], "ill": list("aabbbc")})
    risk = dpmask.risk.groups(frame, frame, quasi=["sex", "age"], sensitive=["ill"], k=3)
    # groups f1 (a, a), m1 (b), m2 (b, b, c)
    assert (risk.smallest, risk.uniques, risk.below, risk.distinct) == (1, 1, 3, 1)
    assert risk.prosecutor == risk.journalist == 0.5
    assert (risk.entropy, risk.confidence) == (1.0, 1.0)
    assert risk.closeness == pytest.approx(2 / 3)  # group f1: all a, of which the whole has 2 in 6
    assert "smallest group with the same quasi-identifiers has 1 of 6" in risk.explain()
    assert json.loads(json.dumps(risk.to_dict()))["smallest"] == 1


def test_the_worst_quasi_identifier_is_judged(frame, masked):
    both = dpmask.risk.groups(frame, masked, quasi=QUASI, sensitive=SENSITIVE)
    each = [dpmask.risk.groups(frame, masked, quasi=one, sensitive=SENSITIVE) for one in QUASI]
    assert both.smallest == min(one.smallest for one in each)
    assert both.confidence == max(one.confidence for one in each)
    assert both.parts == each[0].parts | each[1].parts


@pytest.fixture(scope="module")
def alone(frame, masked):
    return dpmask.risk.groups(frame, masked, quasi=QUASI[0], sensitive=SENSITIVE)


def test_groups_do_not_depend_on_partitions(frame, masked, alone, partitions, limit):
    limit(group_shard_rows=1500)
    found = dpmask.risk.groups(
        in_parts(frame, partitions), in_parts(masked, partitions), quasi=QUASI[0], sensitive=SENSITIVE
    )
    assert found.parts == pytest.approx(dict(alone.parts), rel=1e-9)
    assert found.before == pytest.approx(dict(alone.before), rel=1e-9)
    assert (found.smallest, found.uniques, found.below) == (alone.smallest, alone.uniques, alone.below)


def test_shards_that_do_not_fit_in_memory_find_the_same(frame, masked, alone, limit):
    limit(group_shard_rows=300, memory_share=0.0)
    found = dpmask.risk.groups(frame, masked, quasi=QUASI[0], sensitive=SENSITIVE)
    assert found.parts == pytest.approx(dict(alone.parts), rel=1e-9)


def test_lakes_and_numbers_in_bins(tmp_path, frame, limit):
    """A lake, and both ways to code a numeric column: with at most so many values each is its own code."""
    write_lake(tmp_path / "lake", people(2000))
    lake = dpmask.read_lake(tmp_path / "lake", block_rows=300)
    wanted = dpmask.risk.groups(frame, frame, quasi=["age"], sensitive=["children", "income"])
    found = dpmask.risk.groups(lake, lake, quasi=["age"], sensitive=["children", "income"])
    assert found.parts == wanted.parts
    limit(number_codes=1)
    binned = dpmask.risk.groups(lake, lake, quasi=["age"], sensitive=["children"])
    # fewer than 20 values, each with more than a twentieth: bins are the values
    names = ("distinct", "entropy", "confidence")
    key = "age: children: "
    assert {n: binned.parts[key + n] for n in names} == {n: wanted.parts[key + n] for n in names}


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"quasi": None}, JobError, "quasi must be a list of different columns"),
        ({"quasi": "age"}, JobError, "quasi must be a list"),
        ({"quasi": []}, JobError, "quasi must be a list"),
        ({"quasi": [["age"], []]}, JobError, "quasi must be a list"),
        ({"quasi": ["age", "age"]}, JobError, "quasi must be a list of different columns"),
        ({"quasi": ["agee"]}, JobError, "no column 'agee' in the table. Did you mean 'age'"),
        ({"sensitive": ["incme"]}, JobError, "Did you mean 'income'"),
        ({"k": 0}, JobError, "k must be an integer >= 1; got 0"),
        ({"k": True}, JobError, "k must be an integer"),
    ],
)
def test_bad_arguments(frame, changes, error, text):
    with pytest.raises(error, match=text):
        dpmask.risk.groups(frame, frame, **({"quasi": ["age"]} | changes))


def test_bad_tables(frame, limit):
    with pytest.raises(InputError, match="has no record"):
        dpmask.risk.groups(frame, frame.iloc[:0], quasi=["age"])
    limit(category_codes=10)
    with pytest.raises(JobError, match="column 'name' has more than 10 different values"):
        dpmask.risk.groups(frame, frame, quasi=["age"], sensitive=["name"])


def test_one_record_and_odd_names():
    frame = pd.DataFrame({"größe (cm)": [180.5], "наука": ["x"]})
    risk = dpmask.risk.groups(frame, frame, quasi=["größe (cm)"], sensitive=["наука"])
    assert (risk.smallest, risk.prosecutor, risk.closeness) == (1, 1.0, 0.0)


def test_a_policy_on_the_smallest_group(place):
    """Declared roles are the quasi-identifier and the sensitive columns; the refused release stays unpublished."""
    place.lake()
    columns = JOB["columns"] | {"quasi": ["region"], "plain": ["age", "children", "born", "name", "member"]}
    steps = {"columns": columns, "measure": [{"measure": "groups"}]}
    refused = place.run(**steps, policy=["groups.smallest >= 201"])
    assert refused.code == 3, refused.err
    assert "groups.smallest >= 201: it is 200" in refused.err
    assert not (place.folder / "release").exists()
    report = next(place.folder.glob("private/*/report.html")).read_text()
    assert "before masking" in report
    held = place.run(**steps, policy=["groups.smallest >= 200", "groups.uniques <= 0"])
    assert held.code == 0, held.err
    result = json.loads((place.folder / "private" / "result.json").read_text())
    assert result["measures"][0]["values"]["before"]["region: smallest group"] == 200
    assert "region: income: closeness" in result["measures"][0]["values"]["parts"]


def test_small_counts_stay_private(place):
    """A release with records that are alone in their group says nothing of it in public."""
    place.lake()
    ended = place.run(measure=[{"measure": "groups", "quasi": [["age", "region"], ["born"]], "k": 7}])
    assert ended.code == 0, ended.err
    result = json.loads((place.folder / "private" / "result.json").read_text())
    assert 0 < result["measures"][0]["values"]["smallest"] < 10
    manifest, _ = place.released()
    verified = place.dpmask("verify", "release")
    public = "".join(
        path.read_text() for path in (place.folder / "release").rglob("*") if path.suffix in {".json", ".md"}
    )
    for word in ("groups", "smallest", "unique", "prosecutor", "confidence"):
        assert word not in public + verified.out, word
    assert manifest["information_loss"] == []


def test_a_job_without_quasi_identifiers_cannot_measure_groups(place):
    place.lake()
    columns = {"identifier": ["id"], "plain": [name for name in people(1).schema.names if name != "id"]}
    ended = place.dpmask("plan", place.job(columns=columns, measure=[{"measure": "groups"}]))
    assert ended.code == 2
    assert "declare columns as quasi" in ended.err
    named = place.dpmask("plan", place.job(measure=[{"measure": "groups", "quasi": ["id", "age"]}]))
    assert (named.code, "column 'id' is an identifier" in named.err) == (2, True)


def test_a_rule_on_what_was_not_found_is_told(place):
    place.lake()
    ended = place.run(measure=[{"measure": "groups", "sensitive": []}], policy=["groups.distinct >= 2"])
    assert ended.code == 2
    assert "groups found no distinct" in ended.err
