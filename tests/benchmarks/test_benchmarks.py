"""Every benchmark runs, at about a hundredth of its size, and reports its figures beside their limits.

Figures are held to their limits at full size only, where they mean something: then a broken one ends the benchmark with
exit code 1. Here it is shown that each is reported with the limits it will be held to, and what holds at any size.
"""

import json

import bench_engine
import bench_fuzzy
import bench_linkage
import bench_memory
import bench_microaggregation
import bench_noise
import bench_probabilistic_linkage
import bench_refinement
import bench_regression
import bench_start
import bench_transforms
import bench_utility
import common
import pytest


@pytest.fixture
def figures(capsys, monkeypatch):
    """What a benchmark reported since: the figures of each name."""
    monkeypatch.setattr(common, "BROKEN", [])

    def reported():
        found = {}
        for line in capsys.readouterr().out.splitlines():
            one = json.loads(line)
            found.setdefault(one["benchmark"], []).append(one)
        return found

    return reported


def limited(one):
    """A report's figures that have a limit: all are there, and positive."""
    names = [*one.get("at_most", {}), *one.get("at_least", {})]
    assert names, f"{one['benchmark']} has no limit"
    assert all(one[name] >= 0 for name in names)
    assert one["full_size"] is False
    return names


def test_a_limit_broken_at_full_size_ends_a_benchmark(monkeypatch, capsys):
    monkeypatch.setattr(common, "BROKEN", [])
    kept = {"benchmark": "some", "ratio": 2.0}
    common.within_limits(lambda: common.say(full=True, at_most={"ratio": 2}, at_least={"ratio": 2}, **kept))
    common.within_limits(lambda: common.say(full=False, at_most={"ratio": 1}, **kept))
    with pytest.raises(SystemExit, match="some: ratio is 2, limit at most 1"):
        common.within_limits(lambda: common.say(full=True, at_most={"ratio": 1}, **kept))
    common.BROKEN.clear()
    with pytest.raises(SystemExit, match="at least 3"):
        common.within_limits(lambda: common.say(full=True, at_least={"ratio": 3}, **kept))


def test_noise(figures):
    bench_noise.main(["--rows", "1e5", "--rounds", "1"])
    (one,) = figures()["noise"]
    assert limited(one) == ["ratio"]
    assert one["ratio"] == one["cpu"]["dpmask"] / one["cpu"]["pyarrow"]


def test_memory(figures):
    small, large = bench_memory.main(["--rows", "1e4", "5e5", "--block-rows", "1e4"])
    # what a worker and the driver hold does not grow with the table: a decoded block is 1 MB here, fifty of them 52 MB
    assert large["driver_peak_mb"] - small["driver_peak_mb"] < 20
    assert (large["worker_peak_in_blocks"] - small["worker_peak_in_blocks"]) < 40
    assert [limited(one) for one in figures()["memory"]] == [["worker_peak_in_blocks"]] * 2


def test_fuzzy(figures):
    _, passes = bench_fuzzy.main(["--rows", "1e4", "--rounds", "1", "--large", "3e5", "--slow"])
    assert passes <= 12
    ten, _, both, slow = figures()["fuzzy pass"]
    assert [limited(one) for one in (ten, both, slow)] == [
        ["special_to_lloyd"],
        ["general_to_special", "hundred_to_ten"],
        ["scikit_fuzzy_to_ours"],
    ]


def test_probabilistic_linkage(figures):
    bench_probabilistic_linkage.main(["--rows", "1e4", "--columns", "4"])
    (one,) = figures()["probabilistic_linkage"]
    assert limited(one) == ["cpu"]
    assert one["rate"] > 100 / one["rows"]  # guessing links one in all rows


def test_linkage(figures):
    _, _, ratios = bench_linkage.main(["--rows", "1e4", "--large", "1e4", "--lake", "1e5", "--rounds", "1"])
    assert ratios[1000] > 1  # also here collapsing saves time
    found = figures()
    assert len(limited(found["linkage"][-1])) == 3
    assert limited(found["linkage, lake growth"][0]) == ["times"]


def test_transforms(figures):
    _, (small, large) = bench_transforms.main(["--rows", "4e4", "--rounds", "1"])
    assert large["driver_peak_mb"] - small["driver_peak_mb"] < 20  # rows never come to the driver
    found = figures()
    assert limited(found["transforms"][0]) == ["ratio"]
    assert limited(found["swapping growth"][0]) == ["cpu_a_million_rows"]


def test_regression(figures):
    _, (small, large) = bench_regression.main(
        ["--rows", "2e4", "--rounds", "1", "--clusters", "3", "--lakes", "2e4", "3e5", "--block-rows", "1e4"]
    )
    # a block is 2 MB here, the larger lake 48 MB: what a worker holds does not grow with it
    assert large - small < 30
    found = figures()
    assert [limited(one) for one in found["regression"]] == [["ratio"]] * 2
    assert limited(found["regression memory growth"][0]) == ["worker_peak"]


def test_utility(figures):
    _, passes = bench_utility.main(["--rows", "1e5"])
    assert passes == 3
    assert limited(figures()["utility"][0]) == ["reads", "passes"]


def test_microaggregation(figures):
    bench_microaggregation.main(["--rows", "2e3", "1e4", "--plain", "1e3", "--mdav", "1e3", "--sizes", "400", "200"])
    found = figures()
    assert 1 <= found["microaggregation cells"][0]["ratio_to_plain"] < 1.5
    assert [limited(one) for one in found["microaggregation growth"]] == [["times_the_last"]] * 2
    assert not common.BROKEN  # the loss on the census data is judged at any size


def test_refinement(figures, reference):
    bench_refinement.main(["--rows", "5e4", "--requirements", "1", "--data", str(reference)])
    found = figures()
    assert limited(found["refinement"][0]) == ["cpu_rounds"]
    assert found["refinement, dropping"][0]["dropped"] <= 0.05


def test_start(figures):
    for found in bench_start.main(["--rows", "2e4"]):
        assert 0 < found["warm"] < found["cold"]
    found = figures()
    assert limited(found["start: README's job"][0]) == ["cold"]
    assert limited(found["start: FuzzyCMeans"][0]) == ["cold"]
    assert limited(found["start: noise, 1,000 rows"][0]) == ["warm"]
    assert limited(found["start: --help"][0]) == ["cpu"]


def test_engine(figures):
    bench_engine.main(["--blocks", "20", "--passes", "2", "--rounds", "1", "--rows", "4e4"])
    found = figures()
    assert limited(found["engine, overhead of a pass"][0]) == ["most_ms"]
    assert limited(found["engine, first task"][0]) == ["seconds"]
