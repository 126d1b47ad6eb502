"""A release that draws or averages, attacked with all earlier ones of its series: what the gate calls differencing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpmask.errors import PolicyRefusal
from dpmask.job.model import Job
from dpmask.job.series import requirements
from dpmask.lake.storage import Place
from dpmask.measures.measure import MeasureRequest
from dpmask.measures.risk.differencing import LEAST, Differencing, differencing
from dpmask.release.gate import GATE
from dpmask.release.ledger import Entry, kept_files
from dpmask.table.columns import is_category, is_nested, is_numeric
from dpmask.table.kept_rows import KeptFile, keep_rows, kept_table, with_earlier
from dpmask.table.people import KnownPeople
from dpmask.table.table import Table

NAME = f"{GATE} differencing"


def kept(job: Job, original: Table, masked: Table, identity: KnownPeople, place: Place) -> dict[str, Any]:
    """Keep what a release shows of each person, for later releases: how the ledger describes it."""
    columns = [name for name in _comparable(masked) if name in original.masked_schema.names]
    files = keep_rows(original, masked, columns, identity, place)
    return {"files": [list(one) for one in files], "masked": sorted(_masked(job) & set(columns))}


def differenced(
    job: Job, original: Table, masked: Table, entries: Sequence[Entry], identity: KnownPeople, place: Place
) -> tuple[MeasureRequest, Differencing]:
    """The attack by this release and all of these, and what it was asked for."""
    releases = [kept_table(place, [KeptFile(*one) for one in kept_files(entry)]) for entry in entries]
    schemas = [masked.masked_schema, *(one.schema for one in releases)]
    shown = [name for name in _comparable(masked) if all(name in one.names for one in schemas)]
    shown = [name for name in shown if name in original.masked_schema.names]
    changed = _masked(job).union(*(entry.content["kept"]["masked"] for entry in entries))
    every = [original.masked_schema, *schemas]
    numbers = [one for one in shown if one in changed and all(is_numeric(some.field(one).type) for some in every)]
    labels = [
        one
        for one in shown
        if job.role(one) == "quasi"
        and (one not in changed or all(is_category(some.field(one).type) for some in schemas))
    ]
    beside = [one for one in shown if one not in changed and one not in labels]
    if not (numbers or labels):
        raise PolicyRefusal("series: no column is masked alike in all releases, so what they show cannot be measured.")
    required = [k for entry in entries for _, k in entry.content["required"]]
    required += [one.k for one in requirements(job.methods)]
    parameters = {"columns": numbers, "labels": labels, "beside": beside, "k": max([LEAST, *required])}
    columns = list(dict.fromkeys([*numbers, *labels, *beside]))
    known, newest, *earlier = with_earlier(original, masked, releases, columns, identity)
    request = MeasureRequest(NAME, "differencing", parameters)
    return request, differencing(known, newest, earlier=earlier, **parameters)


def _masked(job: Job) -> set[str]:
    return {job.origin(name) for method in job.methods for name in method.masks}


def _comparable(masked: Table) -> list[str]:
    return [field.name for field in masked.masked_schema if not is_nested(field.type)]
