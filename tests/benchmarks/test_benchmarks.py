"""Every benchmark runs, at about a hundredth of its size, and reports its figures beside their limits.

Figures are held to their limits at full size only, where they mean something: then a broken one ends the benchmark with
exit code 1. Here it is shown that each is reported with the limits it will be held to, and what holds at any size.
"""

import json

import bench_engine
import bench_explore
import bench_fuzzy
import bench_gate
import bench_households
import bench_lake
import bench_linkage
import bench_memory
import bench_microaggregation
import bench_mondrian
import bench_noise
import bench_order
import bench_probabilistic_linkage
import bench_refinement
import bench_regression
import bench_series
import bench_start
import bench_suppression
import bench_transforms
import bench_utility
import bench_wide
import common
import pytest
import scale_on_paper

pytestmark = pytest.mark.machine


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
    bench_noise.main(["--rows", "1e4", "--rounds", "1"])
    (one,) = figures()["noise"]
    assert one["at_most"] == {"ratio": 1.6, "ratio_same_settings": 2.2}
    assert one["ratio"] == one["cpu"]["files"] / one["cpu"]["pyarrow"]
    assert one["ratio"] < one["whole"][0]  # at any size: measuring is part of a run


def test_order(figures):
    bench_order.main(["--rows", "1e5", "--rounds", "1"])
    (one,) = figures()["order"]
    assert one["at_most"] == {"extra": 1}
    assert one["ratio"] < 2  # at any size: a shuffle is not a second run


def test_gate(figures):
    bench_gate.main(["--rows", "6e3", "--job", "public_use_file"])
    (one,) = figures()["gate"]
    assert limited(one) == ["ratio"]
    assert one["ratio"] < 1  # at any size: attacking is not more than masking, measuring and writing


def test_memory(figures):
    small, large = bench_memory.main(["--rows", "3e4", "3e5", "--block-rows", "6e3"])
    # what a worker and the driver hold does not grow with the table: a decoded block is 0.6 MB here, fifty of them 31 MB; five are shuffled as fifty are
    assert large["driver_peak_mb"] - small["driver_peak_mb"] < 20
    assert (large["worker_peak_in_blocks"] - small["worker_peak_in_blocks"]) < 40
    assert [limited(one) for one in figures()["memory"]] == [["worker_peak_in_blocks"]] * 2


def test_fuzzy(figures):
    small = ["--rows", "1e4", "--rounds", "1", "--large", "3e5", "--tolerance", "3e3", "--kappas", "0.2", "--slow"]
    _, passes = bench_fuzzy.main(small)
    assert passes <= 12
    found = figures()
    assert [one["at_most"] for one in found["fuzzy tolerance"]] == [{"pass_to_plain": 3, "passes": 12}]
    ten, _, both, slow = found["fuzzy pass"]
    assert [limited(one) for one in (ten, both, slow)] == [
        ["two_to_lloyd", "special_to_lloyd", "sharp_to_lloyd", "general_to_lloyd"],
        ["general_to_special", "hundred_to_ten"],
        ["scikit_fuzzy_to_ours"],
    ]


def test_probabilistic_linkage(figures):
    bench_probabilistic_linkage.main(["--rows", "1e4", "--columns", "4"])
    (one,) = figures()["probabilistic_linkage"]
    assert limited(one) == ["cpu"]
    assert one["rate"] > 100 / one["rows"]  # guessing links one in all rows


def test_linkage(figures):
    _, _, ratios = bench_linkage.main(
        ["--rows", "1e4", "--large", "1e4", "--lake", "1e5", "--joint", "1e4", "--rounds", "1"]
    )
    assert ratios[1000] > 1  # also here collapsing saves time
    found = figures()
    assert len(limited(found["linkage"][-1])) == 3
    assert limited(found["linkage, lake growth"][0]) == ["times"]
    assert limited(found["linkage, joint"][0]) == ["ratio"]


def test_transforms(figures):
    bench_transforms.main(["--rows", "1e4", "--rounds", "1"])
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


def test_wide(figures):
    found = bench_wide.main(["--rows", "300", "--columns", "120"])
    assert limited(figures()["wide"][0]) == ["cpu", "peak_mb"]
    assert {"distance_linkage", "noise_filter"} <= set(found["rates"])


def test_microaggregation(figures):
    small = ["--rows", "2e3", "1e4", "--plain", "1e3", "--mdav", "1e3", "--sizes", "400", "200"]
    bench_microaggregation.main([*small, "--files", "tarragona.csv"])
    found = figures()
    assert 0.9 <= found["microaggregation cells"][0]["ratio_to_plain"] < 1.5
    for name in ("microaggregation growth", "fuzzy_microaggregation growth"):
        assert [limited(one) for one in found[name]] == [["times_the_last"]] * 2
        assert all(one["lloyd_passes"] > 0 for one in found[name])
    assert [one["at_most"] for one in found["microaggregation files"]] == [
        {"quarter": 1.2, "tenth": 1.2},
        {"quarter": 1.2},
    ] * 2
    assert limited(found["microaggregation patterns"][0]) == ["ratio"]
    assert not common.BROKEN  # the loss on the census data is judged at any size


def test_households(figures):
    bench_households.main(["--rows", "2e4"])
    found = figures()["refinement of households"][0]
    assert limited(found) == ["ratio"]
    assert 0 < found["dropped"] <= 0.05


def test_refinement(figures, reference):
    bench_refinement.main(["--rows", "5e4", "--requirements", "1", "--data", str(reference)])
    found = figures()
    assert limited(found["refinement"][0]) == ["cpu_rounds", "growth_of_a_pass"]
    assert found["refinement, dropping"][0]["dropped"] <= 0.05
    assert limited(found["refinement, models"][0]) == ["worst"]
    assert limited(found["refinement, known"][0]) == ["cpu_rounds"]


def test_mondrian(figures, reference):
    bench_mondrian.main(["--rows", "2e4", "--data", str(reference)])
    (one,) = figures()["mondrian"]
    assert limited(one) == ["cpu_fit"]
    assert one["loss"] < one["loss_of_one_cut"]


def test_suppression(figures, reference):
    """Both rules leave nobody with fewer than k matches; ours takes about as many cells."""
    bench_suppression.main(["--rows", "2e4", "--sample", "500", "--data", str(reference)])
    found = figures()
    assert limited(found["suppression"][0]) == ["cpu_fit"]
    assert 0 < found["suppression"][0]["share"] <= 0.02
    (peer,) = found["suppression, sdcMicro's rule"]
    assert min(peer["fewest_matches"], peer["fewest_matches_sdcmicro"]) >= bench_suppression.K
    assert 0 < peer["cells"] <= 1.05 * peer["cells_sdcmicro"]


def test_start(figures):
    for found in bench_start.main(["--rows", "2e4"]):
        assert 0 < found["warm"] < found["cold"]
    found = figures()
    assert limited(found["start: README's job"][0]) == ["cold"]
    assert limited(found["start: FuzzyCMeans"][0]) == ["cold"]
    assert limited(found["start: noise, 1,000 rows"][0]) == ["warm"]
    assert limited(found["start: --help"][0]) == ["cpu"]


def test_engine(figures):
    bench_engine.main(["--blocks", "20", "--passes", "2", "--rounds", "1", "--rows", "4e3"])
    found = figures()
    assert limited(found["engine, overhead of a pass"][0]) == ["most_ms"]
    assert limited(found["engine, first task"][0]) == ["seconds"]


def test_lake(figures):
    bench_lake.main(["--files", "150", "--groups", "150"])
    found = figures()
    for kind in ("files", "groups"):
        (one,) = found[f"lake, {kind}"]
        assert limited(one) == ["seconds", "requests_beyond_footers"]
        assert one["requests_beyond_footers"] < 100  # at any size: no file is asked for twice


def test_series(figures):
    bench_series.main(["--rows", "1e4"])
    (one,) = figures()["series"]
    assert limited(one) == ["check"]
    assert one["least"] >= bench_series.K


def test_explore(figures):
    bench_explore.main(["--rows", "6e3", "--moves", "1", "--jobs", "cluster_analysis"])
    (one,) = figures()["explore: moves of jobs/cluster_analysis/job.yaml"]
    assert sorted(limited(one)) == ["first", "memory", "p95", "seconds_p95"]


def test_scale_on_paper(capsys):
    found = scale_on_paper.main([])
    table = capsys.readouterr().out
    assert table in (common.Path(__file__).parents[2] / "docs" / "scale.md").read_text()
    assert max(one["driver_mb"] for one in found) < 1000
