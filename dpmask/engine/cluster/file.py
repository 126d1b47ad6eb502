"""A cluster file: which class makes the cluster, or where one runs, and everything that is set for it."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import dask

from dpmask.engine.progress import note
from dpmask.engine.yaml_text import TextLimits, load, read_text
from dpmask.errors import AccessError, ClusterError, JobError, nearest, printable

_EXTRAS = {
    # what a cluster's class needs, and the extra that brings it
    "dask_jobqueue": ("dask_jobqueue", "slurm"),
    "dask_kubernetes": ("dask_kubernetes", "kubernetes"),
    "dask_gateway": ("dask_gateway", "gateway"),
    "distributed.SSHCluster": ("asyncssh", "ssh"),
}
_TRUSTED = ("dask", "distributed", "dask_jobqueue", "dask_kubernetes", "dask_gateway")
TRUSTED = "DPMASK_TRUSTED_CLUSTERS"
"""The environment variable that names further packages, with commas, whose classes a cluster file may name."""
_NO_ACCESS = {401, 403, "PermissionDenied", "HostKeyNotVerifiable"}


@dataclass(frozen=True, kw_only=True)
class Description:
    """What a cluster file says."""

    file: str
    cluster: str | None = None
    address: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    workers: int | None = None
    adapt: Mapping[str, Any] | None = None
    wait: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)


_TYPES: dict[str, tuple[type, str]] = {
    "cluster": (str, "the name of a class such as distributed.LocalCluster"),
    "address": (str, "a scheduler's address such as tls://scheduler:8786"),
    "options": (dict, "a mapping of what the class takes"),
    "workers": (int, "a whole number, 1 or more"),
    "adapt": (dict, "a mapping such as {minimum: 1, maximum: 20}"),
    "wait": (str, "a time such as 10 minutes"),
    "config": (dict, "a mapping of Dask's configuration"),
}


def read_description(path: str) -> Description:
    """What the file says, with wrong keys and types refused."""
    try:
        settings = load(read_text(path, TextLimits()), printable(path))
    except (OSError, ValueError):
        raise JobError(f"{path}: there is no such cluster file, or it cannot be read.") from None
    if not isinstance(settings, dict):
        raise JobError(f"{path}: must be a mapping with the keys {', '.join(_TYPES)}; see cluster_config/.")
    for key, value in settings.items():
        _check(path, key, value)
    if ("cluster" in settings) == ("address" in settings):
        raise JobError(f"{path}: needs either cluster, a class that makes one, or address, where one runs.")
    if "address" in settings and (own := {"options", "workers", "adapt"} & set(settings)):
        raise JobError(f"{path}: {min(own)} is for a cluster that is made; the one at an address has its own.")
    if "workers" in settings and "adapt" in settings:
        raise JobError(f"{path}: give either workers, a fixed number, or adapt, as many as the work needs.")
    return Description(file=path, **settings)


def _check(path: str, key: str, value: Any) -> None:
    if key not in _TYPES:
        raise JobError(f"{path}: there is no key '{key}' in a cluster file. {nearest(str(key), _TYPES)}")
    kind, wanted = _TYPES[key]
    fits = isinstance(value, kind) and not isinstance(value, bool)
    if not fits or (key == "workers" and value < 1):
        raise JobError(f"{path}: {key} must be {wanted}.")
    if isinstance(value, dict) and not _has_names(value):
        raise JobError(f"{path}: {key} must have text as its keys.")
    if key == "wait":
        _check_wait(path, value)
    if key == "adapt" and not _is_range(value):
        raise JobError(f"{path}: adapt takes minimum and maximum, whole numbers, and nothing else.")


def _has_names(value: Any) -> bool:
    """Whether all keys are text, at any depth."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _has_names(one) for key, one in value.items())
    return not isinstance(value, list) or all(map(_has_names, value))


def _check_wait(path: str, value: str) -> None:
    from dask.utils import parse_timedelta

    try:
        parse_timedelta(value)
    except (ValueError, KeyError, OverflowError):
        raise JobError(f"{path}: wait must be {_TYPES['wait'][1]}; got {value}.") from None


def _is_range(settings: Mapping[str, Any]) -> bool:
    low, high = settings.get("minimum", 0), settings.get("maximum")
    return set(settings) <= {"minimum", "maximum"} and type(low) is type(high) is int and 0 <= low <= high


@contextmanager
def opened(described: Description) -> Iterator[Any]:
    """The scheduler's address, or the cluster, with the workers the file asks for; configured as the file says."""
    import distributed  # noqa: F401 - and the class: their own defaults must be there before some are changed for a while

    make = _maker(described) if described.cluster else None
    with dask.config.set(described.config):
        if make is None:
            yield described.address
            return
        cluster = _started(make, described)
        try:
            _scale(cluster, described)
            yield cluster
        finally:
            _close(cluster)


def _started(make: Callable[..., Any], described: Description) -> Any:
    try:
        with warnings.catch_warnings():  # a second dashboard on one machine takes another port, and we show which
            warnings.filterwarnings("ignore", message=r"Port \d+ is already in use")
            return make(**described.options)
    except Exception as error:
        root = _root(error)
        if isinstance(root, TypeError | ValueError | KeyError | ImportError):
            raise JobError(f"{described.file}: {described.cluster} does not start with these options: {root}") from None
        # a login failed: an answer of HTTP, or SSH that does not trust a key or a host
        refused = getattr(root, "status", None) in _NO_ACCESS or type(root).__name__ in _NO_ACCESS
        kind = AccessError if refused else ClusterError
        raise kind(f"{described.file}: {described.cluster} could not be started: {_reason(root)}") from None


def _root(error: BaseException) -> BaseException:
    return error if error.__cause__ is None else _root(error.__cause__)


def _close(cluster: Any) -> None:
    """End the cluster. A cluster that fails to end changes nothing about the run, nor about what it failed with."""
    from distributed import Status

    # a worker that is slow to end is killed, which is no news: its work is done
    logging.getLogger("distributed.nanny").setLevel(logging.ERROR)
    try:
        cluster.close()
    except Exception as error:
        cluster.status = Status.closed  # or Dask tries again for ten seconds when this process ends
        note(f"the cluster did not end well ({type(error).__name__}): see that nothing of it is left")


def _scale(cluster: Any, described: Description) -> None:
    """Ask for workers: a fixed number, or as many as the work needs."""
    adapt = described.adapt or {}
    first = adapt.get("minimum") if described.workers is None else described.workers
    try:
        if first:
            _ask_for(cluster, first)
        if adapt:
            cluster.adapt(**adapt)
    except (TypeError, ValueError, AttributeError, NotImplementedError) as error:
        key = "adapt" if adapt else "workers"
        raise JobError(f"{described.file}: {described.cluster} does not take this {key}: {error}") from None
    except Exception as error:
        raise ClusterError(f"{described.file}: no worker could be started: {_reason(error)}") from None


def _ask_for(cluster: Any, workers: int) -> None:
    """Ask for workers and, where the class can, find out at once whether the first can be had: a queue may refuse."""
    from distributed import SpecCluster

    if not isinstance(cluster, SpecCluster):
        cluster.scale(workers)
        return

    async def asked() -> None:
        cluster.scale(workers)  # by itself it would only log why there are none
        await cluster._correct_state()

    log = logging.getLogger("tornado.application")
    before, log.disabled = log.disabled, True
    try:
        cluster.sync(asked)
    finally:
        log.disabled = before


def _reason(error: BaseException) -> str:
    """What went wrong, in a line: a command's last line, or all there is."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__


def _maker(described: Description) -> Callable[..., Any]:
    """The class of the cluster, or the function that stands for one; what it needs must be installed.

    A cluster file is data: it may name a cluster of a known package, and no other thing that Python could call.
    """
    name = str(described.cluster)
    own = [one.strip() for one in os.environ.get(TRUSTED, "").split(",") if one.strip()]
    package = name.partition(".")[0]
    if "." in name and (package not in (*_TRUSTED, *own) or not (package in own or name.endswith("Cluster"))):
        raise JobError(
            f"{described.file}: cluster must be a cluster class of {', '.join(_TRUSTED)}; got '{name}'. If you trust "
            f"its package, name it in the environment: {TRUSTED}={package}"
        )
    for start, (package, extra) in _EXTRAS.items():
        if f"{name}.".startswith(f"{start}.") and find_spec(package) is None:
            raise JobError(f"{described.file}: {name} needs {package}. Type: pip install 'dpmask[{extra}]'")
    module, _, attribute = name.rpartition(".")
    try:
        make = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError):
        make = None
    if not callable(make):
        raise JobError(f"{described.file}: there is no cluster class '{name}' here. Install the package that has it.")
    return make
