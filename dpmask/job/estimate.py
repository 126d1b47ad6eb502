"""What a run would do, from footers and one block: nothing is written."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from dpmask.engine.dispatch import threads
from dpmask.engine.pace import pace
from dpmask.engine.tasks import Block, Position
from dpmask.job.attacks import attack_requests
from dpmask.job.exposure import PASSES, exposure_work
from dpmask.job.gate import attacked_columns, gate_measures
from dpmask.job.measures import consistency_requests, passes_of
from dpmask.job.model import Job
from dpmask.job.plain_columns import telling_columns
from dpmask.job.prepare import Prepared, check_access, compared_schema, prepare
from dpmask.job.rehearsal import rehearse, values_are_checked
from dpmask.job.roles import PlannedColumn, PlannedWeight, column_table, kept_zeros, weight_table
from dpmask.job.warm_up import SourceFacts, compile_seconds
from dpmask.lake.reading import LakeBlock
from dpmask.lake.storage import Place
from dpmask.masking.method import Method
from dpmask.table.lake import Lake

_BLOCKS_IN_MEMORY = 6
_MASK_COST, _SHUFFLE_COST, _VERIFY_COST = 18, 5, 3
"""CPU of masking, counting, encoding and hashing a block, of writing and reading it once more for the shuffle, and of
verifying it, in units of that of reading one; see tests/benchmarks/bench_noise.py and bench_order.py."""
_FEWEST_READS, _READS, _LONG_ENOUGH = 2, 4, 0.5
_FILES = 16
"""As many files are read to see how long it takes."""
_CONTENT = 1
"""Passes that bind the draws to the content of the table."""
_START = 1.5
"""Seconds that any run takes: modules and kernels are loaded, and a report is drawn; see bench_start.py."""
_STEP_AGAIN = 2e-6
"""CPU of a record for each step that is counted by itself, as another masks one of its columns, too."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run would meet, and what it would cost."""

    name: str
    run: str
    """The digest of job, input and key."""
    standing: str
    """What is at the target now."""
    rows: int
    files: int
    blocks: int
    passes: int
    """Passes over the data."""
    columns: int
    """Columns that would be released."""
    refused: Mapping[str, str]
    """Columns that the gate refuses, and why."""
    suspected: Mapping[str, str]
    """Columns that it may refuse, by what is in the first block."""
    accepted: Mapping[str, str]
    """Columns that the job lets pass, and its reasons."""
    rules: Sequence[str]
    column_table: Sequence[PlannedColumn]
    """Every column of the source: its role, what is in it, and which steps mask it."""
    zeros_kept: Mapping[str, Sequence[str]]
    """By step, the columns whose zeros it would keep by itself, as many of the first records have them."""
    weights: Sequence[PlannedWeight]
    """What each released weight reveals."""
    warnings: Sequence[str]
    """What a run would warn of before it masks anything."""
    nulls: Mapping[str, int | None]
    """Columns with missing values, and how many, where the footers say it."""
    values_checked: bool
    """Whether the first passes of steps and measures were made: a table in a store, or a long one, is not read."""
    memory_per_thread_mb: int
    threads: int
    kernels_to_compile: int
    compile_seconds: float
    cpu_seconds: float
    """About the CPU time that it takes, compiling included."""
    seconds: float
    """About how long it takes, where nothing else is computed."""

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {**asdict(self), "column_table": [one._asdict() for one in self.column_table]} | {
            "weights": [one._asdict() for one in self.weights]
        }


def plan(job: Job, *, overwrite: bool = False, trial: bool = False) -> Plan:
    """Check a job as ``run`` would, and estimate what it would cost."""
    check_access(job)
    prepared = prepare(job, overwrite=overwrite, trial=trial, keep=False)
    lake = prepared.lake
    first = _first_files(lake)
    records = lake.reader(lake.schema.names)(first.content, Position(0, 0))
    cpu, waited = _sample(prepared, first)
    size = records.select(list(prepared.read)).nbytes * lake.blocks[0].rows // first.rows
    filtered = sum(sum(file.groups) for file in lake.files) / lake.rows - 1  # read with the others, and left out
    passes = _CONTENT + sum(method.passes for method in job.methods)
    passes += 0 if prepared.series is None else prepared.series.passes(job)
    shuffled = job.file.order == "shuffled" and len(lake.blocks) > 1
    after, steps = compared_schema(job, lake.schema), zip(job.names, job.methods, strict=True)
    at_risk = attacked_columns(job, lake, after)
    asked = [*job.measures, *attack_requests(lake.schema, after, steps, job.measures, at_risk)]
    asked += consistency_requests(lake.schema, after, job.methods, job.measures)
    gate = gate_measures(job, lake, after, asked)
    beside = gate.beside(asked)
    asked += beside
    measured = passes_of(asked, lake.schema) + (PASSES if gate.linkage else 0)  # each goes over both tables
    reads, cost = passes + 1 + 2 * measured, _MASK_COST + _VERIFY_COST + shuffled * _SHUFFLE_COST
    share = lake.rows / first.rows
    work, waiting = (reads + cost) * cpu * share, reads * waited * share
    computing = _work(job.methods, lake.rows) + (exposure_work(len(at_risk), lake.rows) if gate.linkage else 0.0)
    computing += sum(one.definition.work_for(one.parameters, lake.rows) for one in asked)
    computing *= pace()
    checked = values_are_checked(prepared)
    whole = checked or first.rows == lake.rows
    identifying = telling_columns(job, lake if whole else replace(lake, blocks=(first,)))
    refused = prepared.findings() | (identifying if whole else {})
    starting = _START * pace()
    columns, at_once = column_table(job, lake, records), min(threads(), len(lake.blocks))
    numbers = bool(consistency_requests(lake.schema, after, job.methods, ()))
    nulls = {name: lake.facts[name].nulls for name in prepared.read if lake.facts[name].nulls != 0}
    kernels, compiling = compile_seconds(job, SourceFacts(lake.rows, bool(nulls), numbers))
    compiling *= pace()
    if checked and not refused:
        rehearse(prepared, beside)
    return Plan(
        name=job.file.name,
        run=prepared.run,
        standing=_standing(prepared),
        rows=lake.rows,
        files=len(lake.files),
        blocks=len(lake.blocks),
        passes=passes + 1 + measured + shuffled + 1,
        columns=len(prepared.columns),
        refused=refused,
        suspected={} if whole else identifying,
        accepted=job.file.accept,
        rules=[rule.text for rule in job.rules],
        column_table=columns,
        zeros_kept=kept_zeros(job, columns),
        weights=weight_table(job, records),
        warnings=lake.warnings(),
        nulls=nulls,
        values_checked=checked,
        memory_per_thread_mb=round((_BLOCKS_IN_MEMORY + filtered) * size / 1e6),
        threads=threads(),
        kernels_to_compile=kernels,
        compile_seconds=round(compiling, 1),
        cpu_seconds=round(starting + compiling + work + computing, 1),
        seconds=round(starting + compiling + (work + waiting) / at_once + computing / threads(), 1),
    )


def _work(methods: Sequence[Method[Any]], rows: int) -> float:
    """CPU seconds of the steps, by how many records earlier ones left equal, and of the counts of each by itself."""
    seconds = 0.0
    times = Counter(name for method in methods for name in method.masks)
    for number, method in enumerate(methods):
        equal = [one.group_size(rows) for one in methods[:number] if set(one.masks) >= set(method.masks)]
        seconds += method.work_on_groups(rows, max(equal, default=1))
        seconds += _STEP_AGAIN * rows if any(times[name] > 1 for name in method.masks) else 0.0
    return seconds


def _first_files(lake: Lake) -> Block:
    """The first block, or what its first few files have of it."""
    block = lake.blocks[0]
    if not isinstance(block.content, LakeBlock):
        return block
    rows = sum(piece.rows for part in block.content.parts[:_FILES] for piece in part.pieces)
    return Block(block.first, rows, block.content.cut(0, rows))


def _sample(prepared: Prepared, first: Block) -> tuple[float, float]:
    """CPU seconds to read a first block, as it will be, when it was read before; and seconds of waiting for a store.

    The least of several times: others use the machine, too. Files of this machine are then in its memory.
    """
    read = partial(prepared.lake.reader(prepared.read), first.content, Position(0, 0))
    taken = list[tuple[float, float]]()
    while len(taken) < _FEWEST_READS or (len(taken) < _READS and sum(one for one, _ in taken) < _LONG_ENOUGH):
        start, before = time.perf_counter(), time.process_time()
        read()
        taken.append((time.perf_counter() - start, time.process_time() - before))
    seconds, cpu = min(taken)[0], min(cpu for _, cpu in taken)
    return cpu, 0.0 if Place(prepared.lake.files[0].url).local else max(0.0, seconds - cpu)


def _standing(prepared: Prepared) -> str:
    if prepared.standing is None:
        return "nothing"
    return "this release" if prepared.standing.run == prepared.run else "another release, to be replaced"
