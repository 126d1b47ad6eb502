"""The one way to compile a kernel, and the forms of arrays that kernels are compiled for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Function = TypeVar("Function", bound=Callable[..., object])
Number = TypeVar("Number", bound=np.generic)


def compiled(*, part: bool = False, reassociate: bool = True, contract: bool = True) -> Callable[[Function], Function]:
    """Compile a kernel: no interpreter lock, one thread (Dask has the cores), kept on disk where a disk can be written.

    With `reassociate` sums may be taken in another order, which is what lets a reduction vectorise. With `contract` a
    product and a sum may be rounded once, which one place may do and another not. NaN and infinity keep their meaning
    in any case. Divisions by zero give infinity instead of an exception.

    A function that compiled ones call is a `part` of them and becomes one with each. As a function of its own it would
    exist twice, compiled for itself and with its caller, each with its own roundings, and which of them runs would
    depend on whether a process compiled the kernel or found it on disk: the same bits need the same code.
    """
    flags = ({"reassoc", "arcp"} if reassociate else set()) | ({"contract"} if contract else set())

    options = {"nogil": True, "error_model": "numpy", "fastmath": flags, "forceinline": part}

    def compile_function(function: Function) -> Function:
        try:
            kernel = numba.njit(cache=True, **options)(function)
        except RuntimeError:  # neither the package's folder nor the user's cache can be written, as in some containers
            kernel = numba.njit(**options)(function)
        return cast(Function, kernel)

    return compile_function


def plain(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The array in the form the kernels are compiled for.

    Another form, such as the read-only one in which a block comes from another worker, would be compiled anew, and its
    sums might be taken in another order: the same bits need the same code.
    """
    return np.require(values, np.float64, ["C_CONTIGUOUS", "ALIGNED", "WRITEABLE"])


def read_only(values: NDArray[Number]) -> NDArray[Number]:
    """The same for kernels that only read: columns straight from an Arrow buffer are read-only, and not copied."""
    view = np.require(values, requirements=["C_CONTIGUOUS", "ALIGNED"]).view()
    view.flags.writeable = False
    return view
