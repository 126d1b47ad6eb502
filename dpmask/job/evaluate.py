"""Risk and information loss of any two lakes, also where another tool did the masking."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from dpmask.engine.progress import note
from dpmask.errors import DpmaskError, InputError, JobError
from dpmask.job.account import measure_outcome
from dpmask.job.measures import takers
from dpmask.job.outcome import MeasureOutcome
from dpmask.job.prepare import check_writable
from dpmask.lake.footers import MANIFEST, glob_root
from dpmask.lake.storage import Place
from dpmask.measures import MEASURES, find_measure
from dpmask.measures.measure import MeasureRequest
from dpmask.release.manifest import parse
from dpmask.report.comparison import compare
from dpmask.report.page import evaluation_page
from dpmask.table.alignment import in_source_order, pair_by_column
from dpmask.table.columns import is_numeric, require_known
from dpmask.table.lake import BLOCK_ROWS, Lake, read_lake
from dpmask.table.table import Table

_WHO = "evaluate"
POSITION = "position"
_OPTIONS = ("columns", "quasi", "sensitive")
_DEPTH = 4  # release, data, its identity, a file


class PairedLakes(NamedTuple):
    """Both tables, their records paired; the lakes as they are; and how the pairing was made."""

    original: Table
    masked: Table
    lakes: tuple[Lake, Lake]
    pairing: dict[str, Any]


def evaluate(
    original: str,
    masked: str,
    *,
    paired_by: str = POSITION,
    columns: Sequence[str] = (),
    quasi: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    block_rows: int = BLOCK_ROWS,
    report: str | None = None,
) -> dict[str, Any]:
    """Every measure whose parameters are known, as plain values; what could not be measured, with the reason.

    Without ``columns``, the numeric columns that both tables have; ``quasi`` and ``sensitive`` are for groups. With
    ``report``, all of it is also written to that place as one HTML page.
    """
    if report is not None:
        check_writable(Place(report.rpartition("/")[0] or "."))  # before anything is measured
    lakes = read_lake(original, block_rows=block_rows), read_lake(masked, block_rows=block_rows)
    chosen = _columns(lakes, columns, paired_by)
    paired = _paired(lakes, masked, paired_by, [*chosen, *quasi, *sensitive])
    given = dict(zip(_OPTIONS, (chosen, list(quasi), list(sensitive)), strict=True))
    taken = _measured(paired, given)
    measured = [one for one in taken if one.found is not None]
    if not measured:
        none = "" if chosen else " The tables have no numeric column in common."
        reasons = [f"  {one.reason}" for one in taken]
        raise InputError("\n".join([f"{_WHO}: nothing could be measured.{none}", *reasons]))
    evaluation = {
        "original": {"url": original, "rows": lakes[0].rows},
        "masked": {"url": masked, "rows": lakes[1].rows},
        "pairing": paired.pairing,
        "columns": chosen,
        "measures": [one.to_dict() for one in measured],
        "not_measured": [one.to_dict() for one in taken if one.found is None],
    }
    if report is not None:
        drawn = list(dict.fromkeys([*chosen, *quasi, *sensitive]))
        shown = {**evaluation, "measures": [one.found for one in measured]}
        drawing = compare(paired.original, paired.masked, drawn, chosen)
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


def _paired(lakes: tuple[Lake, Lake], masked: str, paired_by: str, columns: Sequence[str]) -> PairedLakes:
    """The two lakes in one order of records."""
    original, release = lakes
    manifest = _manifest(masked)
    if paired_by == POSITION:
        if manifest is not None and manifest.get("order") == "shuffled":
            raise JobError(
                f"{masked}: is a release in shuffled order, whose positions mean nothing. Pair it by the private "
                "folder of its run (--paired-by FOLDER), or by a column (--paired-by COLUMN)."
            )
        _require_as_many(original, release)
        return PairedLakes(original, release, lakes, {"by": POSITION})
    if paired_by in original.schema.names:
        keyed = pair_by_column(original, release, paired_by, list(dict.fromkeys(columns)), _WHO)
        pairing = {
            "by": f"column {paired_by}",
            "originals_without_masked": keyed.unmatched_original,
            "masked_without_original": keyed.unmatched_masked,
        }
        return PairedLakes(keyed.original, keyed.masked, lakes, pairing)
    folder = _pairing_folder(paired_by, manifest, original)
    if release.rows > original.rows:
        _require_as_many(original, release)
    pairing = {"by": "private folder"} | (
        {"originals_without_masked": original.rows - release.rows} if release.rows < original.rows else {}
    )
    return PairedLakes(original, in_source_order(release, folder, original.rows), lakes, pairing)


def _require_as_many(original: Lake, masked: Lake) -> None:
    if original.rows != masked.rows:
        raise JobError(
            f"{_WHO}: the original has {original.rows:,} records and the masked lake {masked.rows:,}, so they do not "
            "pair by position. Pair them by a column, --paired-by COLUMN, or, where a job dropped records, by the "
            "private folder of its run, --paired-by FOLDER."
        )


def _manifest(masked: str) -> dict[str, Any] | None:
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


class _Attempt(NamedTuple):
    """A measure that was taken, or the reason why it could not be."""

    request: MeasureRequest
    found: MeasureOutcome | None = None
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """It, for JSON."""
        if self.found is None:
            return {"measure": self.request.measure, "reason": self.reason}
        found = self.found.model_dump(exclude={"name"})
        return {key: found.pop(key) for key in ("measure", "public")} | {"parameters": self.request.parameters} | found


def _measured(paired: PairedLakes, given: Mapping[str, list[str]]) -> list[_Attempt]:
    """Each measure: its values, or the reason why there are none."""
    requests = [_request(name, given) for name in MEASURES]
    complete = [one for one in requests if not _lacking(one)]
    of_pairs = [one for one in complete if one.definition.paired]
    of_lakes = [one for one in complete if one not in of_pairs]
    take = takers(paired.original, paired.masked, of_pairs) | takers(*paired.lakes, of_lakes)
    return [_attempt(one, take.get(one.name)) for one in requests]


def _request(name: str, given: Mapping[str, list[str]]) -> MeasureRequest:
    """A measure with the parameters that are known."""
    measure = find_measure(name)
    known = {key: given[key] for key in given if key in measure.parameters and given[key]}
    if "columns" in known:
        known["columns"] = known["columns"][: measure.most_columns]
    return MeasureRequest(name, name, known)


def _lacking(request: MeasureRequest) -> list[str]:
    """The parameters that it needs and that are not known."""
    measure = request.definition
    needed = [*(key for key, required in measure.parameters.items() if required), *measure.roles]
    return [key for key in dict.fromkeys(needed) if key not in request.parameters and key != "sensitive"]


def _needs(name: str, lacking: Sequence[str]) -> str:
    other = [key for key in lacking if key not in _OPTIONS]
    how = "Measure it in a job, or from Python" if other else f"Give --{lacking[0]} A,B"
    return f"{name}: needs {', '.join(lacking)}. {how}."


def _attempt(request: MeasureRequest, take: Callable[[], Any] | None) -> _Attempt:
    if take is None:
        return _Attempt(request, reason=_needs(request.measure, _lacking(request)))
    note(request.measure)
    try:
        return _Attempt(request, measure_outcome(request.measure, request.measure, take()))
    except (JobError, InputError) as error:
        return _Attempt(request, reason=str(error))
