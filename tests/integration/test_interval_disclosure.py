"""Interval disclosure against a plain reference, on frames, a lake and a cluster, and in a job."""

import json
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
from conftest import people, write_lake
from loss_tools import numbers
from parts import in_parts

import dpmask
from dpmask.errors import InputError, JobError

measure = sys.modules[dpmask.risk.interval_disclosure.__module__]
COLUMNS = ["smooth", "tied", "holes"]


def table(rows, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(numbers(rng, rows))
    masked = frame + rng.normal(size=frame.shape) * [0.1, 1.0, 0.3]
    return frame, masked.assign(tied=masked["tied"].round(), holes=masked["holes"].round(1))


def reference(frame, masked, columns):
    """The definitions, record by record; a masked value that is not there discloses nothing."""
    masked = masked.reindex(frame.index)
    by_sd, by_rank, joint, complete = [], [], [], []
    for name in columns:
        pairs = [(x, y) for x, y in zip(frame[name], masked[name], strict=True) if not np.isnan(x + y)]
        s = np.sort(masked[name].dropna())
        sd = frame[name].std(ddof=1)
        near, ranked = 0, 0
        for x, y in pairs:
            first, last = np.searchsorted(s, y, "left"), np.searchsorted(s, y, "right") - 1
            for p in range(1, 11):
                w = p * len(s) // 100
                near += abs(x - y) <= sd * p / 100
                ranked += s[max(0, first - w)] <= x <= s[min(len(s) - 1, last + w)]
        by_sd.append(near / 10 / frame[name].notna().sum())
        by_rank.append(ranked / 10 / frame[name].notna().sum())
        gap = np.abs(frame[name] - masked[name])
        joint.append(gap <= 0.05 * sd)
        complete.append(frame[name].notna())
    return by_sd, by_rank, np.all(joint, axis=0).sum() / np.all(complete, axis=0).sum()


@pytest.mark.parametrize("rows", [5, 30, 700])
def test_it_equals_a_plain_reference(rows, limit):
    limit(rank_shard_rows=100)
    frame, masked = table(rows, seed=rows)
    by_sd, by_rank, joint = reference(frame, masked, COLUMNS)
    found = dpmask.risk.interval_disclosure(frame, masked, columns=COLUMNS)
    for number, name in enumerate(COLUMNS):
        assert found.parts[f"{name}: by sd"] == by_sd[number]
        assert found.parts[f"{name}: by rank"] == by_rank[number]
    assert (found.by_sd, found.by_rank) == pytest.approx((np.mean(by_sd), np.mean(by_rank)), rel=1e-15)
    assert found.rate == max(found.by_sd, found.by_rank)
    assert found.joint == joint


def test_both_joint_rules_on_tarragona(request):
    """MDAV, k = 3: by the original columns' standard deviations, and by the masked ones' (sdcMicro's dRisk)."""
    frame = pd.read_csv(request.getfixturevalue("reference") / "tarragona.csv").astype(float)
    masked = dpmask.Microaggregation(columns=list(frame), k=3).fit(frame, seed=1).mask(frame)
    found = dpmask.risk.interval_disclosure(frame, masked, columns=list(frame))
    assert (found.joint, found.joint_by_masked_sd) == pytest.approx((0.0659, 0.0456), abs=5e-5)
    for sd, value in ((frame.std(), found.joint), (masked.std(), found.joint_by_masked_sd)):
        assert ((frame - masked).abs() <= 0.05 * sd).all(axis=1).mean() == value


def test_by_hand():
    frame = pd.DataFrame({"a": [0.0, 10, 20, 30]}, index=[7, 8, 9, 10])
    masked = pd.DataFrame({"a": [0.0, 10.9, 40, 31]}, index=[7, 8, 9, 10])
    found = dpmask.risk.interval_disclosure(frame, masked, columns=["a"])
    # sd = 12.91: gaps 0 (10 of 10), 0.9 (6.97 %: 4 of 10), 20 (0), 1 (7.75 %: 3 of 10)
    assert found.by_sd == pytest.approx((1 + 0.4 + 0.3) / 4)
    # w = 0 for all p: only the first original equals its masked value
    assert found.by_rank == 0.25
    assert (found.joint, found.attacked, found.interval) == (0.25, 4, (found.rate, found.rate))
    assert "Larger means more risk" in found.explain()
    assert json.loads(json.dumps(found.to_dict()))["rate"] == found.rate


def test_untouched_and_permuted_columns():
    """An untouched table is disclosed wholly; a permuted one about as often as by guessing."""
    frame, _ = table(5000)
    same = dpmask.risk.interval_disclosure(frame, frame, columns=COLUMNS)
    assert (same.rate, same.by_sd, same.by_rank, same.joint) == (1.0, 1.0, 1.0, 1.0)
    shuffled = frame.sample(frac=1, random_state=1).set_axis(frame.index)
    apart = dpmask.risk.interval_disclosure(frame, shuffled, columns=["smooth"])
    # a share of 5000 records: five standard errors, for each p; its mean over p varies less
    for rule in ("by sd", "by rank"):
        guess = apart.parts[f"smooth: {rule}, by guessing"]
        assert apart.parts[f"smooth: {rule}"] == pytest.approx(guess, abs=5 * np.sqrt(guess / 5000))
    # 2 q - q^2 for q = 1..10 %, the chance of two uniform ranks to lie that close, and room for 99 stand-ins
    q = np.arange(1, 11) / 100
    assert apart.parts["smooth: by rank, by guessing"] == pytest.approx(np.mean(2 * q - q**2), abs=2e-3)


def test_it_does_not_depend_on_partitions(partitions, limit):
    frame, masked = table(600)

    by_sd, by_rank, joint = reference(frame, masked, COLUMNS[1:])
    limit(rank_shard_rows=250)
    found = dpmask.risk.interval_disclosure(
        in_parts(frame, partitions), in_parts(masked, partitions), columns=COLUMNS[1:]
    )
    assert [found.parts[f"{name}: by sd"] for name in COLUMNS[1:]] == by_sd
    assert [found.parts[f"{name}: by rank"] for name in COLUMNS[1:]] == by_rank
    assert found.joint == joint


@pytest.mark.parametrize("cut", [lambda frame: frame, partial(in_parts, partitions=3)], ids=["pandas", "dask"])
def test_dropped_records_and_suppressed_values_are_not_disclosed(cut):
    frame, masked = table(600)
    left = masked[frame["smooth"] < 2].assign(tied=lambda some: some["tied"].where(some.index % 5 > 0))
    by_sd, by_rank, joint = reference(frame, left, COLUMNS)
    found = dpmask.risk.interval_disclosure(cut(frame), cut(left), columns=COLUMNS)
    assert [found.parts[f"{name}: by sd"] for name in COLUMNS] == by_sd
    assert [found.parts[f"{name}: by rank"] for name in COLUMNS] == by_rank
    assert (found.joint, found.attacked) == (joint, 600)
    same = dpmask.risk.interval_disclosure(cut(frame), cut(frame.loc[left.index]), columns=["smooth"])
    assert same.rate == same.joint == len(left) / 600  # all that is released
    anybody = frame.loc[left.index].set_axis(np.random.default_rng(1).permutation(600)[: len(left)]).sort_index()
    apart = dpmask.risk.interval_disclosure(cut(frame), cut(anybody), columns=["smooth"])
    guess = apart.parts["smooth: by rank, by guessing"]
    assert apart.by_rank == pytest.approx(guess, abs=5 * np.sqrt(guess / 600))


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda f: f.assign(smooth=1.0), InputError, "column 'smooth' is constant"),
        (lambda f: f.assign(smooth=np.inf), InputError, "column 'smooth' holds infinite values"),
        (lambda f: f.iloc[:1], InputError, "has a value in one record only"),
        (lambda f: f.assign(smooth="a"), JobError, "must be numeric"),
        (lambda f: f.drop(columns="smooth"), JobError, "no column 'smooth'"),
        (lambda f: f.set_axis([0] * len(f)), JobError, "must be unique in both"),
    ],
)
def test_bad_tables(change, error, text):
    frame, masked = table(20)
    with pytest.raises(error, match=text):
        dpmask.risk.interval_disclosure(change(frame), masked, columns=["smooth"])


def test_bad_masked_columns():
    frame, masked = table(20)
    with pytest.raises(InputError, match="masked column 'smooth' holds infinite values in 20 records"):
        dpmask.risk.interval_disclosure(frame, masked.assign(smooth=np.inf), columns=["smooth"])
    with pytest.raises(InputError, match="no record with a value before and after"):
        dpmask.risk.interval_disclosure(frame, masked.assign(smooth=np.nan), columns=["smooth"])


def test_in_a_job(place):
    place.lake()
    step = [{"measure": "interval_disclosure", "columns": ["income", "age"]}]
    refused = place.run(measure=step, policy=["interval_disclosure.rate <= 0.01"])
    assert refused.code == 3, refused.err
    assert place.run(measure=step, policy=["interval_disclosure.joint <= 0.9"]).code == 0
    manifest, _ = place.released()
    assert manifest["information_loss"] == []


def test_on_a_lake(tmp_path):
    write_lake(tmp_path / "lake", people())
    lake = dpmask.read_lake(tmp_path / "lake", block_rows=150)
    masked = dpmask.NoiseAddition(columns=["income"], scale=0.1).fit(lake, seed=1).mask(lake)
    found = dpmask.risk.interval_disclosure(lake, masked, columns=["income"])
    by_sd, by_rank, _ = reference(lake.to_dask().compute(), masked.compute(), ["income"])
    assert (found.by_sd, found.by_rank) == (by_sd[0], by_rank[0])
