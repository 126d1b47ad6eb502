"""The command line. Heavy modules are imported by the command that needs them: ``dpmask --help`` answers at once."""

from __future__ import annotations

import os
from typing import Any

import click

from dpmask import __version__
from dpmask.cli.exploring import explore
from dpmask.cli.ledger import ledger
from dpmask.cli.measuring import attack, evaluate, sweep
from dpmask.cli.preparing import certificates, explain, generate, init, schema, taxonomy, warmup
from dpmask.cli.releasing import fit, plan, run, verify
from dpmask.terminal import settle_output

# Read by numpy and BLAS when they are first imported. Dask has the cores, so BLAS gets one thread for each task; and
# huge pages only cost here: clearing them for the arrays of every block takes longer than what is done with these.
for _name, _value in {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NUMPY_MADVISE_HUGEPAGE": "0"}.items():
    os.environ.setdefault(_name, _value)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dpmask")
def cli() -> None:
    """Mask microdata for release: mask, measure, decide, publish, verify.

    Exit codes: 0 released, or already released; 2 bad job file or arguments, credentials, or a target in the way;
    3 refused by the policy; 4 input missing or unusable; 5 cluster or storage failed, worth a retry; 1 a bug.
    """


_PREPARING = (init, generate, warmup, certificates, taxonomy, schema, explain)
for _command in (run, fit, plan, sweep, explore, verify, ledger, evaluate, attack, *_PREPARING):
    cli.add_command(_command)


def main(arguments: list[str] | None = None) -> Any:
    """The entry point of the ``dpmask`` command and of the scripts in jobs/."""
    try:
        return cli.main(args=arguments, prog_name="dpmask")
    finally:
        settle_output()
