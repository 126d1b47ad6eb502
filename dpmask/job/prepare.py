"""Everything about a job that can be checked before a row is read. ``run`` and ``plan`` start here."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from dpmask.engine.draws import Key, Subkey
from dpmask.engine.tasks import first_passes
from dpmask.errors import AccessError, InputError, JobError, StorageError, TargetError, nearest
from dpmask.job.gate import check_accepted, findings, released_columns, unaccepted
from dpmask.job.keys import key_of, refuse_seed, secret_of
from dpmask.job.layout import check_layout
from dpmask.job.measures import consistency_requests, named_columns
from dpmask.job.model import Job
from dpmask.job.series import JobSeries, open_series
from dpmask.lake.access import require_access
from dpmask.lake.filters import row_filter
from dpmask.lake.listing import glob_root, list_sources
from dpmask.lake.locks import locked
from dpmask.lake.storage import Place
from dpmask.masking.saved import SavedFit
from dpmask.measures import CONSISTENCY
from dpmask.release.manifest import canonical
from dpmask.release.publish import Standing, standing_release
from dpmask.release.table import require_log
from dpmask.table.joined_intervals import joined_intervals, schema_with_intervals
from dpmask.table.lake import Lake
from dpmask.table.table import Table

STAGING, PAIRING, SOURCE = "staging", "pairing", "source.json"
"""In a run's private folder: the masked files, which record each row was, and what was released from."""


class Prepared(NamedTuple):
    """A job whose source, roles, methods, key and folders have been checked."""

    job: Job
    lake: Lake
    key: Key
    target: Place
    private: Place
    run: str
    standing: Standing | None
    series: JobSeries | None = None
    fitted: Sequence[SavedFit] = ()
    """Fits of its steps that were made before, if it takes any."""

    @property
    def columns(self) -> list[str]:
        """The columns that are released, in the source's order; a new one in the place of that it comes from."""
        return released_columns(self.job, masked_schema(self.job, self.lake.schema))

    @property
    def read(self) -> list[str]:
        """The columns of the source that released ones come from."""
        kept = {self.job.origin(name) for name in self.columns}
        return [name for name in self.lake.schema.names if name in kept]

    def subkey(self, purpose: str) -> Subkey:
        """A key for this release: other steps, another name or size of the table draw anew; other blocks do not."""
        described = [self.job.file.name, self.job.drawn_steps, self.lake.rows]
        return self.key.subkey(canonical(described).decode()).subkey(purpose)

    def findings(self) -> dict[str, str]:
        """What the gate refuses by the job file and the schema alone, as nobody accepted it."""
        schema = self.lake.schema
        return unaccepted(self.job, findings(self.job, schema, compared_schema(self.job, schema)))

    @property
    def versions(self) -> str:
        """A hash that changes when any source file is written again, even with the same footer."""
        return _versions(self.lake.files)

    def source_changed(self) -> bool:
        """Whether a source file was added, deleted or written again since; a listing says it."""
        file, log = self.job.file, self.lake.files[0].log  # a table may go on meanwhile; the version that is read stays
        where = row_filter(file.filter) if file.filter else None
        return _versions(list_sources(file.source, where, int(log.version) if log else None)) != self.versions


def _versions(files: Sequence[Any]) -> str:
    return hashlib.sha256(canonical([[file.name, file.size, file.version] for file in files])).hexdigest()


def prepare(
    job: Job,
    *,
    overwrite: bool = False,
    trial: bool = False,
    keep: bool = True,
    signer: Ed25519PublicKey | None = None,
    fitted: Sequence[SavedFit] = (),
    lake: Lake | None = None,
) -> Prepared:
    """Open the source and check the job against it. Unless it may ``keep`` what it makes, nothing is written.

    With ``signer`` all entries of the ledger of its series must be signed by it. ``fitted`` are fits of its steps,
    ``lake`` is the source if it is open already.
    """
    refuse_seed(job, trial=trial)
    secret = secret_of(job)
    target, private = folders(job)
    lake = open_lake(job) if lake is None else lake
    _check_roles(job, lake)
    _check_steps(job, lake)
    check_layout(job, masked_schema(job, lake.schema))
    check_accepted(job, findings(job, lake.schema, compared_schema(job, lake.schema)))
    check_writable(target)
    check_writable(private)
    private.make_private() if keep else private.require_private()
    key = key_of(job, secret, private, trial=trial, keep=keep)
    run, standing = _run_digest(job, lake, key, fitted), standing_release(target)
    if job.file.table:
        require_log(target)
    if standing is not None and standing.run != run and not overwrite:
        raise in_the_way(target)
    if trial and standing is not None and standing.manifest is not None and not standing.manifest["trial"]:
        raise TargetError(f"{target.url}: holds a release, which a trial does not replace. Choose another target.")
    series = open_series(job, private, run, keep=keep, signer=signer)
    return Prepared(job, lake, key, target, private, run, standing, series, fitted)


def open_lake(job: Job) -> Lake:
    """The job's source."""
    try:
        return job.file.lake()
    except JobError as error:
        key = next((key for key in ("missing", "where") if str(error).startswith((f"{key}:", f"{key} "))), None)
        if key is None:
            raise
        raise JobError(job.text.error((key,), str(error))) from None


def in_the_way(target: Place) -> TargetError:
    """The error where another release, or a damaged one, stands at the target."""
    return TargetError(
        f"{target.url}: holds another release (another job, input, key or signer), or a damaged one. "
        "Choose another target, or replace it with --overwrite."
    )


def folders(job: Job) -> tuple[Place, Place]:
    """The public and the private folder. These and the source never lie inside each other."""
    target, private = Place(job.file.target), Place(job.file.private)
    for one, other, names in (
        *((root, target, "source and target") for root in source_roots(job)),
        *((root, private, "source and private") for root in source_roots(job)),
        (target, private, "target and private"),
    ):
        if one.contains(other) or other.contains(one):
            raise TargetError(f"{names} must be different folders, none in the other; got {one.url} and {other.url}.")
    return target, private


def source_roots(job: Job) -> list[Place]:
    """The folders that the sources lie in."""
    return [Place(glob_root(Place(one))) for one in job.file.source]


def alone_in(private: Place) -> AbstractContextManager[None]:
    """Have a private folder to oneself."""
    busy = (
        f"{private.url}: another run uses this private folder now. Wait for it, or give this job a folder of its own."
    )
    return locked(private, StorageError(busy))


def check_access(job: Job) -> None:
    """Refuse stores that cannot be reached, read or written to, before anything is done."""
    target, private = folders(job)
    for source in job.file.source:
        require_access(Place(source), writing=False)
    for place in (target, private):
        if place.full_url.startswith("memory:"):
            raise JobError(f"{place.url}: what is in memory is gone when dpmask ends. Give a folder, or a store.")
        require_access(place, writing=True)


def _check_roles(job: Job, lake: Lake) -> None:
    roles = {column: role for role, columns in job.file.columns for column in columns}
    for role, columns in job.file.columns:
        for number, column in enumerate(columns):
            path = ("columns", role, number)
            if column not in lake.schema.names:
                hint = nearest(column, lake.schema.names)
                raise JobError(job.text.error(path, f"the source has no column '{column}'. {hint}"))
            if roles[column] != role or columns.count(column) > 1:
                raise JobError(job.text.error(path, f"column '{column}' is declared more than once."))
    undeclared = [name for name in lake.schema.names if name not in roles]
    if undeclared:
        raise JobError(
            job.text.error(
                ("columns",),
                f"the source's columns {', '.join(undeclared)} have no role. Declare each of the {len(undeclared)} as "
                "identifier (dropped), drop (left out, too), quasi, sensitive, weight, household or plain.",
            )
        )
    if not job.released:
        raise JobError(job.text.error(("columns",), "every column is dropped, so nothing would be released."))


def _check_steps(job: Job, lake: Lake) -> None:
    if lake.rows < 2:  # noqa: PLR2004
        raise InputError(f"{job.shown_source}: has one row; a release needs at least 2.")
    table: Table = lake
    for number, method in enumerate(job.methods):
        _under(job, ("mask", number), lambda method=method, table=table: method.check(table))
        _refuse_identifiers(job, ("mask", number), method.masks)
        if number and method.drops:
            text = "a step that drops records must be the first: groups that others made would lose members."
            raise JobError(job.text.error(("mask", number), text))
        planned: Any = _Planned(method.masks, method.masked_schema)
        table = replace(table, steps=(*table.steps, planned))
    for number, measure in enumerate(job.measures):
        path = ("measure", number)
        _under(job, path, lambda m=measure: m.definition.require(lake.schema, m.parameters, m.name))
        if not any(method.drops for method in job.methods):
            measure.definition.require_table(lake, measure.parameters)
        _refuse_replaced(job, path, list(named_columns(list(measure.parameters.values()))))
        named = [
            one for one in named_columns(list(measure.parameters.values())) if one not in job.file.columns.household
        ]
        _refuse_identifiers(job, path, named)
        _under(job, path, lambda m=measure: _check_masked(job, lake, m))
    _check_account(job, lake)


def _check_masked(job: Job, lake: Lake, measure: Any) -> None:
    """Refuse columns that a measure does not take as they are once they are masked, such as labels; without a pass."""
    masked = Table(compared_schema(job, lake.schema), lake.blocks, lake.nullable)
    with suppress(InputError), first_passes(0):  # which values say
        measure.definition.function(lake, masked, **measure.parameters)


def _check_account(job: Job, lake: Lake) -> None:
    """Refuse rules about what every job counts of numbers where no step masks one."""
    counted = consistency_requests(lake.schema, masked_schema(job, lake.schema), job.methods, ())
    for number, rule in enumerate(job.rules):
        if rule.measure == CONSISTENCY and not counted and all(one.name != CONSISTENCY for one in job.measures):
            text = f"'{rule.text}' is about numbers that steps mask, and no step masks any."
            raise JobError(job.text.error(("policy", number), text))


def masked_schema(job: Job, schema: Any) -> Any:
    """The schema of the table after all steps."""
    for method in job.methods:
        schema = method.masked_schema(schema)
    return schema


def compared_schema(job: Job, schema: Any) -> Any:
    """The same with columns that are released as bounds as intervals, too: what measures of the gate see."""
    return schema_with_intervals(masked_schema(job, schema), joined_intervals(job.methods))


def _refuse_replaced(job: Job, path: tuple[str | int, ...], columns: Sequence[str]) -> None:
    """Refuse to measure a column that is released as others."""
    for column in columns:
        others = [new for new, old in job.origins.items() if old == column]
        if others:
            text = f"column '{column}' is released as {', '.join(others)}. Take it out, or keep it in one column."
            raise JobError(job.text.error(path, text))


class _Planned(NamedTuple):
    """A step before it is fitted, as far as later ones can be checked against it: what it changes, and into what."""

    changes: tuple[str, ...]
    masked_schema: Callable[[Any], Any]


def _refuse_identifiers(job: Job, path: tuple[str | int, ...], columns: Sequence[str]) -> None:
    for column in columns:
        if column in job.dropped:
            what = "an identifier, which is" if column in job.file.columns.identifier else "declared as"
            raise JobError(job.text.error((*path, "columns"), f"column '{column}' is {what} dropped."))


def _under(job: Job, path: tuple[str | int, ...], check: Any) -> None:
    """Say where in the job file a refusal belongs."""
    try:
        check()
    except JobError as error:
        raise JobError(job.text.error(path, str(error))) from None


def check_writable(place: Place) -> None:
    """Refuse a local folder that this user cannot write to. A store is asked by ``check_access``."""
    if not place.local:
        return
    folder = place.path
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise TargetError(f"{place.url}: {folder} is a file, a folder is needed.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise AccessError(f"{place.url}: no permission to write to it. Check the rights of this user.")


def _run_digest(job: Job, lake: Lake, key: Key, fitted: Sequence[SavedFit]) -> str:
    """What makes two runs the same: the job, but for its folders, the input, the key, and fits that it takes."""
    left_out = {"source", "target", "private", "key", "seed", "mask", "version"}
    # runs of jobs without these are called as ever
    optional = ("series", "new", "where", "metadata", "partition_by", "table")
    left_out |= {name for name in optional if not getattr(job.file, name)}
    described = job.file.model_dump(exclude=left_out) | {"mask": job.steps}
    described |= {"fitted": [one.digest for one in fitted]} if fitted else {}
    files = [[file.name, file.size, file.footer] for file in lake.files]
    return hmac.digest(key.subkey("run").secret, canonical([described, files]), "sha256").hex()[:32]
