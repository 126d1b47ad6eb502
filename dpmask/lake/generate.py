"""A synthetic census lake of any size, for trying things out and for measuring them.

A record's values follow from the seed and its position alone: the same people stand in a lake of one file or of a
thousand, and a smaller lake is the beginning of a larger one (its last household may be cut off). The people are
invented, see dpmask.kernels.census. One task writes one file, a row group at a time; memory per task: one row group.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from typing import IO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from dpmask.engine.collection import Collection
from dpmask.engine.draws import Subkey, make_key, record_uniforms
from dpmask.engine.tasks import Block
from dpmask.errors import InputError, JobError, TargetError
from dpmask.kernels import census
from dpmask.kernels.arrays import Flags, Floats, Integers
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
_SCHEMA = pa.schema(list(_TYPES.items()))


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
    format: int = FORMAT

    def __post_init__(self) -> None:
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


def generate_lake(target: str, *, rows: int, files: int, seed: int, nulls: bool = False) -> Generated:
    """Write a census of ``rows`` people into the folder ``target``, evenly into ``files`` files.

    With ``nulls``, what is not asked of children and a few percent of all answers are null. A lake that stands there
    already, made with the same parameters, is left as it is; what a killed run left behind is written again; a folder
    with anything else in it is refused.
    """
    wanted = _Census(rows, files, seed, nulls)
    key = make_key(_WHO, seed=seed).subkey("census")
    place = Place(target)
    leftovers = _leftovers(place, wanted)
    if leftovers is None:
        return Generated(target, rows, files, fresh=False)
    place.remove(leftovers)
    firsts = [rows * number // files for number in range(files + 1)]
    blocks = [
        Block(first, end - first, _File((place / name).full_url, first, end - first, key, nulls))
        for name, first, end in zip(wanted.names, firsts, firsts[1:], strict=False)
    ]
    Collection(blocks).map(_write_file, "generate")
    (place / MARK).write(json.dumps(asdict(wanted), indent=1).encode())
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
        return bool(json.loads(mark.read()) == asdict(wanted))
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
    with Place(file.url).replaced() as sink, _writer(sink) as writer:
        for start in range(file.first, end, GROUP_ROWS):
            writer.write_table(_people(file.key, start, min(GROUP_ROWS, end - start), file.nulls), GROUP_ROWS)
        writer.add_key_value_metadata(_ORIGIN)


def _writer(sink: IO[bytes]) -> pq.ParquetWriter:
    """Strings come as dictionaries, which are quick to encode; without Arrow's own schema they read as strings."""
    return pq.ParquetWriter(
        sink,
        _SCHEMA,
        compression="zstd",
        compression_level=1,
        use_dictionary=list(_NAMES),
        column_encoding=dict.fromkeys(("person_id", "household_id"), "DELTA_BINARY_PACKED"),
        store_schema=False,
    )


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
        name: _column(name, values[rows], missing[name][rows] if name in missing else None)
        for name, values in people._asdict().items()
    }
    return pa.table(columns, schema=_SCHEMA)


def _column(name: str, values: Integers | Floats, missing: Flags | None) -> pa.Array:
    if name in _NAMES:
        numbers = pa.array(values, pa.int8(), mask=missing)
        return pa.DictionaryArray.from_arrays(numbers, pa.array(_NAMES[name], pa.string()))
    return pa.array(values, _TYPES[name], mask=missing)
