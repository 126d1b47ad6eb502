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


def lazy_names(
    package: str, places: Mapping[str, str], names: dict[str, Any]
) -> tuple[Callable[[str], Any], Callable[[str], Any]]:
    """For a package with these names: what finds one of them, and its ``__getattr__``."""

    def find(name: str) -> Any:
        names[name] = found = loaded(places[name])  # over the module of the same name
        return found

    def missing(name: str) -> Any:
        if name in places:
            return find(name)
        raise AttributeError(f"module '{package}' has no attribute '{name}'")

    return find, missing
