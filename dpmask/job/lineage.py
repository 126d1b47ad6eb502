"""OpenLineage events of a run: what was read, what was released, and which columns were masked.

To a file, one JSON object a line, or to a lineage server's URL. An event holds names, types and counts; no value of a
record, no risk, no key. What cannot be delivered to a server is a warning: a release does not wait for its lineage.
"""

from __future__ import annotations

import json
import os
import posixpath
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from dpmask import __version__
from dpmask.errors import JobError, printable
from dpmask.job.model import Job
from dpmask.job.outcome import Outcome
from dpmask.lake.filters import row_filter
from dpmask.lake.storage import Place
from dpmask.lake.storage_errors import storage_errors

if TYPE_CHECKING:
    from dpmask.job.prepare import Prepared

_SPEC = "https://openlineage.io/spec"
_EVENT = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS = {
    "ColumnLineageDatasetFacet": "1-2-0",
    "DatasetVersionDatasetFacet": "1-0-1",
    "ErrorMessageRunFacet": "1-0-1",
    "JobTypeJobFacet": "2-0-3",
    "OutputStatisticsOutputDatasetFacet": "1-0-2",
    "ProcessingEngineRunFacet": "1-1-1",
    "SchemaDatasetFacet": "1-1-1",
}
_PRODUCER = f"urn:dpmask:{__version__}"
_TYPES = {"released": "COMPLETE", "already released": "COMPLETE", "interrupted": "ABORT"}
_SECONDS = 10
_KEY = "OPENLINEAGE_API_KEY"


class Lineage:
    """Where the events of one run go, and what is known of it so far."""

    def __init__(self, to: str) -> None:
        self.url = to if to.startswith(("http://", "https://")) else None
        self.place = None if self.url else _file(to)
        self.run = str(uuid.uuid4())
        self.job: Job | None = None
        self.prepared: Prepared | None = None
        self.undelivered = ""

    def started(self, job: Job) -> None:
        """The job begins."""
        self.job = job
        self._emit("START", {})

    def ended(self, outcome: Outcome) -> None:
        """The run is over; one that never came to a job has no lineage."""
        if self.job is None:
            return
        facets = {}
        if outcome.error is not None:
            facets["errorMessage"] = _facet("ErrorMessageRunFacet", message=outcome.error, programmingLanguage="PYTHON")
        self._emit(_TYPES.get(outcome.status, "FAIL"), facets, outcome)

    def _emit(self, kind: str, facets: dict[str, Any], outcome: Outcome | None = None) -> None:
        assert self.job is not None
        engine = _facet("ProcessingEngineRunFacet", version=__version__, name="dpmask")
        described = _facet("JobTypeJobFacet", processingType="BATCH", integration="DPMASK", jobType="JOB")
        event = {
            "eventType": kind,
            "eventTime": datetime.now(UTC).isoformat(),
            "run": {"runId": self.run, "facets": {"processing_engine": engine, **facets}},
            "job": {"namespace": "dpmask", "name": self.job.file.name, "facets": {"jobType": described}},
            "inputs": [self._input(source) for source in self.job.file.source],
            "outputs": [self._output(outcome)],
            "producer": _PRODUCER,
            "schemaURL": _EVENT,
        }
        self._deliver(json.dumps(event).encode())

    def _deliver(self, event: bytes) -> None:
        if self.place is not None:
            with storage_errors(self.place, writing=True), open(self.place.path, "ab") as file:
                file.write(event + b"\n")
            return
        headers = {"Content-Type": "application/json"}
        if os.environ.get(_KEY):
            headers["Authorization"] = f"Bearer {os.environ[_KEY]}"
        try:
            with urlopen(Request(str(self.url), event, headers), timeout=_SECONDS):  # noqa: S310 - http and https only
                pass
        except (URLError, OSError, ValueError) as error:
            found = getattr(error, "code", type(error).__name__)
            self.undelivered = f"lineage: {printable(str(self.url), 200)} did not take an event ({found})."

    def _input(self, source: str) -> dict[str, Any]:
        facets = {}
        if self.prepared is not None:
            facets["schema"] = _schema(self.prepared.lake.schema)
            version = self.prepared.lake.table_version
            if version is not None:
                facets["version"] = _facet("DatasetVersionDatasetFacet", datasetVersion=version.split()[-1])
        return {**_dataset(source), "facets": facets}

    def _output(self, outcome: Outcome | None) -> dict[str, Any]:
        assert self.job is not None
        found: dict[str, Any] = {**_dataset(self.job.file.target), "facets": {}}
        if self.prepared is not None:
            from dpmask.job.prepare import masked_schema

            schema = masked_schema(self.job, self.prepared.lake.schema)
            released = [schema.field(name) for name in self.prepared.columns]
            found["facets"] = {"schema": _schema(released), "columnLineage": self._columns()}
        if outcome is not None and outcome.status == "released":
            counted = {"rowCount": outcome.rows, "size": outcome.release_bytes}
            found["outputFacets"] = {"outputStatistics": _facet("OutputStatisticsOutputDatasetFacet", **counted)}
        return found

    def _columns(self) -> dict[str, Any]:
        """Where each released column comes from, and whether it is masked; by which columns rows were taken."""
        assert self.job is not None
        assert self.prepared is not None
        fields = {name: {"inputFields": self._inputs(name)} for name in self.prepared.columns}
        asked = row_filter(self.job.file.filter).columns if self.job.file.filter else ()
        taken = {"type": "INDIRECT", "subtype": "FILTER", "description": "rows are filtered by it", "masking": False}
        rows = [self._field(source, name, taken) for name in asked for source in self.job.file.source]
        return _facet("ColumnLineageDatasetFacet", fields=fields, **({"dataset": rows} if rows else {}))

    def _inputs(self, column: str) -> list[dict[str, Any]]:
        assert self.job is not None
        origin = self.job.origin(column)
        steps = zip(self.job.names, self.job.methods, strict=True)
        masked = [name for name, method in steps if {column, origin} & set(method.masks)]
        how = {
            "type": "DIRECT",
            "subtype": "TRANSFORMATION" if masked else "IDENTITY",
            "description": f"masked by {', '.join(masked)}" if masked else "released as it is",
            "masking": bool(masked),
        }
        return [self._field(source, origin, how) for source in self.job.file.source]

    def _field(self, source: str, column: str, how: dict[str, Any]) -> dict[str, Any]:
        return {**_dataset(source), "field": column, "transformations": [how]}


def _file(path: str) -> Place:
    """The file that events are added to; one that cannot be written is refused before the run."""
    from dpmask.job.prepare import check_writable

    place = Place(path)
    if not place.local or os.path.isdir(place.path):
        raise JobError(f"--lineage: {place.url} must be a local file, or the http(s):// URL of a lineage server.")
    check_writable(Place(posixpath.dirname(place.full_url)))
    return place


def _facet(kind: str, **content: Any) -> dict[str, Any]:
    return {
        "_producer": _PRODUCER,
        "_schemaURL": f"{_SPEC}/facets/{_FACETS[kind]}/{kind}.json#/$defs/{kind}",
        **content,
    }


def _schema(fields: Any) -> dict[str, Any]:
    return _facet("SchemaDatasetFacet", fields=[{"name": field.name, "type": str(field.type)} for field in fields])


def _dataset(url: str) -> dict[str, str]:
    """A folder or file by OpenLineage's rules of naming: the store is the namespace, the path in it the name."""
    place = Place(url)
    if place.local:
        return {"namespace": "file", "name": place.path}
    protocol, _, path = place.full_url.partition("://")
    store, _, name = path.partition("/")
    return {"namespace": f"{protocol}://{store}", "name": name or "/"}
