"""A shuffle over the whole release costs at most one more write and read of it.

python tests/benchmarks/bench_order.py [--rows 1e7] [--rounds 3] [--folder DIR]

The CPU of a run in ``order: shuffled`` less that in ``order: within_files``, in units of the CPU it takes pyarrow to read and write the
release once, with the settings dpmask writes with: the limit is 1. All run in processes of their own, in turn; the least of the rounds
counts. Stages are counted one by one. Of the measures only what they read of the masked rows counts, each row put back to its place: that
is where the order matters to them. What they compute is the same in either order, and most of a run; its scatter from run to run would
be most of the difference. ``measures`` has the CPU of the whole stage in either order, so that whoever doubts it sees both.
"""

import json
import shutil

from common import COLUMNS, cpu_of, in_folder, noise_job, numeric_lake, say, within_limits

RUN = """
import contextlib, json, sys, time
from dpmask.cli import main
from dpmask.job.events import Recorder
from dpmask.release.folder import _BlockFile
from dpmask.release.shuffled import _PieceFile
spent, during, now, reading = {}, Recorder.during, [], []

def timed(kind):
    read = kind.read
    def work(file, columns):
        begun = time.thread_time()
        rows = read(file, columns)
        if now[-1:] == ["measure"]:
            reading.append(time.thread_time() - begun)
        return rows
    kind.read = work

timed(_BlockFile)
timed(_PieceFile)

@contextlib.contextmanager
def counted(recorder, stage):
    begun = time.process_time()
    now.append(stage)
    with during(recorder, stage):
        yield
    spent[stage] = time.process_time() - begun

Recorder.during = counted
try:
    main(["run", sys.argv[1], "--trial"])
finally:
    open(sys.argv[2], "w").write(json.dumps(spent | {"reading": sum(reading)}))
"""

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
    return in_folder(measure, __doc__, rounds=3, arguments=arguments)


def measure(folder, rows, rounds):
    block_rows = min(BLOCK_ROWS, rows // 4)
    numeric_lake(folder / "lake", rows, block_rows)
    cpu = {"shuffled": [], "within_files": [], "read_and_write": []}
    whole, measures = {"shuffled": [], "within_files": []}, {"shuffled": [], "within_files": []}
    for _ in range(rounds):
        for order in ("shuffled", "within_files"):
            whole[order].append(cpu_of(RUN, noise_job(folder, block_rows, order=order, **JOB), folder / "cpu"))
            stages = json.loads((folder / "cpu").read_text())
            measures[order].append(stages.pop("measure"))
            cpu[order].append(sum(stages.values()))
            if order == "shuffled":
                (folder / "peer").mkdir()
                peer = cpu_of(PEER, folder / "release", folder / "peer") - cpu_of(IMPORT)
                cpu["read_and_write"].append(peer)
            for name in ("release", "private", *(["peer"] if order == "shuffled" else [])):
                shutil.rmtree(folder / name)
    least = {name: min(seconds) for name, seconds in cpu.items()}
    extra = (least["shuffled"] - least["within_files"]) / least["read_and_write"]
    ratio = min(whole["shuffled"]) / min(whole["within_files"])
    least_measures = {name: min(seconds) for name, seconds in measures.items()}
    figures = {"rows": rows, "cpu": least, "measures": least_measures, "ratio": ratio, "extra": extra}
    say(full=rows >= FULL, at_most={"extra": 1}, benchmark="order", **figures)
    return figures


if __name__ == "__main__":
    within_limits(main)
