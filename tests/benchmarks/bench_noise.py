"""Noise is bound by Parquet: the CPU of a run against reading and writing the same files with pyarrow alone.

python tests/benchmarks/bench_noise.py [--rows 1e7] [--rounds 3] [--folder DIR]

The peer reads the source twice, writes a release's worth of columns once and reads it once, and does nothing else: once with pyarrow's
own settings, which the limit of 1.6 is for, and once with those dpmask writes with, which that of 2.2 is for. Rows are shuffled within files;
what a shuffle over the whole release adds is the subject of bench_order.py. All run in processes of their own, in turn; the least of the
rounds counts. The ratios are of what reading, masking, writing and verifying cost. The gate attacks noise by its filter in every run, which is no
work on files: ``whole`` has the same ratios with the stage that measures, and no limit. That stage reads both tables four times, three of
them for the attack, which alone is more than all that the peer does.
"""

import json
import shutil

from common import cpu_of, in_folder, noise_job, numeric_lake, say, within_limits

RUN = """
import contextlib, json, sys, time
from dpmask.cli import main
from dpmask.job.events import Recorder
spent, during = {}, Recorder.during

@contextlib.contextmanager
def counted(recorder, stage):
    begun = time.process_time()
    with during(recorder, stage):
        yield
    spent[stage] = time.process_time() - begun

Recorder.during = counted
try:
    main(["run", sys.argv[1], "--trial"])
finally:
    open(sys.argv[2], "w").write(json.dumps(spent))
"""

PEER = """
import sys, glob
import pyarrow.parquet as pq
source, target, settings = sys.argv[1:]
ours = {"compression": "zstd", "use_dictionary": False, "use_byte_stream_split": True, "max_rows_per_page": 1 << 17}
settings = ours if settings == "dpmask" else {}
paths = sorted(glob.glob(source + "/*.parquet"))
for path in paths:
    pq.ParquetFile(path).read(use_threads=False)
for number, path in enumerate(paths):
    table = pq.ParquetFile(path).read(use_threads=False)
    pq.write_table(table, f"{target}/{number}.parquet", row_group_size=len(table), **settings)
    del table
for path in sorted(glob.glob(target + "/*.parquet")):
    pq.ParquetFile(path).read(use_threads=False)
"""
BLOCK_ROWS, FULL = 1_000_000, 10_000_000


def main(arguments=None):
    return in_folder(measure, __doc__, rounds=3, arguments=arguments)


def measure(folder, rows, rounds):
    numeric_lake(folder / "lake", rows, BLOCK_ROWS)
    job = noise_job(folder, BLOCK_ROWS, order="within_files")
    cpu = {"dpmask": [], "files": [], "pyarrow": [], "pyarrow_same_settings": []}
    for _ in range(rounds):
        cpu["dpmask"].append(cpu_of(RUN, job, folder / "cpu"))
        cpu["files"].append(cpu["dpmask"][-1] - json.loads((folder / "cpu").read_text())["measure"])
        for name, settings in (("pyarrow", "own"), ("pyarrow_same_settings", "dpmask")):
            (folder / "peer").mkdir()
            cpu[name].append(cpu_of(PEER, folder / "lake", folder / "peer", settings))
            shutil.rmtree(folder / "peer")
        for name in ("release", "private"):
            shutil.rmtree(folder / name)
    least = {name: min(seconds) for name, seconds in cpu.items()}
    ratio, same = (least["files"] / least[peer] for peer in ("pyarrow", "pyarrow_same_settings"))
    whole = [least["dpmask"] / least[peer] for peer in ("pyarrow", "pyarrow_same_settings")]
    figures = {"rows": rows, "cpu": least, "ratio": ratio, "ratio_same_settings": same, "whole": whole}
    say(full=rows >= FULL, at_most={"ratio": 1.6, "ratio_same_settings": 2.2}, benchmark="noise", **figures)
    return ratio


if __name__ == "__main__":
    within_limits(main)
