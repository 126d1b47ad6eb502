"""The command line. Heavy modules are imported by the command that needs them: ``dpmask --help`` answers at once."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from dpmask import __version__
from dpmask.errors import DpmaskError
from dpmask.terminal import (
    Progress,
    complain,
    count,
    log_as_events,
    say,
    say_evaluated,
    say_event,
    say_failed,
    say_planned,
    say_released,
    say_swept,
    settle_output,
)

# Read by numpy and BLAS when they are first imported. Dask has the cores, so BLAS gets one thread for each task; and
# huge pages only cost here: clearing them for the arrays of every block takes longer than what is done with these.
for _name, _value in {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NUMPY_MADVISE_HUGEPAGE": "0"}.items():
    os.environ.setdefault(_name, _value)

_CLUSTER = (
    click.option("--scheduler", metavar="ADDRESS", help="Work on the Dask scheduler at this address."),
    click.option("--cluster", metavar="FILE", help="Work on the cluster this file describes; see cluster_config/."),
)


def _on_cluster(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_CLUSTER):
        command = option(command)
    return command


def _told(command: Callable[..., Any]) -> Callable[..., Any]:
    """End with our exit code and one plain message; never with a traceback that may hold values."""

    @wraps(command)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        try:
            return command(*arguments, **options)
        except (click.exceptions.Exit, click.ClickException, click.Abort):
            raise
        except DpmaskError as error:
            complain(str(error))
            sys.exit(error.exit_code)
        except Exception as error:
            from dpmask.engine.guard import told_safely

            safe = told_safely(error)
            complain(str(safe))
            sys.exit(safe.exit_code)

    return wrapped


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dpmask")
def cli() -> None:
    """Mask microdata for release: mask, measure, decide, publish, verify.

    Exit codes: 0 released, or already released; 2 bad job file or arguments, credentials, or a target in the way;
    3 refused by the policy; 4 input missing or unusable; 5 cluster or storage failed, worth a retry; 1 a bug.
    """


@cli.command()
@click.argument("job", metavar="JOB.yaml")
@_on_cluster
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
@_told
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

    gc.freeze()  # what was imported stays: looking through it again and again takes as long as reading a lake
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
        record=say_event if as_events else None,
    )
    if not as_events:
        progress.close()
    if as_json:
        say(json.dumps(outcome, indent=1))
    if outcome["exit_code"]:
        if not as_events:
            say_failed(outcome)
        sys.exit(outcome["exit_code"])
    if not as_json:
        say_released(outcome)


@cli.command()
@click.argument("job", metavar="JOB.yaml")
@_on_cluster
@click.option("--overwrite", is_flag=True, help="Plan to replace another release at the target.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
@_told
def plan(job: str, scheduler: str | None, cluster: str | None, overwrite: bool, as_json: bool) -> None:
    """Check a job as run would, and estimate passes, memory and time. Writes nothing."""
    from dpmask.engine.cluster import connected
    from dpmask.job.model import read_job
    from dpmask.job.plan import plan as make_plan

    with connected(scheduler, cluster):
        planned = make_plan(read_job(job), overwrite=overwrite)
    if as_json:
        say(json.dumps(planned, indent=1))
        return
    say_planned(planned)


@cli.command()
@click.argument("job", metavar="JOB.yaml")
@click.option(
    "--over",
    multiple=True,
    required=True,
    metavar="PATH=VALUES",
    help="A parameter and its values, such as mask[0].k=3,5,10; may be given several times. A value may also be a "
    "whole step: mask[0]={method: noise, columns: [net], scale: 0.1},{method: microaggregation, columns: [net], k: 5}.",
)
@click.option("--risk", metavar="NAME.FIELD", help="The risk to compare by. Default: the first measured rate.")
@click.option("--loss", metavar="NAME.FIELD", help="The loss to compare by. Default: the first measured loss.")
@click.option("--report", metavar="FILE", help="Where to draw the map. Default: sweep/map.html in the private folder.")
@_on_cluster
@click.option("--json", "as_json", is_flag=True, help="Print all points as JSON.")
@_told
def sweep(
    job: str,
    over: tuple[str, ...],
    risk: str | None,
    loss: str | None,
    report: str | None,
    scheduler: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Mask and measure a job at several parameters: risk against loss. Publishes nothing.

    Points are kept in the private folder: run again, a sweep goes on where it was stopped.
    """
    from dpmask.engine.cluster import connected
    from dpmask.engine.progress import listening
    from dpmask.job.sweep import sweep as make_sweep

    progress = Progress()
    with listening(progress.passes), connected(scheduler, cluster):
        swept = make_sweep(job, over, risk=risk, loss=loss, report=report, tell=progress.stage)
    progress.close()
    if as_json:
        say(json.dumps(swept, indent=1))
        return
    say_swept(swept)


@cli.command()
@click.argument("release")
@_on_cluster
@click.option("--signer", metavar="FILE", help="The public key (PEM) that must have signed the manifest.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@_told
def verify(release: str, scheduler: str | None, cluster: str | None, signer: str | None, as_json: bool) -> None:
    """Re-read a release and recompute what its manifest claims."""
    from dpmask.engine.cluster import connected
    from dpmask.release.manifest import read_public_key
    from dpmask.release.verify import verify as check

    with connected(scheduler, cluster):
        verified = check(release, read_public_key(signer) if signer else None)
    if as_json:
        say(json.dumps(verified._asdict(), indent=1))
        return
    say(f"{verified.name}: {verified.rows:,} records in {count(verified.files, 'file')} are what the manifest claims")
    say(f"  {verified.origin}")


def _columns(name: str, told: str) -> Callable[[Any], Any]:
    """An option that names columns, in one list or several."""
    return click.option(name, multiple=True, metavar="A,B,...", callback=_names, help=told)


def _names(_context: Any, _option: Any, given: tuple[str, ...]) -> list[str]:
    found = [name.strip() for text in given for name in text.split(",") if name.strip()]
    return list(dict.fromkeys(found))


@cli.command()
@click.argument("original")
@click.argument("masked")
@click.option(
    "--paired-by",
    default="position",
    show_default=True,
    metavar="COLUMN | position | FOLDER",
    help="A column that is unique in both, the position, or the private folder of the run that made the release.",
)
@_columns("--columns", "Columns to compare; all numeric ones that both have, unless said.")
@_columns("--quasi", "Quasi-identifiers, taken jointly, to measure groups by.")
@_columns("--sensitive", "What an intruder wants to learn of a group.")
@click.option("--json", "json_file", metavar="FILE", help="Write all numbers to this file; - prints them.")
@click.option("--report", metavar="FILE", help="Draw all of it, and the columns before and after, on one HTML page.")
@_on_cluster
@_told
def evaluate(
    original: str,
    masked: str,
    paired_by: str,
    columns: list[str],
    quasi: list[str],
    sensitive: list[str],
    json_file: str | None,
    report: str | None,
    scheduler: str | None,
    cluster: str | None,
) -> None:
    """Measure risk and information loss of any two lakes, whoever did the masking. Publishes nothing."""
    from dpmask.engine.cluster import connected
    from dpmask.engine.progress import listening
    from dpmask.job.evaluate import evaluate as measure

    progress = Progress()
    with listening(progress.passes), connected(scheduler, cluster):
        found = measure(
            original,
            masked,
            paired_by=paired_by,
            columns=columns,
            quasi=quasi,
            sensitive=sensitive,
            report=report,
        )
    progress.close()
    if json_file is not None:
        _write_json(found, json_file)
    if json_file != "-":
        say_evaluated(found)
        if report is not None:
            say(f"Report: {report}")


def _write_json(found: dict[str, Any], path: str) -> None:
    text = json.dumps(found, indent=1, ensure_ascii=False)
    if path == "-":
        say(text)
        return
    from dpmask.lake.storage import Place

    Place(path).write(text.encode() + b"\n")


@cli.command()
@click.argument("lake")
@click.option("--rows", default="1e5", metavar="NUMBER", show_default=True, help="How many people.")
@click.option("--files", default=4, show_default=True, type=click.IntRange(min=1), help="How many files.")
@click.option(
    "--seed", default=1, show_default=True, help="The same seed gives the same people, in any number of files."
)
@click.option("--nulls", is_flag=True, help="Leave values missing where a census does.")
@_on_cluster
@_told
def generate(
    lake: str, rows: str, files: int, seed: int, nulls: bool, scheduler: str | None, cluster: str | None
) -> None:
    """Write a synthetic census lake, to try dpmask on."""
    from dpmask.engine.cluster import connected
    from dpmask.engine.progress import listening
    from dpmask.lake.generate import generate_lake

    progress = Progress()
    with listening(progress.passes), connected(scheduler, cluster):
        made = generate_lake(lake, rows=_whole_number(rows), files=files, seed=seed, nulls=nulls)
    progress.close()
    deed = "Wrote" if made.fresh else "Already there, nothing was changed:"
    say(f"{deed} {made.rows:,} people in {count(made.files, 'file')} at {made.url}")


def _whole_number(text: str) -> int:
    try:
        number = float(text.replace("_", ""))
    except ValueError:
        number = 0.5
    if not number.is_integer():
        raise click.BadParameter(f"'{text}' is not a whole number such as 1e6.", param_hint="--rows")
    return int(number)


@cli.command()
@click.argument("folder")
@click.option("--days", default=365, show_default=True, help="How long they are good for.")
@_told
def certificates(folder: str, days: int) -> None:
    """Make a private authority and TLS certificates for the scheduler, workers and clients of a Dask cluster.

    Whoever has a key of FOLDER can use the cluster. Nothing is overwritten.
    """
    from dpmask.engine.certificates import make_certificates

    for path in make_certificates(folder, days):
        say(path)


@cli.group()
def taxonomy() -> None:
    """Trees over the values of a category, for refinement."""


@taxonomy.command("check")
@click.argument("file")
@click.argument("lake")
@click.option("--column", metavar="NAME", help="The column of the lake. Default: what the file is called.")
@_on_cluster
@_told
def taxonomy_check(file: str, lake: str, column: str | None, scheduler: str | None, cluster: str | None) -> None:
    """Show the tree in FILE, and how many records of LAKE each of its values has. Exit code 4 if it lacks any."""
    from dpmask.engine.cluster import connected
    from dpmask.job.taxonomy import check_taxonomy

    with connected(scheduler, cluster):
        found = check_taxonomy(file, lake, column)
    for line in found.lines:
        say(line)
    say(found.summary)
    if found.lacking:
        complain(found.lacking)
        sys.exit(4)


@cli.command()
@_told
def schema() -> None:
    """Print the JSON Schema of the job file, for editors and checks."""
    from dpmask.job.model import json_schema

    say(json.dumps(json_schema(), indent=1))


@cli.command()
@click.argument("name", required=False)
@_told
def explain(name: str | None) -> None:
    """Show the guide's page on a method or measure; without NAME, list the pages."""
    from dpmask.guide import page, pages

    say(page(name) if name else "\n".join(pages()))


def main(arguments: list[str] | None = None) -> Any:
    """The entry point of the ``dpmask`` command and of the scripts in jobs/."""
    try:
        return cli.main(args=arguments, prog_name="dpmask")
    finally:
        settle_output()


if __name__ == "__main__":
    main()
