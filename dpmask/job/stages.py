"""The stages of a run: read, mask, measure, decide, shuffle, publish, verify.

The target stays as it was until the decision.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpmask.engine.draws import Subkey
from dpmask.engine.guard import safe_error
from dpmask.engine.journal import flush
from dpmask.errors import DpmaskError, InputError, PolicyRefusal, StorageError, TargetError, VerificationError
from dpmask.job.account import Account, account
from dpmask.job.checkpoint import Checkpoint
from dpmask.job.decision import Decision, measure_and_judge
from dpmask.job.events import Recorder
from dpmask.job.exposure import exposed_records
from dpmask.job.fit import draws_of, fitted_steps, saved_steps
from dpmask.job.model import Job
from dpmask.job.outcome import Resumed
from dpmask.job.plain_columns import telling_columns
from dpmask.job.prepare import PAIRING, SOURCE, STAGING, Prepared, in_the_way, prepare
from dpmask.job.reports import REPORT, write_reports
from dpmask.job.series import CheckedSeries
from dpmask.job.steps_account import by_step, zeros_masked
from dpmask.lake.storage import Place
from dpmask.measures.risk.exposed import Exposure
from dpmask.measures.utility.consistency import Consistency
from dpmask.release.attestation import attestation
from dpmask.release.folder import BlockFiles, Folder, StagedFile
from dpmask.release.gate import closed
from dpmask.release.manifest import build, check_signature, data_entries
from dpmask.release.partitioned import partitioned_folder
from dpmask.release.publish import (
    alone_at,
    clear_leftovers,
    complete_table,
    metadata_path,
    page_path,
    publish,
    release_id,
    statement_path,
)
from dpmask.release.shuffled import shuffled_folder
from dpmask.release.staging import Observation, few_in_memory, few_remembered, stage, staged_table
from dpmask.release.verify import verify
from dpmask.report.compared import ComparedTables
from dpmask.report.comparison import ColumnComparison, comparison, merge_counts
from dpmask.report.metadata import metadata_files
from dpmask.report.page import public_page
from dpmask.report.statement import statement
from dpmask.results import plain
from dpmask.table.label_sets import through_steps
from dpmask.table.table import Table

if TYPE_CHECKING:  # most runs have none
    from dpmask.job.lineage import Lineage

_PUBLISHING = {"publish", "verify"}
"""The stages that may leave a release."""


@dataclass(frozen=True)
class JobRun:
    """One run: how it was asked for, and where what comes of it is recorded."""

    job: Job
    recorder: Recorder
    overwrite: bool = False
    signer: Ed25519PrivateKey | None = None
    resume: bool = False
    trial: bool = False
    fitted: str | None = None
    """A folder with the fits of its steps."""
    lineage: Lineage | None = None

    def signed(self, manifest: dict[str, Any]) -> bool:
        """Whether a manifest is signed as this run would sign it."""
        if self.signer is None:
            return True
        try:
            check_signature(manifest, self.signer.public_key(), "")
        except VerificationError:
            return False
        return True


def run(this: JobRun) -> None:
    """Take a job through all its stages; the recorder has the outcome."""
    with this.recorder.during("read"):
        public_key = this.signer.public_key() if this.signer else None
        saved = saved_steps(this.job, this.fitted) if this.fitted else ()
        prepared = prepare(this.job, overwrite=this.overwrite, trial=this.trial, signer=public_key, fitted=saved)
        size = sum(file.size for file in prepared.lake.files)
        this.recorder.add(run=prepared.run, trial=this.trial, source_rows=prepared.lake.rows, source_bytes=size)
        if this.lineage is not None:
            this.lineage.prepared = prepared
        if prepared.lake.table_version:
            this.recorder.add(source_version=prepared.lake.table_version)
        if prepared.findings():
            raise closed(prepared.findings())
    checkpoint = Checkpoint(prepared)
    if not _already_released(this, prepared):
        this.recorder.add(checkpoint=checkpoint.place.full_url)
        try:
            _release(this, prepared, checkpoint)
        except PolicyRefusal:  # a retry cannot help
            _clear(this, prepared, checkpoint)
            raise
        except Exception as error:
            if this.recorder.outcome.stage not in _PUBLISHING and _is_about_data(error):
                _require_same_source(prepared)  # files that are written meanwhile fail in many ways
            raise
    _clear(this, prepared, checkpoint)


def _folder(prepared: Prepared) -> Place:
    """The run's own part of the private folder."""
    return prepared.private / prepared.run


def _release(this: JobRun, prepared: Prepared, checkpoint: Checkpoint) -> None:
    """All stages after reading; a failure leaves a checkpoint to go on from."""
    folder, recorder = _folder(prepared), this.recorder
    identifying = telling_columns(this.job, prepared.lake)
    if identifying:
        raise closed(identifying)
    with checkpoint.journal(resume=this.resume) as journal:
        done = mask_and_measure(this, prepared, folder, compared=True)
        with recorder.during("decide"):
            found = account(
                prepared, done.fitted, done.masked.rows, done.decision, done.compared.leverages, done.consistency
            )
            write_reports(folder, found, done.compared, done.exposure)
            recorder.add(
                report=(folder / REPORT).full_url,
                measures=found.measures,
                policy=found.policy,
                steps=found.steps,
                resumed=Resumed(passes=journal.passes, files=journal.files),
            )
        held = all(one.held for one in found.policy)
        if held and done.series is not None and not this.trial:
            done = replace(done, rows=_kept_rows(prepared, done))
        if held and prepared.job.file.order == "shuffled":
            with recorder.during("shuffle"):
                done = replace(done, files=done.folder.released(done.files))
                recorder.add(resumed=Resumed(passes=journal.passes, files=journal.files))
                flush()
    if not held:
        raise done.decision.refusal()
    with ExitStack() as stack:
        with recorder.during("publish"):
            _require_same_source(prepared)
            stack.enter_context(alone_at(prepared.target, prepared.standing))
            _publish(this, prepared, done, found)
            source = {"versions": prepared.versions, "table": prepared.lake.table_version}
            (folder / SOURCE).write(json.dumps(source).encode())
        with recorder.during("verify"):
            _verify(this, prepared)


def _clear(this: JobRun, prepared: Prepared, checkpoint: Checkpoint) -> None:
    """Delete what no later run can use."""
    (_folder(prepared) / STAGING).clear()
    checkpoint.clear()
    this.recorder.outcome = this.recorder.outcome.without_checkpoint()


@dataclass(frozen=True)
class Measured:
    """A job masked, staged and measured: nothing of it is public yet."""

    fitted: Sequence[Any]
    folder: Folder
    files: Sequence[StagedFile]
    masked: Table
    decision: Decision
    compared: ComparedTables
    """Distributions and correlations, if they were asked for."""
    consistency: Sequence[Consistency | None] = ()
    """What each step did to zeros, missing values and edit rules, if it was asked for."""
    exposure: Exposure | None = None
    """The riskiest records, if they were asked for and any column is at risk."""
    series: CheckedSeries | None = None
    rows: dict[str, Any] | None = None
    """What the ledger keeps of each person, where releases of a series cannot be counted exactly."""


def _kept_rows(prepared: Prepared, done: Measured) -> dict[str, Any] | None:
    assert done.series is not None
    masked = staged_table(done.masked, prepared.columns, done.folder)
    return done.series.kept(prepared.job, prepared.run, prepared.lake, masked, done.fitted)


def mask_and_measure(this: JobRun, prepared: Prepared, own: Place, *, compared: bool = False) -> Measured:
    """Mask the table into a private folder, measure what would be published, and judge it by the policy.

    With ``compared``, distributions and correlations are counted in the same pass, for the report.
    """
    with this.recorder.during("mask"):
        draws = draws_of(prepared)
        series = None if prepared.series is None else prepared.series.checked(prepared.job, prepared.lake)
        methods = prepared.job.methods if series is None else series.methods
        table, fitted = fitted_steps(prepared, draws, methods)
        folder = _staging_folder(prepared.job, own, table, draws.subkey("order"))
        warned = prepared.lake.warnings()
        warned += [warning for step in fitted if not step.reused for warning in step.warnings()]
        warned += [] if series is None else series.warnings(fitted)
        this.recorder.add(warnings=warned)
        found = _comparison(prepared, table, fitted) if compared else None
        observation = Observation(found.before, found.after, merge_counts) if found else Observation()
        files, summaries = stage(prepared.lake, table, prepared.columns, folder, observation)
        flush()
        this.recorder.add(rows=table.rows)
    with this.recorder.during("measure"):
        masked = few_in_memory(staged_table(table, prepared.columns, folder))
        original = few_remembered(prepared.lake)
        decision = measure_and_judge(prepared.job, original, masked, fitted, series)
        steps = by_step(original, masked, fitted, decision.results) if compared else []
        zeros = zeros_masked(prepared.job, steps) if steps else []
        exposure = exposed_records(decision, original, masked) if compared else None
        this.recorder.add(warnings=[*warned, *zeros, *decision.untried])
    compared_tables = found.result(*summaries) if found else ComparedTables()
    return Measured(fitted, folder, files, table, decision, compared_tables, steps, exposure, series)


def _staging_folder(job: Job, own: Place, table: Table, key: Subkey) -> Folder:
    """Where blocks are staged, by the order of the release, under a key of its own, so that no two releases line up."""
    staging, pairing = own / STAGING, own / PAIRING
    if job.file.partition_by:
        return partitioned_folder(staging, pairing, key, table, job.file.partition_by)
    if job.file.order == "shuffled":
        return shuffled_folder(staging, pairing, key, table)
    return BlockFiles(staging, pairing, None if job.file.order == "input" else key)


def _comparison(prepared: Prepared, table: Table, fitted: Sequence[Any]) -> ColumnComparison:
    """The masked columns before and after; and the correlations of released numbers, masked ones first."""
    both = [name for name in prepared.columns if name in prepared.lake.schema.names]
    masked = [name for name in both if name in table.changed]
    related = sorted(both, key=lambda name: name not in masked)
    return comparison(prepared.lake, table, masked, related, through_steps(fitted))


def _is_about_data(error: Exception) -> bool:
    """Whether it is of the input, or of what nobody expected; not of the storage, which may not answer now, either."""
    return type(safe_error(error)) in {InputError, DpmaskError}


def _require_same_source(prepared: Prepared) -> None:
    if prepared.source_changed():
        raise InputError(f"{prepared.job.shown_source}: changed while the run was under way. Nothing was published.")


def _publish(this: JobRun, prepared: Prepared, done: Measured, found: Account) -> None:
    files, public, old = done.files, found.public(), prepared.standing
    identity, drawn = release_id(prepared.run, files), [step.solution_exhibits for step in found.steps]
    documents = {
        statement_path(identity): statement(public, identity).encode(),
        page_path(identity): public_page(public, identity, found.public_measures, drawn, done.compared).encode(),
    }
    if old is not None and not this.overwrite:
        if old.manifest is not None and old.manifest["release"] == identity and this.signed(old.manifest):
            _record_already_released(this, prepared)
            return
        raise in_the_way(prepared.target)
    if done.series is not None and not this.trial:
        public["series"] = done.series.entered(_entry_of(prepared, done, identity), done.fitted, this.signer)
    described = metadata_files(public, identity, data_entries(identity, files))
    documents |= {metadata_path(identity, kind): text for kind, text in described.items()}
    manifest = build(public, identity, files, documents, this.signer)
    names = [file.name for file in files]
    documents |= attestation(manifest, this.signer)
    publish(prepared.target, done.folder.staging, names, documents, manifest, identity, old)
    size = sum(file.bytes for file in files)
    this.recorder.add(status="released", release=prepared.target.full_url, files=len(files), release_bytes=size)


def _entry_of(prepared: Prepared, done: Measured, identity: str) -> dict[str, Any]:
    """What the ledger of a series keeps of a release, beside its people and cuts."""
    gate = done.decision.gate
    return {
        "name": prepared.job.file.name,
        "run": prepared.run,
        "release": identity,
        "rows": done.masked.rows,
        "columns": prepared.columns,
        "kept": done.rows,
        "source": prepared.versions,
        "key": prepared.key.fingerprint,
        "risk": {field: plain(getattr(gate, field)) for field in gate.judged},
    }


def _verify(this: JobRun, prepared: Prepared) -> None:
    public_key = this.signer.public_key() if this.signer else None
    try:
        verify(prepared.target.full_url, public_key)
    except (VerificationError, InputError) as error:
        raise StorageError(f"The release was published but does not verify; do not use it.\n{error}") from None


def _already_released(this: JobRun, prepared: Prepared) -> bool:
    """Whether this very release stands at the target, whole; another one was refused when the job was prepared."""
    old = prepared.standing
    if old is None or old.manifest is None or old.run != prepared.run:
        return False
    if prepared.series is not None and prepared.series.own is None and not this.trial:
        raise prepared.series.lost(prepared.target)
    complete_table(prepared.target, old, old.manifest)
    clear_leftovers(prepared.target, old, old.manifest)
    if not _same_versions(prepared):
        return False
    try:
        verify(prepared.target.full_url)
    except DpmaskError as error:
        if this.overwrite:
            return False
        raise TargetError(f"{error}\nThis job was released here before. Publish it again with --overwrite.") from None
    if not this.signed(old.manifest):
        if this.overwrite:
            return False
        raise in_the_way(prepared.target)
    _record_already_released(this, prepared)
    return True


def _record_already_released(this: JobRun, prepared: Prepared) -> None:
    report, standing = _folder(prepared) / REPORT, prepared.standing
    this.recorder.add(status="already released", release=prepared.target.full_url, report=report.full_url)
    if standing is not None and standing.manifest is not None:
        this.recorder.add(rows=standing.manifest["rows"])


def _same_versions(prepared: Prepared) -> bool:
    """Whether the source files are known to be the ones that were released."""
    known = _source_of(_folder(prepared) / SOURCE)
    return bool(known.get("versions") == prepared.versions)


def _source_of(place: Place) -> dict[str, Any]:
    """What an earlier run wrote of its source; nothing, if it did not or it cannot be read."""
    try:
        return dict(json.loads(place.read()))
    except (InputError, ValueError, TypeError):
        return {}
