"""What a run would do, from footers and one block: nothing is written."""

from __future__ import annotations

import time
from typing import Any

from dpmask.engine.passes import Span, threads
from dpmask.job.measures import passes_of
from dpmask.job.model import Job
from dpmask.job.prepare import Prepared, prepare

_BLOCKS_IN_MEMORY = 6
_WRITE_COST = 2.5
"""CPU of masking, encoding and hashing a block, in units of reading one; see tests/benchmarks/bench_noise.py."""


def plan(job: Job, *, overwrite: bool = False) -> dict[str, Any]:
    """Check a job as ``run`` would, and say what it would cost."""
    prepared = prepare(job, overwrite=overwrite)
    lake = prepared.lake
    seconds, size = _sample(prepared)
    passes = sum(method.passes for method in job.methods)
    measured = passes_of(job.measures, lake.schema) + 1  # and the report; each goes over both tables
    work = (passes + 2 * measured + 1 + _WRITE_COST + 1) * seconds * lake.rows / lake.blocks[0].rows
    masking = sum(method.work(lake.rows) for method in job.methods)
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
        "seconds": round(work / min(threads(), len(lake.blocks)) + masking / threads(), 1),
    }


def _sample(prepared: Prepared) -> tuple[float, int]:
    """Seconds to read the first block as it will be released, and its size in memory."""
    start = time.perf_counter()
    rows = prepared.lake.reader(prepared.read)(prepared.lake.blocks[0].content, Span(0, 0))
    return time.perf_counter() - start, rows.nbytes


def _standing(prepared: Prepared) -> str:
    if prepared.standing is None:
        return "nothing"
    return "this release" if prepared.standing.run == prepared.run else "another release, to be replaced"
