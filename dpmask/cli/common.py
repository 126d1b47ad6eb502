"""What commands share: the options of a cluster, the work on one, messages and exit codes of errors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import click

from dpmask.errors import DpmaskError
from dpmask.terminal import Progress, echo_error

_CLUSTER = (
    click.option("--scheduler", metavar="ADDRESS", help="Work on the Dask scheduler at this address."),
    click.option("--cluster", metavar="FILE", help="Work on the cluster this file describes; see cluster_config/."),
)

_SET = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a value of the job file, as in --set source=s3://lake/2026-11/ or --set mask[0].k=5; may be repeated.",
)


def of_job(command: Callable[..., Any]) -> Callable[..., Any]:
    """The job file, and what is changed in it."""
    return click.argument("job", metavar="JOB.yaml")(_SET(command))


def on_cluster(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that name the cluster that does the work."""
    for option in reversed(_CLUSTER):
        command = option(command)
    return command


@contextmanager
def working(scheduler: str | None, cluster: str | None) -> Iterator[Progress]:
    """Connected to the cluster, the progress of passes on the terminal."""
    from dpmask.engine.cluster.connect import connected
    from dpmask.engine.progress import listening
    from dpmask.job.warm_up import compiling_announced

    progress = Progress()
    try:
        with listening(progress.passes), connected(scheduler, cluster), compiling_announced():
            yield progress
    finally:
        progress.close()


def with_exit_codes(command: Callable[..., Any]) -> Callable[..., Any]:
    """End with our exit code and one plain message; never with a traceback that may hold values."""

    @wraps(command)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        try:
            return command(*arguments, **options)
        except (click.exceptions.Exit, click.ClickException, click.Abort):
            raise
        except DpmaskError as error:
            echo_error(str(error))
            sys.exit(error.exit_code)
        except Exception as error:
            from dpmask.engine.guard import safe_error

            safe = safe_error(error)
            echo_error(str(safe))
            sys.exit(safe.exit_code)

    return wrapped
