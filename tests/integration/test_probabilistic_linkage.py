"""Probabilistic linkage against a loop over all pairs, on frames, a lake and a cluster, and in a job."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from conftest import people, write_lake
from parts import in_parts

import dpmask
from dpmask.errors import InputError, JobError
from dpmask.kernels.linkage.agreement import exact_patterns
from dpmask.kernels.linkage.fellegi_sunter import estimate_m, likelihood_ranks, pattern_bits, pattern_weights

measure = sys.modules[dpmask.risk.probabilistic_linkage.__module__]
COLUMNS = ["smooth", "tied", "holes", "noise"]


def table(rows, seed=0, strength=0.3):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "smooth": rng.lognormal(size=rows),
            "tied": rng.integers(0, 4, rows).astype(float),
            "holes": np.where(rng.random(rows) < 0.2, np.nan, rng.normal(size=rows)),
            "noise": rng.normal(size=rows),
        }
    )
    masked = frame + strength * rng.normal(size=frame.shape)
    return frame, masked.assign(tied=masked["tied"].round(), noise=rng.normal(size=rows))


def coded(frame, reference):
    edges = [np.unique(np.quantile(reference[name].dropna(), np.arange(1, 20) / 20)) for name in reference]
    return np.array(
        [np.where(frame[n].isna(), 99, np.digitize(frame[n], cuts)) for n, cuts in zip(reference, edges, strict=True)]
    )


def reference(frame, masked):
    """All n^2 pairs: u, m, pattern counts, weights, and the share of right links for true and estimated m."""
    kept = masked.dropna(how="all")
    ours, theirs = coded(frame, frame), coded(kept, frame)
    agree = ours[:, :, None] == theirs[:, None, :]  # columns x originals x masked
    place = {label: number for number, label in enumerate(kept.index)}
    own = [place.get(label) for label in frame.index]
    true = np.array([agree[:, i, j] for i, j in enumerate(own) if j is not None])
    u, m = agree.mean(axis=(1, 2)), true.mean(axis=0)
    patterns = np.tensordot(1 << np.arange(len(ours)), agree, 1)
    pairs = np.bincount(patterns.ravel(), minlength=1 << len(ours))
    estimated = em(pairs, u, 1 / len(kept))
    return u, m, pairs, [links(agree, own, one, u) for one in (m, estimated)]


def em(pairs, u, share, steps=5000):
    m = np.full(len(u), 0.9)
    bits = np.arange(len(pairs))[:, None] >> np.arange(len(u)) & 1
    for _ in range(steps):
        one = share * (m**bits * (1 - m) ** (1 - bits)).prod(axis=1)
        other = (1 - share) * (u**bits * (1 - u) ** (1 - bits)).prod(axis=1)
        weight = pairs * one / (one + other)
        m = weight @ bits / weight.sum()
    return m


def links(agree, own, m, u):
    m = np.minimum(m, 1 - 0.5 / agree.shape[1])
    weight = np.zeros(agree.shape[1:])
    for one, p, q in zip(agree, m, u, strict=True):
        if p > q:
            weight += np.where(one, np.log(p / q), np.log((1 - p) / (1 - q)))
    best = weight >= weight.max(axis=1, keepdims=True) - 1e-9
    return sum(best[i, j] / best[i].sum() for i, j in enumerate(own) if j is not None) / len(own)


@pytest.mark.parametrize(("rows", "columns", "shard"), [(40, 1, 10), (200, 2, 50), (300, 4, 60), (300, 4, 10**6)])
def test_it_equals_a_loop_over_all_pairs(rows, columns, shard, limit):
    limit(linkage_shard_rows=shard)
    frame, masked = (one[COLUMNS[:columns]] for one in table(rows, seed=rows))
    u, m, _, rates = reference(frame, masked)
    found = dpmask.risk.probabilistic_linkage(frame, masked, columns=COLUMNS[:columns])
    assert [found.rate, found.estimated] == pytest.approx(rates, rel=1e-12)
    assert [found.parts[f"{name}: u"] for name in frame] == pytest.approx(u, rel=1e-15)
    assert [found.parts[f"{name}: m"] for name in frame] == pytest.approx(m, rel=1e-15)
    assert (found.attacked, found.guessing, found.interval) == (rows, 1 / rows, (found.rate, found.rate))


@pytest.mark.parametrize("seed", range(6))
def test_many_ties_and_dropped_records(seed):
    """Few values, so that many records and several patterns tie; some records are gone from the masked file."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(0, 3, (60, 3)).astype(float), columns=list("abc"))
    masked = frame.where(rng.random(frame.shape) < 0.8, rng.integers(0, 3, frame.shape)).drop(index=range(0, 60, 7))
    masked.iloc[3] = np.nan
    _, _, _, rates = reference(frame, masked)
    found = dpmask.risk.probabilistic_linkage(frame, masked, columns=list("abc"))
    assert [found.rate, found.estimated] == pytest.approx(rates, rel=1e-12)
    assert (found.attacked, found.guessing) == (60, 1 / 60)  # a guess never links those that are gone


def test_patterns_are_counted_without_pairs():
    frame, masked = table(200)
    _, _, pairs, _ = reference(frame, masked)
    held = measure.pair(frame, masked, COLUMNS, "test")
    edges = dict(zip(COLUMNS, measure.quantile_edges(held, COLUMNS, "test"), strict=True))
    files = measure._Files(held, measure.as_table(masked, "test"), edges)
    counts = files.patterns(files.meet())
    assert counts.pairs.tolist() == pairs.tolist()


def test_inversion_by_hand():
    # pairs that agree at least on {}, {0}, {1}, {0, 1}
    assert exact_patterns(np.array([10, 4, 5, 1])).tolist() == [2, 3, 4, 1]


def test_weights_ranks_and_columns_that_tell_nothing():
    weights = pattern_weights(np.array([0.9, 0.05]), np.array([0.1, 0.05]), 100)
    assert weights.informative.tolist() == [True, False]
    assert weights.patterns == pytest.approx(np.log([1 / 9, 9, 1 / 9, 9]))
    assert likelihood_ranks(np.array([1.0, 3.0, 3.0 - 5e-10, 3.0 - 1.5e-9, 2.0])).tolist() == [3, 0, 0, 1, 2]
    certain = pattern_weights(np.array([1.0]), np.array([0.5]), 10)
    assert certain.patterns == pytest.approx(np.log([0.05 / 0.5, 0.95 / 0.5]))


def test_em_finds_m_where_the_model_holds():
    u, m, share = np.array([0.05, 0.1, 0.2]), np.array([0.9, 0.7, 0.6]), 0.01
    bits = pattern_bits(3)
    pairs = 1e9 * (share * np.where(bits, m, 1 - m).prod(axis=1) + (1 - share) * np.where(bits, u, 1 - u).prod(axis=1))
    assert estimate_m(pairs, u, share) == pytest.approx(m, rel=1e-6)


def test_untouched_and_unrelated_files():
    frame, _ = table(400)
    same = dpmask.risk.probabilistic_linkage(frame, frame, columns=["smooth", "noise", "holes"])
    other = frame.sample(frac=1, random_state=3).set_axis(frame.index)
    apart = dpmask.risk.probabilistic_linkage(frame, other, columns=["smooth", "noise", "holes"])
    assert same.rate > 0.9
    assert apart.rate < 0.05
    assert "Larger means more risk" in same.explain()
    assert json.loads(json.dumps(same.to_dict()))["rate"] == same.rate


def test_it_does_not_depend_on_partitions(partitions, limit):
    frame, masked = (one[COLUMNS[1:]] for one in table(300))

    _, _, _, rates = reference(frame, masked)
    limit(linkage_shard_rows=200)
    found = dpmask.risk.probabilistic_linkage(
        in_parts(frame, partitions), in_parts(masked, partitions), columns=COLUMNS[1:]
    )
    assert [found.rate, found.estimated] == pytest.approx(rates, rel=1e-9)


def test_constant_columns_tell_nothing():
    frame, masked = table(100)
    alone = dpmask.risk.probabilistic_linkage(frame, masked, columns=["smooth"])
    both = dpmask.risk.probabilistic_linkage(
        frame.assign(same=1.0), masked.assign(same=1.0), columns=["smooth", "same"]
    )
    assert (both.rate, both.parts["same: u"]) == (pytest.approx(alone.rate), 1.0)
    only = dpmask.risk.probabilistic_linkage(frame.assign(same=1.0), masked.assign(same=1.0), columns=["same"])
    assert only.rate == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("columns", "change", "error", "text"),
    [
        ([f"c{n}" for n in range(11)], lambda f: f, JobError, "must be 1 to 10 different columns; got 11"),
        ([], lambda f: f, JobError, "must be 1 to 10 different columns; got 0"),
        (["smooth", "smooth"], lambda f: f, JobError, "different columns"),
        (["smoth"], lambda f: f, JobError, "Did you mean 'smooth'"),
        (["smooth"], lambda f: f.assign(smooth="a"), JobError, "must be numeric"),
        (["smooth"], lambda f: f.assign(smooth=np.nan), InputError, "has no value in any record"),
        (["smooth"], lambda f: f.set_axis([0] * len(f)), JobError, "must be unique in both"),
    ],
)
def test_bad_input(columns, change, error, text):
    frame, masked = table(20)
    with pytest.raises(error, match=text):
        dpmask.risk.probabilistic_linkage(change(frame), masked, columns=columns)


def test_a_masked_file_without_values():
    frame, masked = table(20)
    with pytest.raises(InputError, match="no masked record has a value in smooth"):
        dpmask.risk.probabilistic_linkage(frame, masked.assign(smooth=np.nan), columns=["smooth"])


def test_in_a_job_and_on_a_lake(place):
    table = people()
    place.lake(table)
    step = [{"measure": "probabilistic_linkage", "columns": ["income", "age"]}]
    refused = place.run(measure=step, policy=["probabilistic_linkage.rate <= 0.0001"])
    assert refused.code == 3, refused.err
    assert place.run(measure=step, policy=["probabilistic_linkage.rate <= 0.9"], order="input").code == 0
    result = json.loads((place.folder / "private" / "result.json").read_text())
    released = place.released()[1].to_pandas()
    _, _, _, rates = reference(table.to_pandas()[["income", "age"]], released[["income", "age"]])
    values = result["measures"][0]["values"]
    assert [values["rate"], values["estimated"]] == pytest.approx(rates, rel=1e-9)
    write_lake(place.folder / "one", table)
    lake = dpmask.read_lake(place.folder / "one", block_rows=100)
    assert dpmask.risk.probabilistic_linkage(lake, lake, columns=["income"]).rate > 0.015
