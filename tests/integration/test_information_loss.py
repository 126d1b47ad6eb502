"""Information loss against plain references, on frames, lakes and a cluster, in shared passes and in a job."""

import json
from functools import partial

import dask
import loss_reference
import numpy as np
import pandas as pd
import pytest
from conftest import people, write_lake
from parts import in_parts
from scipy.stats import ks_2samp

import dpmask
from dpmask.engine.progress import listening
from dpmask.errors import InputError, JobError
from dpmask.guide import page
from dpmask.job.measures import passes_of as passes_counted
from dpmask.job.measures import takers
from dpmask.job.model import Measure
from dpmask.lake import order
from dpmask.utility import searching, summary
from dpmask.utility.together import SHARED

NUMBERS = ["smooth", "tied", "holes", "far"]
PIL = dpmask.utility.probabilistic_information_loss


def table(rows, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "smooth": rng.lognormal(size=rows),
            "tied": rng.integers(0, 12, rows),
            "holes": np.where(rng.random(rows) < 0.2, np.nan, rng.normal(size=rows)),
            "far": 1e7 + rng.normal(size=rows).round(3),
            "région": rng.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1]),
        }
    )
    masked = frame.assign(
        smooth=frame["smooth"] + 0.1 * rng.normal(size=rows),
        tied=(frame["tied"] + rng.normal(size=rows)).round(),
        holes=frame["holes"].where(rng.random(rows) < 0.9) + 0.1 * rng.normal(size=rows),
        far=frame["far"] + 0.05 * rng.normal(size=rows),
    )
    masked["région"] = frame["région"].where(rng.random(rows) < 0.8, "d")
    return frame, masked


@pytest.fixture
def small_samples(monkeypatch):
    """Samples so small that a small table is too large for them: all passes are made."""
    monkeypatch.setattr(order, "_SAMPLE", 60)


def passes_of(function):
    labels = []
    with listening(lambda label, done, total: labels.append(label) if total and not done else None):
        result = function()
    return result, labels


def agrees(found, frame, masked, columns):
    for n_ref, value, end in ((None, found.value, ""), (1000, found.at_reference, " at 1000 records")):
        groups = loss_reference.pil(frame[columns], masked[columns], n_ref)
        assert {name: found.parts[name + end] for name in groups} == pytest.approx(groups, rel=1e-9, abs=1e-9)
        assert value == pytest.approx(np.mean(list(groups.values())), rel=1e-9)


@pytest.mark.parametrize("name", ["census", "tarragona"])
def test_pil_of_reference_data(reference, name, monkeypatch):
    frame = pd.read_csv(reference / f"{name}.csv").astype(float)
    rng = np.random.default_rng(0)
    masked = frame + 0.1 * rng.normal(size=frame.shape) * frame.std().to_numpy()
    columns = list(frame)
    found = PIL(in_parts(frame, 3), in_parts(masked, 2), columns=columns)
    agrees(found, frame, masked, columns)
    same = PIL(frame, frame, columns=columns)
    assert (same.value, same.at_reference) == (0.0, 0.0)
    monkeypatch.setattr(order, "_SAMPLE", 60)  # so that further passes are made
    again, labels = passes_of(lambda: PIL(in_parts(frame, 3), in_parts(masked, 2), columns=columns))
    assert len(labels) == 8  # Dask frames are counted first; then three passes over each
    assert again.parts == pytest.approx(dict(found.parts), rel=1e-12)


def test_pil_by_hand():
    """One column of -1 and 1, 50 each, moved by 0.1: the mean alone moves, and quantiles by their atoms' width."""
    frame = pd.DataFrame({"a": [-1.0, 1.0] * 50})
    found = PIL(frame, frame + 0.1, columns=["a"])
    # mean: 0.1 / sqrt(1 / 100) = 1 standard error; variance: mu4 = mu2^2 and no change, dropped; one column: no pairs.
    # quantiles: h = 0.002, half the values lie on each: f = 0.5 / 0.004 = 125
    share = np.arange(5, 100, 5) / 100
    sd = np.sqrt(share * (1 - share) / 100) / 125
    losses = [100 * loss_reference.math.erf(0.1 / s / np.sqrt(2)) for s in sd]
    assert found.parts["means"] == pytest.approx(68.26894921370859, rel=1e-12)
    assert found.parts["quantiles"] == pytest.approx(np.mean(losses), rel=1e-12)
    assert set(found.parts) == {f"{name}{end}" for name in ("means", "quantiles") for end in ("", " at 1000 records")}
    assert found.value == pytest.approx((found.parts["means"] + found.parts["quantiles"]) / 2)


def test_pil_of_columns_that_cannot_vary():
    frame = pd.DataFrame({"constant": [0.1] * 7, "a": np.arange(7.0)})
    assert PIL(frame, frame, columns=["constant"]).value == 0.0
    moved = PIL(frame, frame + 1, columns=["constant"])
    assert moved.parts["means"] == moved.parts["quantiles"] == 100.0
    assert "variances" not in moved.parts
    gone = PIL(frame, frame.assign(a=3.0), columns=["a", "constant"])
    agrees(gone, frame, frame.assign(a=3.0), ["a", "constant"])


def test_every_measure_against_a_reference(small_samples):
    frame, masked = table(700)
    found = dpmask.utility.summarise(frame, masked, columns=list(frame))
    agrees(found["probabilistic_information_loss"], frame, masked, NUMBERS)
    for name in NUMBERS:
        x, y = (side[name].dropna() for side in (frame, masked))
        parts = found["moments"].parts
        x, y = (
            x - frame["far"][0] * (name == "far"),
            y - frame["far"][0] * (name == "far"),
        )  # numpy's mean rounds, far out
        assert parts[f"{name}: mean"] == pytest.approx((y.mean() - x.mean()) / x.std(ddof=0), rel=1e-9, abs=1e-10)
        assert parts[f"{name}: variance"] == pytest.approx(
            y.var() / x.var() * len(x) / (len(x) - 1) / len(y) * (len(y) - 1) - 1, rel=1e-9
        )
        exact = ks_2samp(x, y).statistic
        assert found["kolmogorov_smirnov"].parts[name] <= exact + 1e-12
        assert exact <= found["kolmogorov_smirnov"].upper + 1e-12
    for name in frame:
        assert found["total_variation"].parts[name] == pytest.approx(
            loss_reference.total_variation(frame[name], masked[name])
        )
        assert found["hellinger"].parts[name] == pytest.approx(loss_reference.hellinger(frame[name], masked[name]))
    near = [side[NUMBERS].assign(far=side["far"] - 1e7) for side in (masked, frame)]
    change = (near[0].corr() - near[1].corr()).to_numpy()[np.triu_indices(4, k=1)]
    assert list(found["correlations"].parts.values()) == pytest.approx(change, abs=1e-11)
    assert found["correlations"].largest == pytest.approx(np.abs(change).max())
    assert found["il1s"].value == pytest.approx(dpmask.utility.il1s(frame, masked, columns=NUMBERS).value, rel=1e-12)


def test_ks_is_scipys_where_the_sample_is_the_table():
    frame, masked = table(1500)
    found = dpmask.utility.kolmogorov_smirnov(frame, masked, columns=NUMBERS)
    for name in NUMBERS:
        assert found.parts[name] == pytest.approx(
            ks_2samp(frame[name].dropna(), masked[name].dropna()).statistic, abs=1e-12
        )
    assert found.upper == found.value == max(found.parts.values())
    assert "(exactly)" in found.explain()


def test_distances_by_hand():
    frame = pd.DataFrame({"sex": ["f", "f", "m", None], "age": [1, 2, 3, 4]})
    masked = pd.DataFrame({"sex": ["f", "m", "m", "x"], "age": [1, 2, 3, 9]})
    assert (
        dpmask.utility.total_variation(frame, masked, columns=["sex"]).value == 0.5
    )  # |.5-.25| + |.25-.5| + .25 + .25
    found = dpmask.utility.hellinger(frame, masked, columns=["sex"])
    assert found.value == pytest.approx(np.sqrt(1 - 2 * np.sqrt(0.5 * 0.25)))
    assert dpmask.utility.kolmogorov_smirnov(frame, masked, columns=["age"]).value == 0.25
    # means 2.5 and 3.75, variances 1.25 and 9.6875
    parts = dpmask.utility.moments(frame, masked, columns=["age"]).parts
    assert parts == pytest.approx({"age: mean": 1.25 / np.sqrt(1.25), "age: variance": 6.75})
    apart = pd.DataFrame({"a": [1.0, 2, 3], "b": [1.0, 2, 3]})
    assert dpmask.utility.correlations(apart, apart.assign(b=-apart["b"]), columns=["a", "b"]).value == pytest.approx(
        2.0
    )
    constant = dpmask.utility.correlations(apart, apart.assign(b=1.0), columns=["a", "b"])
    assert constant.parts == pytest.approx({"a, b": -1.0})


@pytest.mark.parametrize("partitions", [1, 3, 7, 20])
def test_nothing_depends_on_partitions(partitions, client):
    frame, masked = table(6000)
    columns = list(frame)
    alone = dpmask.utility.summarise(frame, masked, columns=columns)
    found = dpmask.utility.summarise(in_parts(frame, partitions), in_parts(masked, partitions), columns=columns)
    assert list(found) == list(alone) == list(SHARED)
    for name in SHARED:
        assert found[name].value == pytest.approx(alone[name].value, rel=1e-9, abs=1e-12), name
        assert found[name].parts == pytest.approx(dict(alone[name].parts), rel=1e-9, abs=1e-12), name
    for name in ("kolmogorov_smirnov", "total_variation", "hellinger"):
        assert found[name].parts == alone[name].parts  # counts are exact
    same = dpmask.utility.propensity(
        in_parts(frame, partitions), in_parts(masked, partitions), columns=columns, sample=500
    )
    assert same.to_dict() == dpmask.utility.propensity(frame, masked, columns=columns, sample=500).to_dict()


def test_passes_are_shared(tmp_path, small_samples):
    """Three passes for all; a measure alone makes those it needs, over each table by itself."""
    write_lake(tmp_path / "lake", people(3000), row_group_size=300)
    lake = dpmask.read_lake(tmp_path / "lake", block_rows=400)
    masked = lake.masked_by(dpmask.NoiseAddition(columns=["income", "age"], scale=0.1).fit(lake, seed=1))
    columns = ["income", "age", "region"]
    found, labels = passes_of(lambda: dict(dpmask.utility.summarise(lake, masked, columns=columns)))
    assert len(labels) == 3
    made = {
        "probabilistic_information_loss": 3,
        "kolmogorov_smirnov": 2,
        "moments": 1,
        "correlations": 1,
        "total_variation": 3,
    }
    for name, passes in made.items():
        own, labels = passes_of(lambda name=name: getattr(dpmask.utility, name)(lake, masked, columns=columns[:2]))
        assert len(labels) == 2 * passes, name
        if name != "total_variation":
            assert own.parts == pytest.approx(dict(found[name].parts), rel=1e-12)
    _, labels = passes_of(lambda: dpmask.utility.hellinger(lake, masked, columns=["region", "member", "born"]))
    assert len(labels) == 2


def test_what_is_too_much_to_gather_is_counted_in_a_fourth_pass(tmp_path, small_samples, monkeypatch):
    write_lake(tmp_path / "lake", people(3000), row_group_size=300)
    lake = dpmask.read_lake(tmp_path / "lake", block_rows=400)
    masked = lake.masked_by(dpmask.NoiseAddition(columns=["income", "age"], scale=0.1).fit(lake, seed=1))
    measure = partial(dpmask.utility.summarise, lake, masked, columns=["income", "age", "region"])
    expected, labels = passes_of(lambda: dict(measure()))
    monkeypatch.setattr(searching, "_GATHERED", 0)
    found, more = passes_of(lambda: dict(measure()))
    assert (len(labels), len(more)) == (3, 4)
    assert found == expected


def test_exact_quantiles_at_any_sample(monkeypatch):
    frame, masked = table(3000)
    expected = dict(dpmask.utility.summarise(frame, masked, columns=NUMBERS))
    monkeypatch.setattr(order, "_SAMPLE", 3)
    monkeypatch.setattr(order, "_COLLECTED", 50)
    found = dpmask.utility.summarise(in_parts(frame, 4), in_parts(masked, 4), columns=NUMBERS)
    for name in ("probabilistic_information_loss", "total_variation"):
        assert found[name].parts == pytest.approx(dict(expected[name].parts), rel=1e-9)
    numbers = [frame[name].dropna().sort_values().to_numpy() for name in NUMBERS]
    seen = summary.summarised(frame, masked, NUMBERS, summary.Need.BINS, "test")
    for column, quantiles in zip(numbers, seen.quantiles[0], strict=True):
        assert quantiles.tolist() == [column[(len(column) - 1) * j // 20] for j in range(1, 20)]


def test_untouched_tables_lose_nothing():
    frame, _ = table(300)
    for name, found in dpmask.utility.summarise(frame, frame, columns=list(frame)).items():
        assert found.value == 0.0, name
    assert dpmask.utility.propensity(frame, frame, columns=list(frame)).value == pytest.approx(0.0, abs=1e-15)


def test_pmse_without_a_difference_is_as_expected():
    """Two samples of one population: the mean of 40 chi-squared with 5 degrees of freedom has a relative error of 10 %."""
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(40):
        one, two = (pd.DataFrame(rng.normal(size=(800, 2)), columns=["a", "b"]) for _ in range(2))
        found = dpmask.utility.propensity(one, two, columns=["a", "b"])
        assert (found.sampled, found.parameters) == (1600, 5)
        ratios.append(found.ratio)
    assert np.mean(ratios) == pytest.approx(1.0, abs=4 * np.sqrt(2 / 5 / 40))


def test_pmse_tells_what_changed():
    frame, masked = table(3000)
    same = frame.sample(frac=1, random_state=1).reset_index(drop=True)
    apart = {name: dpmask.utility.propensity(same, masked, columns=[name]) for name in frame}
    assert apart["région"].ratio > 20  # a category that is new
    assert apart["holes"].ratio > 5  # more is missing
    assert apart["smooth"].ratio < 5
    assert dpmask.utility.propensity(frame, masked.assign(smooth=-masked["smooth"]), columns=["smooth"]).value > 0.24
    few = dpmask.utility.propensity(frame, masked, columns=NUMBERS, sample=100)
    assert few.sampled == 200
    assert few.to_dict() != dpmask.utility.propensity(frame, masked, columns=NUMBERS, sample=100, seed=1).to_dict()
    assert "200 original and masked records" in few.explain()


def test_tables_of_other_sizes_compare_without_pairs():
    frame, masked = table(2000)
    for name in [*SHARED[1:], "propensity"]:
        assert getattr(dpmask.utility, name)(frame, masked.iloc[:900], columns=NUMBERS).value > 0, name


def the_same_as_alone(frame, masked, columns):
    for name, found in dpmask.utility.summarise(frame, masked, columns=columns).items():
        alone = getattr(dpmask.utility, name)(frame, masked, columns=columns)
        assert found.to_dict() == alone.to_dict(), name


@pytest.mark.parametrize("cut", [lambda frame: frame, partial(in_parts, partitions=3)], ids=["pandas", "dask"])
def test_dropped_records_are_not_missing_values(cut, small_samples):
    """A masked table that lost records, and one that has other records instead: each measure is what it is alone."""
    frame, masked = table(2000)
    left = masked[frame["smooth"] < 1.5]
    the_same_as_alone(cut(frame), cut(left), NUMBERS)
    others = masked.set_axis(masked.index + 500)
    the_same_as_alone(cut(frame), cut(others), NUMBERS)
    both = [frame["smooth"] < 1.5, frame["smooth"] > 0.0]
    shares = [frame["région"][some].value_counts(normalize=True) for some in both]
    found = dpmask.utility.summarise(cut(frame), cut(frame[both[0]]), columns=["smooth", "région"])
    assert found["total_variation"].parts["région"] == pytest.approx(np.abs(shares[0] - shares[1]).sum() / 2)
    assert found["il1s"].value == 0.0


@pytest.mark.parametrize("name", [*SHARED, "propensity"])
def test_results_speak_for_themselves(name):
    frame, masked = table(300)
    found = getattr(dpmask.utility, name)(frame, masked, columns=NUMBERS)
    assert found.public
    assert found.value in [getattr(found, field) for field in found.judged]
    assert "arger means" in found.explain()
    assert json.loads(json.dumps(found.to_dict()))["value"] == found.value
    assert page(name).startswith(f"# {name}")


@pytest.mark.parametrize("name", [*SHARED, "propensity"])
@pytest.mark.parametrize(
    ("columns", "error", "text"),
    [
        (["nowhere", "smooth"], JobError, "no column 'nowhere'"),
        ([], JobError, "must be"),
        (["smooth", "smooth"], JobError, "must be"),
        (["endless", "smooth"], InputError, "infinite"),
        (["empty", "smooth"], InputError, "no (value|record)"),
        (["région", "smooth"], JobError, "must be numeric"),
        (["nested", "smooth"], JobError, "(must be numeric|not grouped)"),
    ],
)
def test_bad_columns(name, columns, error, text):
    frame, masked = (side.assign(endless=np.inf, empty=np.nan, nested=[[1]] * len(side)) for side in table(40))
    takes = {"total_variation", "hellinger"}
    fine = (name in {*takes, "propensity"} and columns[:1] == ["région"]) or (
        name in {*takes, "kolmogorov_smirnov"} and columns[:1] == ["endless"]
    )
    measure = getattr(dpmask.utility, name)
    if fine:
        assert measure(frame, masked, columns=columns).value >= 0
        return
    with pytest.raises(error, match=text):
        measure(frame, masked, columns=columns)


def test_more_bad_input():
    frame, masked = table(40)
    with pytest.raises(InputError, match="'tied' is constant"):
        dpmask.utility.moments(frame.assign(tied=1), masked, columns=["tied"])
    with pytest.raises(JobError, match="two or more different columns; got 1"):
        dpmask.utility.correlations(frame, masked, columns=["tied"])
    with pytest.raises(JobError, match="n_ref must be an integer >= 1; got 0"):
        PIL(frame, masked, columns=["tied"], n_ref=0)
    with pytest.raises(JobError, match="sample must be an integer from 10"):
        dpmask.utility.propensity(frame, masked, columns=["tied"], sample=5)
    with pytest.raises(JobError, match="'grops' shares no passes"):
        dpmask.utility.summarise(frame, masked, columns=["tied"], measures=["grops"])
    with pytest.raises(JobError, match="got none"):
        dpmask.utility.summarise(frame, masked, columns=["tied"], measures=[])
    many = pd.DataFrame({"id": [f"{n:x}" for n in range(70_000)]})
    with pytest.raises(JobError, match="column 'id' has more than 65,536 different values"):
        dpmask.utility.hellinger(many, many, columns=["id"])
    one = dpmask.utility.summarise(frame, masked, columns=["région"])
    assert set(one) == {"total_variation", "hellinger"}
    with pytest.raises(KeyError):
        one["il1s"]
    for rows in (1, 2):
        assert PIL(frame.iloc[:rows], masked.iloc[:rows], columns=["smooth"]).value > 0


def test_in_a_job(place):
    place.lake()
    step = [
        {"measure": "probabilistic_information_loss", "columns": ["income", "age", "rate"], "n_ref": 500},
        {"measure": "total_variation", "columns": ["income", "region", "member"]},
        {"measure": "propensity", "columns": ["income", "region"], "sample": 500},
    ]
    refused = place.run(measure=step, policy=["probabilistic_information_loss.at_reference <= 0.01"])
    assert refused.code == 3, refused.err
    done = place.run(
        measure=step, policy=["probabilistic_information_loss.value <= 99", "total_variation.largest <= 0.9"]
    )
    assert done.code == 0, done.err
    manifest, _ = place.released()
    assert [one["measure"] for one in manifest["information_loss"]] == [one["measure"] for one in step]
    wrong = place.run(measure=[{"measure": "correlations", "columns": ["income"]}])
    assert wrong.code == 2
    assert "two or more" in wrong.err


def asked(*measures, columns):
    return [Measure(f"my {name}", name, {"columns": columns}) for name in measures]


def test_losses_of_the_same_columns_share_passes_and_stay_the_same(tmp_path, small_samples):
    write_lake(tmp_path / "lake", people(3000), row_group_size=300)
    lake = dpmask.read_lake(tmp_path / "lake", block_rows=400)
    masked = lake.masked_by(dpmask.NoiseAddition(columns=["income", "age"], scale=0.1).fit(lake, seed=1))
    wanted = [
        *asked(*SHARED, columns=["income", "age"]),
        Measure("small", "probabilistic_information_loss", {"columns": ["income", "age"], "n_ref": 50}),
        *asked("propensity", columns=["income", "age"]),
    ]
    found, labels = passes_of(lambda: {name: take() for name, take in takers(lake, masked, wanted).items()})
    assert len(labels) == passes_counted(wanted, lake.schema) + 1 == 5  # propensity reads each table by itself
    for one in wanted:
        alone = getattr(dpmask.utility, one.measure)(lake, masked, **one.parameters)
        assert found[one.name] == alone, one.name
    both = asked("hellinger", "total_variation", "moments", columns=["income", "region"])
    take = takers(lake, masked, both)
    assert take["my hellinger"]() == dpmask.utility.hellinger(lake, masked, columns=["income", "region"])
    with pytest.raises(JobError, match="moments: column 'region' must be numeric"):
        take["my moments"]()


def test_the_embedded_scheduler_gives_the_same(tmp_path):
    frame, masked = table(500)
    with dask.config.set(scheduler="synchronous"):
        one = dpmask.utility.probabilistic_information_loss(in_parts(frame, 3), in_parts(masked, 3), columns=NUMBERS)
    assert one == PIL(in_parts(frame, 3), in_parts(masked, 3), columns=NUMBERS)


def test_measures_say_what_they_are():
    """Every measure's result has a definition, a direction and a source."""
    from typing import get_type_hints

    from dpmask.job.measures import MEASURES, measure_function

    for name in MEASURES:
        result = get_type_hints(measure_function(name))["return"]
        for said in (result.definition, result.direction, result.source):
            assert said.endswith(".")
        assert "arger" in result.direction or "maller" in result.direction
        if "value" in result.judged:
            assert Measure(name, name, {}).larger_loses == ("arger means more" in result.direction), name
