"""Sizes and times that decide how work is cut and kept: a run takes the defaults, tests others.

Those of the engine and of tables never change what comes of it, unless their texts say so.

Limits are read where a pass is prepared, on the driver. What a task needs of them is passed to it as an argument: a
worker knows nothing of a change made here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Limits:
    """All limits, by the layer that reads them. A layer adds its own as fields with a default."""

    # engine
    tasks_per_thread: int = 4
    """Tasks that a pass leaves each worker thread, at least, before blocks are joined into longer runs."""
    threads: int | None = None
    """Worker threads to plan for; by default those at hand."""
    memory_share: float = 0.4
    """The share of the memory at hand that persisted blocks may take."""
    tries: int = 4
    """Attempts in a row at which nothing is done before storage is given up."""
    tries_of_killed: int = 2
    """The same for tasks that lose their workers."""
    retry_seconds: float = 0.25
    """The pause before a retry, doubled with each."""
    journal_seconds: float = 3.0
    """The shortest pause between two writes of the journal."""
    journal_share: float = 0.005
    """The share of a run's time after which it is written again."""

    # lake
    lock_seconds: float = 8.0
    """The pause between two signs of life of the run that has locked a folder in a store."""
    lock_patience: float = 30.0
    """How long such a lock must show none before it is taken over."""

    # table
    frame_rows: int = 1_000_000
    """Rows of a block of a pandas frame."""
    group_target_rows: int = 200_000
    """Rows for each task that counts equal rows."""
    pair_shard_rows: int = 500_000
    """Rows of each shard in which two tables are paired by a column."""
    quantile_sample: int = 1 << 14
    """Records that a column's quantiles are first looked for in."""
    quantile_values: int = 1 << 18
    """Values that a column may bring to the driver."""

    code_values: int = 65_000
    """Different values of a column that may be distinguished by codes."""
    number_codes: int = 256
    """Different numbers of a column that get a code each where groups are described; more are cut into bins."""
    category_codes: int = 1 << 16
    """Different categories there, at most."""
    cut_places: int = 4096
    """Quantiles that numbers may be cut at where there are too many different ones to cut at each."""

    # clustering
    clustering_sample: int = 50_000
    """Of a table with more records so many are clustered first."""
    correction_passes: float = 2.0
    """CPU of a two-grid correction, at most, in passes over all the data."""
    fewest_sweeps: int = 10
    """Passes over the sample below which such a correction is not worth making."""

    # masking
    cells_per_shard: int = 8
    """Cells of microaggregation that are cut and fitted in one task."""
    refinement_cells: int = 1 << 22
    """Cells, or groups, of one quasi-identifier that a pass may bring to the driver before its rows are exchanged."""
    refinement_shard_rows: int = 1_000_000
    """Rows of each shard in which groups are complete."""
    series_rows: int = 1 << 26
    """Different people, by what releases of a series show of them, that the driver may compare."""
    # measures
    attacked_records: int = 250_000
    """Records that distance-based linkage attacks together, and keeps on one worker."""
    assigned_records: int = 2_000
    """Records that it assigns one to one: together where there are no more, else each in its crowd."""
    compared_by_few: int = 1_000
    """Records that it links by few columns, to see which of them lead to records."""
    left_out_work: int = 1_000_000
    """Work of all attacks without one column, each of which grows with the square of how many are known: of more than a
    hundred columns only the most telling are left out."""
    refitted_records: int = 5_000
    """Records that an intruder refits regressions to, or as many as are linked."""
    refit_starts: int = 3
    """Starts of such a refit, of known values and of released ones."""
    linkage_shard_rows: int = 250_000
    """Rows of each shard in which probabilistic linkage compares records."""
    group_shard_rows: int = 1_000_000
    """Rows of each shard in which groups are formed."""
    rank_shard_rows: int = 1 << 19
    """Values of each shard in which ranks are found."""
    gathered_values: int = 1 << 23
    """Values that a search for quantiles may gather beyond those that quantiles need."""
    largest_cell: int = 100_000
    """Records that are masked together in one task, at most; a table of more is clustered by passes."""
    swap_shard_values: int = 500_000
    """Values of each shard that a column is swapped in."""
    swap_shards: int = 1000
    """Shards that a column is cut into, about, at most."""

    # job
    planned_rows: int = 2_000_000
    """Records of a lake on local disks, at most, whose values a plan reads."""


_limits: ContextVar[Limits | None] = ContextVar("dpmask_limits", default=None)
_DEFAULTS = Limits()


def current_limits() -> Limits:
    """The limits to go by now."""
    return _limits.get() or _DEFAULTS


@contextmanager
def limits(**changes: Any) -> Iterator[Limits]:
    """Go by other limits inside the block, such as ``tries=1``."""
    changed = replace(current_limits(), **changes)
    token = _limits.set(changed)
    try:
        yield changed
    finally:
        _limits.reset(token)
