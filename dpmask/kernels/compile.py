"""The one way to compile a kernel: for one target, kept on disk, and the forms of arrays that kernels are compiled for.

The target is the same on every machine, so that the same kernel gives the same bits wherever it was compiled. It is set
here, before numba is imported: no other module of dpmask imports numba.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpmask.errors import ProcessorError

Function = TypeVar("Function", bound=Callable[..., object])
Number = TypeVar("Number", bound=np.generic)

TARGET = "x86-64-v3" if platform.machine().lower() in {"x86_64", "amd64"} else "generic"
"""The processor that kernels are compiled for, with no features besides its own."""

_NEEDED = ("avx2", "fma", "bmi", "bmi2", "f16c", "lzcnt", "movbe")


def pin_target() -> None:
    """Have numba compile for the target. A vector library that only some machines have is left out, too."""
    os.environ |= {"NUMBA_CPU_NAME": TARGET, "NUMBA_CPU_FEATURES": "", "NUMBA_DISABLE_INTEL_SVML": "1"}
    if "numba" in sys.modules:  # it has read the environment already
        from numba import config
        from numba.core.registry import cpu_target

        if "_toplevel_target_context" in vars(cpu_target) and (config.CPU_NAME, config.CPU_FEATURES) != (TARGET, ""):
            raise ProcessorError(
                "numba compiled something in this process before dpmask was imported, for this machine only, and "
                "kernels would follow it: their bits could differ from other machines'. Import dpmask.kernels.compile "
                f"first, or set NUMBA_CPU_NAME={TARGET} and an empty NUMBA_CPU_FEATURES in the environment."
            )
        config.CPU_NAME, config.CPU_FEATURES = TARGET, ""


def require_processor(features: dict[str, bool]) -> None:
    """Refuse a machine that would stop at the first instruction it does not know."""
    missing = [name for name in _NEEDED if not features.get(name)]
    if TARGET != "generic" and missing:
        raise ProcessorError(
            "dpmask needs an x86-64 processor with AVX2, such as Intel's since 2013 and AMD's since 2015; this "
            f"machine's lacks {', '.join(missing)}. Run on another one or, if it is virtual, let it see the host's."
        )


pin_target()

import numba  # noqa: E402
from llvmlite import ir  # noqa: E402
from llvmlite.binding import get_host_cpu_features  # noqa: E402
from numba import types  # noqa: E402
from numba.core.compiler import CompilerBase, DefaultPassBuilder  # noqa: E402
from numba.core.compiler_machinery import AnalysisPass, register_pass  # noqa: E402
from numba.core.typed_passes import AnnotateTypes  # noqa: E402
from numba.extending import intrinsic  # noqa: E402

from dpmask.kernels.kernel_cache import KernelCache  # noqa: E402

require_processor(get_host_cpu_features())


@register_pass(mutates_CFG=False, analysis_only=True)
class _UnoptimisedLibrary(AnalysisPass):  # type: ignore[misc]
    """A part is optimised once, as what its kernel becomes, and not also for itself and for each part it is in."""

    _name = "dpmask_unoptimised_library"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Give the part a library of code that is left as it is."""
        state.library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
        state.library.enable_object_caching()
        state.library._optimize_final_module = lambda: None
        return False


class _PartCompiler(CompilerBase):  # type: ignore[misc]
    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_UnoptimisedLibrary, AnnotateTypes)
        passes.finalize()
        return [passes]


def compiled(
    *, part: bool = False, reassociate: bool = True, contract: bool = True, variant: tuple[object, ...] = ()
) -> Callable[[Function], Function]:
    """Compile a kernel: no interpreter lock, one thread (Dask has the cores), kept on disk where a disk can be written.

    With `reassociate` sums may be taken in another order, which is what lets a reduction vectorise. With `contract` a
    product and a sum may be rounded once, which one place may do and another not. NaN and infinity keep their meaning
    in any case. Divisions by zero give infinity instead of an exception.

    A function that compiled ones call is a `part` of them and becomes one with each. As a function of its own it would
    exist twice, compiled for itself and with its caller, each with its own roundings, and which of them runs would
    depend on whether a process compiled the kernel or found it on disk: the same bits need the same code.

    A kernel that a function builds, with some choices made, has these for its `variant`.
    """
    flags = ({"reassoc", "arcp"} if reassociate else set()) | ({"contract"} if contract else set())
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": flags, "no_cfunc_wrapper": True}
    if part:  # which Python never calls
        options |= {"forceinline": True, "no_cpython_wrapper": True, "pipeline_class": _PartCompiler}

    def compile_function(function: Function) -> Function:
        kernel = numba.njit(**options)(function)
        if not part:
            kernel._cache = KernelCache(function, variant)
        return cast(Function, kernel)

    return compile_function


@intrinsic  # type: ignore[untyped-decorator]
def bits_of(_: Any, number: Any) -> Any:
    """The 64 bits of a double, as an unsigned integer."""
    return types.uint64(types.float64), lambda _, builder, __, values: builder.bitcast(values[0], ir.IntType(64))


@intrinsic  # type: ignore[untyped-decorator]
def from_bits(_: Any, bits: Any) -> Any:
    """The double with these 64 bits."""
    return types.float64(types.uint64), lambda _, builder, __, values: builder.bitcast(values[0], ir.DoubleType())


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
