"""A shuffle over the whole release costs at most one more write and read of it.

python tests/benchmarks/bench_order.py [--rows 1e7] [--rounds 3] [--folder DIR]

The CPU of a run in ``order: shuffled`` less that in ``order: within_files``, in units of the CPU it takes pyarrow to read and write the
release once, with the settings dpmask writes with: the limit is 1. All run in processes of their own, in turn; the least of the rounds
counts. Of 13 columns one gets noise, so that the attack on it, which is no part of either, is the smaller part of a run.
"""

import argparse
import shutil
import tempfile

from common import COLUMNS, DPMASK, Path, cpu_of, noise_job, numeric_lake, say, within_limits

PEER = """
import sys, glob
import pyarrow.parquet as pq
source, target = sys.argv[1:]
ours = {"compression": "zstd", "use_dictionary": False, "use_byte_stream_split": True, "max_rows_per_page": 1 << 17}
for number, path in enumerate(sorted(glob.glob(source + "/data/*/*.parquet"))):
    table = pq.ParquetFile(path).read(use_threads=False)
    pq.write_table(table, f"{target}/{number}.parquet", row_group_size=len(table), **ours)
    del table
"""
IMPORT = "import pyarrow.parquet"
BLOCK_ROWS, FULL = 1_000_000, 10_000_000
JOB = {
    "mask": [{"method": "noise", "columns": COLUMNS[:1], "scale": 0.1}],
    "accept": dict.fromkeys(COLUMNS[1:], "people made for a benchmark"),
}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        return measure(Path(folder), int(options.rows), options.rounds)


def measure(folder, rows, rounds):
    block_rows = min(BLOCK_ROWS, rows // 4)
    numeric_lake(folder / "lake", rows, block_rows)
    cpu = {"shuffled": [], "within_files": [], "read_and_write": []}
    for _ in range(rounds):
        for order in ("shuffled", "within_files"):
            cpu[order].append(cpu_of(DPMASK, "run", noise_job(folder, block_rows, order=order, **JOB)))
            if order == "shuffled":
                (folder / "peer").mkdir()
                peer = cpu_of(PEER, folder / "release", folder / "peer") - cpu_of(IMPORT)
                cpu["read_and_write"].append(peer)
            for name in ("release", "private", *(["peer"] if order == "shuffled" else [])):
                shutil.rmtree(folder / name)
    least = {name: min(seconds) for name, seconds in cpu.items()}
    extra = (least["shuffled"] - least["within_files"]) / least["read_and_write"]
    figures = {"rows": rows, "cpu": least, "ratio": least["shuffled"] / least["within_files"], "extra": extra}
    say(full=rows >= FULL, at_most={"extra": 1}, benchmark="order", **figures)
    return figures


if __name__ == "__main__":
    within_limits(main)
