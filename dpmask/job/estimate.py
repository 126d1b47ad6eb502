"""What a run would do, from footers and one block: nothing is written."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from dpmask.engine.dispatch import threads
from dpmask.engine.tasks import Position
from dpmask.job.measures import passes_of
from dpmask.job.model import Job
from dpmask.job.prepare import Prepared, prepare
from dpmask.job.warm_up import compile_seconds

_BLOCKS_IN_MEMORY = 6
_MASK_COST, _VERIFY_COST = 14, 3
"""CPU of masking, counting, encoding and hashing a block, and of verifying it, in units of that of reading one; see
tests/benchmarks/bench_noise.py."""
_START = 1.0
"""Seconds that any run takes: kernels are loaded, and a report is drawn."""


def plan(job: Job, *, overwrite: bool = False) -> dict[str, Any]:
    """Check a job as ``run`` would, and estimate what it would cost."""
    prepared = prepare(job, overwrite=overwrite)
    lake = prepared.lake
    seconds, cpu, size = _sample(prepared)
    passes = sum(method.passes for method in job.methods)
    measured = passes_of(job.measures, lake.schema)  # each goes over both tables
    work = (passes + 1 + 2 * measured) * seconds + (_MASK_COST + _VERIFY_COST) * cpu
    work *= lake.rows / lake.blocks[0].rows
    masking = sum(method.work(lake.rows) for method in job.methods)
    kernels, compiling = compile_seconds(job, nulls=any(lake.facts[name].nulls != 0 for name in prepared.read))
    masked = {column for method in job.methods for column in method.masks}
    return {
        "name": job.file.name,
        "run": prepared.run,
        "standing": _standing(prepared),
        "rows": lake.rows,
        "files": len(lake.files),
        "blocks": len(lake.blocks),
        "passes": passes + 1 + measured + 1,
        "columns": len(prepared.columns),
        "unmasked": [name for name in prepared.read if name not in masked and job.role(name) in {"quasi", "sensitive"}],
        "nulls": {name: lake.facts[name].nulls for name in prepared.read if lake.facts[name].nulls != 0},
        "memory_per_thread_mb": round(_BLOCKS_IN_MEMORY * size / 1e6),
        "threads": threads(),
        "kernels_to_compile": kernels,
        "compile_seconds": round(compiling, 1),
        "seconds": round(_START + compiling + work / min(threads(), len(lake.blocks)) + masking / threads(), 1),
    }


def _sample(prepared: Prepared) -> tuple[float, float, int]:
    """Seconds and CPU seconds to read the first block, as it will be, for a second time, and its size in memory."""
    read = partial(prepared.lake.reader(prepared.read), prepared.lake.blocks[0].content, Position(0, 0))
    size = read().nbytes
    start, before = time.perf_counter(), time.process_time()
    read()
    return time.perf_counter() - start, time.process_time() - before, size


def _standing(prepared: Prepared) -> str:
    if prepared.standing is None:
        return "nothing"
    return "this release" if prepared.standing.run == prepared.run else "another release, to be replaced"
