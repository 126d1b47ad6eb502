"""Arrow arrays straight from buffers and back: Arrow's own ways import pandas first, which takes half a second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def array_of(values: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> Any:
    """The Arrow array of some numbers or flags, some of them missing."""
    data = _bits(values) if values.dtype == np.bool_ else pa.py_buffer(np.ascontiguousarray(values))
    valid = None if missing is None else _bits(~missing)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [valid, data])


def texts_of(texts: Sequence[str | None]) -> Any:
    """The Arrow array of some texts; None is missing."""
    encoded = [b"" if text is None else text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    valid = _bits(np.array([text is not None for text in texts], np.bool_))
    buffers = [valid, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers).cast(pa.string())


def filled(array: Any, value: float) -> Any:
    """The array with a number in the place of what is missing."""
    if not array.null_count:
        return array
    return pc.fill_null(array, array_of(np.array([value])).cast(array.type)[0])


def numbers_of(array: Any) -> NDArray[Any]:
    """The numbers of an array of a plain type without missing values, which are not copied."""
    kind = np.dtype(array.type.to_pandas_dtype())
    return np.frombuffer(array.buffers()[1], kind, len(array), kind.itemsize * array.offset)


def _bits(flags: NDArray[np.bool_]) -> Any:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))
