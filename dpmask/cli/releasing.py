"""The commands about a release: run a job, plan it, verify what it published."""

from __future__ import annotations

import gc
import json
import signal
import sys

import click

from dpmask.cli.common import on_cluster, with_exit_codes
from dpmask.terminal import Progress, count, echo, echo_event, log_as_events, show_failed, show_plan, show_released


@click.command()
@click.argument("job", metavar="JOB.yaml")
@on_cluster
@click.option("--overwrite", is_flag=True, help="Replace another release at the target.")
@click.option("--resume", is_flag=True, help="Go on from where an earlier run of this job failed or was killed.")
@click.option("--sign", metavar="KEYFILE", help="Sign the manifest with this Ed25519 private key (PEM).")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, also when the run fails.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="What stderr gets: lines to read, or each event as one JSON object.",
)
@click.option("--metrics", metavar="FILE", help="Write the run's figures for Prometheus, also when it fails.")
@with_exit_codes
def run(
    job: str,
    scheduler: str | None,
    cluster: str | None,
    overwrite: bool,
    resume: bool,
    sign: str | None,
    as_json: bool,
    log_format: str,
    metrics: str | None,
) -> None:
    """Mask a lake and publish the release that its policy allows."""
    as_events, progress = log_format == "json", Progress()
    if as_events:
        log_as_events()
    from dpmask.job.run import run_job

    gc.freeze()  # what was imported stays: collecting it again and again takes as long as reading a lake
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C: with a result
    outcome = run_job(
        job,
        scheduler=scheduler,
        cluster=cluster,
        overwrite=overwrite,
        resume=resume,
        sign=sign,
        metrics=metrics,
        watcher=None if as_events else progress,
        record=echo_event if as_events else None,
    )
    if not as_events:
        progress.close()
    if as_json:
        echo(json.dumps(outcome.to_dict(), indent=1))
    if outcome.exit_code:
        if not as_events:
            show_failed(outcome)
        sys.exit(outcome.exit_code)
    if not as_json:
        show_released(outcome)


@click.command()
@click.argument("job", metavar="JOB.yaml")
@on_cluster
@click.option("--overwrite", is_flag=True, help="Plan to replace another release at the target.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
@with_exit_codes
def plan(job: str, scheduler: str | None, cluster: str | None, overwrite: bool, as_json: bool) -> None:
    """Check a job as run would, and estimate passes, memory and time. Writes nothing."""
    from dpmask.engine.cluster.connect import connected
    from dpmask.job.estimate import plan as make_plan
    from dpmask.job.model import read_job

    with connected(scheduler, cluster):
        planned = make_plan(read_job(job), overwrite=overwrite)
    if as_json:
        echo(json.dumps(planned, indent=1))
        return
    show_plan(planned)


@click.command()
@click.argument("release")
@on_cluster
@click.option("--signer", metavar="FILE", help="The public key (PEM) that must have signed the manifest.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@with_exit_codes
def verify(release: str, scheduler: str | None, cluster: str | None, signer: str | None, as_json: bool) -> None:
    """Re-read a release and recompute what its manifest claims."""
    from dpmask.engine.cluster.connect import connected
    from dpmask.release.manifest import read_public_key
    from dpmask.release.verify import verify as check

    with connected(scheduler, cluster):
        verified = check(release, read_public_key(signer) if signer else None)
    if as_json:
        echo(json.dumps(verified._asdict(), indent=1))
        return
    echo(f"{verified.name}: {verified.rows:,} records in {count(verified.files, 'file')} are what the manifest claims")
    echo(f"  {verified.origin}")
