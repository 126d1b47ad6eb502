"""How tasks reach Dask, embedded or on a cluster, and how their results come back.

A scheduler that closes its connections is noticed at once. One that is frozen or cut off is noticed because, whenever
nothing has come for a while, it is asked for a sign of life: nothing waits for ever.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import Context, ContextVar
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import dask
from dask.base import named_schedulers
from dask.callbacks import Callback
from dask.delayed import Delayed
from dask.local import SynchronousExecutor, get_async
from dask.utils import parse_timedelta

from dpmask.engine import progress
from dpmask.engine.guard import Failure
from dpmask.engine.limits import current_limits
from dpmask.errors import ClusterError, DpmaskError, InputError

_QUIET = 10.0
_GONE = "The Dask scheduler is gone. Start the cluster and run the job again."
_KILLED = "A task lost its worker again and again. Give workers more memory, or lower block_rows."
_PAUSED = "All workers have paused, as their memory is full. Give workers more memory, or lower block_rows."
_NO_WORKERS = "The cluster has lost all its workers. Start some and run the job again."
_chosen: ContextVar[Any] = ContextVar("dpmask_client", default=None)


class Watch(NamedTuple):
    """What a pass reports: its label, how many tasks there are in all, and what is called with each result."""

    label: str
    total: int
    on_result: Callable[[int, Any], None] = lambda number, result: None


@contextmanager
def thread_given_up() -> Iterator[None]:
    """Inside a task of a cluster, leave its thread to the tasks that are waited for: they may have no other."""
    with ExitStack() as stack:
        if dask_client() is not None:
            from distributed import get_worker, worker_client

            with suppress(ValueError):  # this is no task
                get_worker()
                stack.enter_context(worker_client())
        yield


def finished(tasks: list[Delayed], watch: Watch) -> Iterator[tuple[int, Any]]:
    """Each task's number and result, on the cluster as they come, embedded when all are done."""
    report, done = progress.current(), count(watch.total - len(tasks))
    report(watch.label, next(done), watch.total)

    def arrived(number: int, result: Any) -> None:
        report(watch.label, next(done), watch.total)
        watch.on_result(number, result)

    client = dask_client()
    yield from _embedded(tasks, arrived) if client is None else _from_cluster(client, tasks, arrived)


def persisted(tasks: list[Delayed], waited_for: Callable[[Any], Delayed], watch: Watch) -> Iterator[tuple[int, Any]]:
    """Each task's number and its result, left where it was computed; of one that failed, the failure.

    ``waited_for`` gives the task that waits for one of them and returns its failure, if it has one.
    """
    client = dask_client()
    if client is None:
        yield from finished(tasks, watch)
        return
    with _asking(client):
        _revive(client, tasks)
        contents = client.persist(tasks, optimize_graph=False)
    for number, failure in finished([waited_for(content) for content in contents], watch):
        yield number, failure or contents[number]


def _embedded(tasks: list[Delayed], arrived: Callable[[int, Any], None]) -> Iterator[tuple[int, Any]]:
    """The results of the tasks, by Dask's threads in this process or the local scheduler that Dask is set to.

    The scheduler is called itself: dask.compute would import distributed, which costs more than many a pass. A single
    task needs no thread of its own, but a context of its own, as in one.
    """
    graph = {key: part for task in tasks for key, part in task.__dask_graph__().items()}
    chosen = dask.config.get("scheduler", None) or (
        "threads" if len(graph) > 1 else partial(get_async, _submit_here, 1)
    )
    get = chosen if callable(chosen) else named_schedulers[chosen]
    numbers = {task.key: number for number, task in enumerate(tasks)}

    def posted(key: Any, result: Any, *_: Any) -> None:
        if key in numbers:
            arrived(numbers[key], result)

    try:
        with Callback(posttask=posted):
            results = get(graph, [task.key for task in tasks])
    except DpmaskError:
        raise
    except Exception as error:
        raise _upstream(error) from None
    yield from enumerate(results)


def _submit_here(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function gives, called at once with nothing of the caller's context, as a future."""
    return SynchronousExecutor().submit(Context().run, function, *arguments)


def _from_cluster(client: Any, tasks: list[Delayed], arrived: Callable[[int, Any], None]) -> Iterator[tuple[int, Any]]:
    """Results as the cluster finishes them; a task that kept losing its worker counts as failed."""
    with _asking(client):
        _revive(client, tasks)
        futures = client.compute(tasks, optimize_graph=False)
        numbers = {future.key: number for number, future in enumerate(futures)}
        for future in _arriving(client, futures):
            result = _result(client, future)
            arrived(numbers[future.key], result)
            yield numbers[future.key], result


def _arriving(client: Any, futures: list[Any]) -> Iterator[Any]:
    """The futures as they are done. When nothing comes for a while, the cluster is asked for a sign of life."""
    from distributed import as_completed

    waiting, alive = as_completed(futures), _Alive(client)
    while not waiting.is_empty():
        if waiting.has_ready():
            alive.seen()
            yield next(waiting)
            continue
        with waiting.thread_condition:
            waiting.thread_condition.wait(0.1)
        alive.require()


def _result(client: Any, future: Any) -> Any:
    """The result of a task that is done; it may have been lost meanwhile, and is then waited for."""
    alive = _Alive(client)
    while future.status != "error":
        try:
            return future.result(timeout=_QUIET)
        except Exception as error:
            if future.status == "error":
                break
            if not isinstance(error, TimeoutError):
                raise
            alive.require()
    return _failed(future.exception())


def _failed(error: Exception) -> Failure:
    """A task never raises, so it lost its workers, or the caller's own graph failed."""
    from distributed.scheduler import KilledWorker

    if isinstance(error, KilledWorker):
        return Failure(ClusterError(_KILLED))
    raise _upstream(error) from None


class _Alive:
    """Whether the cluster is there, asked whenever it was quiet for a while."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.seen()

    def seen(self) -> None:
        """It sent something just now."""
        self.answered = self.worked = time.monotonic()

    def require(self) -> None:
        """Refuse a scheduler that does not answer, or has had no worker at work for as long as Dask waits for one."""
        if time.monotonic() - self.answered < _QUIET:
            return
        workers = ask(self.client, "identity", n_workers=-1)["workers"].values()
        self.answered = time.monotonic()
        patience = _seconds("distributed.scheduler.worker-ttl", 300.0)
        if any(worker["status"] == "running" for worker in workers):
            self.worked = self.answered
        elif self.answered - self.worked > patience:
            raise ClusterError(_PAUSED if workers else _NO_WORKERS)


def ask(client: Any, question: str, /, **arguments: Any) -> Any:
    """What the scheduler answers, in bounded time."""
    with _asking(client):
        patience = 2.0 * _seconds("distributed.comm.timeouts.connect", 30.0)
        return client.sync(getattr(client.scheduler, question), callback_timeout=patience, **arguments)


def _seconds(setting: str, otherwise: float) -> float:
    return float(parse_timedelta(dask.config.get(setting, None) or otherwise))


@contextmanager
def _asking(client: Any) -> Iterator[None]:
    """Turn what Dask raises when its scheduler goes away into one of our errors."""
    from distributed.client import FutureCancelledError

    try:
        yield
    except DpmaskError:
        raise
    except Exception as error:
        if isinstance(error, OSError | FutureCancelledError) or client.status != "running":
            raise ClusterError(_GONE) from None
        raise _upstream(error) from None


def _revive(client: Any, tasks: list[Delayed]) -> None:
    """Have the scheduler compute again what these tasks need and it gave up, as its workers died again and again."""
    from distributed import futures_of

    failed = {key for key, state in list(client.futures.items()) if state.status == "error"}
    lost = [future.key for future in futures_of(tasks) if future.key in failed] if failed else []
    if lost:
        ask(client, "retry", keys=lost, client=client.id)


def _upstream(error: Exception) -> DpmaskError:
    return InputError(
        f"The table's own Dask tasks failed with {type(error).__name__}. Its text is withheld, it may hold values of "
        "records; compute the table by itself to see it."
    )


def fits_in_memory(size: int) -> bool:
    """Whether this many bytes may stay in the workers' memory, or this process's, and leave room to work."""
    client, share = dask_client(), current_limits().memory_share
    if client is not None:
        workers = ask(client, "identity", n_workers=-1)["workers"].values()
        return size < share * sum(worker["memory_limit"] for worker in workers)
    import psutil

    return size < share * psutil.virtual_memory().available


def threads() -> int:
    """Worker threads at hand: the cluster's, or this process's."""
    planned = current_limits().threads
    if planned is not None:
        return planned
    client = dask_client()
    if client is not None:
        return max(1, sum(ask(client, "ncores").values()))
    from dask.system import CPU_COUNT

    return int(dask.config.get("num_workers", None) or CPU_COUNT)


@contextmanager
def only_on(client: Any) -> Iterator[None]:
    """Work on this cluster or not at all: should it go away, nothing is computed in this process in its place."""
    token = _chosen.set(client)
    # when a scheduler goes, Dask's client logs how it failed: our error says why, and its texts may hold values
    for name in ("asyncio", "distributed.client", "distributed.utils"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        _chosen.reset(token)


def dask_client() -> Any:
    """The distributed client that Dask would use now, if any; without one, distributed is not even imported."""
    if "distributed" not in sys.modules:
        return None
    chosen = _chosen.get()
    if chosen is not None and chosen.status in {"closing", "closed"}:
        raise ClusterError(_GONE)
    scheduler = dask.base.get_scheduler()
    owner = getattr(scheduler, "__self__", None)
    return owner if hasattr(owner, "scheduler_info") else None
