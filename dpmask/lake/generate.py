"""A synthetic census lake of any size, or one of tax units, for trying things out and for measuring them.

A record's values follow from the seed and its position alone: the same people stand in a lake of one file or of a
thousand, and a smaller lake is the beginning of a larger one (its last household may be cut off). All of it is
invented, see dpmask.kernels.census and dpmask.kernels.tax_units. One task writes one file, a row group at a time;
memory per task: one row group.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from dpmask.engine.collection import Collection
from dpmask.engine.draws import Subkey, make_key, record_uniforms
from dpmask.engine.tasks import Block
from dpmask.errors import InputError, JobError, TargetError
from dpmask.kernels import census, tax_units
from dpmask.kernels.arrays import Flags, Floats, Integers
from dpmask.lake.access import require_access
from dpmask.lake.reading import open_parquet
from dpmask.lake.storage import Place

MARK = "_generated.json"
FORMAT = 1  # goes up whenever the same seed gives other people
GROUP_ROWS = 61 * census.SUPERBLOCK  # just below 250,000

_WHO = "generate_lake"
_MOST_ROWS = 10**10
_MOST_FILES = 100_000  # five digits, so that names sort as numbers do
_PART = re.compile(r"part-\d{5}\.parquet")
_TEMPORARY = re.compile(r"part-\d{5}\.parquet\.[0-9a-f]{32}\.part")
_ORIGIN = {"dpmask": "generated census"}
_NAMES = {
    "sex": census.SEXES,
    "education": census.EDUCATIONS,
    "occupation": census.OCCUPATIONS,
    "region": census.REGIONS,
}
_TYPES = {
    **dict.fromkeys(census.People._fields, pa.int64()),
    **dict.fromkeys(_NAMES, pa.dictionary(pa.int8(), pa.string())),
    "age": pa.int32(),
    "hours": pa.int32(),
    "weight": pa.float64(),
}
_UNIT_NAMES = {"status": tax_units.STATUSES, "region": census.REGIONS}
_UNIT_TYPES = {
    **dict.fromkeys(tax_units.TaxUnits._fields, pa.int64()),
    **dict.fromkeys(_UNIT_NAMES, pa.dictionary(pa.int8(), pa.string())),
    "age": pa.int32(),
    "weight": pa.float64(),
}
CENSUS, TAX_UNITS = "census", "tax_units"
KINDS = (CENSUS, TAX_UNITS)


class _Kind(NamedTuple):
    """What a lake holds: the names of its categories, its types and what is numbered."""

    names: Mapping[str, Sequence[str]]
    types: Mapping[str, Any]
    numbers: Sequence[str]

    @property
    def schema(self) -> pa.Schema:
        """The schema of its files."""
        return pa.schema(list(self.types.items()))


_KINDS = {
    CENSUS: _Kind(_NAMES, _TYPES, ("person_id", "household_id")),
    TAX_UNITS: _Kind(_UNIT_NAMES, _UNIT_TYPES, ("unit_id",)),
}


class Generated(NamedTuple):
    """A lake that stands. ``fresh`` is False where it stood already and nothing was changed."""

    url: str
    rows: int
    files: int
    fresh: bool


@dataclass(frozen=True)
class _Census:
    """What is asked for, as it is written into the lake."""

    rows: int
    files: int
    seed: int
    nulls: bool
    kind: str = CENSUS
    format: int = FORMAT

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise JobError(f"{_WHO}: kind must be {' or '.join(KINDS)}; got {self.kind!r}.")
        if self.nulls and self.kind != CENSUS:
            raise JobError(f"{_WHO}: nulls are those of a census; {self.kind} have none.")
        for name in ("rows", "files"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise JobError(f"{_WHO}: {name} must be an integer >= 1; got {value!r}.")
        if self.rows > _MOST_ROWS:
            raise JobError(f"{_WHO}: rows must be <= {_MOST_ROWS:g}; got {self.rows:g}. Ask for fewer people.")
        if not isinstance(self.nulls, bool):
            raise JobError(f"{_WHO}: nulls must be true or false; got {self.nulls!r}.")
        most = min(self.rows, _MOST_FILES)
        if self.files > most:
            reason = "each file holds a row" if most == self.rows else "names have five digits"
            raise JobError(f"{_WHO}: files must be <= {most}, as {reason}; got {self.files}. Ask for fewer files.")

    @property
    def described(self) -> dict[str, Any]:
        """What is written into the lake; that of a census as ever."""
        found = asdict(self)
        return found if self.kind != CENSUS else {name: found[name] for name in found if name != "kind"}

    @property
    def names(self) -> list[str]:
        """The lake's data files."""
        return [f"part-{number:05d}.parquet" for number in range(self.files)]


@dataclass(frozen=True)
class _File:
    """How a task makes one file."""

    url: str
    first: int
    rows: int
    key: Subkey
    nulls: bool
    kind: str


def generate_lake(
    target: str, *, rows: int, files: int, seed: int, nulls: bool = False, kind: str = CENSUS
) -> Generated:
    """Write a census of ``rows`` people, or as many tax units, into the folder ``target``, evenly into ``files`` files.

    With ``nulls``, what is not asked of children and a few percent of all answers are null. A lake that stands there
    already, made with the same parameters, is left as it is; what a killed run left behind is written again; a folder
    with anything else in it is refused.
    """
    wanted = _Census(rows, files, seed, nulls, kind)
    key = make_key(_WHO, seed=seed).subkey(kind)
    place = Place(target)
    require_access(place, writing=False)
    leftovers = _leftovers(place, wanted)
    if leftovers is None:
        return Generated(target, rows, files, fresh=False)
    require_access(place, writing=True)
    place.remove(leftovers)
    firsts = [rows * number // files for number in range(files + 1)]
    blocks = [
        Block(first, end - first, _File((place / name).full_url, first, end - first, key, nulls, kind))
        for name, first, end in zip(wanted.names, firsts, firsts[1:], strict=False)
    ]
    Collection(blocks).map(_write_file, "generate")
    (place / MARK).write(json.dumps(wanted.described, indent=1).encode())
    return Generated(target, rows, files, fresh=True)


def _leftovers(place: Place, wanted: _Census) -> list[str] | None:
    """List what a killed run left in the folder; None where the wanted lake stands. Refuse anything else there."""
    if place.local and os.path.isfile(place.path):
        raise _in_the_way(place, "is a file")
    found = place.files()
    parts = [name for name in found if _PART.fullmatch(name)]
    if MARK in found:
        if not _is_of(place / MARK, wanted):
            raise TargetError(
                f"{place.url}: expected no lake, or one generated with the same parameters; it holds one with others. "
                "Delete it, or name another folder."
            )
        if parts == wanted.names:
            return None
    others = [name for name in found if name != MARK and name not in parts and not _TEMPORARY.fullmatch(name)]
    # A release's files have the same names: what was not generated must not be overwritten.
    others += [name for name in parts if not _is_generated(place / name)]
    if others:
        raise _in_the_way(place, f"holds something else, such as {min(others)}")
    return [name for name in found if name != MARK]


def _in_the_way(place: Place, what: str) -> TargetError:
    return TargetError(f"{place.url}: expected an empty or new folder; it {what}. Name another folder.")


def _is_of(mark: Place, wanted: _Census) -> bool:
    try:
        return bool(json.loads(mark.read()) == wanted.described)
    except ValueError:
        return False


def _is_generated(place: Place) -> bool:
    try:
        with open_parquet(place.full_url) as file:
            origin = file.metadata.metadata or {}
    except InputError:
        return False
    return all(origin.get(name.encode()) == value.encode() for name, value in _ORIGIN.items())


def _write_file(file: _File) -> None:
    """One file, row group by row group."""
    end = file.first + file.rows
    kind = _KINDS[file.kind]
    with Place(file.url).replaced() as sink, _writer(sink, kind) as writer:
        for start in range(file.first, end, GROUP_ROWS):
            count = min(GROUP_ROWS, end - start)
            made = (
                _people(file.key, start, count, file.nulls) if file.kind == CENSUS else _units(file.key, start, count)
            )
            writer.write_table(made, GROUP_ROWS)
        writer.add_key_value_metadata(_ORIGIN)


def _writer(sink: IO[bytes], kind: _Kind) -> pq.ParquetWriter:
    """Strings come as dictionaries, which are quick to encode; without Arrow's own schema they read as strings."""
    return pq.ParquetWriter(
        sink,
        kind.schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=list(kind.names),
        column_encoding=dict.fromkeys(kind.numbers, "DELTA_BINARY_PACKED"),
        store_schema=False,
    )


def _units(key: Subkey, first: int, count: int) -> pa.Table:
    """Make the tax units first..first+count-1."""
    kind = _KINDS[TAX_UNITS]
    draws = {name: record_uniforms(key.subkey(name), first, count) for name in tax_units.DRAWS}
    units = tax_units.make_units(first, draws)._asdict()
    return pa.table({name: _column(kind, name, values, None) for name, values in units.items()}, schema=kind.schema)


def _people(key: Subkey, first: int, count: int, nulls: bool) -> pa.Table:
    """Make the records first..first+count-1, cut out of the superblocks they lie in."""
    skip = first % census.SUPERBLOCK
    length = -(-(skip + count) // census.SUPERBLOCK) * census.SUPERBLOCK

    def draws(names: tuple[str, ...]) -> dict[str, Floats]:
        return {name: record_uniforms(key.subkey(name), first - skip, length) for name in names}

    people = census.make_people(first - skip, draws(census.HOUSEHOLD_DRAWS + census.PERSON_DRAWS))
    missing = census.unanswered(people.age, draws(census.ANSWER_DRAWS)) if nulls else {}
    rows = slice(skip, skip + count)
    columns = {
        name: _column(_KINDS[CENSUS], name, values[rows], missing[name][rows] if name in missing else None)
        for name, values in people._asdict().items()
    }
    return pa.table(columns, schema=_KINDS[CENSUS].schema)


def _column(kind: _Kind, name: str, values: Integers | Floats, missing: Flags | None) -> pa.Array:
    if name in kind.names:
        numbers = pa.array(values, pa.int8(), mask=missing)
        return pa.DictionaryArray.from_arrays(numbers, pa.array(kind.names[name], pa.string()))
    return pa.array(values, kind.types[name], mask=missing)
