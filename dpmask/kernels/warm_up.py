"""Kernels compiled before they are needed: which of them a method or a measure runs, and what compiling them takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dpmask.kernels.kernel_cache import kept_kernels
from dpmask.kernels.warm_up_calls import FUZZY, PLAIN

_SECONDS, _FUZZY_SECONDS = 0.22, 0.66
"""CPU that it takes to compile a kernel, about, by the kernels of the ready jobs; tests/benchmarks/bench_start.py."""


class Task(NamedTuple):
    """One call that compiles some kernels; for fuzzy ones, by fuzziness and entropy weight."""

    name: str
    fuzziness: float | None = None
    entropy: float | None = None

    @property
    def kernels(self) -> tuple[str, ...]:
        """What they are called on disk, but for those that few runs need."""
        if self.name not in FUZZY:
            return PLAIN[self.name][0]
        from dpmask.kernels.fuzzy.center_sums import membership_model

        model, _ = membership_model(2, fuzziness=self.fuzziness, entropy=self.entropy)
        return (FUZZY[self.name][0].format(model),)

    @property
    def seconds(self) -> float:
        """The CPU it takes, about."""
        return len(self.kernels) * (_FUZZY_SECONDS if self.name in FUZZY else _SECONDS)

    def run(self) -> None:
        """Compile them, or find them on disk."""
        if self.name in FUZZY:
            FUZZY[self.name][1](fuzziness=self.fuzziness, entropy=self.entropy)
        else:
            PLAIN[self.name][1]()


CRISP = (Task("fuzzy", 1.0), Task("starts"), Task("labels"))
"""What crisp clustering compiles."""


class KernelUse(NamedTuple):
    """What a method or a measure compiles: always, and besides with some tables or parameters.

    ``dpmask warmup`` compiles both; what a run must still compile is counted by the first.
    """

    always: tuple[Task, ...]
    sometimes: tuple[Task, ...] = ()

    @property
    def all(self) -> tuple[Task, ...]:
        """Both."""
        return self.always + self.sometimes


NO_KERNELS = KernelUse(())
ORDER = KernelUse((Task("order"),), (Task("crowded order"),))
"""What counting a column's values below others compiles."""


def cold(tasks: Iterable[Task]) -> list[Task]:
    """Those of the tasks that have something to compile, each once, the longest first."""
    kept = kept_kernels()
    waiting = {task for task in tasks if not kept.issuperset(task.kernels)}
    return sorted(waiting, key=lambda task: (-task.seconds, repr(task)))


def all_tasks() -> list[Task]:
    """Every kernel: fuzzy ones for all models, among which 1.2 stands for whole 1/(m-1), 1.3 for any other m."""
    models = [Task("", m) for m in (1.0, 1.2, 1.3, 1.5, 2.0)] + [Task("", None, 1.0)]
    fuzzy = [model._replace(name=name) for model in models for name in FUZZY]
    return [Task(name) for name in PLAIN] + fuzzy
