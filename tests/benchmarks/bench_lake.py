"""How long a lake takes to plan, on a real S3 server: of many small files, and of one file with many row groups.

PYTHONPATH=tests python tests/benchmarks/bench_lake.py: a few requests a lake beyond one for each footer, and seconds at most.
"""

import argparse
import io
import tempfile
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
from common import COLUMNS, Population, noise_job, os, say, time, within_limits
from servers import object_store

_ROWS = 100
_SECONDS = {"files": 10, "groups": 5}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--groups", type=int, default=5000)
    given = parser.parse_args(arguments)
    full = given.files >= 2000 and given.groups >= 5000
    with tempfile.TemporaryDirectory() as made, object_store(Path(made)) as store:
        access = {"AWS_ENDPOINT_URL": store.endpoint, "AWS_DEFAULT_REGION": "us-east-1"}
        access |= {"AWS_ACCESS_KEY_ID": store.right[0], "AWS_SECRET_ACCESS_KEY": store.right[1]}
        with mock.patch.dict(os.environ, access):
            return [_planned(Path(made), kind, getattr(given, kind), full) for kind in _SECONDS]


def _planned(folder, kind, count, full):
    """Plan a job on that many files, or row groups in one file, and report what it took."""
    import s3fs

    from dpmask.job.estimate import plan
    from dpmask.job.model import read_job

    s3fs.S3FileSystem.clear_instance_cache()
    files = count if kind == "files" else 1
    store = s3fs.S3FileSystem()
    store.mkdir(f"lake-{kind}")
    store.pipe({f"lake-{kind}/part-{n:05d}.parquet": data for n, data in enumerate(_files(files, count // files))})
    job = read_job(str(noise_job(folder, 1_000_000, source=f"s3://lake-{kind}", target=str(folder / f"out-{kind}"))))
    asked = []
    call = s3fs.S3FileSystem._call_s3

    async def counted(self, method, *arguments, **options):
        asked.append(method)
        return await call(self, method, *arguments, **options)

    with mock.patch.object(s3fs.S3FileSystem, "_call_s3", counted):
        start, before = time.perf_counter(), time.process_time()
        planned = plan(job, trial=True)
        seconds, cpu = time.perf_counter() - start, time.process_time() - before
    assert (planned.rows, planned.files) == (_ROWS * count, files)
    limits = {"seconds": _SECONDS[kind], "requests_beyond_footers": 100}
    facts = {"seconds": seconds, "cpu": cpu, "requests_beyond_footers": len(asked) - files}
    say(benchmark=f"lake, {kind}", count=count, full=full, at_most=limits, **facts)
    return facts


def _files(count, groups):
    """The bytes of small Parquet files of one population."""
    population = Population()
    for _ in range(count):
        file = io.BytesIO()
        rows = population.draw(_ROWS * groups)
        pq.write_table(pa.table(list(rows), names=COLUMNS), file, row_group_size=_ROWS)
        yield file.getvalue()


if __name__ == "__main__":
    within_limits(main)
