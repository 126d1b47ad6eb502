"""What a lake's footers alone say: schema, row counts, nulls and ranges."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from dpmask.errors import InputError, JobError, printable
from dpmask.lake import csv
from dpmask.lake.filters import RowFilter
from dpmask.lake.listing import CSV, ListedFile, Listing, hive_kind, hive_level, is_kind, is_whole, list_files, name_in
from dpmask.lake.storage import Place, read_ranges
from dpmask.lake.table_log import TableLog

_TAIL = 1 << 16
_MAGIC = b"PAR1"
_AT_ONCE = 256
_MOST_COLUMNS, _LONGEST_NAME = 20_000, 500
_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
_UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class Facts(NamedTuple):
    """One column by its footers: its nulls and its range, None where a footer does not have them."""

    nulls: int | None
    low: Any
    high: Any

    def __repr__(self) -> str:
        return f"<Facts: {self.nulls} nulls>"  # a range is the values of two records

    def joined(self, other: Facts) -> Facts:
        """The facts of both parts together."""
        nulls = None if self.nulls is None or other.nulls is None else self.nulls + other.nulls
        return Facts(nulls, _pick(min, self, other, "low"), _pick(max, self, other, "high"))


_EMPTY = object()
"""The range of no value at all, which joins with anything."""


def _pick(choose: Any, left: Facts, right: Facts, side: str) -> Any:
    a, b = getattr(left, side), getattr(right, side)
    if a is _EMPTY or b is _EMPTY:
        return b if a is _EMPTY else a
    return None if a is None or b is None else choose(a, b)


class DataFile(NamedTuple):
    """One file of a lake."""

    url: str
    name: str
    size: int
    version: str
    footer: str
    groups: tuple[int, ...]
    schema: Any
    hive: tuple[tuple[str, str | None], ...]
    facts: dict[str, Facts]
    kinds: dict[str, Any]
    """The types of the values of ``hive``."""
    by_group: dict[str, tuple[Facts, ...]]
    """Facts of each row group, of the columns that rows are filtered by."""
    stored: dict[str, str]
    """Of a table's file: the names of its columns in the file."""
    dialect: csv.Dialect | None = None
    """How it is written, if it is a CSV."""
    log: TableLog | None = None
    """Of a table's file: the log."""
    deleted: Any = None
    """Of a table's file: the places of deleted rows, in order, if there are any."""


def all_null(rows: int) -> Facts:
    """The facts of a column that has no value in so many rows."""
    return Facts(rows, _EMPTY, _EMPTY)


def is_empty_range(value: Any) -> bool:
    """Whether a range is that of a column without a value."""
    return value is _EMPTY


class FoundFiles(NamedTuple):
    """The data files of all sources, and the URLs of Parquet and CSV files that are no data by rule."""

    files: list[DataFile]
    ignored: tuple[str, ...] = ()


def find_sources(
    sources: Sequence[str], dialect: csv.Dialect, where: RowFilter | None = None, version: int | None = None
) -> FoundFiles:
    """The data files of all sources, one source after the other. They lie in one store, and no file is there twice.

    With ``where``, those in folders that may hold such rows; of others not even the footer is read. ``version`` is
    that of a table with a log.
    """
    places = [Place(source) for source in sources]
    other = next((place for place in places if type(place.fs) is not type(places[0].fs)), None)
    if other is not None:
        raise JobError(f"{other.url}: lies in another kind of store than {places[0].url}. Bring the sources together.")
    found = [find_files(place, dialect, where, version) for place in places]
    files = [
        file._replace(name=name_in(sources, number, file.name))
        for number, some in enumerate(found)
        for file in some.files
    ]
    if not files and where:
        raise InputError(f"{', '.join(place.url for place in places)}: no file is in a folder where {where.text}.")
    if len(places) > 1 and any(file.log for file in files):
        raise JobError("A table with a log (Delta Lake, Iceberg) must be the only source.")
    twice = next((url for url, times in Counter(file.url for file in files).items() if times > 1), None)
    if twice is not None:
        raise JobError(f"{Place(twice).url}: two sources have it, and its records would count twice. Name it once.")
    return FoundFiles(files, tuple(name for some in found for name in some.ignored))


def find_files(
    source: Place, dialect: csv.Dialect, where: RowFilter | None = None, version: int | None = None
) -> FoundFiles:
    """Every data file of a folder, a glob, a single file or a table, in the order of their names, with its footer read.

    Footers are read once, many at a time. ``dialect`` is that of CSV files.
    """
    listing = list_files(source, where, version)
    listed, filtered = listing.files, where.columns if where else ()
    ignored = tuple((listing.root / name).url for name in listing.ignored)
    if listed and is_kind(listed[0].name, CSV):
        return FoundFiles([_csv_file(listing, one, dialect) for one in listed], ignored)
    groups = (listed[start : start + _AT_ONCE] for start in range(0, len(listed), _AT_ONCE))
    return FoundFiles([file for some in groups for file in _parquet_files(listing, some, filtered)], ignored)


def _csv_file(listing: Listing, listed: ListedFile, dialect: csv.Dialect) -> DataFile:
    place = listing.root / listed.name
    schema, rows, digest = csv.inspect(place, listed.size, dialect)
    _check_names(place, schema.names)
    facts = {column: Facts(None, None, None) for column in schema.names}
    hive, kinds = _hive(listing, listed.name, schema.names)
    return DataFile(place.full_url, *listed[:3], digest, (rows,), schema, hive, facts, kinds, {}, {}, dialect)


def _parquet_files(listing: Listing, listed: Sequence[ListedFile], filtered: Sequence[str]) -> Iterator[DataFile]:
    places = [Place(one.url) if one.url else listing.root / one.name for one in listed]
    for place, one, footer in zip(places, listed, _footers_of(listing, places, listed), strict=True):
        try:
            metadata = pq.read_metadata(pa.BufferReader(footer))
            given = metadata.schema.to_arrow_schema()
            schema = _plain_schema(given.remove_metadata(), place)
        except (pa.ArrowException, OSError):
            raise _damaged(place) from None
        _check_names(place, schema.names)
        digest = hashlib.sha256(footer).hexdigest()
        if listing.log is None:
            groups, facts, by_group = _facts(metadata, {name: name for name in schema.names}, filtered)
            hive, kinds = _hive(listing, one.name, schema.names)
            yield DataFile(place.full_url, *one[:3], digest, groups, schema, hive, facts, kinds, by_group, {})
        else:
            yield _table_file(listing.log, place, one, metadata, given, schema, digest, filtered)


def _table_file(
    log: TableLog,
    place: Place,
    listed: ListedFile,
    metadata: Any,
    given: Any,
    schema: Any,
    digest: str,
    filtered: Sequence[str],
) -> DataFile:
    """A file of a table, with the columns that the table's log says it has."""
    constants = dict(listed.constants)
    stored = {name: one for name, one in log.stored(given).items() if name not in constants}
    left = next((name for name in log.schema.names if name in log.elsewhere and name not in stored), None)
    if left is not None:
        raise InputError(
            f"{place.url}: column '{left}' is in the {log.format} table's log only, which is not read. Rewrite its "
            "data files."
        )
    groups, facts, by_group = _facts(metadata, stored, filtered)
    fields = pa.schema([pa.field(name, schema.field(one).type) for name, one in stored.items()])
    kinds = {key: log.schema.field(key).type for key in constants}
    described = hashlib.sha256(f"{digest} {log.schema} {stored} {constants} ".encode())
    described.update(b"" if listed.deleted is None else listed.deleted.tobytes())
    return DataFile(
        url=place.full_url,
        name=listed.name,
        size=listed.size,
        version=listed.version,
        footer=described.hexdigest(),
        groups=groups,
        schema=fields,
        hive=listed.constants,
        facts=facts,
        kinds=kinds,
        by_group=by_group,
        stored=stored,
        log=log,
        deleted=listed.deleted,
    )


def _plain_schema(schema: Any, place: Place) -> Any:
    """The schema as the lake is read: views as plain text and bytes, extension types as what they are stored as.

    What Arrow cannot compute with is refused.
    """
    fields = []
    for field in schema:
        kind = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
        kind = _VIEWS.get(kind, kind)
        if _is_unusable(kind):
            what = f"column '{printable(field.name, 80)}' is {printable(str(kind), 80)}"
            raise InputError(
                f"{place.url}: {what}, which cannot be masked or released. Write it as a plain type, such as string "
                "or a number, or leave it out."
            )
        fields.append(pa.field(field.name, kind, field.nullable))
    return pa.schema(fields)


def _is_unusable(kind: Any, inside: bool = False) -> bool:
    """Maps, which Parquet keeps with metadata, encodings, and views or extension types inside of others."""
    if isinstance(kind, pa.BaseExtensionType) or pa.types.is_run_end_encoded(kind) or pa.types.is_map(kind):
        return True
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind) or (inside and kind in _VIEWS):
        return True
    if pa.types.is_dictionary(kind):
        return _is_unusable(kind.value_type, True)
    if not pa.types.is_nested(kind):
        return False
    return any(_is_unusable(kind.field(number).type, True) for number in range(kind.num_fields))


def _check_names(place: Place, names: list[str]) -> None:
    """Refuse names of columns that no message, page or manifest could show as they are."""
    if len(names) > _MOST_COLUMNS:
        raise InputError(f"{place.url}: has more than {_MOST_COLUMNS:,} columns.")
    for name in names:
        if not name.strip() or len(name) > _LONGEST_NAME or _UNSHOWN.search(name):
            raise InputError(
                f"{place.url}: a column cannot be called '{printable(name, 80)}'. Rename it: up to {_LONGEST_NAME} "
                "characters, no line breaks, no control characters."
            )


def _footers_of(listing: Listing, places: Sequence[Place], listed: Sequence[ListedFile]) -> list[bytes]:
    try:
        return _footers(places, [one.size for one in listed])
    except InputError as error:
        if listing.log is None:
            raise
        advice = "The table's log names it; it may have been vacuumed. Read a version whose files are there."
        raise InputError(f"{error} {advice}") from None


def _footers(places: Sequence[Place], sizes: Sequence[int]) -> list[bytes]:
    """The footers of these files: the ends of all, then the whole of those that are longer."""
    tails = read_ranges(places, [max(0, size - _TAIL) for size in sizes], sizes)
    lengths = [int.from_bytes(tail[-8:-4], "little") + 8 for tail in tails]
    for place, tail, length, size in zip(places, tails, lengths, sizes, strict=True):
        if tail[-4:] != _MAGIC or length > size:
            raise _damaged(place)
    long = [number for number, tail in enumerate(tails) if lengths[number] > len(tail)]
    starts, ends = [sizes[number] - lengths[number] for number in long], [sizes[number] for number in long]
    for number, whole in zip(long, read_ranges([places[number] for number in long], starts, ends), strict=True):
        tails[number] = whole
    return [tail[-length:] for tail, length in zip(tails, lengths, strict=True)]


def _damaged(place: Place) -> InputError:
    return InputError(f"{place.url}: is damaged or not a Parquet file. Write it again, or take it out of the lake.")


def _hive(
    listing: Listing, name: str, columns: Sequence[str]
) -> tuple[tuple[tuple[str, str | None], ...], dict[str, Any]]:
    """Keys and values in the names of a file's folders, and their types: those in the lake, and those it lies in.

    Of the latter, one that is also a column of the file is that column.
    """
    path = listing.root.path.split("/")
    above = [hive_level(part) for part in [*takewhile(lambda part: "=" in part, reversed(path))][::-1]]
    above = [level for level in above if level[0] not in columns]
    inside = [hive_level(part) for part in name.split("/")[:-1] if "=" in part]
    kinds = {key: hive_kind(is_whole(value)) for key, value in above}
    kinds |= {key: listing.kind(key) for key, _ in inside}
    return (*above, *inside), kinds


def _facts(
    metadata: Any, stored: Mapping[str, str], filtered: Sequence[str]
) -> tuple[tuple[int, ...], dict[str, Facts], dict[str, tuple[Facts, ...]]]:
    """The rows of each row group; nulls and ranges of the flat columns, over all row groups of the file.

    Of columns that rows are filtered by, also of each row group.
    """
    flat = {metadata.schema.column(number).path: number for number in range(metadata.num_columns)}
    facts = {name: all_null(0) for name, one in stored.items() if one in flat}
    by_group: dict[str, list[Facts]] = {name: [] for name in filtered if name in facts}
    rows = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        rows.append(group.num_rows)
        for name, total in facts.items():
            chunk = group.column(flat[stored[name]])
            found = _chunk_facts(chunk.statistics if chunk.is_stats_set else None, chunk.num_values)
            facts[name] = total.joined(found)
            if name in by_group:
                by_group[name].append(found)
    whole = dict.fromkeys(stored, Facts(None, None, None)) | facts
    return tuple(rows), whole, {name: tuple(some) for name, some in by_group.items()}


def _chunk_facts(statistics: Any, values: int) -> Facts:
    if statistics is None:
        return Facts(None, None, None) if values else all_null(0)
    nulls = statistics.null_count if statistics.has_null_count else None
    if nulls == values:
        return all_null(nulls)
    if not statistics.has_min_max:
        return Facts(nulls, None, None)
    return Facts(nulls, statistics.min, statistics.max)
