"""Every benchmark runs, at about a hundredth of its size. Its figures mean something only at full size: see each file."""

import bench_fuzzy
import bench_linkage
import bench_memory
import bench_noise
import bench_probabilistic_linkage
import bench_refinement


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


def test_refinement(capsys, reference):
    (seconds,) = bench_refinement.main(["--rows", "5e4", "--requirements", "1", "--data", str(reference)])
    assert seconds > 0
    assert '"ratio_to_one"' in capsys.readouterr().out
