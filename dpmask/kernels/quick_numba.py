"""Parts of numba written anew: some take a third of the time it needs to compile a kernel, and give the same sooner.

Another names machine code after a set in the order in which a process hashes; here it has one name everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dpmask.kernels.target import pin_target

pin_target()  # whichever module is imported first

from numba.core import ir, transforms  # noqa: E402
from numba.core.cpu_options import FastMathOptions  # noqa: E402
from numba.core.postproc import PostProcessor, VariableLifetime  # noqa: E402
from numba.core.targetconfig import TargetConfig  # noqa: E402

_PLAIN = frozenset({str, int, float, bool, type(None), ir.Loc})
_search_variables, _process = ir.Inst._rec_list_vars, PostProcessor.run


def quicken() -> None:
    """Have numba use those from now on that are the same for any code."""
    TargetConfig.__hash__, TargetConfig.__eq__ = _hash, _equal
    ir.Inst._rec_list_vars = _variables
    FastMathOptions.encode = _encoded


@contextmanager
def kernels_only() -> Iterator[None]:
    """Have numba use the others, too, while it compiles what has neither generators nor Python objects."""
    PostProcessor.run = _processed
    try:
        yield
    finally:
        PostProcessor.run = _process


def _hash(flags: Any) -> int:
    """Flags of a compilation, which numba compares thousands of times, option by option."""
    return hash(frozenset(flags._values))


def _equal(flags: Any, other: object) -> bool:
    return isinstance(other, TargetConfig) and bool(flags._values == other._values)


def _encoded(options: Any) -> str:
    """What may be rounded otherwise, for the names in machine code, which is then the same in every process."""
    return str(sorted(options.flags))


def _variables(instruction: Any, value: Any) -> Any:
    """The variables in a field of an instruction: numba looks a hundred thousand times, and mostly there are none."""
    kind = type(value)
    if kind in _PLAIN:
        return []
    return [value] if kind is ir.Var else _search_variables(instruction, value)


def _processed(processor: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """Bring code in order after a pass, without looking for the variables that each block begins with."""
    code = processor.func_ir
    if emit_dels:
        _process(processor, emit_dels, extend_lifetimes)
        return
    code.blocks = transforms.canonicalize_cfg(code.blocks)
    code.variable_lifetime, code.generator_info = VariableLifetime(code.blocks), None
