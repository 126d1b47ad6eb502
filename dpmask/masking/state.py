"""A fitted method as plain values, and again: what is saved of it, and how the same fit draws by another key.

Everything that a fit holds is a dataclass or a named tuple of plain values, arrays, collections and keys. Keys are not
among the values: only what each is for, from the fitted method's own key on. Nothing that is put together can be code:
the classes are dpmask's, or those of methods that are imported.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from fractions import Fraction
from functools import reduce
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmask.engine.collection import Collection
from dpmask.engine.draws import Subkey
from dpmask.errors import InputError

_PACKAGES = ("clustering", "constraints", "kernels", "lake", "masking", "table")


@dataclass(frozen=True, repr=False)
class State:
    """The values of a fit for JSON, and what they refer to by number: arrays, and collections that stay on workers."""

    values: Any
    arrays: list[NDArray[Any]] = field(default_factory=list)
    collections: list[Collection[Any]] = field(default_factory=list)


def taken_apart(value: Any, key: Subkey | None = None) -> State:
    """The state of a fit whose draws are those of a key, or of a part of one that has none."""
    return _TakingApart(key).state(value)


def put_together(state: State, key: Subkey | None, classes: Mapping[str, type]) -> Any:
    """The fit again, with draws of this key; ``classes`` may be among its classes beside dpmask's own."""
    return _PuttingTogether(state, key, classes).value(state.values)


class _TakingApart:
    """The arrays and collections found so far, each once."""

    def __init__(self, key: Subkey | None) -> None:
        self._key = key
        self._arrays: dict[int, tuple[int, NDArray[Any]]] = {}
        self._collections: list[Collection[Any]] = []

    def state(self, value: Any) -> State:
        values = self._values(value)
        return State(values, [array for _, array in self._arrays.values()], self._collections)

    def _values(self, value: Any) -> Any:  # noqa: PLR0911 - one for each kind
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, np.bool_):
            return bool(value)
        if isinstance(value, int | np.integer):
            return int(value)
        if isinstance(value, float | np.floating):
            return float(value) if math.isfinite(value) else {"float": repr(float(value))}
        if isinstance(value, Fraction):
            return {"fraction": str(value)}
        if isinstance(value, np.ndarray):
            return {"array": self._arrays.setdefault(id(value), (len(self._arrays), value))[0]}
        if isinstance(value, Subkey):
            return {"key": self._purposes(value)}
        if isinstance(value, Collection):
            self._collections.append(value)
            return {"collection": len(self._collections) - 1}
        if isinstance(value, Mapping):
            return {"mapping": [[self._values(one), self._values(two)] for one, two in value.items()]}
        names = _names(type(value))
        if names is not None:
            return {"class": class_name(type(value))} | {n: self._values(getattr(value, n)) for n in names}
        if isinstance(value, list | tuple):
            found = [self._values(one) for one in value]
            return found if isinstance(value, list) else {"tuple": found}
        raise TypeError(f"{type(value).__name__} is nothing that a fitted method may hold.")

    def _purposes(self, key: Subkey) -> list[str]:
        """What a key is for, from the root on."""
        if derived(self._key, key.purposes) != key:
            raise TypeError("A fitted method may hold its own key, and such as follow from it.")
        return list(key.purposes)


class _PuttingTogether:
    def __init__(self, state: State, key: Subkey | None, classes: Mapping[str, type]) -> None:
        self._state, self._key, self._classes = state, key, classes

    def value(self, values: Any) -> Any:  # noqa: PLR0911 - one for each kind
        if isinstance(values, list):
            return [self.value(one) for one in values]
        if not isinstance(values, dict):
            return values
        if "class" in values:
            return self._object(values)
        ((kind, content),) = values.items()
        if kind == "float":
            return float(content)
        if kind == "fraction":
            return Fraction(content)
        if kind == "array":
            return self._state.arrays[content]
        if kind == "collection":
            return self._state.collections[content]
        if kind == "key":
            return derived(self._key, content)
        if kind == "mapping":
            return {self.value(one): self.value(two) for one, two in content}
        if kind == "tuple":
            return tuple(self.value(one) for one in content)
        raise InputError(f"A fit holds what this dpmask does not know: {kind!r}.")

    def _object(self, values: dict[str, Any]) -> Any:
        """One of a class that holds data; what its class computes of them when it is made is computed already."""
        found = self._class(values["class"])
        names = _names(found) or []
        if set(names) != values.keys() - {"class"}:
            raise InputError(f"{values['class']} has other parts in this dpmask. Fit again.")
        parts = {name: self.value(values[name]) for name in names}
        if issubclass(found, tuple):
            return found(**parts)
        made = object.__new__(found)
        for name, part in parts.items():
            object.__setattr__(made, name, part)
        return made

    def _class(self, name: str) -> type:
        if name in self._classes:
            return self._classes[name]
        module, _, own = name.partition(":")
        if module.split(".")[0] != "dpmask" or module.split(".")[1:2][0] not in _PACKAGES:
            raise InputError(f"{name} is no class of dpmask's. Import the method first.")
        try:
            found: Any = getattr(import_module(module), own)
        except (ImportError, AttributeError):
            raise InputError(f"{name} is not in this dpmask. Fit again.") from None
        if not isinstance(found, type) or _names(found) is None:
            raise InputError(f"{name} holds no data.")
        return found


def derived(key: Subkey | None, purposes: Sequence[str]) -> Subkey | None:
    """The key for these purposes, each narrower than the one before."""
    return None if key is None else reduce(Subkey.subkey, purposes, key)


def class_name(cls: type) -> str:
    """What a class is called in a state."""
    return f"{cls.__module__}:{cls.__qualname__}"


def _names(cls: type) -> list[str] | None:
    """The parts of a dataclass or a named tuple; None of anything else."""
    if is_dataclass(cls):
        return [one.name for one in fields(cls)]
    return list(cls._fields) if issubclass(cls, tuple) and hasattr(cls, "_fields") else None


def classes_below(*bases: type[Any]) -> Iterator[type[Any]]:
    """All classes derived from these that are imported."""
    for base in bases:
        for one in base.__subclasses__():
            yield one
            yield from classes_below(one)
