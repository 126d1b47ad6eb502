"""The commands about a release: run a job, plan it, verify what it published."""

from __future__ import annotations

import gc
import json
import signal
import sys

import click

from dpmask.cli.common import of_job, on_cluster, with_exit_codes, working
from dpmask.errors import printable
from dpmask.registry import without_collecting
from dpmask.terminal import Progress, count, echo, echo_event, log_as_events, show_failed, show_plan, show_released


@click.command()
@of_job
@on_cluster
@click.option("--overwrite", is_flag=True, help="Replace another release at the target.")
@click.option("--resume", is_flag=True, help="Continue an earlier run of this job that failed or was killed.")
@click.option("--trial", is_flag=True, help="A trial, not a release: it may have a seed, and all it writes says so.")
@click.option("--fitted", metavar="FOLDER", help="Mask with the fits in this folder, which dpmask fit saved.")
@click.option("--sign", metavar="KEYFILE", help="Sign the manifest with this Ed25519 private key (PEM).")
@click.option("--explain", is_flag=True, help="Print what each measure found in words, too.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, also when the run fails.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="What is written to stderr: lines to read, or each event as one JSON object.",
)
@click.option("--metrics", metavar="FILE", help="Write the run's figures for Prometheus, also when it fails.")
@click.option("--lineage", metavar="FILE|URL", help="Add OpenLineage events to a file, or send them to a server.")
@with_exit_codes
def run(
    job: str,
    settings: tuple[str, ...],
    scheduler: str | None,
    cluster: str | None,
    overwrite: bool,
    resume: bool,
    trial: bool,
    fitted: str | None,
    sign: str | None,
    explain: bool,
    as_json: bool,
    log_format: str,
    metrics: str | None,
    lineage: str | None,
) -> None:
    """Mask a lake and publish the release that its policy allows."""
    as_events, progress = log_format == "json", Progress()
    if as_events:
        log_as_events()
    with without_collecting():
        from dpmask.job.run import run_job
    gc.freeze()  # what was imported stays: collecting it again and again takes as long as reading a lake
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C: with a result
    try:
        outcome = run_job(
            job,
            settings=settings,
            scheduler=scheduler,
            cluster=cluster,
            overwrite=overwrite,
            resume=resume,
            trial=trial,
            fitted=fitted,
            sign=sign,
            metrics=metrics,
            lineage=lineage,
            watcher=None if as_events else progress,
            record=echo_event if as_events else None,
        )
    finally:
        progress.close()
    if as_json:
        echo(json.dumps(outcome.to_dict(), indent=1))
    if outcome.exit_code:
        if not as_events:
            show_failed(outcome, explain=explain)
        sys.exit(outcome.exit_code)
    if not as_json:
        show_released(outcome, explain=explain)


@click.command()
@of_job
@on_cluster
@click.option("--to", "folder", required=True, metavar="FOLDER", help="A new folder, which is made private.")
@click.option("--trial", is_flag=True, help="For a trial, which may have a seed.")
@with_exit_codes
def fit(
    job: str, settings: tuple[str, ...], scheduler: str | None, cluster: str | None, folder: str, trial: bool
) -> None:
    """Fit the steps of a job to its source and save the fits, to mask later tables with: run --fitted FOLDER.

    FOLDER holds what was learnt from records, and no key. Nothing is masked or published.
    """
    from dpmask.job.fit import fit_job
    from dpmask.job.model import read_job

    with working(scheduler, cluster):
        steps = fit_job(read_job(job, settings), folder, trial=trial)
    for warning in (warning for step in steps for warning in step.warnings()):
        echo(f"Warning: {warning}")
    echo(f"Fitted {count(len(steps), 'step')}: dpmask run {printable(job)} --fitted {printable(folder)}")


@click.command()
@of_job
@on_cluster
@click.option("--overwrite", is_flag=True, help="Plan to replace another release at the target.")
@click.option("--trial", is_flag=True, help="Plan a trial, which may have a seed.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
@with_exit_codes
def plan(
    job: str,
    settings: tuple[str, ...],
    scheduler: str | None,
    cluster: str | None,
    overwrite: bool,
    trial: bool,
    as_json: bool,
) -> None:
    """Check a job as run would, and estimate passes, memory and time. Writes nothing."""
    from dpmask.engine.cluster.connect import connected
    from dpmask.job.estimate import plan as make_plan
    from dpmask.job.model import read_job
    from dpmask.job.warm_up import compiling_announced
    from dpmask.release.gate import closed

    with connected(scheduler, cluster):
        wanted = read_job(job, settings)
        with compiling_announced(wanted, lambda text, *_: echo(text, err=True)):
            planned = make_plan(wanted, overwrite=overwrite, trial=trial)
    if as_json:
        echo(json.dumps(planned.to_dict(), indent=1))
    else:
        show_plan(planned)
    if planned.refused:
        raise closed(planned.refused)


@click.command()
@click.argument("release")
@on_cluster
@click.option("--signer", metavar="FILE", help="The public key (PEM) that must have signed the manifest.")
@click.option("--attestation", is_flag=True, help="Require an attestation: in-toto, in a DSSE envelope.")
@click.option("--strict", is_flag=True, help="Refuse a trial.")
@click.option(
    "--with",
    "earlier",
    multiple=True,
    metavar="EARLIER",
    help="Count the people whom an intruder with this earlier release cannot distinguish.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@with_exit_codes
def verify(
    release: str,
    scheduler: str | None,
    cluster: str | None,
    signer: str | None,
    attestation: bool,
    strict: bool,
    earlier: tuple[str, ...],
    as_json: bool,
) -> None:
    """Re-read a release and recompute what its manifest claims."""
    from dpmask.engine.cluster.connect import connected
    from dpmask.job.recount import recounted
    from dpmask.release.manifest import read_public_key
    from dpmask.release.verify import PUBLISHING
    from dpmask.release.verify import verify as check

    with connected(scheduler, cluster):
        verified = check(release, read_public_key(signer) if signer else None, attested=attestation, strict=strict)
        counted = list(recounted(release, earlier)) if earlier else []
    if as_json:
        more = {"series": [one._asdict() for one in counted]} if earlier else {}
        echo(json.dumps(verified._asdict() | more, indent=1))
        return
    name = printable(verified.name, 200)
    echo(f"{name}: {verified.rows:,} records in {count(verified.files, 'file')} are what the manifest claims")
    if verified.trial:
        echo("  a trial, not a release")
    echo(f"  {verified.origin}")
    for one in counted:
        echo(f"  {printable(str(one))}")
    if verified.publishing:
        echo(f"  {PUBLISHING}")
