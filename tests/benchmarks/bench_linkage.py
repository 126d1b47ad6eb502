"""CPU of distance-based record linkage against exact nearest neighbours: faiss's flat index and scipy's k-d tree.

python tests/benchmarks/bench_linkage.py [--rows 1e5] [--large 1e6] [--lake 1e7] [--joint 1e6] [--only-joint] [--rounds 3] [--census FILE]

The original is census.csv of the CASC project, replicated to the number of rows with noise of 5 % of each standard deviation; without the
file, the benchmarks' own population. The mask is noise of 10 % and of 50 %. All columns known, every record attacked, two threads, building
included (but not for faiss, which only copies). Contestants take turns; the least CPU of all threads over the rounds counts. Peers that would take minutes answer a share of
the queries, and their time is scaled: at least 128,000 numbers of queries for faiss, below that it is some 12 times slower per pair.

Limits: at 1e5 x 13 at most 1.0 times faiss at either noise, and less than the k-d tree in its worse case; at 1e6 x 5 at most 1.2 times the
faster of the two; equal rows of a microaggregated mask collapsed at least 10 times faster than not, where groups have 1000 records (of 10
and 100 it is told); at 1e7 masked rows with 20,000 attacked, time in proportion to the rows, the memory printed. The whole measure of a census,
numbers, categories and generalised columns, with the joint attack and what it says of columns: at most 2 times the plain intruders on the thirteen numbers of the lake above, the same number of records attacked in as many rows; on its own five numbers it is printed.
"""

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout, suppress
from dataclasses import replace

import numpy as np
from common import COLUMNS, Path, PeakMemory, Population, numeric_lake, os, say, within_limits

from dpmask.kernels.linkage.nearest import Masked, Metric, Radii, search, true_radii
from dpmask.kernels.linkage.record_tree import build_tree

THREADS = 2
FULL = 1e5
CENSUS = Path(os.environ.get("DPMASK_REFERENCE_DATA", Path(__file__).parents[3] / "shared" / "data")) / "census.csv"
NONE = np.zeros(0)


def original(rows, columns, census):
    """columns x rows, standardised."""
    rng = np.random.default_rng(0)
    if census.is_file():
        base = np.loadtxt(census, delimiter=",", skiprows=1)[:, :columns].T
        table = base[:, np.arange(rows) % base.shape[1]]
        table = table + rng.standard_normal(table.shape) * (0.05 * table.std(axis=1, keepdims=True))
    else:
        table = Population().draw(rows)[:columns]
    return (table - table.mean(axis=1, keepdims=True)) / table.std(axis=1, keepdims=True)


def noisy(table, scale):
    return table + np.random.default_rng(1).standard_normal(table.shape) * scale


def microaggregated(table, size):
    """Groups of about this many by two rounds of k-means, each record replaced by its group's mean."""
    from scipy.spatial import cKDTree

    count = table.shape[1] // size
    centers = table[:, np.random.default_rng(2).choice(table.shape[1], count, replace=False)]
    for _ in range(2):
        group = cKDTree(centers.T).query(table.T, workers=THREADS)[1]
        members = np.maximum(np.bincount(group, minlength=count), 1)
        centers = np.array([np.bincount(group, column, minlength=count) / members for column in table])
    return np.ascontiguousarray(centers[:, group])


def cpu(work):
    begun = time.process_time()
    work()
    return time.process_time() - begun


def ours(known, points, collapse=True):
    metric = Metric(len(known), None, NONE, NONE, NONE)
    nothing = np.empty((0, known.shape[1]))

    def work():
        masked = Masked(points, nothing, nothing)
        radii = true_radii(metric, known, masked)
        tree = build_tree(points, nothing, NONE, NONE, collapse=collapse)
        parts = np.array_split(np.arange(known.shape[1]), THREADS)
        with ThreadPoolExecutor(THREADS) as pool:
            halves = (slice(part[0], part[-1] + 1) for part in parts)
            list(pool.map(lambda p: search(tree, metric, known[:, p], Radii(*(r[p] for r in radii))), halves))

    return lambda: cpu(work)


def kd_tree(known, points, share=1.0):
    from scipy.spatial import cKDTree

    queries = np.ascontiguousarray(known.T[: int(share * known.shape[1])])
    rows = np.ascontiguousarray(points.T)

    def run():
        tree = []
        building = cpu(lambda: tree.append(cKDTree(rows)))
        return building + cpu(lambda: tree[0].query(queries, workers=THREADS)) / share

    return run


def faiss_flat(known, points, share=1.0):
    import faiss

    faiss.omp_set_num_threads(THREADS)
    queries = np.ascontiguousarray(known.T[: int(share * known.shape[1])], np.float32)
    rows = np.ascontiguousarray(points.T, np.float32)
    index = faiss.IndexFlatL2(len(known))
    index.add(rows)
    return lambda: cpu(lambda: index.search(queries, 1)) / share


def race(contestants, rounds):
    best = dict.fromkeys(contestants, np.inf)
    for _ in range(rounds):
        for name, run in contestants.items():
            best[name] = min(best[name], run())
    return best


def against_peers(rows, columns, census, rounds, shares):
    """The worst ratio to faiss, and to the faster of the two, over both masks."""
    table = original(rows, columns, census)
    ours(table[:, :200], table[:, :200])()  # compile
    found = {}
    for scale in (0.1, 0.5):
        masked = noisy(table, scale)
        contestants = {
            "ours": ours(table, masked),
            "faiss": faiss_flat(table, masked, shares["faiss"]),
            "kd_tree": kd_tree(table, masked, shares["kd_tree"]),
        }
        found[scale] = race(contestants, rounds)
        say(
            benchmark="linkage",
            rows=rows,
            columns=columns,
            noise=scale,
            cpu=found[scale],
            queries_per_cpu_second={name: rows / seconds for name, seconds in found[scale].items()},
            ratio_to_faiss=found[scale]["ours"] / found[scale]["faiss"],
            ratio_to_faster=found[scale]["ours"] / min(found[scale]["faiss"], found[scale]["kd_tree"]),
        )
    return found


def collapsing(rows, columns, census, rounds):
    table = original(rows, columns, census)
    ratios = {}
    for size in (10, 100, 1000):
        masked = microaggregated(table, size)
        best = race({"collapsed": ours(table, masked), "not": ours(table, masked, collapse=False)}, rounds)
        ratios[size] = best["not"] / best["collapsed"]
        say(benchmark="linkage, microaggregated", rows=rows, columns=columns, size=size, cpu=best, ratio=ratios[size])
    return ratios


def lake(rows):
    """The whole measure, nine intruders, on a lake that is masked as it is read."""
    import dpmask

    with tempfile.TemporaryDirectory() as folder:
        block_rows = min(rows // 2, 1_000_000)
        table = dpmask.read_lake(str(numeric_lake(Path(folder) / "lake", rows, block_rows)), block_rows=block_rows)
        masked = table.masked_by(dpmask.NoiseAddition(columns=COLUMNS, scale=0.3).fit(table, seed=1))
        with PeakMemory([os.getpid()]) as memory:
            begun = time.process_time()
            found = dpmask.risk.distance_linkage(
                table, masked, columns=COLUMNS, limit=10_000, sample=min(rows // 10, 20_000)
            )
            seconds = time.process_time() - begun
    peak = (memory.peak[os.getpid()] - memory.start[os.getpid()]) / 1e6
    say(
        benchmark="linkage, lake",
        rows=rows,
        attacked=found.attacked,
        cpu=seconds,
        cpu_per_million=seconds / rows * 1e6,
        wall=found.seconds,
        peak_mb=peak,
        rate=found.rate,
    )
    return seconds


def census_attacks(rows):
    """The whole measure of ten columns against the plain intruders on five of them, the same records attacked."""
    import dpmask
    from dpmask.cli import main as command

    numbers = ["net", "tax", "gross", "hours", "weight"]
    quasi, block_rows = ["age", "sex", "education", "occupation", "region"], min(rows // 2, 1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        with suppress(SystemExit), redirect_stdout(sys.stderr):
            command(["generate", f"{folder}/lake", "--rows", str(rows)])
        table = dpmask.read_lake(f"{folder}/lake", block_rows=block_rows)
        taxonomies = {
            name: str(Path(__file__).parents[2] / f"jobs/taxonomies/{name}.yaml")
            for name in ("education", "occupation", "region")
        }
        labels = dpmask.TopDownRefinement(requirements=[(quasi, 20)], taxonomies=taxonomies, domains={"age": [0, 120]})
        fitted = labels.fit(replace(table, blocks=table.blocks[:1]), seed=1)  # what is fitted is not measured here
        masked = table.masked_by(fitted)
        masked = masked.masked_by(dpmask.NoiseAddition(columns=tuple(numbers), scale=0.3).fit(masked, seed=1))
        options = {"limit": 10_000, "sample": min(rows // 10, 20_000)}
        plain = cpu(lambda: plain_attacks(table, masked, numbers, options["sample"]))
        with PeakMemory([os.getpid()]) as memory:
            columns = [*quasi, *numbers]
            joint = cpu(
                lambda: dpmask.risk.distance_linkage(
                    table, masked, columns=columns, sets=fitted.label_sets(), **options
                )
            )
        numeric = dpmask.read_lake(str(numeric_lake(Path(folder) / "numbers", rows, block_rows)), block_rows=block_rows)
        noised = numeric.masked_by(dpmask.NoiseAddition(columns=COLUMNS, scale=0.3).fit(numeric, seed=1))
        before = cpu(lambda: plain_attacks(numeric, noised, COLUMNS, options["sample"]))
    peak = (memory.peak[os.getpid()] - memory.start[os.getpid()]) / 1e6
    say(
        benchmark="linkage, joint",
        full=rows >= 10 * FULL,
        at_most={"ratio": 2},
        rows=rows,
        cpu={"plain": before, "plain, its own five numbers": plain, "joint": joint},
        peak_mb=peak,
        ratio=joint / before,
        ratio_to_its_own_numbers=joint / plain,
    )
    return joint / before


def plain_attacks(table, masked, columns, sample):
    """What the measure was before it attacked jointly: who knows the first columns, all of them, and how they moved."""
    from functools import partial

    from dpmask.engine.draws import chosen_records, make_key
    from dpmask.kernels.covariance import merge_covariance_sums
    from dpmask.measures.risk.distance_linkage import DistanceLinkage, compared_values
    from dpmask.measures.risk.linkage_attack import LinkageAttack, linked
    from dpmask.measures.risk.linkage_metrics import first_columns, mahalanobis, moved
    from dpmask.table.pairs import POSITION, PRESENT, masked_name, pair

    values = compared_values(table, masked, DistanceLinkage(columns=columns, sets={}, sample=sample, limit=1))
    pairs = pair(table, masked, columns, "benchmark", marks=True)
    names = [*columns, *map(masked_name, columns), POSITION, PRESENT]
    moves = pairs.select(names).reduce(partial(moved, values), merge_covariance_sums, "moves")
    whole = first_columns(values)
    known = [first_columns(values[:count]) for count in range(1, min(len(values) - 1, 7) + 1)]
    metrics = [*known, whole, mahalanobis(whole, moves)]
    chosen = chosen_records(make_key("benchmark", seed=0).subkey("linkage"), pairs.rows, sample)
    attack = LinkageAttack(values, metrics, chosen)
    return linked(attack, pairs.select(names), sample, masked.select(columns), "benchmark")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e5)
    parser.add_argument("--large", type=float, default=1e6)
    parser.add_argument("--lake", type=float, default=1e7)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--census", type=Path, default=CENSUS)
    parser.add_argument("--joint", type=float, default=1e6)
    parser.add_argument("--only-joint", action="store_true")
    options = parser.parse_args(arguments)
    if options.only_joint:
        return census_attacks(int(options.joint))
    wide = against_peers(
        int(options.rows), 13, options.census, options.rounds, {"faiss": 1.0, "kd_tree": min(1.0, 1e4 / options.rows)}
    )
    large = against_peers(
        int(options.large), 5, options.census, options.rounds, {"faiss": min(1.0, 3e4 / options.large), "kd_tree": 0.2}
    )
    say(
        benchmark="linkage",
        full=options.rows >= FULL and options.large >= 10 * FULL,
        at_most={"ratio_to_faiss": 1, "ratio_to_kd_tree_in_its_worse_case": 1, "ratio_to_faster_when_large": 1.2},
        ratio_to_faiss=max(best["ours"] / best["faiss"] for best in wide.values()),
        ratio_to_kd_tree_in_its_worse_case=max(b["ours"] for b in wide.values())
        / max(b["kd_tree"] for b in wide.values()),
        ratio_to_faster_when_large=max(best["ours"] / min(best["faiss"], best["kd_tree"]) for best in large.values()),
    )
    ratios = collapsing(int(options.rows), 13, options.census, options.rounds)
    full, at_least = options.rows >= FULL, {"ratio_at_1000": 10}
    say(full=full, at_least=at_least, benchmark="linkage, microaggregated", ratio_at_1000=ratios[1000])
    small, large_lake = lake(int(options.lake / 5)), lake(int(options.lake))
    say(full=full, at_most={"times": 6}, benchmark="linkage, lake growth", rows_times=5, times=large_lake / small)
    census_attacks(int(options.joint))
    return wide, large, ratios


if __name__ == "__main__":
    within_limits(main)
