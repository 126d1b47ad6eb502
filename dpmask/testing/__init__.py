"""Checks that every masking method and measure passes, for tests of your own ones, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpmask.registry import lazy_names

if TYPE_CHECKING:
    from dpmask.testing.measures import check_measure as check_measure
    from dpmask.testing.methods import check_method as check_method

__getattr__, __dir__ = lazy_names(
    __name__, {"check_measure": "dpmask.testing.measures", "check_method": "dpmask.testing.methods"}
)
