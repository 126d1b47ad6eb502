"""What a manifest may hold: every key with its type and its bounds. What is not listed here is refused.

The same model checks a manifest before it is published and after it is read: an entry that a run adds must be added
here, too.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from dpmask.errors import printable
from dpmask.lake.hive import hive_folder, named_kind
from dpmask.lake.listing import hive_level

FORMAT = "dpmask release 2"
_MOST_SHOWN = 5
DOCUMENTS = (
    r"report/[0-9a-f]{16}/(?:statement\.md|report\.html)",
    r"croissant-[0-9a-f]{16}\.json",
    r"dcat-[0-9a-f]{16}\.jsonld",
    r"ddi-[0-9a-f]{16}\.xml",
)
"""Where files for readers and for catalogues lie in a release."""

Count = Annotated[int, Field(ge=0, lt=2**63)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$")]
Text = Annotated[str, Field(max_length=1_000_000)]
Line = Annotated[str, Field(max_length=10_000)]
Names = Annotated[list[Name], Field(max_length=100_000)]
Parameters = dict[Line, Any]
"""Of a method or a measure: whatever JSON holds."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)  # parts with the whole


class SchemaColumn(_Part):
    """A released column."""

    name: Name
    type: Line
    role: Line
    masked: bool


class DataEntry(_Part):
    """A file of data."""

    path: Annotated[
        str, Field(max_length=8000, pattern=r"^data/[0-9a-f]{16}/([^/=]+=[^/=]+/){0,10}part-[0-9]{5,12}\.parquet$")
    ]
    rows: Count
    bytes: Count
    sha256: Digest
    nulls: dict[Name, Count]


class DocumentEntry(_Part):
    """A file for readers."""

    path: Annotated[str, Field(pattern=f"^({'|'.join(DOCUMENTS)})$")]
    bytes: Count
    sha256: Digest


class ClaimedModel(BaseModel):
    """What each group gives away of a sensitive column at most; its limits are read by ``verify``."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    model: Name
    column: Name


class ClaimEntry(_Part):
    """What anybody can count in the released rows."""

    columns: Annotated[Names, Field(min_length=1)]
    smallest_group: Count | None = None
    known: Annotated[int, Field(ge=1, le=100_000)] | None = None
    models: Annotated[list[ClaimedModel], Field(max_length=1000)] = []
    suppressed: Names = []
    households: Name | None = None
    constraints: list[Line] = []


class StepEntry(_Part):
    """A masking step."""

    method: Name
    parameters: Parameters
    statement: Text
    for_analysts: list[Text] = []
    solution: Parameters | None = None


class LossEntry(_Part):
    """A measured loss."""

    name: Name
    measure: Name
    values: Parameters
    explanation: Text


class RuleEntry(_Part):
    """A rule of the policy."""

    rule: Line
    held: Literal[True]
    columns: Names = []


class SeriesEntry(_Part):
    """The series of releases of the same people that it belongs to, and its entry in their ledger."""

    name: Name
    number: Annotated[int, Field(ge=1)]
    entry: Digest


class MetadataEntry(_Part):
    """What the data holder says of the release, for catalogues."""

    title: Line | None = None
    description: Line | None = None
    publisher: Line | None = None
    contact: Line | None = None
    licence: Line | None = None
    url: Line | None = None
    issued: Line | None = None
    keywords: list[Line] = []
    temporal: Line | None = None
    spatial: Line | None = None


class Signature(_Part):
    """An Ed25519 signature of the content's hash, in hex, with the key that it is to be checked with."""

    algorithm: Literal["Ed25519"]
    public_key: Digest
    value: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]


def _folder(path: str) -> str:
    """The release that a file is of, by its folder, or by its name if it lies beside the manifest."""
    return path.split("/")[1] if "/" in path else re.split(r"[-.]", path)[1]


class Manifest(_Part):
    """All of it."""

    format: Literal["dpmask release 2"]
    release: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    run: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    name: Name
    dpmask: Line
    libraries: dict[Name, Line]
    key: dict[Name, Line | bool | int | None]
    trial: bool
    accepted: dict[Name, Line] = {}
    series: SeriesEntry | None = None
    metadata: MetadataEntry | None = None
    rows: Count
    order: Literal["shuffled", "within_files", "input"]
    partition_by: Annotated[Names, Field(max_length=10)] = []
    table: Literal["delta", "iceberg"] | None = None
    columns: Annotated[list[SchemaColumn], Field(alias="schema", min_length=1, max_length=100_000)]
    dropped: Names
    claims: list[ClaimEntry]
    steps: list[StepEntry]
    information_loss: list[LossEntry]
    policy: list[RuleEntry]
    files: list[DataEntry]
    documents: list[DocumentEntry]
    sha256: Digest
    signature: Signature | None

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Manifest:
        names = [column.name for column in self.columns]
        paths = [file.path for file in self.files] + [document.path for document in self.documents]
        known, keys = set(names), self.partition_by
        kinds = {column.name: column.type for column in self.columns}
        faults = {
            "two columns have one name": len(known) < len(names),
            "a path stands twice": len(set(paths)) < len(paths),
            "a path lies outside the release's own folders": any(_folder(path) != self.release for path in paths),
            "a file counts the nulls of other columns": any(
                set(file.nulls) != known - set(keys) for file in self.files
            ),
            "it is partitioned by what is no column, or has no name in folders": not known.issuperset(keys)
            or any(named_kind(kinds[key]) is None for key in keys)
            or len(set(keys)) < len(keys),
            "a file lies in other folders than its partition has": any(
                [hive_level(part)[0] for part in levels] != keys
                or [hive_folder(*hive_level(part)) for part in levels] != levels
                for levels in (file.path.split("/")[2:-1] for file in self.files)
            ),
            "a claim names a column twice": any(len(set(one.columns)) < len(one.columns) for one in self.claims),
            "a claim has suppressed cells in other columns than its own": any(
                not set(one.columns).issuperset(one.suppressed) for one in self.claims
            ),
            "a claim names a column that is not released": any(
                not known.issuperset(
                    [
                        *one.columns,
                        *(model.column for model in one.models),
                        *([one.households] if one.households else []),
                    ]
                )
                for one in self.claims
            ),
        }
        for text, found in faults.items():
            if found:
                raise PydanticCustomError("disagrees", text)
        return self


def faults_of(manifest: Any) -> list[str]:
    """What is wrong with a manifest's content, each with the key it stands at; nothing if all is as it should be."""
    try:
        Manifest.model_validate(manifest)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        lines = [f"{printable(_where(one['loc']), 100)}: {printable(one['msg'], 200)}" for one in found[:_MOST_SHOWN]]
        return [*lines, *([f"and {len(found) - _MOST_SHOWN} faults more"] if len(found) > _MOST_SHOWN else [])]
    return []


def _where(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location)) or "the manifest"
