"""One schema for all files of a lake: the same in each, or, where that is declared, one that holds what all have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from dpmask.errors import InputError
from dpmask.lake.footers import DataFile

RULES = ("strict", "union")
_FAMILIES = (pa.types.is_signed_integer, pa.types.is_unsigned_integer, pa.types.is_floating)


def common_schema(files: Sequence[DataFile], rule: str) -> Any:
    """The schema of the lake's stored columns.

    ``strict``: that of the first file, and another column or type in any other is refused. ``union``: all columns,
    null in files without them, in the wider of two types of one family; categories become plain text. That of a
    table with a log is what the log says, whatever the rule.
    """
    for file in files:
        _check_names(file, files[0])
    if files[0].log is not None:
        return _of_table(files, files[0].log.schema)
    if rule == "union":
        return _union(files)
    for file in files:
        _require_same(file, files[0])
    return files[0].schema


def _check_names(file: DataFile, first: DataFile) -> None:
    names = file.schema.names
    if len(set(names)) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise InputError(f"{file.name}: has more than one column '{twice}'. Give each column its own name.")
    clash = next((key for key, _ in file.hive if key in names), None)
    if clash is not None:
        raise InputError(f"{file.name}: '{clash}' is a column of the file and a folder's name. Rename one.")
    if [key for key, _ in file.hive] != [key for key, _ in first.hive]:
        raise InputError(f"{file.name}: its folders do not name the same keys as those of {first.name}.")


def _require_same(file: DataFile, first: DataFile) -> None:
    expected, found = ({field.name: field.type for field in one.schema} for one in (first, file))
    for name, kind in expected.items():
        if name not in found:
            raise InputError(
                f"{file.name}: column '{name}' is missing, which {first.name} has. With schema: union it is null there."
            )
        if found[name] != kind:
            switch = ", or declare schema: union" if _wider(kind, found[name]) is not None else ""
            raise InputError(
                f"{file.name}: column '{name}' is {found[name]}, the lake's schema says {kind}. "
                f"Write the file again with {kind}{switch}."
            )
    extra = next((name for name in found if name not in expected), None)
    if extra is not None:
        raise InputError(
            f"{file.name}: column '{extra}' is not in the lake's schema (that of {first.name}). With schema: union it "
            "is null in files without it."
        )


def _union(files: Sequence[DataFile]) -> Any:
    kinds: dict[str, Any] = {}
    for file in files:
        for field in file.schema:
            name, before = field.name, kinds.get(field.name, field.type)
            kinds[name] = _wider(before, field.type)
            if kinds[name] is None:
                raise InputError(
                    f"{file.name}: column '{name}' is {field.type}, in files before it {before}, and no type holds "
                    "both exactly. Write them with one type."
                )
    inside = next((name for name in kinds if any(name == key for key, _ in files[0].hive)), None)
    if inside is not None:
        raise InputError(f"{files[0].name}: '{inside}' is a folder's name and a column of another file. Rename one.")
    return pa.schema(list(kinds.items()))


def _of_table(files: Sequence[DataFile], schema: Any) -> Any:
    """The table's own columns, but for those that its log has the values of."""
    for file in files:
        for field in file.schema:
            if not _fits(field.type, schema.field(field.name).type):
                raise InputError(
                    f"{file.name}: column '{field.name}' is {field.type}, the table's log says "
                    f"{schema.field(field.name).type}. Write the file again."
                )
    return pa.schema([field for field in schema if field.name not in files[0].kinds])


def _fits(kind: Any, wanted: Any) -> bool:
    """Whether values of a file's type are read as those of the table's."""
    if _wider(kind, wanted) == wanted or {kind, wanted} <= {pa.string(), pa.large_string()}:
        return True
    if pa.types.is_decimal(kind) and pa.types.is_decimal(wanted):
        return bool(kind.scale == wanted.scale and kind.precision <= wanted.precision)
    return bool(pa.types.is_timestamp(kind) and pa.types.is_timestamp(wanted))


def _wider(one: Any, other: Any) -> Any:
    """The type that holds the values of both exactly; None if there is none here."""
    one, other = (kind.value_type if pa.types.is_dictionary(kind) else kind for kind in (one, other))
    if pa.types.is_null(one) or one == other:
        return other
    if pa.types.is_null(other):
        return one
    if {one, other} == {pa.string(), pa.large_string()}:
        return pa.large_string()
    if any(family(one) and family(other) for family in _FAMILIES):
        return max(one, other, key=lambda kind: kind.bit_width)
    return None
