"""Getting hold of a Dask cluster: a running scheduler, one described in a file, or none at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

import dask
import yaml

from dpmask.engine.dispatch import only_on
from dpmask.errors import ClusterError, JobError

_SAME = ("dpmask", "dask", "distributed", "numpy", "scipy", "pyarrow", "cryptography")
_KEYS = ("cluster", "options", "workers", "config")


@contextmanager
def connected(scheduler: str | None = None, cluster: str | None = None) -> Iterator[Any]:
    """A client of the scheduler at this address or of the cluster this file describes; None for neither.

    With neither, Dask's threads inside this process do the work: no ports, no processes, starts at once.
    """
    if "" in {scheduler, cluster}:
        raise JobError("--scheduler and --cluster must not be empty. Is a variable not set?")
    if scheduler and cluster:
        raise JobError("Give either --scheduler or --cluster, not both.")
    if not scheduler and not cluster:
        yield None
        return
    from distributed import Client

    with ExitStack() as stack:
        address = scheduler if cluster is None else stack.enter_context(_made(cluster))
        try:
            client = stack.enter_context(Client(address))
        except (OSError, ValueError):
            raise ClusterError(
                f"No Dask scheduler answers at {scheduler or cluster}. Start it, or correct the address."
            ) from None
        try:
            client.wait_for_workers(1, timeout=dask.config.get("distributed.comm.timeouts.connect"))
        except TimeoutError:
            raise ClusterError(f"The scheduler at {scheduler or cluster} has no workers. Start some.") from None
        _require_same_versions(client)
        with only_on(client):
            yield client


def _require_same_versions(client: Any) -> None:
    """Refuse workers that would compute something else: the same bytes need the same libraries on both sides."""
    told = client.get_versions(packages=list(_SAME))
    ours = told["client"]["packages"]
    for address, worker in told["workers"].items():
        for package in _SAME:
            theirs = worker["packages"].get(package)
            if theirs != ours.get(package):
                found = f"has {package} {theirs}" if theirs else f"has no {package}"
                raise ClusterError(
                    f"The worker at {address} {found}, this process has {ours.get(package)}. Install the same on both."
                )


@contextmanager
def _made(path: str) -> Iterator[Any]:
    """The cluster that a file describes: its class, options for it, how many workers, and Dask's configuration."""
    described = _described(path)
    module, _, name = str(described["cluster"]).rpartition(".")
    try:
        make = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        make = None
    if not isinstance(make, type):
        raise JobError(
            f"{path}: there is no cluster class '{described['cluster']}' here. Install the package that has it."
        )
    with dask.config.set(described.get("config", {})):
        try:
            made = make(**described.get("options", {}))
        except (TypeError, ValueError) as error:
            raise JobError(f"{path}: {name} does not take these options: {error}") from None
        with made as cluster:
            if "workers" in described:
                cluster.scale(described["workers"])
            yield cluster


def _described(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            described = yaml.safe_load(file)
    except OSError:
        raise JobError(f"{path}: there is no such cluster file, or it cannot be read.") from None
    except yaml.YAMLError:
        raise JobError(f"{path}: is not valid YAML.") from None
    if not isinstance(described, dict) or "cluster" not in described or set(described) - set(_KEYS):
        raise JobError(f"{path}: must be a mapping with the key cluster and, if wanted, {', '.join(_KEYS[1:])}.")
    return described
