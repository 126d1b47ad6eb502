"""Everything about a job that can be checked before a row is read. ``run`` and ``plan`` start here."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dpmask.engine.draws import Key, Subkey, make_key
from dpmask.errors import AccessError, InputError, JobError, TargetError, nearest
from dpmask.job.measures import named_columns
from dpmask.job.model import Job
from dpmask.lake.footers import glob_root
from dpmask.lake.storage import Place
from dpmask.release.manifest import canonical
from dpmask.release.publish import Standing, standing_release
from dpmask.table.lake import Lake, read_lake
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

    @property
    def columns(self) -> list[str]:
        """The columns that are released, in the source's order; a new one in the place of that it comes from."""
        kept = set(self.job.released)
        return [name for name in masked_schema(self.job, self.lake.schema).names if self.job.origin(name) in kept]

    @property
    def read(self) -> list[str]:
        """The columns of the source that released ones come from."""
        kept = {self.job.origin(name) for name in self.columns}
        return [name for name in self.lake.schema.names if name in kept]

    def subkey(self, purpose: str) -> Subkey:
        """A key for this release: other steps, another name or size of the table draw anew; other blocks do not."""
        described = [self.job.file.name, self.job.steps, self.lake.rows]
        return self.key.subkey(canonical(described).decode()).subkey(purpose)

    @property
    def versions(self) -> str:
        """A hash that changes when any source file is written again, even with the same footer."""
        seen = [[file.name, file.size, file.version] for file in self.lake.files]
        return hashlib.sha256(canonical(seen)).hexdigest()


def prepare(job: Job, *, overwrite: bool = False) -> Prepared:
    """Open the source and check the job against it."""
    key = _key(job)
    target, private = folders(job)
    lake = open_lake(job)
    _check_roles(job, lake)
    _check_steps(job, lake)
    check_writable(target)
    check_writable(private)
    run, standing = _run_digest(job, lake, key), standing_release(target)
    if standing is not None and standing.run != run and not overwrite:
        raise in_the_way(target)
    return Prepared(job, lake, key, target, private, run, standing)


def open_lake(job: Job) -> Lake:
    """The job's source."""
    return read_lake(job.file.source, block_rows=job.file.block_rows)


def in_the_way(target: Place) -> TargetError:
    """The error where another release, or a damaged one, stands at the target."""
    return TargetError(
        f"{target.url}: holds another release (another job, input, key or signer), or a damaged one. "
        "Choose another target, or replace it with --overwrite."
    )


def _key(job: Job) -> Key:
    if job.file.key is None:
        made = make_key("seed", seed=job.file.seed)
    else:
        kind, name = job.file.key.split(":", 1)
        secret, make = _secret(kind, name)
        if not secret:
            raise JobError(job.text.error(("key",), f"{name} is not set, empty or not readable. Make a key: {make}"))
        try:
            made = make_key("key", key=secret)
        except JobError as error:
            raise JobError(job.text.error(("key",), str(error))) from None
    assert isinstance(made, Key)
    return made


def _secret(kind: str, name: str) -> tuple[str | None, str]:
    """The secret from an environment variable or a file, if it is there, and the line that makes one."""
    if kind == "env":
        return os.environ.get(name), f"export {name}=$(openssl rand -hex 32)"
    try:
        return Place(name).read().decode(errors="replace").strip(), f"openssl rand -hex 32 > {name}"
    except (InputError, AccessError):
        return None, f"openssl rand -hex 32 > {name}"


def folders(job: Job) -> tuple[Place, Place]:
    """The public and the private folder. These and the source never lie inside each other."""
    target, private = Place(job.file.target), Place(job.file.private)
    root = Place(glob_root(Place(job.file.source)))
    for one, other, names in (
        (root, target, "source and target"),
        (root, private, "source and private"),
        (target, private, "target and private"),
    ):
        if one.contains(other) or other.contains(one):
            raise TargetError(f"{names} must be different folders, none in the other; got {one.url} and {other.url}.")
    return target, private


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
                f"the source's columns {', '.join(undeclared)} have no role. Declare each as identifier (dropped), "
                "quasi, sensitive, weight or plain.",
            )
        )
    if not job.released:
        raise JobError(job.text.error(("columns",), "every column is an identifier, so nothing would be released."))


def _check_steps(job: Job, lake: Lake) -> None:
    if lake.rows < 2:  # noqa: PLR2004
        raise InputError(f"{job.file.source}: has one row; a release needs at least 2.")
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
        _refuse_replaced(job, path, list(named_columns(list(measure.parameters.values()))))
        _refuse_identifiers(job, path, list(named_columns(list(measure.parameters.values()))))


def masked_schema(job: Job, schema: Any) -> Any:
    """The schema of the table after all steps."""
    for method in job.methods:
        schema = method.masked_schema(schema)
    return schema


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
        if column in job.file.columns.identifier:
            raise JobError(job.text.error((*path, "columns"), f"column '{column}' is an identifier, which is dropped."))


def _under(job: Job, path: tuple[str | int, ...], check: Any) -> None:
    """Say where in the job file a refusal belongs."""
    try:
        check()
    except JobError as error:
        raise JobError(job.text.error(path, str(error))) from None


def check_writable(place: Place) -> None:
    """Refuse a local folder that this user cannot write to. A store tells only when it is tried."""
    if not place.local:
        return
    folder = place.path
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise TargetError(f"{place.url}: {folder} is a file, a folder is needed.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise AccessError(f"{place.url}: no permission to write to it. Check the rights of this user.")


def _run_digest(job: Job, lake: Lake, key: Key) -> str:
    """What makes two runs the same: the job, but for its folders, the input and the key."""
    described = job.file.model_dump(exclude={"source", "target", "private", "key", "seed", "mask"}) | {
        "mask": job.steps
    }
    files = [[file.name, file.size, file.footer] for file in lake.files]
    return hmac.digest(key.subkey("run").secret, canonical([described, files]), "sha256").hex()[:32]
