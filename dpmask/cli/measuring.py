"""The commands that measure and publish nothing: a job at several parameters, any two lakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

from dpmask.cli.common import of_job, on_cluster, with_exit_codes, working
from dpmask.terminal import echo, show_attacks, show_evaluation, show_sweep


@click.command()
@of_job
@click.option(
    "--over",
    multiple=True,
    metavar="PATH=VALUES",
    help="A parameter and its values, such as mask[0].k=3,5,10; may be given several times. A value may also be a "
    "whole step: mask[0]={method: noise, columns: [net], scale: 0.1},{method: microaggregation, columns: [net], k: 5}. "
    "Default: the parameters that set the risk of the job's methods, at values from experiments; it prints both.",
)
@click.option("--risk", metavar="NAME.FIELD", help="The risk to compare by. Default: the first measured rate.")
@click.option("--loss", metavar="NAME.FIELD", help="The loss to compare by. Default: the first measured loss.")
@click.option("--report", metavar="FILE", help="Where to draw the map. Default: sweep/map.html in the private folder.")
@on_cluster
@click.option("--json", "as_json", is_flag=True, help="Print all points as JSON.")
@with_exit_codes
def sweep(
    job: str,
    settings: tuple[str, ...],
    over: tuple[str, ...],
    risk: str | None,
    loss: str | None,
    report: str | None,
    scheduler: str | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Mask and measure a job at several parameters: risk against loss. Publishes nothing.

    Points are kept in the private folder: a sweep that is run again continues where it stopped.
    """
    from dpmask.job.job_text import JobText
    from dpmask.job.keys import hidden_key
    from dpmask.job.sweep import sweep as make_sweep

    with hidden_key(JobText(job, settings).values.get("key")), working(scheduler, cluster) as progress:
        swept = make_sweep(job, over, settings=settings, risk=risk, loss=loss, report=report, progress=progress.stage)
    if as_json:
        echo(json.dumps(swept.to_dict(), indent=1))
        return
    show_sweep(swept)


def _columns(name: str, text: str) -> Callable[[Any], Any]:
    """An option that names columns, in one list or several."""
    return click.option(name, multiple=True, metavar="A,B,...", callback=_names, help=text)


def _names(_context: Any, _option: Any, given: tuple[str, ...]) -> list[str]:
    found = [name.strip() for text in given for name in text.split(",") if name.strip()]
    return list(dict.fromkeys(found))


@click.command()
@click.argument("original")
@click.argument("masked")
@click.option(
    "--paired-by",
    default="position",
    show_default=True,
    metavar="COLUMN | position | FOLDER",
    help="A column that is unique in both, the position, or the private folder of the run that made the release.",
)
@_columns("--columns", "Columns to compare. Default: all numeric ones that both have.")
@_columns("--quasi", "Quasi-identifiers, taken jointly, to measure groups by.")
@_columns("--sensitive", "What an intruder wants to learn of a group.")
@click.option(
    "--weight",
    metavar="COLUMN",
    help="The survey weight, for every measure that describes the tables. Default: the weight that MASKED declares, "
    "if it is a release.",
)
@click.option("--unweighted", is_flag=True, help="All records weigh the same.")
@click.option(
    "--cuts",
    metavar="RELEASE",
    help="The release whose manifest says what labels stand for. Default: MASKED, if it is a release.",
)
@click.option("--json", "json_file", metavar="FILE", help="Write all numbers to this file; - prints them.")
@click.option("--explain", is_flag=True, help="Print what each measure found in words, too.")
@click.option("--report", metavar="FILE", help="Draw all of it, and the columns before and after, on one HTML page.")
@on_cluster
@with_exit_codes
def evaluate(
    original: str,
    masked: str,
    paired_by: str,
    columns: list[str],
    quasi: list[str],
    sensitive: list[str],
    weight: str | None,
    unweighted: bool,
    cuts: str | None,
    json_file: str | None,
    explain: bool,
    report: str | None,
    scheduler: str | None,
    cluster: str | None,
) -> None:
    """Measure risk and information loss of any two lakes, whoever did the masking. Publishes nothing."""
    from dpmask.job.evaluate import evaluate as measure

    if weight is not None and unweighted:
        raise click.UsageError("Give --weight or --unweighted, not both.")
    with working(scheduler, cluster):
        found = measure(
            original,
            masked,
            paired_by=paired_by,
            columns=columns,
            quasi=quasi,
            sensitive=sensitive,
            weight=weight,
            weighted=not unweighted,
            cuts=cuts,
            report=report,
        )
    if json_file is not None:
        _write_json(found.to_dict(), json_file)
    if json_file != "-":
        show_evaluation(found, explain=explain)
        if report is not None:
            echo(f"Report: {report}")


@click.command()
@click.argument("release")
@click.option("--register", required=True, metavar="ORIGINAL", help="The lake with the originals of these people.")
@click.option(
    "--paired-by",
    required=True,
    metavar="FOLDER | COLUMN",
    help="The private folder of the run that made the release, or a column that is unique in both, to score by.",
)
@click.option(
    "--with",
    "others",
    nargs=2,
    multiple=True,
    metavar="RELEASE FOLDER",
    help="Another release of the same people and the private folder of its run, to attack both together; may be given "
    "several times.",
)
@click.option("--sample", default=20_000, show_default=True, type=click.IntRange(1), help="Records to attack, at most.")
@click.option("--json", "json_file", metavar="FILE", help="Write all numbers to this file; - prints them.")
@on_cluster
@with_exit_codes
def attack(
    release: str,
    register: str,
    paired_by: str,
    others: tuple[tuple[str, str], ...],
    sample: int,
    json_file: str | None,
    scheduler: str | None,
    cluster: str | None,
) -> None:
    """Attack a release as an intruder would who has its public folder and a register of its people."""
    from dpmask.job.attack import attack as make_attack

    with working(scheduler, cluster):
        found = make_attack(release, register, paired_by=paired_by, others=others, sample=sample)
    if json_file is not None:
        _write_json(found.to_dict(), json_file)
    if json_file != "-":
        show_attacks(found)


def _write_json(found: dict[str, Any], path: str) -> None:
    if path == "-":
        echo(json.dumps(found, indent=1))
        return
    text = json.dumps(found, indent=1, ensure_ascii=False)
    from dpmask.lake.storage import Place

    Place(path).write(text.encode() + b"\n")
