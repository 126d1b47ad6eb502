"""The sample masked by a job's steps: a step that reads the same as before a move is neither fitted nor taken again."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from dpmask.engine.draws import Subkey
from dpmask.engine.remembered import remembered
from dpmask.job.model import Job
from dpmask.masking.method import FittedMethod, Method
from dpmask.table.keyed_sample import StoredRows, rows_digest, stored
from dpmask.table.table import Table


class MaskedSample(NamedTuple):
    """The sample, masked by a job."""

    job: Job
    fitted: Sequence[Any]
    table: Table


class _MaskedStep(NamedTuple):
    """A fitted step, and the sample after it."""

    fitted: FittedMethod
    after: Table


def masked_sample(job: Job, table: Table, draws: Subkey) -> MaskedSample:
    """Each method fitted to the sample as masked by those before it, and what comes of it, held in memory."""
    fitted = []
    for number, method in enumerate(job.methods):
        key = draws.subkey(f"mask[{number}]")
        found = remembered(
            f"explore: step {number} {method!r}",
            partial(_seen, method, key, table),
            partial(_taken, method, key, table),
        )
        fitted.append(found.fitted)
        table = found.after if method.drops else _with_changes(table, found)
    return MaskedSample(job, fitted, table)


def _seen(method: Method[Any], key: Subkey, table: Table) -> Iterator[bytes]:
    """What a step depends on: its key and the columns that it reads; where it drops records, all of them."""
    names = table.masked_schema.names
    read = {*method.reads, *method.masks}
    yield key.secret
    yield rows_digest(table, [name for name in names if method.drops or name in read])


def _taken(method: Method[Any], key: Subkey, table: Table) -> _MaskedStep:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the page has them
        fitted = method.fit(table, key=key)
    return _MaskedStep(fitted, stored(table.masked_by(fitted)))


def _with_changes(table: Table, step: _MaskedStep) -> Table:
    """A table with what a step changed in one that had the same in all columns that it reads."""
    kept = set(table.schema.names).difference(step.fitted.changes)
    contents = []
    for old, after in zip(table.blocks, step.after.blocks, strict=True):
        rows = after.content.rows
        for at, name in enumerate(rows.schema.names):
            if name in kept:
                rows = rows.set_column(at, table.schema.field(name), old.content.rows.column(name))
        contents.append(StoredRows(rows))
    changed = table.changed.union(step.after.changed)
    return replace(
        step.after, schema=contents[0].rows.schema, blocks=step.after.blocks_with(contents), replaced=changed
    )
