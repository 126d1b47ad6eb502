"""How the files of a release lie: folders by values (``partition_by``), and as which kind of table (``table``)."""

from __future__ import annotations

from typing import Any

from dpmask.errors import JobError, nearest
from dpmask.job.gate import released_columns
from dpmask.job.model import Job
from dpmask.lake.hive import hive_column
from dpmask.release.table import unknown_to


def released_type(job: Job, name: str, kind: Any) -> Any:
    """The type of a released column; one whose values name folders is as it is read from there."""
    return hive_column(kind) if name in job.file.partition_by else kind


def check_layout(job: Job, schema: Any) -> None:
    """Refuse folders and tables that the released columns cannot have; ``schema`` is that after all steps."""
    released = released_columns(job, schema)
    for number, name in enumerate(job.file.partition_by):
        fault = _fault(job, schema, released, name)
        if fault:
            raise JobError(job.text.error(("partition_by", number), fault))
    if job.file.partition_by and job.file.order != "shuffled":
        text = "needs order: shuffled: in folders by value, rows cannot be in the order of the source."
        raise JobError(job.text.error(("partition_by",), text))
    if len(set(job.file.partition_by)) == len(released):
        raise JobError(job.text.error(("partition_by",), "leaves no column for the files. Leave one out of it."))
    if job.file.table:
        kinds = {name: released_type(job, name, schema.field(name).type) for name in released}
        problem = unknown_to(job.file.table, kinds)
        if problem:
            raise JobError(job.text.error(("table",), problem))


def _fault(job: Job, schema: Any, released: list[str], name: str) -> str | None:
    if name in job.dropped:
        return f"column '{name}' is dropped; folders are named by released values only."
    if name not in released:
        return f"the job releases no column '{name}'. {nearest(name, released)}"
    if job.file.partition_by.count(name) > 1:
        return f"column '{name}' stands twice."
    kind = schema.field(name).type
    if hive_column(kind) is None:
        return f"column '{name}' is {kind}; folders are named by texts, whole numbers, dates or true and false."
    return None
