"""Why single records are at risk, of a run: those that the gate's linkage names, and what rows give away."""

from __future__ import annotations

from collections.abc import Sequence

from dpmask.job.decision import Decision
from dpmask.measures.measure import MeasureRequest
from dpmask.measures.risk.exposed import Exposure
from dpmask.table.joined_intervals import joined_intervals, with_intervals
from dpmask.table.table import Table

PASSES = 2
"""About how many passes over both tables it takes: the sample, the rows that fit."""
_LINKAGE = "distance_linkage"
_COLUMN_SECONDS, _VALUE_SECONDS = 0.03, 1e-7


def exposure_work(columns: int, rows: int) -> float:
    """CPU seconds beyond reading both tables, about; from the ready jobs with 1e5 and 1e6 people."""
    return (_COLUMN_SECONDS + _VALUE_SECONDS * rows) * columns


def exposed_records(decision: Decision, original: Table, masked: Table) -> Exposure | None:
    """The riskiest records that were attacked by all columns at risk; None where no column is."""
    job, columns = decision.job, list(decision.gate.columns)
    attack = next((one for one in decision.requests if _is_that_of(one, columns)), None)
    if attack is None or attack.name not in decision.results:
        return None
    from dpmask.measures.risk.exposure import exposure  # which loads kernels that a plan does not need

    columns = list(attack.parameters["columns"])
    return exposure(
        original,
        with_intervals(masked, joined_intervals(job.methods)),
        columns=columns,
        linkage=decision.results[attack.name],
        sensitive=[name for name in columns if job.role(name) == "sensitive"],
    )


def _is_that_of(one: MeasureRequest, columns: Sequence[str]) -> bool:
    return one.measure == _LINKAGE and bool(columns) and set(one.parameters["columns"]) == set(columns)
