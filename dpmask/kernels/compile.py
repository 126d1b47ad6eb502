"""The one way to compile a kernel: for one target, kept on disk, and the forms of arrays that kernels are compiled for.

No other module of dpmask compiles anything. The target (`target.py`) is set before numba is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpmask.kernels.target import pin_target, require_processor
from dpmask.registry import without_collecting

Function = TypeVar("Function", bound=Callable[..., object])
Number = TypeVar("Number", bound=np.generic)

pin_target()

import numba  # noqa: E402
from llvmlite import ir  # noqa: E402
from llvmlite.binding import get_host_cpu_features  # noqa: E402
from numba import types  # noqa: E402
from numba.core import cgutils, entrypoints, typed_passes, untyped_passes  # noqa: E402
from numba.core.codegen import CPUCodeLibrary, JITCodeLibrary  # noqa: E402
from numba.core.compiler import CompilerBase, DefaultPassBuilder  # noqa: E402
from numba.core.compiler_machinery import register_pass  # noqa: E402
from numba.core.targetconfig import ConfigStack  # noqa: E402
from numba.core.types.functions import BaseFunction  # noqa: E402
from numba.core.typing.templates import _OverloadFunctionTemplate  # noqa: E402
from numba.extending import intrinsic  # noqa: E402

from dpmask.kernels.kernel_cache import KernelCache  # noqa: E402
from dpmask.kernels.quick_numba import kernels_only, quicken  # noqa: E402

require_processor(get_host_cpu_features())
quicken()


@cache
def _import_array_functions() -> None:
    """Import what numba has for arrays without scipy.linalg, which takes as long again and only `np.convolve` needs."""
    from numba.np import linalg

    ensure_blas, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        import numba.np.arraymath  # noqa: F401 - asks for a BLAS when it is imported
    finally:
        linalg.ensure_blas = ensure_blas


class _PartLibrary(CPUCodeLibrary):  # type: ignore[misc]
    """Code as it was lowered: it is optimised and made machine code in its kernel, and not also for itself."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _KernelLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that is optimised once: numba does so twice, for counts of references that kernels do not make."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


@register_pass(mutates_CFG=True, analysis_only=False)
class _KernelLowering(typed_passes.NativeLowering):  # type: ignore[misc]
    _name = "dpmask_kernel_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower a kernel, link its parts in, optimise all of it and make it machine code."""
        state.library = _KernelLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(typed_passes.NativeLowering):  # type: ignore[misc]
    _name = "dpmask_part_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower a part to code that waits to be linked into kernels."""
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        state.cr = state.cr._replace(cfunc={}.popitem)  # which fails, if Python calls it
        state.targetctx.insert_user_function(state.cr.cfunc, state.cr.fndesc, [state.library])
        return True


_NEEDLESS = {
    untyped_passes.WithLifting,
    untyped_passes.InlineClosureLikes,
    untyped_passes.RewriteDynamicRaises,
    untyped_passes.MakeFunctionToJitFunction,
    untyped_passes.InlineInlinables,
    untyped_passes.FindLiterallyCalls,
    untyped_passes.LiteralUnroll,
    untyped_passes.LiteralPropagationSubPipelinePass,
    typed_passes.InlineOverloads,
    typed_passes.NopythonRewrites,
    typed_passes.DumpParforDiagnostics,
}
"""Passes for what no kernel has: contexts, closures, comprehensions, literals to unroll, expressions of arrays."""


def _pipeline(state: Any, lowering: type) -> list[Any]:
    passes = DefaultPassBuilder.define_nopython_pipeline(state)
    kept = [(one, why) for one, why in passes.passes if one not in _NEEDLESS]
    passes.passes = [(lowering if one is typed_passes.NativeLowering else one, why) for one, why in kept]
    passes.finalize()
    return [passes]


def _look_for_new(context: Any) -> None:
    for registry in list(context._registries):
        context.install_registry(registry)


_numba_function: Any = BaseFunction
_numba_overload: Any = _OverloadFunctionTemplate
_find_call_type, _find_decorator = _numba_function.get_call_type, _numba_overload._get_jit_decorator
_call_types: dict[Any, Any] = {}


def _known_call_type(function: Any, context: Any, arguments: Any, keywords: Any) -> Any:
    key = function, context, arguments, tuple(keywords.items()), ConfigStack.top_or_none()
    if key not in _call_types:
        _call_types[key] = _find_call_type(function, context, arguments, keywords)
    return _call_types[key]


@contextmanager
def _resolving_once(typing: Any, target: Any, flags: Any) -> Iterator[None]:
    """Look for declarations in known places only, and for the type of a call once: numba does so again and again.

    What numba has written in Python, such as min and max of two, becomes a part, too, unless it may allocate.
    """
    for context in (typing, target):
        context.refresh = partial(_look_for_new, context)
    _numba_function.get_call_type = _known_call_type
    if not flags.nrt:
        _numba_overload._get_jit_decorator = lambda overload: partial(_find_decorator(overload), **_PART)
    try:
        yield
    finally:
        _numba_function.get_call_type, _numba_overload._get_jit_decorator = _find_call_type, _find_decorator
        del typing.refresh, target.refresh


def _load_declarations(target: Any, typing: Any) -> None:
    """Have both know what numba declares, each place looked at once and not again with each function that is found."""
    again = typing.refresh, target.refresh
    load_extensions, entrypoints.init_all = entrypoints.init_all, _no_extensions
    typing.refresh = target.refresh = _no_extensions
    try:
        for context in (target, typing):
            type(context).refresh(context)
    finally:
        entrypoints.init_all = load_extensions
        typing.refresh, target.refresh = again
    target.refresh()
    typing.refresh()


class _KernelCompiler(CompilerBase):  # type: ignore[misc]
    def __init__(self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, local: Any) -> None:
        _import_array_functions()
        self._contexts = (typing, target)
        with _resolving_once(typing, target, flags):
            _load_declarations(target, typing)
            super().__init__(typing, target, library, args, result, flags, local)

    def compile_extra(self, function: Any) -> Any:
        with without_collecting(), kernels_only(), _resolving_once(*self._contexts, self.state.flags):
            return super().compile_extra(function)

    def define_pipelines(self) -> list[Any]:
        return _pipeline(self.state, _KernelLowering)


class _PartCompiler(CompilerBase):  # type: ignore[misc]
    def define_pipelines(self) -> list[Any]:
        return _pipeline(self.state, _PartLowering)


_PART = {"pipeline_class": _PartCompiler, "forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of what Python never calls."""


def compiled(
    *,
    part: bool = False,
    allocates: bool = False,
    reassociate: bool = True,
    contract: bool = True,
    variant: tuple[object, ...] = (),
) -> Callable[[Function], Function]:
    """Compile a kernel: no interpreter lock, one thread (Dask has the cores), kept on disk where a disk can be written.

    With `reassociate` sums may be taken in another order, which is what lets a reduction vectorise. With `contract` a
    product and a sum may be rounded once, which one place may do and another not. NaN and infinity keep their meaning
    in any case. Divisions by zero give infinity instead of an exception.

    A function that compiled ones call is a `part` of them and becomes one with each. As a function of its own it would
    exist twice, compiled for itself and with its caller, each with its own roundings, and which of them runs would
    depend on whether a process compiled the kernel or found it on disk: the same bits need the same code.

    A kernel or part that `allocates` arrays counts references to them, and takes longer to compile.

    A kernel that a function builds, with some choices made, has these for its `variant`.
    """
    flags = ({"reassoc", "arcp"} if reassociate else set()) | ({"contract"} if contract else set())
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": flags,
        "no_cfunc_wrapper": True,
        "_nrt": allocates,
    }
    options |= _PART if part else {"pipeline_class": _KernelCompiler}

    def compile_function(function: Function) -> Function:
        kernel = numba.njit(**options)(function)
        kernel._compilation_chain_init_hook = _no_extensions
        if not part:
            kernel._cache = KernelCache(function, variant)
        return cast(Function, kernel)

    return compile_function


def _no_extensions() -> None:
    """What other packages add to numba: no kernel uses it, and finding it means reading all installed metadata."""


@intrinsic  # type: ignore[untyped-decorator]
def bits_of(_: Any, number: Any) -> Any:
    """The 64 bits of a double, as an unsigned integer."""
    return types.uint64(types.float64), lambda _, builder, __, values: builder.bitcast(values[0], ir.IntType(64))


@intrinsic  # type: ignore[untyped-decorator]
def from_bits(_: Any, bits: Any) -> Any:
    """The double with these 64 bits."""
    return types.float64(types.uint64), lambda _, builder, __, values: builder.bitcast(values[0], ir.DoubleType())


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(_: Any, array: Any, row: Any, column: Any) -> Any:
    """Have the processor bring an element of a matrix, and its neighbours, near: a later load need not wait for it."""
    return types.void(array, row, column), _prefetch


def _prefetch(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    kind, (array, *at) = signature.args[0], values
    matrix = context.make_array(kind)(context, builder, array)
    element = cgutils.get_item_pointer(context, builder, kind, matrix, at, wraparound=False)
    place, number = builder.bitcast(element, ir.IntType(8).as_pointer()), ir.IntType(32)
    form = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
    fetch = cgutils.get_or_insert_function(builder.module, form, "llvm.prefetch.p0i8")
    builder.call(fetch, [place, number(0), number(3), number(1)])  # to read, into the nearest cache
    return context.get_dummy_value()


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
