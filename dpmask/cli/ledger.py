"""The commands about the ledger of a series of releases."""

from __future__ import annotations

import json

import click

from dpmask.cli.common import with_exit_codes
from dpmask.errors import printable, printable_lines
from dpmask.terminal import count, echo


@click.group()
def ledger() -> None:
    """The releases of a series, which a job with series: is checked against."""


@ledger.command("show")
@click.argument("folder")
@click.option("--json", "as_json", is_flag=True, help="Print the entries as JSON.")
@with_exit_codes
def show(folder: str, as_json: bool) -> None:
    """List the releases in the ledger at FOLDER, once it is checked."""
    from dpmask.release.ledger import described, verify_ledger

    found = verify_ledger(folder)
    if as_json:
        echo(json.dumps([described(one) for one in found.entries], indent=1))
        return
    echo(f"{printable(found.name, 200)}: {count(len(found.entries), 'release')}")
    for one in map(described, found.entries):
        name = printable(one["name"], 60)
        echo(f"  {one['number']:>4}  {one['release']}  {one['rows']:>12,} records  {one['new']:>12,} new  {name}")


@ledger.command("verify")
@click.argument("folder")
@click.option("--signer", metavar="FILE", help="The public key (PEM) that must have signed every entry.")
@click.option("--with", "releases", multiple=True, metavar="RELEASE", help="A release that must be in it; repeatable.")
@with_exit_codes
def verify(folder: str, signer: str | None, releases: tuple[str, ...]) -> None:
    """Check that no entry of the ledger at FOLDER was edited, removed or reordered. Exit code 4 if one was.

    Who can write to the folder can replace all of it: sign entries (run --sign), or name published releases.
    """
    from dpmask.release.ledger import verify_ledger
    from dpmask.release.manifest import read_public_key

    found = verify_ledger(folder, read_public_key(signer) if signer else None, releases)
    origin = "all signed by the given signer" if signer else "integrity only: give --signer FILE to prove by whom"
    echo(f"{printable(found.name, 200)}: {count(len(found.entries), 'release')}, in their order and unchanged")
    echo(f"  {origin}")


@ledger.command("explain")
@click.argument("folder")
@with_exit_codes
def explain(folder: str) -> None:
    """Describe each release in the ledger at FOLDER, and what later ones must keep."""
    from dpmask.release.ledger import explained, verify_ledger

    for one in verify_ledger(folder).entries:
        echo(printable_lines(explained(one)))
