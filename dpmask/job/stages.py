"""The stages of a run: read, mask, measure, decide, publish, verify. The target stays as it was until the decision."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpmask.engine.draws import Subkey
from dpmask.engine.journal import flush
from dpmask.errors import DpmaskError, InputError, PolicyRefusal, StorageError, TargetError, VerificationError
from dpmask.job.account import account, public_part
from dpmask.job.checkpoint import Checkpoint
from dpmask.job.measures import takers
from dpmask.job.model import Job
from dpmask.job.prepare import PAIRING, SOURCE, STAGING, Prepared, in_the_way, open_lake, prepare
from dpmask.lake.storage import Place
from dpmask.release.manifest import build, check_signature
from dpmask.release.policy import Verdict, judge
from dpmask.release.publish import clear_leftovers, page_path, publish, release_id, statement_path
from dpmask.release.staging import Folder, StagedFile, Watch, stage, staged_table
from dpmask.release.verify import verify
from dpmask.report.comparison import Comparison, comparison, merge_seen
from dpmask.report.page import public_page, report_page
from dpmask.report.statement import statement
from dpmask.table.table import Table

Tell = Callable[[str], None]


@dataclass
class Run:
    """One run under way: how it was asked for, and what has come of it so far."""

    job: Job
    overwrite: bool
    signer: Ed25519PrivateKey | None
    tell: Tell
    outcome: dict[str, Any] = field(default_factory=dict)
    resume: bool = False

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Announce a stage, and note how long it took."""
        self.outcome["stage"] = name
        self.tell(name)
        start = time.perf_counter()
        try:
            yield
        finally:
            self.outcome.setdefault("seconds", {})[name] = round(time.perf_counter() - start, 3)


def run(under_way: Run) -> None:
    """Take a job through all its stages; ``under_way.outcome`` says what came of it."""
    job = under_way.job
    with under_way.stage("read"):
        prepared = prepare(job, overwrite=under_way.overwrite)
        size = sum(file.size for file in prepared.lake.files)
        under_way.outcome.update(run=prepared.run, source_rows=prepared.lake.rows, source_bytes=size)
    own, checkpoint = prepared.private / prepared.run, Checkpoint(prepared)
    with own.locked():
        if not _already_released(under_way, prepared):
            under_way.outcome["checkpoint"] = checkpoint.place.full_url
            _release(under_way, prepared, checkpoint)
        _clear(under_way, own, checkpoint)


def _release(under_way: Run, prepared: Prepared, checkpoint: Checkpoint) -> None:
    """All stages after reading; a failure leaves a checkpoint to go on from."""
    own = prepared.private / prepared.run
    with checkpoint.journal(resume=under_way.resume) as journal:
        done = mask_and_measure(under_way, prepared, own, compared=True)
        with under_way.stage("decide"):
            told = account(prepared, done.fitted, done.masked.rows, done.results, done.verdicts)
            (own / "report.html").write(report_page(told, done.compared).encode())
            under_way.outcome.update(
                report=(own / "report.html").full_url,
                measures=told["measures"],
                policy=told["policy"],
                steps=told["steps"],
                resumed={"passes": journal.passes, "files": journal.files},
            )
    broken = [one for one in done.verdicts if not one.held]
    if broken:
        _clear(under_way, own, checkpoint)
        raise _refusal(broken)
    with under_way.stage("publish"):
        _publish(under_way, prepared, done, told)
        noted = {"versions": prepared.versions, "key": prepared.key.fingerprint}
        (own / SOURCE).write(json.dumps(noted).encode())
    with under_way.stage("verify"):
        _verify(under_way, prepared)


def _clear(under_way: Run, own: Place, checkpoint: Checkpoint) -> None:
    """Delete what is of no use to a run to come."""
    (own / STAGING).clear()
    checkpoint.clear()
    under_way.outcome.pop("checkpoint", None)


@dataclass(frozen=True)
class Measured:
    """A job masked, staged and measured: nothing of it is public yet."""

    fitted: list[Any]
    folder: Folder
    files: list[StagedFile]
    masked: Table
    results: dict[str, Any]
    judged: dict[str, Any]
    verdicts: list[Verdict]
    compared: dict[str, Any]


def mask_and_measure(under_way: Run, prepared: Prepared, own: Place, *, compared: bool = False) -> Measured:
    """Mask the table into a private folder, measure what would be published, and hold the policy against it.

    With ``compared``, distributions and correlations are taken on the way, for the report.
    """
    job = prepared.job
    with under_way.stage("mask"):
        table, fitted = _fit(prepared)
        folder = Folder(own / STAGING, own / PAIRING, _order_key(prepared, fitted))
        warned = [warning for step in fitted for warning in step.warnings()]
        under_way.outcome["warnings"] = warned + _not_attacked(job) + _key_used_before(prepared)
        found = _comparison(prepared, table) if compared else None
        watch = Watch(found.before, found.after, merge_seen) if found else Watch()
        files, seen = stage(prepared.lake, table, prepared.columns, folder, watch)
        flush()
        under_way.outcome["rows"] = table.rows
    with under_way.stage("measure"):
        masked = staged_table(table, prepared.columns, folder)
        results = {name: take() for name, take in takers(prepared.lake, masked, job.measures).items()}
        figures = {name: step.figures for name, step in zip(job.names, fitted, strict=True) if step.method.judged}
        judged = figures | results
    verdicts = [judge(rule, judged[rule.measure]) for rule in job.rules]
    return Measured(fitted, folder, files, table, results, judged, verdicts, found.told(*seen) if found else {})


def _fit(prepared: Prepared) -> tuple[Table, list[Any]]:
    """Fit each method to the table as masked by those before it; its key is bound to what theirs are bound to.

    A step cannot bind its draws to columns that another has changed, as these are exact only to rounding.
    """
    table: Table = prepared.lake
    fitted: list[Any] = []
    for number, method in enumerate(prepared.job.methods):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # told with the outcome
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


def _publish(under_way: Run, prepared: Prepared, done: Measured, told: dict[str, Any]) -> None:
    if prepared._replace(lake=open_lake(prepared.job)).versions != prepared.versions:
        raise InputError(f"{prepared.job.file.source}: changed while the run was under way. Nothing was published.")
    files = done.files
    identity = release_id(prepared.run, files)
    public = public_part(told)
    measures = [measure for measure in told["measures"] if measure["public"]]
    documents = {
        statement_path(identity): statement(public, identity).encode(),
        page_path(identity): public_page(public, identity, measures, done.compared).encode(),
    }
    manifest = build(public, identity, files, documents, under_way.signer)
    old = prepared.standing
    if old is not None and not under_way.overwrite:
        if (
            old.manifest is not None
            and old.manifest["release"] == identity
            and _signed_as_asked(under_way, old.manifest)
        ):
            _say_already(under_way, prepared)
            return
        raise in_the_way(prepared.target)
    names = [file.name for file in files]
    publish(prepared.target, prepared.run, done.folder.staging, names, documents, manifest, identity, old)
    size = sum(file.bytes for file in files)
    under_way.outcome.update(status="released", release=prepared.target.full_url, files=len(files), release_bytes=size)


def _signed_as_asked(under_way: Run, manifest: dict[str, Any]) -> bool:
    if under_way.signer is None:
        return True
    try:
        check_signature(manifest, under_way.signer.public_key(), "")
    except VerificationError:
        return False
    return True


def _verify(under_way: Run, prepared: Prepared) -> None:
    public_key = under_way.signer.public_key() if under_way.signer else None
    try:
        verify(prepared.target.full_url, public_key)
    except (VerificationError, InputError) as error:
        raise StorageError(f"The release was published but does not verify; do not use it.\n{error}") from None


def _already_released(under_way: Run, prepared: Prepared) -> bool:
    """Whether this very release stands at the target, whole; another one was refused when the job was prepared."""
    old = prepared.standing
    if old is None or old.manifest is None or old.run != prepared.run:
        return False
    if any(run != prepared.run for run in old.publishing):
        raise TargetError(f"{prepared.target.url}: another run is publishing here, or died doing so. Look first.")
    clear_leftovers(prepared.target, old.manifest)
    if not _same_versions(prepared):
        return False
    try:
        verify(prepared.target.full_url)
    except DpmaskError as error:
        if under_way.overwrite:
            return False
        raise TargetError(f"{error}\nThis job was released here before. Publish it again with --overwrite.") from None
    if not _signed_as_asked(under_way, old.manifest):
        if under_way.overwrite:
            return False
        raise in_the_way(prepared.target)
    _say_already(under_way, prepared)
    return True


def _say_already(under_way: Run, prepared: Prepared) -> None:
    own, standing = prepared.private / prepared.run, prepared.standing
    under_way.outcome.update(
        status="already released", release=prepared.target.full_url, report=(own / "report.html").full_url
    )
    if standing is not None and standing.manifest is not None:
        under_way.outcome["rows"] = standing.manifest["rows"]


def _same_versions(prepared: Prepared) -> bool:
    """Whether the source files are known to be the ones that were released."""
    noted = _noted(prepared.private / prepared.run / SOURCE)
    return bool(noted.get("versions") == prepared.versions)


def _not_attacked(job: Job) -> list[str]:
    """A warning for each step that a known attack undoes, if the job does not measure that attack."""
    taken = {measure.measure for measure in job.measures}
    attacks = [(step["method"], method.undone_by) for step, method in zip(job.file.mask, job.methods, strict=True)]
    return [
        f"Who knows a few records may undo {method}, and the job does not measure it. Add measure: {attack}"
        for method, attack in attacks
        if attack is not None and attack not in taken
    ]


def _key_used_before(prepared: Prepared) -> list[str]:
    """A warning if this key has made another release: draws shared by two releases show how their originals differ."""
    others = [name for name in prepared.private.files() if name.endswith(f"/{SOURCE}") and prepared.run not in name]
    if not any(_noted(prepared.private / name).get("key") == prepared.key.fingerprint for name in others):
        return []
    return ["This key has made another release from this private folder. Take a new key for each release."]


def _noted(place: Place) -> dict[str, Any]:
    """What an earlier run noted of its source; nothing, if it did not or it cannot be read."""
    try:
        return dict(json.loads(place.read()))
    except (InputError, ValueError, TypeError):
        return {}
