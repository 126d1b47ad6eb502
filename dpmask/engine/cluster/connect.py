"""Getting hold of a Dask cluster: a running scheduler, one described in a file, or none at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Any

import dask

from dpmask.engine.cluster.file import Description, opened, read_description
from dpmask.engine.cluster.same_workers import late_workers_checked, require_same_workers
from dpmask.engine.dispatch import only_on
from dpmask.engine.progress import note
from dpmask.errors import AccessError, ClusterError, DpmaskError, JobError


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
    described = read_description(cluster) if cluster else Description(file="--scheduler", address=scheduler)
    with opened(described) as place, _client(place, described) as client:
        _wait_for_workers(client, described)
        require_same_workers(client)
        _log_address(client)
        _warn_of_open_wires(client)
        with only_on(client), late_workers_checked(client):
            yield client


def _client(place: Any, described: Description) -> Any:
    """A client of a cluster, or of the scheduler at an address."""
    from distributed import Client

    _require_certificates(described)
    try:
        return Client(place)
    except (OSError, ValueError, RuntimeError, TypeError) as error:
        _forget_failed_client()
        raise _refused(error, described) from None


def _forget_failed_client() -> None:
    """Close the client that found no scheduler: until then it stays the default of all this process does next."""
    from distributed import Client

    with suppress(ValueError):
        failed = Client.current()
        if failed.status != "running":
            failed.close()


def _require_certificates(described: Description) -> None:
    """Refuse names of certificate files that are not there; OpenSSL would not say which."""
    tls = dask.config.get("distributed.comm.tls")
    for path in (tls["ca-file"], tls["client"]["cert"], tls["client"]["key"]):
        if path and "\n" not in path and not os.path.isfile(path):
            raise JobError(f"{described.file}: there is no file {path}. Make certificates: dpmask certificates FOLDER")


def _refused(error: Exception, described: Description) -> DpmaskError:
    """What kept a client from its scheduler: nobody there, no TLS on one side, or certificates of two authorities."""
    from distributed.comm import CommClosedError

    where = described.address or f"the cluster of {described.file}"
    if isinstance(error, TypeError | RuntimeError):
        return JobError(
            f"{described.file}: either the address {where} or the configuration refers to TLS, not both. Give an "
            "address with tls:// and the certificates with --cluster FILE, as in cluster_config/tls.yaml."
        )
    if isinstance(error, ValueError):
        return JobError(f"{described.file}: {where} is no address of a scheduler such as tcp://scheduler:8786.")
    if not isinstance(error, CommClosedError):
        return ClusterError(f"No Dask scheduler answers at {where}. Start it, or correct the address.")
    if where.startswith("tls://"):  # who does not trust the other hangs up
        return AccessError(
            f"The scheduler at {where} and this process do not trust each other's TLS certificates. Both must have "
            "theirs from one authority: use files of one run of dpmask certificates."
        )
    return ClusterError(
        f"What runs at {where} hung up. If it is a scheduler that wants TLS, use --cluster FILE with a file "
        "such as cluster_config/tls.yaml."
    )


def _wait_for_workers(client: Any, described: Description) -> None:
    """The first worker is enough to begin; more may join later."""
    from dask.utils import parse_timedelta

    wait = described.wait or dask.config.get("distributed.comm.timeouts.connect")
    try:
        client.wait_for_workers(1, timeout=parse_timedelta(wait))
    except TimeoutError:
        if described.address:
            raise ClusterError(f"The scheduler at {described.address} has no workers. Start some.") from None
        raise ClusterError(
            f"{described.file}: no worker came within {wait}. See the queue and the logs, or raise wait."
        ) from None


def _log_address(client: Any) -> None:
    """How much cluster there is, and where to watch it."""
    threads = client.nthreads()
    note(f"cluster: workers {len(threads)}, threads {sum(threads.values())}")
    with suppress(KeyError):
        if client.dashboard_link and _is_page(client.dashboard_link):
            note(f"dashboard: {client.dashboard_link}")


def _warn_of_open_wires(client: Any) -> None:
    """Warn if records and keys of draws travel to other hosts as they are."""
    addresses = [client.scheduler.address, *client.nthreads()]
    elsewhere = [address for address in addresses if address.startswith(("tcp://", "ws://")) and not _is_here(address)]
    if elsewhere:
        note(
            f"warning: {elsewhere[0]} is on another host and without TLS: whoever is on the network reads records and "
            "keys of draws. dpmask explain clusters says how to have TLS"
        )


def _is_here(address: str) -> bool:
    """Whether an address is of this machine."""
    import socket
    from ipaddress import ip_address

    import psutil
    from distributed.comm import get_address_host

    host = get_address_host(address)
    with suppress(OSError, ValueError):
        found = {str(one[4][0]) for one in socket.getaddrinfo(host, None)}
        own = {one.address.partition("%")[0] for some in psutil.net_if_addrs().values() for one in some}
        return all(ip_address(one.partition("%")[0]).is_loopback or one.partition("%")[0] in own for one in found)
    return False


def _is_page(link: str) -> bool:
    """Whether there is a page. A server out of our reach may have one: others may be nearer."""
    from urllib.error import HTTPError
    from urllib.request import urlopen

    try:
        with urlopen(link, timeout=2):  # noqa: S310 - the scheduler's own address
            return True
    except HTTPError as answer:
        return answer.code != HTTPStatus.NOT_FOUND
    except (OSError, ValueError):
        return True
