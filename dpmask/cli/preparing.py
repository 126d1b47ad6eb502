"""The commands that help to write a job: data to try, certificates, taxonomies, schema, guide."""

from __future__ import annotations

import json
import shlex
import sys

import click

from dpmask.cli.common import on_cluster, with_exit_codes, working
from dpmask.errors import printable
from dpmask.terminal import Progress, count, echo, echo_error


@click.command()
@click.argument("lake")
@click.option("--rows", default="1e5", metavar="NUMBER", show_default=True, help="How many people.")
@click.option("--files", default=4, show_default=True, type=click.IntRange(min=1), help="How many files.")
@click.option(
    "--seed", default=1, show_default=True, help="The same seed gives the same people, in any number of files."
)
@click.option("--nulls", is_flag=True, help="Leave some values missing, as a census does.")
@click.option(
    "--kind",
    type=click.Choice(["census", "tax_units"]),
    default="census",
    show_default=True,
    help="The kind of records.",
)
@on_cluster
@with_exit_codes
def generate(
    lake: str, rows: str, files: int, seed: int, nulls: bool, kind: str, scheduler: str | None, cluster: str | None
) -> None:
    """Write a synthetic census lake, or one of tax units, to try dpmask on."""
    from dpmask.lake.generate import generate_lake

    with working(scheduler, cluster):
        lake_files = generate_lake(lake, rows=_whole_number(rows), files=files, seed=seed, nulls=nulls, kind=kind)
    deed = "Wrote" if lake_files.fresh else "Already there, nothing was changed:"
    what = "people" if kind == "census" else kind.replace("_", " ")
    echo(f"{deed} {lake_files.rows:,} {what} in {count(lake_files.files, 'file')} at {lake_files.url}")


def _whole_number(text: str) -> int:
    try:
        number = float(text.replace("_", ""))
    except ValueError:
        number = 0.5
    if not number.is_integer():
        raise click.BadParameter(f"'{text}' is not a whole number such as 1e6.", param_hint="--rows")
    return int(number)


@click.command()
@click.argument("folder", default=".")
@with_exit_codes
def init(folder: str) -> None:
    """Copy the ready jobs and cluster files, jobs/ and cluster_config/, into FOLDER.

    Nothing is overwritten: a file that is there is left as it is, and named.
    """
    from dpmask.job.shipped import copy_shipped

    written = 0
    for one in copy_shipped(folder):
        written += one.written
        echo(one.path if one.written else f"{one.path} is there already, and was left as it is")
    there = "" if folder == "." else f"cd {shlex.quote(printable(folder))} && "
    begin = f"{there}dpmask generate lake/ && dpmask plan jobs/public_use_file/job.yaml"
    echo(f"Wrote {count(written, 'file')}. To begin: {begin}")


@click.command()
@click.argument("folder")
@click.option("--days", default=365, show_default=True, help="Days until they expire.")
@with_exit_codes
def certificates(folder: str, days: int) -> None:
    """Make a private authority and TLS certificates for the scheduler, workers and clients of a Dask cluster.

    Whoever has a key of FOLDER can use the cluster. Nothing is overwritten.
    """
    from dpmask.engine.cluster.certificates import make_certificates

    for path in make_certificates(folder, days):
        echo(path)


@click.command()
@click.argument("job", required=False, metavar="[JOB.yaml]")
@with_exit_codes
def warmup(job: str | None) -> None:
    """Compile everything, or what JOB.yaml needs, so that runs on this machine do not have to.

    Kernels are kept in NUMBA_CACHE_DIR if that is set, else in the package, the user's cache or a temporary folder,
    the first of them that can be written.
    """
    from dpmask.engine.progress import listening
    from dpmask.job.model import read_job
    from dpmask.job.warm_up import warm_up

    progress = Progress()
    try:
        with listening(progress.passes):
            warm = warm_up(read_job(job) if job else None)
    finally:
        progress.close()
    echo(f"Compiled {count(warm.compiled, 'kernel')}; {warm.kept} kept, {warm.size / 1e6:.1f} MB")
    echo(f"  at {warm.folder or 'no place that can be written: set NUMBA_CACHE_DIR to one'}")


@click.group()
def taxonomy() -> None:
    """Trees over the values of a category, for refinement."""


@taxonomy.command("check")
@click.argument("file")
@click.argument("lake")
@click.option("--column", metavar="NAME", help="The column of the lake. Default: what the file is called.")
@on_cluster
@with_exit_codes
def taxonomy_check(file: str, lake: str, column: str | None, scheduler: str | None, cluster: str | None) -> None:
    """Show the tree in FILE, and how many records of LAKE each of its values has. Exit code 4 if it lacks any."""
    from dpmask.engine.cluster.connect import connected
    from dpmask.job.taxonomy import check_taxonomy

    with connected(scheduler, cluster):
        found = check_taxonomy(file, lake, column)
    for line in found.lines:
        echo(line)
    echo(found.summary)
    if found.lacking:
        echo_error(found.lacking)
        sys.exit(4)


@click.command()
@click.argument("of", type=click.Choice(["job", "result"]), default="job")
@with_exit_codes
def schema(of: str) -> None:
    """Print the JSON Schema of the job file, or of a run's result: result.json and what run --json prints."""
    from dpmask.job import model, outcome

    echo(json.dumps((outcome if of == "result" else model).json_schema(), indent=1))


@click.command()
@click.argument("name", required=False)
@with_exit_codes
def explain(name: str | None) -> None:
    """Show the page NAME of the guide, or the pages that contain this word; without NAME, list all."""
    from dpmask.guide import contents, explained

    echo(explained(name) if name else contents())
