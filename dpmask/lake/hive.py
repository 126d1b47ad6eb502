"""Folders named after values, as Hive names them: ``region=north/year=2026/``. Reading them is in listing.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmask.errors import InputError
from dpmask.lake.reading import Rows

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = {*map(chr, range(0x20)), *"\"#%'*/:=?\\{[]^", "\x7f"}
"""What Hive, and Spark, write as %XX; all other characters stand for themselves."""
_LONGEST = 255
"""Bytes of a folder's name, on most disks."""
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
_KINDS = {str(kind): kind for kind in (pa.string(), pa.bool_(), pa.date32(), *_INTEGERS)}
"""The types that values have in folders' names and are read back as."""


def hive_column(kind: Any) -> Any:
    """The type that a column has once it is in folders' names; None if its values have no names."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return _KINDS.get("string" if pa.types.is_large_string(kind) else str(kind))


def named_kind(text: str) -> Any:
    """The type of this name, of those that values in folders' names have; None if there is none."""
    return _KINDS.get(text)


def hive_folder(key: str, value: str | None) -> str:
    """The name of a folder; a missing value has a name of its own."""
    return f"{_escaped(key)}={HIVE_NULL if value is None else _escaped(value)}"


def _escaped(text: str) -> str:
    return "".join(f"%{ord(sign):02X}" if sign in _ESCAPED else sign for sign in text)


def folders_of(rows: Rows, columns: Sequence[str]) -> tuple[NDArray[np.int64], list[str]]:
    """For each row the number of the folder that its values name, and the folders, such as region=north/year=2026."""
    codes, folders = np.zeros(rows.num_rows, np.int64), [""]
    for column in columns:
        found, names = _coded(rows.column(column), column)
        both, codes = np.unique(codes * len(names) + found, return_inverse=True)
        pairs = (divmod(int(one), len(names)) for one in both)
        folders = [f"{folders[before]}/{names[after]}".lstrip("/") for before, after in pairs]
    return codes.astype(np.int64), folders


def _coded(values: Any, column: str) -> tuple[NDArray[np.int64], list[str]]:
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    coded = values.cast(kind).combine_chunks().dictionary_encode(null_encoding="encode")
    names = [hive_folder(column, text) for text in map(_text, coded.dictionary.to_pylist())]
    if any(len(name.encode()) > _LONGEST for name in names):
        raise InputError(f"partition_by: column '{column}' has values that are too long for the name of a folder.")
    if any(text in ("", HIVE_NULL) for text in coded.dictionary.to_pylist()):
        raise InputError(
            f"partition_by: column '{column}' has empty texts, which folders cannot distinguish from missing values. "
            f"Declare missing: {{{column}: ['']}}, or choose another column."
        )
    return coded.indices.to_numpy().astype(np.int64), names


def _text(value: Any) -> str | None:
    """A value as folders and logs of tables have it."""
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def count_folders(columns: Sequence[str], rows: Rows) -> dict[str, int]:
    """How many rows of a block belong into each folder."""
    codes, folders = folders_of(rows, columns)
    return dict(zip(folders, np.bincount(codes, minlength=len(folders)).tolist(), strict=True))


def merge_folders(left: Mapping[str, int], right: Mapping[str, int]) -> dict[str, int]:
    """The counts of both."""
    return {name: left.get(name, 0) + right.get(name, 0) for name in {**left, **right}}
