"""The processor that is computed for: the same on every machine, so that the same numbers give the same bits."""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress

from dpmask.errors import ProcessorError

TARGET = "x86-64-v3" if platform.machine().lower() in {"x86_64", "amd64"} else "generic"
"""The processor that kernels are compiled for, with no features besides its own."""

_LIBRARIES = {
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR",
    "ARROW_USER_SIMD_LEVEL": "AVX2",
}
_NEEDED = ("avx2", "fma", "bmi", "bmi2", "f16c", "lzcnt", "movbe")


def pin_libraries() -> None:
    """Have numpy, BLAS and Arrow use AVX2 and no more: with AVX-512 sums and exponentials have other last bits.

    They read this when they are first imported, so it is for programs, workers among them, and not for libraries.
    """
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        flags = file.read(1 << 14).split()
        for name in (*_LIBRARIES, "NPY_ENABLE_CPU_FEATURES"):
            os.environ.pop(name, None)
        if "avx2" in flags:  # else nothing may stop the machine before it is refused with a sentence
            os.environ |= {name: _LIBRARIES[name] for name in _LIBRARIES if "avx512f" in flags or name[:3] != "NPY"}


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
