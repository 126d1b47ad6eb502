"""Rank swapping: every column keeps its values, within the window, in memory and in files, after noise in a job."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import people, write_lake
from transform_tools import NUMBERS, SMALL_SHARDS

import dpmask
from dpmask.engine.collection import itself
from dpmask.errors import InputError
from dpmask.table.table import as_table


@pytest.fixture(scope="module")
def table():
    """With integers and decimals that a double cannot hold."""
    rng = np.random.default_rng(1)
    whole = pa.array(2**62 + rng.permutation(1000))
    exact = pa.array([f"{n:03d}45678901234567890.{n:03d}" for n in rng.integers(100, 999, 1000)])
    return people(1000).append_column("whole", whole).append_column("exact", exact.cast(pa.decimal128(30, 3)))


def swap(table, columns, **options):
    method = dpmask.RankSwapping(columns=columns, **{"share": 0.8, "window": 0.1} | options)
    return as_table(table, "test").masked_by(method.fit(table, seed=3))


@pytest.mark.parametrize("window", [0.02, 0.3, 1.0])
def test_swapping_keeps_every_column_to_the_last_digit(tmp_path, table, limit, window):
    limit(**SMALL_SHARDS)
    write_lake(tmp_path / "lake", table, files=3)
    lake = dpmask.read_lake(str(tmp_path / "lake"), block_rows=150)
    columns = [*NUMBERS, "whole", "exact"]
    masked = swap(lake, columns, window=window)
    rows = pa.concat_tables(masked.select(columns).map(itself, "read"))
    for name in columns:
        before, after = table[name].to_pylist(), rows[name].to_pylist()
        assert rows.schema.field(name).type == table.schema.field(name).type
        assert [value is None for value in after] == [value is None for value in before], name
        kept = [(one, two) for one, two in zip(before, after, strict=True) if one is not None]
        assert sorted(one for one, _ in kept) == sorted(two for _, two in kept), name
        assert after != before
    moved = np.mean(
        [one != two for one, two in zip(table["whole"].to_pylist(), rows["whole"].to_pylist(), strict=True)]
    )
    assert 0.7 < moved <= 0.85


@pytest.mark.parametrize("window", [0.02, 0.1, 0.4])
def test_most_values_move_by_the_window_at_most_and_some_by_more(frame, limit, window):
    """Also where many are equal: between a value and what came in its place."""
    limit(**SMALL_SHARDS)
    for name in ("age", "income", "children"):
        masked = dpmask.RankSwapping(columns=[name], window=window).fit(frame, seed=1).mask(frame)
        before, after = frame[name].dropna().to_numpy(float), masked[name].dropna().to_numpy(float)
        ordered = np.sort(before)
        low, high = np.minimum(before, after), np.maximum(before, after)
        between = np.searchsorted(ordered, high, "left") - np.searchsorted(ordered, low, "right")
        assert np.mean(between <= window * len(before)) > 0.9
        assert between.max() > window * len(before) or name != "income"  # no window bounds it


def test_values_cross_every_shard(frame, limit):
    """No cut tells where values cannot have come from."""
    limit(**SMALL_SHARDS)
    crossed = np.zeros(999, bool)
    for seed in range(8):
        masked = dpmask.RankSwapping(columns=["income"], window=0.1).fit(frame, seed=seed).mask(frame)
        ranks, moved = (np.sort(one) for one in (frame["income"], masked["income"]))
        before, after = np.searchsorted(ranks, frame["income"]), np.searchsorted(moved, masked["income"])
        for low, high in zip(np.minimum(before, after), np.maximum(before, after), strict=True):
            crossed[low:high] = True
    assert crossed.all()


def test_swapping_in_files_is_the_same(frame, limit):
    limit(**SMALL_SHARDS)
    one = swap(frame, NUMBERS[:4]).to_dask().compute()
    limit(memory_share=0.0)
    pd.testing.assert_frame_equal(swap(frame, NUMBERS[:4]).to_dask().compute(), one)


def test_swapping_says_what_it_cannot_do(frame):
    with pytest.raises(InputError, match=r"a window of 0.001 of the 1,000 values of 'age' has no two of them"):
        dpmask.RankSwapping(columns=["age"], share=1, window=0.001).fit(frame, seed=1)
    with pytest.warns(UserWarning, match="values of 'age' move by 1.1 ranks on average, hardly at all"):
        dpmask.RankSwapping(columns=["age"], window=0.003).fit(frame, seed=1)


def test_a_job_with_noise_then_swapping(place):
    place.lake()
    steps = [
        {"method": "noise", "columns": NUMBERS, "scale": 0.2},
        {"method": "swapping", "columns": NUMBERS, "share": 0.5, "window": 0.1},
    ]
    assert place.run(mask=steps[:1], target="noisy", private="p1", order="input").code == 0
    ended = place.run(mask=steps, order="input")
    assert ended.code == 0, ended.err
    assert place.dpmask("verify", "release").code == 0
    _, released = place.released()
    for name in NUMBERS:
        assert released[name].null_count == people()[name].null_count
    manifest, _ = place.released()
    assert "changed places" in json.dumps(manifest["steps"])
    first = place.bytes()
    assert place.run(mask=steps, order="input", target="again", private="p2").code == 0
    data = {path: content for path, content in first.items() if path.startswith("data")}
    assert data == {path: content for path, content in place.bytes("again").items() if path.startswith("data")}
