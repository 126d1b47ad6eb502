"""dpmask fit, and dpmask run --fitted: the same release for the same table, its own draws and counts for the next."""

import json

import numpy as np
import pyarrow as pa
import pytest
from conftest import people, write_lake

REFINED = {
    "method": "refinement",
    "requirements": [{"columns": ["age", "region"], "k": 10}],
    "taxonomies": {"region": {"land": {"coast": ["north", "east"], "inland": ["south"]}}},
    "domains": {"age": [0, 100]},
}
NOISE = {"method": "noise", "columns": ["income"], "scale": 0.5}
STEPS = [REFINED, NOISE]
SWAPS = [{"method": "swapping", "columns": ["age", "income"], "window": 0.2}]
COLUMNS = {"quasi": ["age", "region"], "sensitive": ["income"]}
GROWN = pa.concat_tables([people(300), people(200, seed=1)]).select(["age", "region", "income"])


@pytest.fixture
def months(place):
    """A lake of this month, one of the next, which has more people, and one of few; a job, fitted to the first."""
    for name, table in {"lake": GROWN.slice(0, 300), "next": GROWN, "few": GROWN.slice(0, 30)}.items():
        write_lake(place.folder / name, table)
    ended = place.dpmask("fit", place.job(mask=STEPS, columns=COLUMNS), "--to", "fit")
    assert (ended.code, ended.out) == (0, "Fitted 2 steps: dpmask run job.yaml --fitted fit\n"), ended.err
    return place


def run(months, *options, **changes):
    return months.run(*options, **({"mask": STEPS, "columns": COLUMNS} | changes))


def test_a_run_by_its_own_fit_releases_what_a_run_does(months):
    assert run(months).code == 0
    ended = run(months, "--fitted", "fit", target="again", private="again_private")
    assert ended.code == 0, ended.err
    (one, released), (other, again) = months.released(), months.released("again")
    assert released.equals(again)
    assert (one["steps"], one["claims"]) == (other["steps"], other["claims"])
    assert one["run"] != other["run"]


def test_the_next_month_is_masked_by_the_same_cuts_and_other_noise(months):
    ended = run(months, "--fitted", "fit", source="next")
    assert ended.code == 0, ended.err
    released, (manifest, _) = months.by_original(GROWN), months.released()
    fitted = [json.loads((months.folder / "fit" / f"mask-{n}" / "fit.json").read_text())["values"] for n in (0, 1)]
    assert manifest["steps"][0]["solution"]["cuts"] == dict(fitted[0]["cuts"]["mapping"])
    assert all("it learnt from an earlier table" in one["statement"] for one in manifest["steps"])
    noise = released["income"].to_numpy() - GROWN["income"].to_numpy()
    deviation = dict(fitted[1]["deviations"]["mapping"])["income"]
    assert np.std(noise) == pytest.approx(deviation, rel=5 / np.sqrt(2 * len(noise)))  # five standard errors
    assert deviation == pytest.approx(0.5 * np.std(GROWN["income"].to_numpy()[:300]))
    steps = json.loads((months.folder / "private" / "result.json").read_text())["steps"]
    assert [one["figures"] for one in steps] == [None, None]
    ended = run(months, source="next", target="own")
    assert ended.code == 0, ended.err
    manifest, own = months.released("own")
    other = own["income"].to_numpy() - GROWN["income"].to_numpy()[months.pairing(manifest)]
    paired = noise[months.pairing(manifest)]
    assert abs(np.corrcoef(paired, other)[0, 1]) < 5 / np.sqrt(len(noise)), "noise shared with the table's own fit"


def test_a_fit_with_a_reserve_keeps_the_k_of_the_job(months):
    """Other people, as many: the cuts of k = 30 keep 10, those of 10 do not."""
    write_lake(months.folder / "others", people(300, seed=5).select(["age", "region", "income"]))
    assert "claims that at least 10" in run(months, "--fitted", "fit", source="others").err
    reserve = ["--set", "mask[0].requirements[0].k=30"]
    assert months.dpmask("fit", months.job(mask=STEPS, columns=COLUMNS), "--to", "reserve", *reserve).code == 0
    ended = run(months, "--fitted", "reserve", source="others")
    assert ended.code == 0, ended.err
    assert months.released()[0]["claims"][0]["smallest_group"] == 10
    assert "other parameters (requirements)" in run(months, "--fitted", "fit", "--set", reserve[1]).err


REFUSED = {
    "few people": (4, "claims that at least 10 records share each row", {"source": "few"}),
    "another parameter": (2, "was fitted for other parameters (scale)", {"mask": [REFINED, NOISE | {"scale": 0.4}]}),
    "another method": (2, "was fitted for another method, TopDownRefinement", {"mask": [NOISE, REFINED]}),
    "fewer steps": (2, "was fitted for more steps than the job's 1", {"mask": STEPS[:1]}),
    "more steps": (4, "mask-2: holds no fit", {"mask": [*STEPS, NOISE]}),
    "a rule of the fit": (2, "is about the table that the step was fitted on", {"policy": ["refinement.loss < 1"]}),
    "a series": (2, "each release of a series is fitted by itself", {"series": "people"}),
}


def test_what_a_fit_is_not_for_is_refused(months):
    for name, (code, text, changes) in REFUSED.items():
        ended = run(months, "--fitted", "fit", **({"source": "next"} | changes))
        assert (ended.code, text in ended.err) == (code, True), f"{name}: {ended.err}"
    assert months.dpmask("fit", months.job(mask=SWAPS, columns=COLUMNS), "--to", "swaps").code == 0
    ended = run(months, "--fitted", "swaps", mask=SWAPS, source="next")
    assert (ended.code, "those of that table. Fit to this table." in ended.err) == (4, True), ended.err
    assert not (months.folder / "release").exists()
    for folder, text in (("release/fit", "a fit is private"), ("lake/fit", "a fit is private"), ("fit", "already")):
        ended = months.dpmask("fit", months.job(mask=STEPS, columns=COLUMNS), "--to", folder)
        assert (ended.code, text in ended.err) == (2, True), ended.err
    assert "For a trial, run it with --trial" in months.dpmask("fit", "--to", "other", "job.yaml").err
    ended = months.dpmask("fit", months.job(series="people", columns=COLUMNS), "--to", "other")
    assert (ended.code, "each release of a series" in ended.err) == (2, True), ended.err
