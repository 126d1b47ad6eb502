"""The processor that is computed for: the same on every machine, so that the same numbers give the same bits."""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress
from typing import Any

from dpmask.errors import ProcessorError

TARGET = "x86-64-v3" if platform.machine().lower() in {"x86_64", "amd64"} else "generic"
"""The processor that kernels are compiled for, with no features besides its own."""

_LIBRARIES = {
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR",
    "ARROW_USER_SIMD_LEVEL": "AVX2",
}
_BLAS_CORE = b"Haswell"
_NEEDED = ("avx2", "fma", "bmi", "bmi2", "f16c", "lzcnt", "movbe")


def pin_process() -> None:
    """Have this process compute what every other one does: called by ``import dpmask``, before anything else of it."""
    pin_libraries()
    _pin_numba()


def pin_libraries() -> None:
    """Have BLAS, numpy and Arrow use AVX2 and no more: with AVX-512 sums and exponentials have other last bits.

    They read this when they are first imported. What was imported before: BLAS is set anew, and no result depends on
    the instructions of the two others (`elementary.py`). BLAS has one thread, unless the environment names a number:
    long sums and decompositions are cut by threads, and Dask has the cores.
    """
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        flags = file.read(1 << 14).split()
        for name in (*_LIBRARIES, "NPY_ENABLE_CPU_FEATURES"):
            os.environ.pop(name, None)
        if "avx2" in flags:  # else nothing may stop the machine before it is refused with a sentence
            os.environ |= {name: _LIBRARIES[name] for name in _LIBRARIES if "avx512f" in flags or name[:3] != "NPY"}
            if "numpy" in sys.modules:
                _pin_loaded_blas()
    if not _named_threads():
        os.environ["OPENBLAS_NUM_THREADS"] = "1"


def _named_threads() -> bool:
    return "OPENBLAS_NUM_THREADS" in os.environ or "OMP_NUM_THREADS" in os.environ


def _pin_loaded_blas() -> None:
    """Have each OpenBLAS in this process read the environment again, and choose its kernels by it."""
    import ctypes

    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        places = sorted({line.split(maxsplit=5)[5].rstrip("\n") for line in file if "openblas" in line.lower()})
    pinned = [_pin_blas(ctypes.PyDLL(place, mode=os.RTLD_NOLOAD | os.RTLD_NOW)) for place in places]
    if not all(pinned):
        _warn_of_blas()


def _pin_blas(library: Any) -> bool:
    """Whether one OpenBLAS now computes with AVX2."""
    import ctypes

    core, threads = _blas_function(library, "get_corename"), _blas_function(library, "set_num_threads")
    if core is None or threads is None:
        return False
    if not _named_threads():
        threads(1)
    core.restype = ctypes.c_char_p
    if core() != _BLAS_CORE and hasattr(library, "gotoblas_dynamic_init"):  # else it was built for one processor
        library.gotoblas_dynamic_quit()
        library.gotoblas_dynamic_init()
    return bool(core() == _BLAS_CORE)


def _blas_function(library: Any, name: str) -> Any:
    """A function of OpenBLAS, whose names begin and end in one of several ways; None if it has none."""
    names = (f"{start}openblas_{name}{end}" for start in ("scipy_", "") for end in ("64_", ""))
    return next((getattr(library, one) for one in names if hasattr(library, one)), None)


def _warn_of_blas() -> None:
    import warnings

    warnings.warn(
        "numpy was imported before dpmask, with a BLAS that cannot be set to AVX2 any more: results may differ in "
        "their last digits from those of other machines. Import dpmask first.",
        RuntimeWarning,
        stacklevel=2,
    )


def pin_target() -> None:
    """Have numba compile for the target. A vector library that only some machines have is left out, too."""
    if not _pin_numba():
        raise ProcessorError(
            "numba compiled something in this process before dpmask was imported, for this machine only, and kernels "
            "would follow it: their bits could differ from other machines'. Import dpmask first, or set "
            f"NUMBA_CPU_NAME={TARGET} and an empty NUMBA_CPU_FEATURES in the environment."
        )


def _pin_numba() -> bool:
    """Whether it is or will be so: not if numba compiled something for another target already."""
    os.environ |= {"NUMBA_CPU_NAME": TARGET, "NUMBA_CPU_FEATURES": "", "NUMBA_DISABLE_INTEL_SVML": "1"}
    if "numba" in sys.modules:  # it has read the environment already
        from numba import config
        from numba.core.registry import cpu_target

        if "_toplevel_target_context" in vars(cpu_target) and (config.CPU_NAME, config.CPU_FEATURES) != (TARGET, ""):
            return False
        config.CPU_NAME, config.CPU_FEATURES = TARGET, ""
    return True


def require_processor(features: dict[str, bool]) -> None:
    """Refuse a machine that would stop at the first instruction it does not know."""
    missing = [name for name in _NEEDED if not features.get(name)]
    if TARGET != "generic" and missing:
        raise ProcessorError(
            "dpmask needs an x86-64 processor with AVX2, such as Intel's since 2013 and AMD's since 2015; this "
            f"machine's lacks {', '.join(missing)}. Run on another one or, if it is virtual, let it see the host's."
        )
