"""What is computed again and again from the same content, kept by its caller: the explorer, between its moves.

By default nothing is: which passes a run makes must follow from its job, key and input alone.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import numpy as np

from dpmask.kernels.arrays import Floats

Found = TypeVar("Found")
Memory = dict[bytes, object]
_MOST = 256
"""Things that are kept: those that nobody asked for longest go first."""

_lock = threading.Lock()
_memory: ContextVar[Memory | None] = ContextVar("dpmask_memory", default=None)


@contextmanager
def remembering(memory: Memory) -> Iterator[None]:
    """Keep in ``memory`` what is computed inside the block, and take it from there."""
    token = _memory.set(memory)
    try:
        yield
    finally:
        _memory.reset(token)


def remembered(purpose: str, content: Callable[[], Iterable[Floats | bytes]], compute: Callable[[], Found]) -> Found:
    """What ``compute`` gives for this content, by arrays or digests; ``purpose`` names all else that it depends on.

    What is there to keep it by is asked for only where somebody keeps it.
    """
    memory = _memory.get()
    if memory is None:
        return compute()
    digest = hashlib.sha256(purpose.encode())
    for one in content():
        digest.update(repr(np.shape(one) or len(one)).encode())
        digest.update(one if isinstance(one, bytes) else np.ascontiguousarray(one).tobytes())
    key = digest.digest()
    with _lock:
        found = memory.get(key)
    found = compute() if found is None else found
    with _lock:
        memory.pop(key, None)
        while len(memory) >= _MOST:
            del memory[next(iter(memory))]
        memory[key] = found
    return found  # type: ignore[return-value]
