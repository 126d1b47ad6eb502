"""What fitted clusterings share: how they are shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
from typing import Any

from dpmask.results import shown


class FittedClustering(ABC):
    """A fitted clustering as text and in notebooks, without values of records: a centre may be one."""

    method: Any

    @abstractmethod
    def _summary(self) -> dict[str, Any]:
        """What is shown."""

    def __repr__(self) -> str:
        """The method and how the fit went."""
        numbers = ", ".join(f"{name}={shown(value)}" for name, value in self._summary().items())
        return f"{type(self).__name__}({self.method!r}, {numbers})"

    def _repr_html_(self) -> str:
        """The same as a small table."""
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{shown(value)}</td></tr>" for name, value in self._summary().items()
        )
        return f"<table><caption>{escape(repr(self.method))}</caption>{rows}</table>"
