"""Weighted totals by domain beside their sampling errors: by hand, in a job with a weight, and turned off."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import write_lake

import dpmask
from dpmask.errors import InputError, JobError


def survey(rows=400, seed=2):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "income": rng.gamma(2, 1000, rows).round(),
            "age": rng.integers(0, 90, rows),
            "sex": rng.choice(["man", "woman"], rows),
            "weight": rng.gamma(4, 25, rows).round(2),
        }
    )


def test_totals_by_hand():
    original = survey()
    original.loc[::9, "income"] = np.nan
    masked = original.assign(income=original["income"] * np.where(original["age"] < 40, 1.1, 1.0))
    found = dpmask.utility.totals(
        original, masked, columns=["income"], by=["sex", {"age": [40]}], weight="weight", fewest=10
    )
    assert found.value == pytest.approx(0.1)
    assert found.median == pytest.approx(0.05)
    assert len(found.domains) == 4
    for one in found.domains:
        sex, band = one.domain.removeprefix("sex ").split(", age ")
        chosen = (
            (original["sex"] == sex) & ((original["age"] < 40) == (band == "below 40")) & original["income"].notna()
        )
        part = original[chosen]
        w, x = part["weight"], part["income"]
        mean = (w * x).sum() / w.sum()
        effective = w.sum() ** 2 / (w**2).sum()
        assert one.records == len(part)
        assert one.effective == pytest.approx(effective)
        assert one.before == pytest.approx((w * x).sum())
        assert one.after == pytest.approx((w * masked.loc[chosen, "income"]).sum())
        spread = np.sqrt((w * (x - mean) ** 2).sum() / w.sum())
        assert one.error == pytest.approx(spread / np.sqrt(effective) / mean)
    assert found.beyond_error == np.mean([abs(one.change) > one.error for one in found.domains])


def test_domains_that_are_too_small_are_shown_and_not_judged():
    original = survey(40).assign(sex=["man"] * 38 + ["woman"] * 2)
    masked = original.assign(income=np.where(original["sex"] == "woman", 0.0, original["income"]))
    found = dpmask.utility.totals(original, masked, columns=["income"], by=["sex"])
    assert (found.value, found.small, found.domains[0].change) == (0, 1, -1)
    with pytest.raises(InputError, match="no domain has 50 records"):
        dpmask.utility.totals(original, masked, columns=["income"], fewest=50)
    with pytest.raises(JobError, match="several weights, weight, age"):
        dpmask.utility.totals(original, masked, columns=["income"], weight=["weight", "age"])


@pytest.mark.parametrize(("said", "weight"), [({}, "weight"), ({"weighted": False}, None)])
def test_a_job_takes_the_weight_by_its_role(place, said, weight):
    write_lake(place.folder / "lake", pa.Table.from_pandas(survey()))
    job = {
        "columns": {"quasi": ["age", "sex"], "sensitive": ["income"], "weight": ["weight"]},
        "mask": [{"method": "microaggregation", "columns": ["income"], "k": 5, "by": ["sex"]}],
        "measure": [{"measure": "totals", "columns": ["income"], "by": ["sex"], **said}],
    }
    ended = place.run("--json", **job)
    assert ended.code == 0, ended.err
    found = place.measured()["totals"]
    assert found["weight"] == weight
    assert found["value"] < 0.01
