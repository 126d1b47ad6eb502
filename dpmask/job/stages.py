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

from dpmask.errors import DpmaskError, InputError, PolicyRefusal, StorageError, TargetError, VerificationError
from dpmask.job.account import account, public_part
from dpmask.job.model import Job
from dpmask.job.prepare import Prepared, prepare
from dpmask.lake.storage import Place
from dpmask.lake.table import Table
from dpmask.release.manifest import build, check_signature
from dpmask.release.policy import Verdict, judge
from dpmask.release.publish import clear_leftovers, publish, release_id, statement_path
from dpmask.release.staging import Folder, StagedFile, stage, staged_table
from dpmask.release.verify import verify
from dpmask.report.page import report_page
from dpmask.report.statement import statement
from dpmask.utility import measure_function

Tell = Callable[[str], None]


@dataclass
class Run:
    """One run under way: how it was asked for, and what has come of it so far."""

    job: Job
    overwrite: bool
    signer: Ed25519PrivateKey | None
    tell: Tell
    outcome: dict[str, Any] = field(default_factory=dict)

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
        prepared = prepare(job)
        under_way.outcome.update(name=job.file.name, run=prepared.run, rows=prepared.lake.rows)
        if _already_released(under_way, prepared):
            return
    folder, own = _folder(prepared)
    with under_way.stage("mask"):
        table, fitted = _fit(prepared)
        under_way.outcome["warnings"] = [warning for step in fitted for warning in step.warnings()]
        files = stage(table, prepared.columns, folder)
    with under_way.stage("measure"):
        masked = staged_table(table, prepared.columns, folder)
        results = {m.name: measure_function(m.measure)(prepared.lake, masked, **m.parameters) for m in job.measures}
    with under_way.stage("decide"):
        verdicts = [judge(rule, results[rule.measure]) for rule in job.rules]
        told = account(prepared, fitted, results, verdicts)
        (own / "report.html").write(report_page(told).encode())
        under_way.outcome.update(
            report=(own / "report.html").full_url, measures=told["measures"], policy=told["policy"], steps=told["steps"]
        )
        _decide(verdicts, folder)
    with under_way.stage("publish"):
        _publish(under_way, prepared, folder, files, told)
        (own / "source.json").write(json.dumps({"versions": prepared.versions}).encode())
    with under_way.stage("verify"):
        _verify(under_way, prepared)
    folder.staging.clear()


def _fit(prepared: Prepared) -> tuple[Table, list[Any]]:
    """Fit each method to the table as masked by those before it."""
    table: Table = prepared.lake
    fitted = []
    for number, method in enumerate(prepared.job.methods):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # told with the outcome
            step = method.fit(table, key=prepared.key.subkey(f"mask[{number}]"))
        fitted.append(step)
        table = table.masked_by(step)
    return table, fitted


def _folder(prepared: Prepared) -> tuple[Folder, Place]:
    own = prepared.private / prepared.run
    order = prepared.key.subkey("order") if prepared.job.file.order == "shuffled" else None
    return Folder(own / "staging", own / "pairing", order), own


def _decide(verdicts: list[Verdict], folder: Folder) -> None:
    broken = [one for one in verdicts if not one.held]
    if broken:
        folder.staging.clear()
        lines = [f"  {one.rule.text}: it is {one.judged:.6g}" for one in broken]
        raise PolicyRefusal("\n".join(["The policy forbids this release; nothing was published.", *lines]))


def _publish(under_way: Run, prepared: Prepared, folder: Folder, files: list[StagedFile], told: dict[str, Any]) -> None:
    identity = release_id(prepared.run, files)
    public = public_part(told)
    text = statement(public, identity).encode()
    manifest = build(public, identity, files, {statement_path(identity): text}, under_way.signer)
    old = prepared.standing
    if old is not None and not under_way.overwrite:
        if old.manifest["release"] == identity:
            _say_already(under_way, prepared)
            return
        raise _in_the_way(prepared)
    publish(prepared.target, folder.staging, [file.name for file in files], text, manifest, identity, old)
    under_way.outcome.update(status="released", release=prepared.target.full_url, files=len(files))


def _verify(under_way: Run, prepared: Prepared) -> None:
    public_key = under_way.signer.public_key() if under_way.signer else None
    try:
        verify(prepared.target.full_url, public_key)
    except (VerificationError, InputError) as error:
        raise StorageError(f"The release was published but does not verify; do not use it.\n{error}") from None


def _already_released(under_way: Run, prepared: Prepared) -> bool:
    """Whether this very release stands at the target, whole. Another one is refused, unless it is to be replaced."""
    old = prepared.standing
    if old is None:
        return False
    if old.manifest["run"] != prepared.run:
        if under_way.overwrite:
            return False
        raise _in_the_way(prepared)
    clear_leftovers(prepared.target, old.manifest)
    if not _same_versions(prepared):
        return False
    try:
        if under_way.signer is not None:
            check_signature(old.manifest, under_way.signer.public_key(), prepared.target.url)
        verify(prepared.target.full_url)
    except DpmaskError as error:
        if under_way.overwrite:
            return False
        raise TargetError(f"{error}\nThis job was released here before. Publish it again with --overwrite.") from None
    _say_already(under_way, prepared)
    return True


def _say_already(under_way: Run, prepared: Prepared) -> None:
    own = prepared.private / prepared.run
    under_way.outcome.update(
        status="already released", release=prepared.target.full_url, report=(own / "report.html").full_url
    )


def _same_versions(prepared: Prepared) -> bool:
    """Whether the source files are known to be the ones that were released."""
    place = prepared.private / prepared.run / "source.json"
    if not place.exists():
        return False
    try:
        return bool(json.loads(place.read())["versions"] == prepared.versions)
    except (ValueError, KeyError, TypeError):
        return False


def _in_the_way(prepared: Prepared) -> TargetError:
    return TargetError(
        f"{prepared.target.url}: holds another release, of another job, input or key. Choose another target, "
        "or replace it with --overwrite."
    )
