"""Things known by name, each loaded when it is first used: importing a package of many costs nothing."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any


@contextmanager
def without_collecting() -> Iterator[None]:
    """Look for no garbage meanwhile: what is imported or compiled stays, and looking it through takes a while."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def loaded(place: str) -> Any:
    """What stands at ``module:name``."""
    module, name = place.split(":")
    with without_collecting():
        return getattr(import_module(module), name)


def lazy_names(module: str, places: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a module whose public names stand in other modules, or are its submodules."""

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        with without_collecting():
            found = import_module(places[name])
        return found if places[name] == f"{module}.{name}" else getattr(found, name)

    return find, lambda: sorted(places)
