"""Things known by name, each loaded when it is first used: importing a package of many costs nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def loaded(place: str) -> Any:
    """What stands at ``module:name``."""
    module, name = place.split(":")
    return getattr(import_module(module), name)


def module_of(found: Any) -> Any:
    """The module that a function stands in, with what else it says."""
    return sys.modules[found.__module__]


def lazy_names(module: str, places: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a module whose public names stand elsewhere and are loaded when first used."""

    def find(name: str) -> Any:
        if name in places:
            return loaded(places[name])
        raise AttributeError(f"module '{module}' has no attribute '{name}'")

    return find, lambda: sorted(places)
