"""What a job reports of each step, and to whom: zeros, gaps and rules; statistician first; advice to analysts."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from parts import in_parts

import dpmask
from dpmask.errors import InputError, JobError
from dpmask.job.run import run_job


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A job of two steps that mask one column one after the other, and a third; its outcome and both pages."""
    folder = tmp_path_factory.mktemp("steps")
    rng = np.random.default_rng(1)
    rows = 400
    wages = np.where(rng.random(rows) < 0.3, 0.0, rng.lognormal(8, 1, rows).round())
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], rows),
            "wages": wages,
            "dividends": np.where(rng.random(rows) < 0.7, 0.0, rng.lognormal(6, 1, rows).round()),
            "weight": rng.uniform(1, 3, rows).round(1),
        }
    )
    frame.loc[:9, "wages"] = np.nan
    (folder / "lake").mkdir()
    pq.write_table(pa.Table.from_pandas(frame), folder / "lake" / "part.parquet")
    job = {
        "name": "steps",
        "source": str(folder / "lake"),
        "target": str(folder / "release"),
        "private": str(folder / "private"),
        "seed": 3,
        "columns": {"plain": ["sex"], "sensitive": ["wages", "dividends"], "weight": ["weight"]},
        "mask": [
            {
                "method": "microaggregation",
                "columns": ["wages"],
                "k": 5,
                "zeros": "keep",
                "constraints": ["wages >= 0"],
            },
            {"method": "noise", "columns": ["wages"], "scale": 0.3, "zeros": "mask", "as": "more"},
            {"method": "microaggregation", "columns": ["dividends"], "k": 50, "zeros": "mask", "as": "mixed"},
            {"method": "calibrated_weights", "columns": ["weight"], "step": 1, "margins": [["sex"]]},
        ],
        "measure": [
            {"measure": "moments", "columns": ["wages", "dividends"]},
            {"measure": "moments", "columns": ["wages", "dividends"], "weighted": False, "as": "unweighted"},
            {"measure": "totals", "columns": ["wages", "dividends"], "by": ["sex"]},
            {"measure": "tails", "columns": ["dividends"], "share": 0.05},
        ],
        "policy": ["gate.linkage <= 1", "gate.attacks <= 1", "gate.smallest >= 0"],
    }
    (folder / "job.yaml").write_text(yaml.safe_dump(job))
    outcome = run_job(str(folder / "job.yaml"), trial=True)
    assert outcome.status == "released", outcome
    (internal,) = folder.glob("private/*/report.html")
    (public,) = folder.glob("release/report/*/report.html")
    manifest = json.loads((folder / "release" / "manifest.json").read_text())
    return frame, outcome.model_dump(), internal.read_text(), public.read_text(), manifest


def test_each_step_reports_what_it_did(run):
    frame, outcome, *_ = run
    first, second, third, weights = (step["consistency"] for step in outcome["steps"])
    zeros = int((frame["wages"] == 0).sum())
    assert [one["column"] for one in first["columns"]] == ["wages"]
    assert (first["columns"][0]["zeros_before"], first["columns"][0]["zeros_after"]) == (zeros, zeros)
    assert first["columns"][0]["zero_share_before"] == zeros / 400
    assert (second["columns"][0]["zeros_before"], second["columns"][0]["zeros_after"]) == (zeros, 0), "after the first"
    assert first["columns"][0]["missing_before"] == second["columns"][0]["missing_after"] == 10
    assert (first["rules"][0]["rule"], first["rules"][0]["broken_after"]) == ("wages >= 0", 0)
    assert second["rules"] == []
    assert third["zeros_lost"] > 0
    assert weights["value"] == 0
    warned = " ".join(outcome["warnings"])
    assert f"more: of {zeros} zeros of wages {zeros} are no longer zero, and 0 values became zero." in warned
    assert f"zeros of dividends {third['zeros_lost']} are no longer zero" in warned
    assert "microaggregation: " not in warned


def test_jobs_pass_the_weight(run):
    _, outcome, *_ = run
    found = {one["name"]: one["values"] for one in outcome["measures"]}
    assert (found["moments"]["weight"], found["unweighted"]["weight"]) == ("weight", None)
    assert found["moments"]["means"] != found["unweighted"]["means"]
    assert found["totals"]["weight"] == found["tails"]["weight"] == "weight"


def test_the_report_answers_a_statistician_first(run):
    _, _, internal, public, manifest = run
    order = [internal.index(f'id="{one}"') for one in ("statistician", "pictures", "decided", "done", "measured")]
    assert order == sorted(order)
    first = internal[order[0] : order[1]]
    assert all(text in first for text in ("Totals by domain", "Zeros and missing values", "Edit rules", "largest"))
    assert "statistician" not in public
    assert 'id="using"' in public
    assert "divide them by 1.09" in public
    assert manifest["steps"][1]["for_analysts"][0].startswith("Variances of wages are inflated")
    assert "Weighted counts by sex are exact" in public
    assert all("consistency" not in step for step in manifest["steps"])


def top_share(values, weights, share):
    """The share of the total of the largest values, those that are equal to the smallest of them in part."""
    there = ~np.isnan(values)
    values, weights = values[there], weights[there]
    order = np.argsort(-values)
    wanted = share * weights.sum()
    cut = values[order][np.searchsorted(np.cumsum(weights[order]), wanted)]
    above, at = values > cut, values == cut
    amounts = values * weights
    part = (wanted - weights[above].sum()) / weights[at].sum()
    return (amounts[above].sum() + amounts[at].sum() * part) / amounts.sum()


@pytest.mark.parametrize("share", [0.01, 0.2])
def test_tails_against_a_reference(run, share):
    frame = run[0]
    masked = frame.assign(wages=frame["wages"].clip(upper=8000), weight=frame["weight"].round())
    columns = ["wages", "dividends"]
    tails = dpmask.utility.tails
    found = tails(in_parts(frame, 3), in_parts(masked, 4), columns=columns, share=share, weight="weight")
    for one in found.columns:
        sides = [top_share(side[one.column].to_numpy(), side["weight"].to_numpy(), share) for side in (frame, masked)]
        assert (one.before, one.after) == pytest.approx(sides, rel=1e-9)
    assert found.value == max(abs(one.after - one.before) for one in found.columns)
    one = tails(frame, masked, columns=columns, share=share, weight="weight")
    assert dict(found.parts) == pytest.approx(dict(one.parts), rel=1e-9)
    assert tails(frame, frame, columns=columns).value == 0.0


def test_tails_that_are_none_are_refused(run):
    frame = run[0]
    with pytest.raises(JobError, match="between 0 and 1"):
        dpmask.utility.tails(frame, frame, columns=["wages"], share=1)
    with pytest.raises(InputError, match="not above 0"):
        dpmask.utility.tails(frame.assign(wages=0.0), frame, columns=["wages"])


@pytest.mark.parametrize("left", [0.0, -1.0])
def test_where_no_total_is_left_no_share_is(run, left):
    frame = run[0]
    found = dpmask.utility.tails(frame, frame.assign(wages=left), columns=["wages", "dividends"])
    wages, dividends = found.columns
    assert (wages.after, dividends.after) == (0.0, dividends.before)
    assert found.value == wages.before > 0
