"""The stages of a run: read, mask, measure, decide, publish, verify. The target stays as it was until the decision."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpmask.engine.draws import Subkey
from dpmask.engine.journal import flush
from dpmask.errors import DpmaskError, InputError, PolicyRefusal, StorageError, TargetError, VerificationError
from dpmask.job.account import Account, account
from dpmask.job.checkpoint import Checkpoint
from dpmask.job.events import Recorder
from dpmask.job.measures import takers
from dpmask.job.model import Job
from dpmask.job.outcome import Resumed
from dpmask.job.prepare import PAIRING, SOURCE, STAGING, Prepared, in_the_way, open_lake, prepare
from dpmask.lake.storage import Place
from dpmask.release.manifest import build, check_signature
from dpmask.release.policy import Verdict, judge
from dpmask.release.publish import clear_leftovers, page_path, publish, release_id, statement_path
from dpmask.release.staging import Folder, Observation, StagedFile, stage, staged_table
from dpmask.release.verify import verify
from dpmask.report.comparison import Comparison, comparison, merge_counts
from dpmask.report.page import public_page, report_page
from dpmask.report.statement import statement
from dpmask.table.table import Table

_REPORT = "report.html"


@dataclass(frozen=True)
class JobRun:
    """One run: how it was asked for, and where what comes of it is recorded."""

    job: Job
    recorder: Recorder
    overwrite: bool = False
    signer: Ed25519PrivateKey | None = None
    resume: bool = False

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
        prepared = prepare(this.job, overwrite=this.overwrite)
        size = sum(file.size for file in prepared.lake.files)
        this.recorder.add(run=prepared.run, source_rows=prepared.lake.rows, source_bytes=size)
    checkpoint = Checkpoint(prepared)
    with _folder(prepared).locked():
        if not _already_released(this, prepared):
            this.recorder.add(checkpoint=checkpoint.place.full_url)
            _release(this, prepared, checkpoint)
        _clear(this, prepared, checkpoint)


def _folder(prepared: Prepared) -> Place:
    """The run's own part of the private folder."""
    return prepared.private / prepared.run


def _release(this: JobRun, prepared: Prepared, checkpoint: Checkpoint) -> None:
    """All stages after reading; a failure leaves a checkpoint to go on from."""
    folder, recorder = _folder(prepared), this.recorder
    with checkpoint.journal(resume=this.resume) as journal:
        done = mask_and_measure(this, prepared, folder, compared=True)
        with recorder.during("decide"):
            found = account(prepared, done.fitted, done.masked.rows, done.results, done.verdicts)
            (folder / _REPORT).write(report_page(vars(found), done.compared).encode())
            recorder.add(
                report=(folder / _REPORT).full_url,
                measures=found.measures,
                policy=found.policy,
                steps=found.steps,
                resumed=Resumed(passes=journal.passes, files=journal.files),
            )
    broken = [one for one in done.verdicts if not one.held]
    if broken:
        _clear(this, prepared, checkpoint)
        raise _refusal(broken)
    with recorder.during("publish"):
        _publish(this, prepared, done, found)
        source = {"versions": prepared.versions, "key": prepared.key.fingerprint}
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
    results: Mapping[str, Any]
    judged: Mapping[str, Any]
    """The results, and the figures of the methods, by name: what a policy may refer to."""
    verdicts: Sequence[Verdict]
    compared: dict[str, Any]
    """Distributions and correlations, if they were asked for."""


def mask_and_measure(this: JobRun, prepared: Prepared, own: Place, *, compared: bool = False) -> Measured:
    """Mask the table into a private folder, measure what would be published, and judge it by the policy.

    With ``compared``, distributions and correlations are counted in the same pass, for the report.
    """
    job = prepared.job
    with this.recorder.during("mask"):
        table, fitted = _fit(prepared)
        folder = Folder(own / STAGING, own / PAIRING, _order_key(prepared, fitted))
        warned = [warning for step in fitted for warning in step.warnings()]
        this.recorder.add(warnings=warned + _not_attacked(job) + _key_used_before(prepared))
        found = _comparison(prepared, table) if compared else None
        observation = Observation(found.before, found.after, merge_counts) if found else Observation()
        files, summaries = stage(prepared.lake, table, prepared.columns, folder, observation)
        flush()
        this.recorder.add(rows=table.rows)
    with this.recorder.during("measure"):
        masked = staged_table(table, prepared.columns, folder)
        results = {name: take() for name, take in takers(prepared.lake, masked, job.measures).items()}
        figures = {name: step.figures for name, step in zip(job.names, fitted, strict=True) if step.method.judged}
        judged = figures | results
    verdicts = [judge(rule, judged[rule.measure]) for rule in job.rules]
    return Measured(fitted, folder, files, table, results, judged, verdicts, found.result(*summaries) if found else {})


def _fit(prepared: Prepared) -> tuple[Table, list[Any]]:
    """Fit each method to the table as masked by those before it; its key is bound to what theirs are bound to.

    A step cannot bind its draws to columns that another has changed, as these are exact only to rounding.
    """
    table: Table = prepared.lake
    fitted: list[Any] = []
    for number, method in enumerate(prepared.job.methods):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are in the outcome
            purpose = " ".join([f"mask[{number}]", *(before.key.fingerprint for before in fitted)])
            step = method.fit(table, key=prepared.subkey(purpose))
        fitted.append(step)
        table = table.masked_by(step)
    return table, fitted


def _order_key(prepared: Prepared, fitted: list[Any]) -> Subkey | None:
    """The key of the rows' order: bound to what the steps are bound to, so that no two releases line up."""
    if prepared.job.file.order == "input":
        return None
    return prepared.subkey("order " + " ".join(step.key.fingerprint for step in fitted))


def _refusal(broken: list[Verdict]) -> PolicyRefusal:
    lines = [f"  {one.rule.text}: it is {one.judged:.6g}" for one in broken]
    return PolicyRefusal("\n".join(["The policy forbids this release; nothing was published.", *lines]))


def _comparison(prepared: Prepared, table: Table) -> Comparison:
    """The masked columns before and after; and the correlations of released numbers, masked ones first."""
    both = [name for name in prepared.columns if name in prepared.lake.schema.names]
    masked = [name for name in both if name in table.changed]
    return comparison(prepared.lake, table, masked, sorted(both, key=lambda name: name not in masked))


def _publish(this: JobRun, prepared: Prepared, done: Measured, found: Account) -> None:
    if prepared._replace(lake=open_lake(prepared.job)).versions != prepared.versions:
        raise InputError(f"{prepared.job.file.source}: changed while the run was under way. Nothing was published.")
    files, public, old = done.files, found.public(), prepared.standing
    identity, drawn = release_id(prepared.run, files), [step.solution_exhibits for step in found.steps]
    documents = {
        statement_path(identity): statement(public, identity).encode(),
        page_path(identity): public_page(public, identity, found.public_measures, drawn, done.compared).encode(),
    }
    manifest = build(public, identity, files, documents, this.signer)
    if old is not None and not this.overwrite:
        if old.manifest is not None and old.manifest["release"] == identity and this.signed(old.manifest):
            _record_already_released(this, prepared)
            return
        raise in_the_way(prepared.target)
    names = [file.name for file in files]
    publish(prepared.target, prepared.run, done.folder.staging, names, documents, manifest, identity, old)
    size = sum(file.bytes for file in files)
    this.recorder.add(status="released", release=prepared.target.full_url, files=len(files), release_bytes=size)


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
    if any(run != prepared.run for run in old.publishing):
        raise TargetError(f"{prepared.target.url}: another run is publishing here, or died doing so. Check first.")
    clear_leftovers(prepared.target, old.manifest)
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
    report, standing = _folder(prepared) / _REPORT, prepared.standing
    this.recorder.add(status="already released", release=prepared.target.full_url, report=report.full_url)
    if standing is not None and standing.manifest is not None:
        this.recorder.add(rows=standing.manifest["rows"])


def _same_versions(prepared: Prepared) -> bool:
    """Whether the source files are known to be the ones that were released."""
    known = _source_of(_folder(prepared) / SOURCE)
    return bool(known.get("versions") == prepared.versions)


def _not_attacked(job: Job) -> list[str]:
    """A warning for each step that a known attack undoes, if the job does not measure that attack."""
    taken = {measure.measure for measure in job.measures}
    attacks = [(step["method"], method.undone_by) for step, method in zip(job.file.mask, job.methods, strict=True)]
    return [
        f"An intruder who knows a few records may undo {method}, and the job does not measure it. Add measure: {attack}"
        for method, attack in attacks
        if attack is not None and attack not in taken
    ]


def _key_used_before(prepared: Prepared) -> list[str]:
    """A warning if this key was used for another release: shared draws show how the originals of both differ."""
    others = [name for name in prepared.private.files() if name.endswith(f"/{SOURCE}") and prepared.run not in name]
    if not any(_source_of(prepared.private / name).get("key") == prepared.key.fingerprint for name in others):
        return []
    return ["This key was used for another release from this private folder. Take a new key for each release."]


def _source_of(place: Place) -> dict[str, Any]:
    """What an earlier run wrote of its source; nothing, if it did not or it cannot be read."""
    try:
        return dict(json.loads(place.read()))
    except (InputError, ValueError, TypeError):
        return {}
