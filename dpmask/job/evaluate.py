"""Risk and information loss of any two lakes, also where another tool did the masking."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from dpmask.engine import progress
from dpmask.errors import DpmaskError, InputError, JobError
from dpmask.job.account import measure_outcome
from dpmask.job.measures import named_columns, takers
from dpmask.job.outcome import MeasureOutcome
from dpmask.job.prepare import check_writable
from dpmask.lake.access import require_access
from dpmask.lake.listing import MANIFEST, glob_root
from dpmask.lake.storage import Place
from dpmask.masking.claims import suppressed_columns
from dpmask.masking.of_households import method_of_step
from dpmask.measures import MEASURES, find_measure
from dpmask.measures.measure import MeasureRequest
from dpmask.release.manifest import parse
from dpmask.report.comparison import compare
from dpmask.report.page import evaluation_page
from dpmask.results import Loss
from dpmask.table.alignment import in_source_order, pair_by_column
from dpmask.table.columns import is_numeric, require_known, require_numeric
from dpmask.table.joined_intervals import JoinedIntervals, joined_intervals, with_intervals
from dpmask.table.label_sets import LabelSets
from dpmask.table.lake import BLOCK_ROWS, Lake, read_lake
from dpmask.table.table import Table

_WHO = "evaluate"
POSITION = "position"
_OPTIONS = ("columns", "quasi", "sensitive")
_WEIGHT = "weight"
_MAY_LACK = ("sensitive", "weight")
_DEPTH = 4  # release, data, its identity, a file


class Pairing(NamedTuple):
    """How the records of two tables were paired, and how many were left over."""

    by: str
    originals_without_masked: int | None = None
    masked_without_original: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """It, for JSON."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class PairedLakes(NamedTuple):
    """Both tables, their records paired; the lakes as they are; and how the pairing was made."""

    original: Table
    masked: Table
    lakes: tuple[Lake, Lake]
    pairing: Pairing


class EvaluatedLake(NamedTuple):
    """One of the two lakes."""

    url: str
    rows: int


class Taken(NamedTuple):
    """A measure that was taken, with its parameters."""

    parameters: dict[str, Any]
    found: MeasureOutcome

    def to_dict(self) -> dict[str, Any]:
        """It, for JSON."""
        found = self.found.model_dump(exclude={"name"})
        return {key: found.pop(key) for key in ("measure", "public")} | {"parameters": self.parameters} | found


class NotMeasured(NamedTuple):
    """A measure that could not be taken, and why."""

    measure: str
    reason: str


class Evaluation(NamedTuple):
    """What was measured of two lakes, and what was not."""

    original: EvaluatedLake
    masked: EvaluatedLake
    pairing: Pairing
    columns: list[str]
    taken: list[Taken]
    not_measured: list[NotMeasured]

    @property
    def measures(self) -> list[MeasureOutcome]:
        """What the measures found."""
        return [one.found for one in self.taken]

    def to_dict(self) -> dict[str, Any]:
        """It, for JSON."""
        return {
            "original": self.original._asdict(),
            "masked": self.masked._asdict(),
            "pairing": self.pairing.to_dict(),
            "columns": self.columns,
            "measures": [one.to_dict() for one in self.taken],
            "not_measured": [one._asdict() for one in self.not_measured],
        }


def evaluate(
    original: str,
    masked: str,
    *,
    paired_by: str = POSITION,
    columns: Sequence[str] = (),
    quasi: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    weight: str | None = None,
    weighted: bool = True,
    cuts: str | None = None,
    block_rows: int = BLOCK_ROWS,
    report: str | None = None,
) -> Evaluation:
    """Every measure whose parameters are known; what could not be measured, with the reason.

    Without ``columns``, the numeric columns that both tables have; ``quasi`` and ``sensitive`` are for groups. Measures
    that describe the tables weigh records by ``weight``, or by the one weight that the release ``masked`` declares,
    unless ``weighted`` is false. What
    released labels stand for is read from the manifest of the release that ``cuts`` names, or that ``masked`` is. With
    ``report``, all of it is also written to that place as one HTML page.
    """
    for lake in (original, masked):
        require_access(Place(lake), writing=False)
    sets = label_sets_of(masked, cuts)
    if report is not None:
        check_writable(Place(report.rpartition("/")[0] or "."))  # before anything is measured
    lakes = read_lake(original, block_rows=block_rows), read_lake(masked, block_rows=block_rows)
    chosen = _columns(lakes, columns, paired_by)
    by = _weight(lakes, masked, weight) if weighted else []
    paired = pair_lakes(lakes, masked, paired_by, [*chosen, *quasi, *sensitive, *by])
    given = dict(zip(_OPTIONS, (chosen, list(quasi), list(sensitive)), strict=True)) | {_WEIGHT: by}
    taken, not_measured = _measured(paired, given, sets, suppressed_of(masked))
    if not taken:
        none = "" if chosen else " The tables have no numeric column in common."
        reasons = [f"  {one.reason}" for one in not_measured]
        raise InputError("\n".join([f"{_WHO}: nothing could be measured.{none}", *reasons]))
    sizes = EvaluatedLake(original, lakes[0].rows), EvaluatedLake(masked, lakes[1].rows)
    evaluation = Evaluation(*sizes, paired.pairing, chosen, taken, not_measured)
    if report is not None:
        drawn = list(dict.fromkeys([*chosen, *quasi, *sensitive]))
        drawing = compare(paired.original, paired.masked, drawn, chosen, sets)
        shown = {**evaluation._asdict(), "measures": evaluation.measures}
        Place(report).write(evaluation_page(shown, drawing).encode())
    return evaluation


def _columns(lakes: tuple[Lake, Lake], columns: Sequence[str], paired_by: str) -> list[str]:
    if columns:
        for lake in lakes:
            require_known(lake.schema, columns, _WHO)
        return list(columns)
    first, second = (lake.schema for lake in lakes)
    common = [name for name in first.names if name in second.names and name != paired_by]
    return [name for name in common if all(is_numeric(schema.field(name).type) for schema in (first, second))]


def _weight(lakes: tuple[Lake, Lake], masked: str, weight: str | None) -> list[str]:
    """The column that records weigh by: the given one, or that of the release, if it declares one alone."""
    if weight is not None:
        for lake in lakes:
            require_numeric(lake.schema, [weight], f"{_WHO}: --weight")
        return [weight]
    manifest = manifest_of(masked) or {"schema": ()}
    found = [one["name"] for one in manifest["schema"] if one["role"] == _WEIGHT]
    both = [name for name in found if all(name in lake.schema.names for lake in lakes)]
    return both if len(both) == 1 and all(is_numeric(lake.schema.field(both[0]).type) for lake in lakes) else []


def pair_lakes(lakes: tuple[Lake, Lake], masked: str, paired_by: str, columns: Sequence[str]) -> PairedLakes:
    """The two lakes in one order of records; of a lake whose records must move, these columns."""
    original, release = lakes
    manifest = manifest_of(masked)
    joined = [one for one in intervals_of(manifest) if one.column in columns]
    if paired_by == POSITION:
        if manifest is not None and manifest.get("order") != "input":
            raise JobError(
                f"{masked}: is a release in shuffled order, whose positions mean nothing. Pair it by the private "
                "folder of its run (--paired-by FOLDER), or by a column (--paired-by COLUMN)."
            )
        _require_as_many(original, release)
        return PairedLakes(original, with_intervals(release, joined), lakes, Pairing(POSITION))
    if paired_by in original.schema.names:
        keyed = pair_by_column(original, with_intervals(release, joined), paired_by, list(dict.fromkeys(columns)), _WHO)
        pairing = Pairing(f"column {paired_by}", keyed.unmatched_original, keyed.unmatched_masked)
        return PairedLakes(keyed.original, keyed.masked, lakes, pairing)
    folder = _pairing_folder(paired_by, manifest, original)
    if release.rows > original.rows:
        _require_as_many(original, release)
    pairing = Pairing("private folder", original.rows - release.rows or None)
    bounds = {one.column: one.inputs for one in joined}
    names = list(dict.fromkeys(name for column in columns for name in bounds.get(column, (column,))))
    ordered = in_source_order(release, folder, original, names, _WHO)
    return PairedLakes(original, with_intervals(ordered, joined), lakes, pairing)


def _require_as_many(original: Lake, masked: Lake) -> None:
    if original.rows != masked.rows:
        raise JobError(
            f"The original has {original.rows:,} records and the masked lake {masked.rows:,}, so they do not "
            "pair by position. Pair them by a column, --paired-by COLUMN, or, where a job dropped records, by the "
            "private folder of its run, --paired-by FOLDER."
        )


def manifest_of(masked: str) -> dict[str, Any] | None:
    """The manifest of the release that the masked lake is, or is a part of; None where it is none of ours."""
    folder = glob_root(Place(masked)).rstrip("/")
    for _ in range(_DEPTH):
        place = Place(folder) / MANIFEST
        try:
            data = place.read()
            ours = str(json.loads(data)["format"]).startswith("dpmask release")
        except (DpmaskError, ValueError, KeyError, TypeError):
            ours = False
        if ours:
            return parse(data, place.url)
        folder = folder.rpartition("/")[0] or "/"
    return None


def _pairing_folder(paired_by: str, manifest: Mapping[str, Any] | None, original: Lake) -> Place:
    """The pairing files of the release's run, in a private folder or in the run's own part of it."""
    if manifest is not None:
        run = manifest["run"]
        inside = {(run, "pairing"): "", (run,): "/pairing"}
        parts = tuple(Place(paired_by).path.rstrip("/").split("/"))
        rest = next((rest for end, rest in inside.items() if parts[-len(end) :] == end), f"/{run}/pairing")
        folder = Place(paired_by.rstrip("/") + rest)
        if folder.files():
            return folder
    what = "no pairing of this release's run is there" if manifest is not None else "the masked lake is no release"
    raise JobError(
        f"--paired-by {paired_by}: must be '{POSITION}', a column of the original "
        f"({', '.join(original.schema.names)}), or the private folder of the run that made the release; {what}."
    )


def label_sets_of(masked: str, cuts: str | None) -> LabelSets:
    """What labels stand for, as the manifest of a release shows it."""
    manifest = manifest_of(masked if cuts is None else cuts)
    if manifest is None:
        if cuts is not None:
            raise JobError(f"--cuts {cuts}: is no dpmask release. Give the folder of one, with its manifest.")
        return {}
    found: dict[str, Any] = {}
    for step in manifest["steps"]:
        changed = step["parameters"].get("columns", ())
        found = {column: one for column, one in found.items() if column not in changed}
        if step.get("solution"):
            found |= method_of_step(step["method"], step["parameters"]).label_sets(step["solution"])
    return found


class _Seen(NamedTuple):
    """A step as far as a manifest shows it: the columns that its parameters name, and the bounds that it released."""

    masks: tuple[str, ...]
    origins: Mapping[str, str]


def intervals_of(manifest: Mapping[str, Any] | None) -> list[JoinedIntervals]:
    """The columns that a release shows as bounds."""
    steps = [
        _Seen(
            tuple(named_columns(list(step["parameters"].values()))),
            method_of_step(step["method"], step["parameters"]).origins if step.get("solution") else {},
        )
        for step in (manifest or {"steps": []})["steps"]
    ]
    return joined_intervals(steps)


def suppressed_of(masked: str) -> list[str]:
    """The columns in which a release says that cells were set to missing."""
    manifest = manifest_of(masked)
    return [] if manifest is None else suppressed_columns(manifest["claims"])


def _measured(
    paired: PairedLakes, given: Mapping[str, list[str]], sets: LabelSets, suppressed: Sequence[str]
) -> tuple[list[Taken], list[NotMeasured]]:
    """Each measure: its values, or the reason why there are none."""
    requests = [_request(name, given) for name in MEASURES]
    complete = [one for one in requests if not _lacking(one)]
    of_pairs = [one for one in complete if one.definition.paired]
    of_lakes = [one for one in complete if one not in of_pairs]
    take = takers(paired.original, paired.masked, of_pairs, sets) | takers(*paired.lakes, of_lakes, sets, suppressed)
    attempts = [_attempt(one, take.get(one.name)) for one in requests]
    return [one for one in attempts if isinstance(one, Taken)], [
        one for one in attempts if isinstance(one, NotMeasured)
    ]


def _request(name: str, given: Mapping[str, list[str]]) -> MeasureRequest:
    """A measure with the parameters that are known."""
    measure = find_measure(name)
    known: dict[str, Any] = {key: given[key] for key in given if key in measure.parameters and given[key]}
    if "columns" in measure.parameters and "sets" in measure.parameters:  # linkage: whatever the intruder may know
        every = list(dict.fromkeys(column for key in _OPTIONS for column in given[key]))
        known |= {"columns": every} if every else {}
    if _WEIGHT in known and issubclass(measure.result, Loss):  # it describes the table, of which weights are no amounts
        known[_WEIGHT] = known[_WEIGHT][0]
        known |= {"columns": [one for one in known["columns"] if one != known[_WEIGHT]]} if "columns" in known else {}
    if "columns" in known:
        known["columns"] = known["columns"][: measure.most_columns]
    return MeasureRequest(name, name, known)


def _lacking(request: MeasureRequest) -> list[str]:
    """The parameters that it needs and that are not known."""
    measure = request.definition
    needed = [*(key for key, required in measure.parameters.items() if required), *measure.roles]
    return [key for key in dict.fromkeys(needed) if key not in request.parameters and key not in _MAY_LACK]


def _needs(name: str, lacking: Sequence[str]) -> str:
    other = [key for key in lacking if key not in _OPTIONS]
    how = "Measure it in a job, or from Python" if other else f"Give --{lacking[0]} A,B"
    return f"{name}: needs {', '.join(lacking)}. {how}."


def _attempt(request: MeasureRequest, take: Callable[[], Any] | None) -> Taken | NotMeasured:
    if take is None:
        return NotMeasured(request.measure, _needs(request.measure, _lacking(request)))
    progress.step(request.measure)
    try:
        return Taken(request.parameters, measure_outcome(request.measure, request.measure, take()))
    except (JobError, InputError) as error:
        return NotMeasured(request.measure, str(error))
