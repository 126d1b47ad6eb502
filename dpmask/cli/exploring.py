"""The command of the explorer."""

from __future__ import annotations

import signal
from contextlib import suppress

import click

from dpmask.cli.common import of_job, on_cluster, with_exit_codes, working
from dpmask.terminal import echo


@click.command()
@of_job
@click.option(
    "--rows", default=5_000, show_default=True, type=click.IntRange(100), help="Records of the sample, about."
)
@click.option("--risk", metavar="NAME.FIELD", help="The risk to compare by. Default: the first measured rate.")
@click.option("--loss", metavar="NAME.FIELD", help="The loss to compare by. Default: the first measured loss.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="The port of the page. Default: a free one.")
@on_cluster
@with_exit_codes
def explore(
    job: str,
    settings: tuple[str, ...],
    rows: int,
    risk: str | None,
    loss: str | None,
    port: int,
    scheduler: str | None,
    cluster: str | None,
) -> None:
    """Change a job's parameters on a local web page and see risk, loss and verdict at once. Publishes nothing.

    The page works on a keyed sample of the source; "on everything" runs the full job in the background. Ctrl-C ends it.
    """
    from dpmask.explore.server import ExplorerServer
    from dpmask.explore.session import Explorer
    from dpmask.job.job_text import JobText
    from dpmask.job.keys import hidden_key

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C
    with hidden_key(JobText(job, settings).values.get("key")), working(scheduler, cluster) as progress:
        progress.stage("sample")
        explorer = Explorer(job, settings=settings, rows=rows, risk=risk, loss=loss)
        progress.stage("first picture")
        explorer.current()
        progress.close()
        with suppress(KeyboardInterrupt), ExplorerServer(explorer, port) as server:
            echo(f"{explorer.sample.table.rows:,} of {explorer.sample.lake.rows:,} records in the sample.")
            echo(f"Open once, in a browser on this machine: {server.address}")
            echo("Ctrl-C ends it.")
            server.serve_forever()
        echo("Ended. Nothing was published.")
