"""A release attacked by what its public folder shows, with a register of the originals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dpmask.engine import progress
from dpmask.errors import InputError, JobError
from dpmask.job.attacks import (
    BY,
    BY_MASKED,
    HOUSEHOLD,
    LABELS,
    REPEATED,
    known_labels,
    known_of_members,
    masked_before,
    repeated_columns,
)
from dpmask.job.evaluate import POSITION, Pairing, intervals_of, label_sets_of, manifest_of, pair_lakes
from dpmask.job.gate import comparable_columns, is_renamed
from dpmask.job.measures import takers
from dpmask.job.several_releases import PairedRelease, several_attacks
from dpmask.lake.access import require_access
from dpmask.lake.storage import Place
from dpmask.masking.claims import suppressed_columns
from dpmask.masking.method import Method
from dpmask.masking.of_households import method_of_step
from dpmask.measures import find_measure
from dpmask.measures.measure import MeasureRequest
from dpmask.results import Result
from dpmask.table.columns import is_numeric
from dpmask.table.joined_intervals import schema_with_intervals
from dpmask.table.lake import BLOCK_ROWS, Lake, read_lake
from dpmask.table.table import Table

_WHO = "attack"


class Attack(NamedTuple):
    """One number of an attack: the share of what was attacked that it found, and what guessing finds."""

    attack: str
    share: str
    rate: float
    low: float
    high: float
    guessing: float
    attacked: int
    columns: tuple[str, ...]


class Attacks(NamedTuple):
    """What all attacks came to; those that this release does not allow, with the reason."""

    release: str
    rows: int
    pairing: Pairing
    attacks: list[Attack]
    not_tried: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """It, for JSON."""
        return {**self._asdict(), "pairing": self.pairing.to_dict(), "attacks": [one._asdict() for one in self.attacks]}


def attack(
    release: str,
    register: str,
    *,
    paired_by: str,
    others: Sequence[tuple[str, str]] = (),
    sample: int = 20_000,
    block_rows: int = BLOCK_ROWS,
) -> Attacks:
    """Every attack that dpmask knows on a release's columns, by its manifest and a register of the originals.

    With ``others``, releases of the same people and what each is paired by, also those by all of them together.
    """
    for lake in (release, register, *(url for url, _ in others)):
        require_access(Place(lake), writing=False)
    original = read_lake(register, block_rows=block_rows)
    if others and any(by in original.schema.names for by in (paired_by, *(by for _, by in others))):
        raise JobError(f"--with: releases are compared in the order of the register, not by a column. {_FOLDERS}")
    seen = _seen(release, original, paired_by, block_rows)
    requests = list(_requests(seen, sample))
    suppressed = suppressed_columns(seen.manifest["claims"])
    taken = takers(seen.original, seen.paired.masked, requests, seen.paired.sets, suppressed)
    tries = [(one, taken[one.name]) for one in requests]
    if others:
        earlier = [_seen(url, original, by, block_rows).paired for url, by in others]
        tries += several_attacks(seen.original, [seen.paired, *earlier], sample)
    found: list[Attack] = []
    not_tried = {}
    for one, take in tries:
        try:
            found += _attacks(one, _announced(one.name, take))
        except (JobError, InputError) as error:
            not_tried[one.name] = str(error)
    if not found:
        raise InputError("\n".join([f"{_WHO}: nothing could be tried.", *not_tried.values()]))
    return Attacks(release, seen.rows, seen.pairing, found, not_tried)


class _SeenRelease(NamedTuple):
    """A release paired with the register, its manifest, and the roles of its columns."""

    manifest: Mapping[str, Any]
    roles: Mapping[str, str]
    rows: int
    original: Table
    paired: PairedRelease
    pairing: Pairing


def _seen(release: str, register: Lake, paired_by: str, block_rows: int) -> _SeenRelease:
    manifest = manifest_of(release)
    if manifest is None:
        raise InputError(f"{release}: is no dpmask release, so it does not say what was done to it. Use evaluate.")
    if paired_by == POSITION and manifest["order"] != "input":
        raise JobError(f"--paired-by {POSITION}: the release is not in the order of the source. {_HOW}")
    lake, joined = read_lake(release, block_rows=block_rows), intervals_of(manifest)
    masked = {name for method in _methods(manifest) for name in method.masks}  # plain ones, too, as in the gate
    roles = {one["name"]: one["role"] for one in manifest["schema"] if one["role"] != "plain" or one["name"] in masked}
    roles |= {one.column: roles[one.low] for one in joined if one.low in roles}
    schema = schema_with_intervals(lake.schema, joined)
    known = [name for name in schema.names if name in roles]
    plain = [name for name in known if roles[name] == "plain"]
    renamed = {name for name in plain if is_renamed(_methods(manifest), name, register.schema, schema)}
    columns = comparable_columns([name for name in known if name not in renamed], register, schema)
    if not columns:
        raise InputError(f"The register has none of the columns of {release} that are at risk ({', '.join(roles)}).")
    read = [name for method in _methods(manifest) for name in method.reads if name not in method.masks]
    strata = [name for name in read if name in schema.names and name in register.schema.names]
    paired = pair_lakes((register, lake), release, paired_by, list(dict.fromkeys([*columns, *strata])))
    seen = PairedRelease(paired.masked, columns, label_sets_of(release, None))
    return _SeenRelease(manifest, roles, lake.rows, paired.original, seen, paired.pairing)


_FOLDERS = "Give the private folder of the run of each."
_HOW = "Give the private folder of its run, or a column that both have and whose values are unique."


def _announced(name: str, take: Callable[[], Result]) -> Result:
    progress.step(name)
    return take()


def _requests(release: _SeenRelease, sample: int) -> Iterator[MeasureRequest]:
    """Linkage by all columns and by quasi-identifiers alone, groups, intervals, and what undoes each method."""
    columns, schema = release.paired.columns, release.paired.masked.masked_schema
    quasi = [name for name in columns if release.roles[name] == "quasi"]
    numbers = [name for name in columns if is_numeric(schema.field(name).type)]
    yield MeasureRequest("linkage, all columns", "distance_linkage", {"columns": list(columns), "sample": sample})
    if quasi and len(quasi) < len(columns):
        yield MeasureRequest("linkage, quasi-identifiers", "distance_linkage", {"columns": quasi, "sample": sample})
    if quasi:
        yield MeasureRequest("groups", "groups", {"quasi": [quasi], "sensitive": []})
    if numbers:
        yield MeasureRequest("interval_disclosure", "interval_disclosure", {"columns": numbers})
    seen, earlier = set(), set[str]()
    for number, method in enumerate(_methods(release.manifest), start=1):
        for measure, parameters in method.attacks().items():
            known = _known(parameters, numbers, columns)
            if BY in known:
                known[BY_MASKED] = masked_before(method, earlier)
            if HOUSEHOLD in known:
                there = known[HOUSEHOLD] in release.original.masked_schema.names
                known["columns"] = known_of_members(columns, release.original.masked_schema, schema) if there else []
            if LABELS in find_measure(measure).parameters:
                known[LABELS] = known_labels(columns, schema)
            if known["columns"] and (measure, str(known)) not in seen:
                seen.add((measure, str(known)))
                yield MeasureRequest(f"{measure}, step {number}", measure, known)
        earlier.update(method.masks)
    repeated = [name for name in repeated_columns(_methods(release.manifest)) if name in columns]
    if repeated:
        yield MeasureRequest(REPEATED, REPEATED, {"columns": list(columns), "repeated": repeated, "sample": sample})


def _methods(manifest: Mapping[str, Any]) -> list[Method[Any]]:
    """The methods of a release's steps, with the parameters that it shows."""
    return [method_of_step(step["method"], step["parameters"]) for step in manifest["steps"]]


def _known(parameters: Mapping[str, Any], numbers: Sequence[str], columns: Sequence[str]) -> dict[str, Any]:
    """The parameters of a method's attack on what the release shows."""
    there = {"columns": numbers, "independents": columns}
    return {
        name: [one for one in value if one in there[name]] if name in there else value
        for name, value in parameters.items()
    }


def _attacks(request: MeasureRequest, result: Any) -> list[Attack]:
    """Every share of a risk, with its interval."""
    quasi = request.parameters.get("quasi")
    columns = tuple(quasi[0] if quasi else request.parameters["columns"])
    found = []
    for name in result.shares or result.judged[:1]:
        rate = float(getattr(result, name))
        low, high = result.intervals.get(name, (rate, rate))
        found.append(Attack(request.name, name, rate, low, high, result.guessing, result.attacked, columns))
    return found
