"""Arrays in a Parquet file of one row: column n holds array n as a list, the metadata their shapes and plain values."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpmask.lake.arrow import array_of

_METADATA = b"dpmask"


def packed(arrays: Sequence[NDArray[Any]], values: Any = None) -> bytes:
    """Arrays as a Parquet file of one row, values beside them in its metadata."""
    fortran = [array.flags.f_contiguous and not array.flags.c_contiguous for array in arrays]
    about = {"shapes": [array.shape for array in arrays], "fortran": fortran, "values": values}
    columns = {
        str(number): pa.LargeListArray.from_arrays(
            array_of(np.array([0, array.size])), _flat(array.ravel(order="K" if order else "C"))
        )
        for number, (array, order) in enumerate(zip(arrays, fortran, strict=True))
    }
    table = pa.table(columns).replace_schema_metadata({_METADATA: json.dumps(about, allow_nan=False)})
    file = io.BytesIO()
    pq.write_table(table, file, use_dictionary=False, compression="zstd")
    return file.getvalue()


def _flat(values: NDArray[Any]) -> Any:
    return array_of(values) if values.dtype.kind in "biuf" else pa.array(values)


def unpacked(data: bytes) -> tuple[list[NDArray[Any]], Any]:
    """The arrays, as writable as they were, and the values."""
    table = pq.read_table(io.BytesIO(data))
    about = json.loads(table.schema.metadata[_METADATA])
    arrays = []
    for number, (shape, fortran) in enumerate(zip(about["shapes"], about["fortran"], strict=True)):
        flat = table.column(str(number)).combine_chunks().values
        values = np.array(flat.to_numpy(zero_copy_only=False))
        arrays.append(values.reshape(shape, order="F" if fortran else "C"))
    return arrays, about["values"]
