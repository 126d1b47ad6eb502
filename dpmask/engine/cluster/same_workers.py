"""Workers must compute what this process would: the same libraries, the same last bits.

Those that are there are checked at the start, and the run is refused. One that joins later checks itself before it
takes a task, by what the cluster gives to each new worker, and goes away if it differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from importlib.metadata import distribution
from typing import Any

from dpmask.engine.progress import Listener, current
from dpmask.errors import ClusterError, printable

_COMPUTING = ("cryptography", "numba", "numpy", "pandas", "pyarrow", "scipy")
"""The libraries that decide over bits: the same ones give the same release."""

_SAME = ("dpmask", "dask", "distributed", *_COMPUTING)
_TOPIC = "dpmask-workers"


@cache
def computing_libraries() -> dict[str, str]:
    """The versions of the libraries that decide over bits."""
    return {name: _version(name) for name in _COMPUTING}


def _version(package: str) -> str:
    """What stands in its metadata; all of it would be parsed as an e-mail, which takes as long as some imports."""
    text = distribution(package).read_text("METADATA") or ""
    return next(line[9:] for line in text.splitlines() if line.startswith("Version: "))


def require_same_workers(client: Any) -> None:
    """Refuse workers that would compute something else."""
    versions = client.get_versions(packages=list(_SAME))
    ours = versions["client"]["packages"]
    for address, worker in versions["workers"].items():
        for package in _SAME:
            theirs = worker["packages"].get(package)
            if theirs != ours.get(package):
                found = f"has {package} {theirs}" if theirs else f"has no {package}"
                raise ClusterError(
                    f"The worker at {address} {found}, this process has {ours.get(package)}. Install the same on both."
                )
    bits = arithmetic()
    for address, theirs in client.run(arithmetic).items():
        if theirs != bits:
            raise ClusterError(
                f"The worker at {address} computes other last bits than this process: its BLAS was started for "
                "another processor there. Set the variables for AVX2 in the worker's environment, as the files of "
                "cluster_config/ do: dpmask explain clusters."
            )


@contextmanager
def late_workers_checked(client: Any) -> Iterator[None]:
    """Have each worker that joins meanwhile check itself before its first task; one that differs goes away."""
    ours = {name: _version(name) for name in _SAME}
    check = _check_of(client.id, ours, arithmetic())
    name = f"dpmask-{client.id}"
    client.register_plugin(check, name=name)
    client.subscribe_topic(_TOPIC, partial(_report, current()))  # called by another thread
    gone = False
    try:
        yield
    except ClusterError:
        gone = True
        raise
    finally:
        if not gone:  # else nobody may answer; what is left behind binds nobody
            with suppress(Exception):
                client.unsubscribe_topic(_TOPIC)
                client.unregister_worker_plugin(name)


def _report(listener: Listener, event: Any) -> None:
    listener(f"warning: {printable(str(event[1]), 300)}", 0, 0)


def _arithmetic() -> Callable[[], str]:
    """A function that Dask sends as it is, for workers that have no dpmask to look it up in."""

    def digest() -> str:
        """A digest of what BLAS makes of some numbers; no result depends on other instructions of numpy."""
        from hashlib import sha256

        import numpy as np

        some = np.sqrt(np.arange(1.0, 4001.0)).reshape(40, 100)
        found = (some[:, :7].T @ some, some @ some[0], np.linalg.inv(some[:, :40]))
        return sha256(b"".join(one.tobytes() for one in found)).hexdigest()

    return digest


arithmetic = _arithmetic()


def _check_of(client_id: str, ours: dict[str, str], bits: str) -> Any:
    """What a new worker is given. Its class is sent as it is, too."""
    from distributed import WorkerPlugin

    digest = arithmetic

    class CheckedWorker(WorkerPlugin):  # type: ignore[misc]
        """A worker takes tasks only once this is set up."""

        async def setup(self, worker: Any) -> None:
            wrong = self.difference()
            if wrong and await self.is_asked_for(worker):
                text = f"the worker at {worker.address} joined and was sent away: {wrong}. Install the same everywhere."
                worker.log_event("dpmask-workers", text)
                await worker.close(reason="dpmask-versions", nanny=True)

        def difference(self) -> str:
            """What it has that is not as it should be; nothing if all is."""
            from importlib.metadata import PackageNotFoundError, version

            for name, wanted in ours.items():
                try:
                    found = version(name)
                except PackageNotFoundError:
                    return f"it has no {name}"
                if found != wanted:
                    return f"it has {name} {found}, the job has {wanted}"
            return "" if digest() == bits else "its BLAS computes other last bits"

        async def is_asked_for(self, worker: Any) -> bool:
            """Whether the job that asks still runs: one that was killed left this behind, and binds nobody."""
            from distributed.protocol.pickle import dumps

            def there(dask_scheduler: Any) -> bool:
                return client_id in dask_scheduler.clients

            answer = await worker.scheduler.run_function(function=dumps(there), args=dumps(()), kwargs=dumps({}))
            return answer.get("status") == "OK" and bool(answer["result"])

    return CheckedWorker()
