"""What a manifest may hold: every key with its type and its bounds. What is not listed here is refused.

The same model checks a manifest before it is published and after it is read: an entry that a run adds must be added
here, too.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from dpmask.errors import printable

FORMAT = "dpmask release 2"
_MOST_SHOWN = 5

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

    path: Annotated[str, Field(pattern=r"^data/[0-9a-f]{16}/part-[0-9]{5,12}\.parquet$")]
    rows: Count
    bytes: Count
    sha256: Digest
    nulls: dict[Name, Count]


class DocumentEntry(_Part):
    """A file for readers."""

    path: Annotated[str, Field(pattern=r"^report/[0-9a-f]{16}/(statement\.md|report\.html)$")]
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


class Signature(_Part):
    """An Ed25519 signature of the content's hash, in hex, with the key that it is to be checked with."""

    algorithm: Literal["Ed25519"]
    public_key: Digest
    value: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]


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
    rows: Count
    order: Literal["shuffled", "within_files", "input"]
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
        known = set(names)
        faults = {
            "two columns have one name": len(known) < len(names),
            "a path stands twice": len(set(paths)) < len(paths),
            "a path lies outside the release's own folders": any(path.split("/")[1] != self.release for path in paths),
            "a file counts the nulls of other columns": any(set(file.nulls) != known for file in self.files),
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
