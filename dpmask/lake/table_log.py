"""What the log of a Delta Lake or Iceberg table says of its state at one version: schema, files, deleted rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa

from dpmask.errors import DpmaskError, InputError, JobError
from dpmask.lake.storage import Place
from dpmask.lake.storage_errors import storage_errors

DELTA, ICEBERG = "Delta Lake", "Iceberg"
_EXTRAS = {DELTA: "delta", ICEBERG: "iceberg"}
_TEXTS = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}


class LoggedFile(NamedTuple):
    """A data file of a table: where it is, values that all of its rows have, and places of deleted rows, if any."""

    url: str
    size: int
    version: str
    constants: tuple[tuple[str, str | None], ...] = ()
    deleted: Any = None


class TableLog(NamedTuple):
    """A table at one version. ``ids`` has the number of each column, by which files of Iceberg know it."""

    format: str
    version: str
    schema: Any
    files: tuple[LoggedFile, ...]
    ids: dict[str, int]
    aliases: dict[str, tuple[str, ...]]
    """The names of columns in files that do not number them."""
    elsewhere: frozenset[str]
    """Columns whose values a file may leave to the log."""

    def stored(self, schema: Any) -> dict[str, str]:
        """The names that the table's columns have in a file of this schema; of those that the file has."""
        if not self.ids:
            return {name: name for name in self.schema.names if name in schema.names}
        numbered = {int(field.metadata[_ID]): field.name for field in schema if _ID in (field.metadata or {})}
        if numbered:
            return {name: numbered[number] for name, number in self.ids.items() if number in numbered}
        named = {name: next((one for one in some if one in schema.names), None) for name, some in self.aliases.items()}
        return {name: one for name, one in named.items() if one is not None}


_ID = b"PARQUET:field_id"


def plain_types(schema: Any) -> Any:
    """A schema of plain texts and bytes, without metadata."""
    return pa.schema([pa.field(field.name, _TEXTS.get(field.type, field.type)) for field in schema])


def no_version(source: Place, kind: str, version: int) -> InputError:
    """The error where a table has no such version, or no longer."""
    word = "version" if kind == DELTA else "snapshot"
    return InputError(f"{source.url}: the {kind} table has no {word} {version}, or no longer.")


def refused(source: Place, kind: str, what: str, remedy: str) -> InputError:
    """The error where a table uses what is not read."""
    return InputError(f"{source.url}: the {kind} table {what}, which is not read. {remedy}")


@contextmanager
def reading_log(source: Place, kind: str) -> Iterator[None]:
    """Say which extra is needed, and turn what a table's library raises into errors of ours."""
    try:
        yield
    except DpmaskError:
        raise
    except ImportError:
        raise JobError(f"{source.url}: a {kind} table needs pip install 'dpmask[{_EXTRAS[kind]}]'.") from None
    except Exception as error:
        with storage_errors(source):
            if isinstance(error, OSError) and not isinstance(error, pa.ArrowException):
                raise
        found = type(error).__name__
        raise InputError(f"{source.url}: the log of the {kind} table cannot be read ({found}).") from None
