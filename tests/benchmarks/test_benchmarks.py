"""Every benchmark runs, at about a hundredth of its size. Its figures mean something only at full size: see each file."""

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


def test_noise(capsys):
    assert bench_noise.main(["--rows", "1e5", "--rounds", "1"]) > 0
    assert '"benchmark": "noise"' in capsys.readouterr().out


def test_memory(capsys):
    small, large = bench_memory.main(["--rows", "1e4", "5e5", "--block-rows", "1e4"])
    # what a worker and the driver hold does not grow with the table: a decoded block is 1 MB here, fifty of them 52 MB
    assert large["driver_peak_mb"] - small["driver_peak_mb"] < 20
    assert (large["worker_peak_in_blocks"] - small["worker_peak_in_blocks"]) < 40
    assert '"benchmark": "memory"' in capsys.readouterr().out


def test_fuzzy(capsys):
    ratio, passes = bench_fuzzy.main(["--rows", "1e4", "--rounds", "1", "--large", "1e5", "--slow"])
    assert ratio > 0
    assert passes <= 12
    assert '"scikit_fuzzy_to_ours"' in capsys.readouterr().out


def test_probabilistic_linkage(capsys):
    assert bench_probabilistic_linkage.main(["--rows", "1e4", "--columns", "4"]) > 0
    assert '"benchmark": "probabilistic_linkage"' in capsys.readouterr().out


def test_linkage(capsys):
    wide, large, ratios = bench_linkage.main(["--rows", "1e4", "--large", "1e4", "--lake", "1e5", "--rounds", "1"])
    assert min(seconds for best in (*wide.values(), *large.values()) for seconds in best.values()) > 0
    assert ratios[1000] > 1
    assert '"benchmark": "linkage, lake"' in capsys.readouterr().out


def test_transforms(capsys):
    ratio, (small, large) = bench_transforms.main(["--rows", "4e4", "--rounds", "1"])
    assert ratio > 0
    assert large["driver_peak_mb"] - small["driver_peak_mb"] < 20  # rows never come to the driver
    assert '"benchmark": "swapping"' in capsys.readouterr().out


def test_regression(capsys):
    ratios, (small, large) = bench_regression.main(
        ["--rows", "2e4", "--rounds", "1", "--clusters", "3", "--lakes", "2e4", "3e5", "--block-rows", "1e4"]
    )
    assert all(ratio > 0 for ratio in ratios)
    # a block is 2 MB here, the larger lake 48 MB: what a worker holds does not grow with it
    assert large - small < 30
    assert '"benchmark": "regression memory"' in capsys.readouterr().out


def test_utility(capsys):
    reads, passes = bench_utility.main(["--rows", "1e5"])
    assert reads > 0
    assert passes == 3
    assert '"benchmark": "utility"' in capsys.readouterr().out


def test_microaggregation(capsys):
    ratio, (small, large) = bench_microaggregation.main(
        ["--rows", "2e3", "1e4", "--plain", "1e3", "--mdav", "1e3", "--sizes", "400", "200"]
    )
    assert min(ratio, small, large) > 0
    assert '"benchmark": "microaggregation growth"' in capsys.readouterr().out


def test_refinement(capsys, reference):
    (seconds,) = bench_refinement.main(["--rows", "5e4", "--requirements", "1", "--data", str(reference)])
    assert seconds > 0
    assert '"ratio_to_one"' in capsys.readouterr().out


def test_start(capsys):
    job, fit, small = bench_start.main(["--rows", "2e3"])
    for found in (job, fit, small):
        assert 0 < found["warm"] < found["cold"]
    assert '"benchmark": "start: --help"' in capsys.readouterr().out


def test_engine(capsys):
    overhead, first, speed_up = bench_engine.main(["--blocks", "20", "--passes", "2", "--rounds", "1", "--rows", "4e4"])
    assert min(overhead.values()) > 0
    assert first > 0
    assert speed_up > 0
    assert '"benchmark": "engine, speed-up"' in capsys.readouterr().out
