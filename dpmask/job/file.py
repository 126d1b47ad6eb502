"""Every key of the job file, with its type and what it means."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from dpmask.job.metadata import Metadata
from dpmask.release.gate import REASON_LENGTH
from dpmask.table.lake import Lake, lake_columns, read_lake


class StrictModel(BaseModel):
    """A model that takes no other keys, and does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _whole(value: object) -> object:
    """Let 1e6 be the integer it means; YAML reads it as text."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return value
    return int(number) if number.is_integer() and not isinstance(value, bool) else value


def _as_list(value: object) -> object:
    """A list of sources, also of a single one."""
    if value == "":
        raise ValueError("it is empty")
    return [value] if isinstance(value, str) else value


_ONE_OR_LIST = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})


def _household(value: object) -> object:
    """The column of a household's number, by itself or as a mapping with ``release``."""
    if not isinstance(value, dict):
        return _as_list(value)
    if not isinstance(value.get("column"), str) or value.keys() - {"column", "release"}:
        raise ValueError("write NAME, or {column: NAME, release: false}")
    if not isinstance(value.get("release", True), bool):
        raise ValueError("release must be true (as a pseudonym) or false (dropped)")
    return [value["column"]]


_HOUSEHOLD = WithJsonSchema(
    {
        "anyOf": [
            {"type": "string"},
            {"type": "array", "items": {"type": "string"}, "maxItems": 1},
            {
                "type": "object",
                "properties": {"column": {"type": "string"}, "release": {"type": "boolean", "default": True}},
                "required": ["column"],
                "additionalProperties": False,
            },
        ]
    }
)


class Roles(StrictModel):
    """The role of every column of the source."""

    identifier: list[str] = Field([], description="dropped; a list may have patterns, such as wgt_*")
    drop: list[str] = Field([], description="left out, too, though no identifier")
    quasi: list[str] = Field([], description="known to an intruder: quasi-identifiers")
    sensitive: list[str] = Field([], description="what an intruder wants to learn")
    weight: list[str] = Field([], description="survey weights")
    household: Annotated[list[str], BeforeValidator(_household), _HOUSEHOLD] = Field(
        [],
        max_length=1,
        description="the number of the household: released as a pseudonym; {column: NAME, release: false} drops it",
    )
    plain: list[str] = Field([], description="released as it is")


class CsvFormat(StrictModel):
    """How CSV files of the source are written."""

    separator: str = Field(",", description="what parts fields: one character")
    encoding: str = Field("utf-8", description="how text is encoded, such as latin-1 or windows-1252")


class Publish(StrictModel):
    """What a release shows beyond the rest."""

    moments: bool = Field(False, description="losses that, with the release, give moments of the originals")


class JobFile(StrictModel):
    """A dpmask job."""

    name: str = Field(pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$", max_length=200, description="the release's name")
    source: Annotated[
        list[Annotated[str, Field(min_length=1)]],
        BeforeValidator(_as_list),
        WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
    ] = Field(
        min_length=1,
        description="the lake: any fsspec URL of a folder, a glob or one file of Parquet, or a small CSV; or a list",
    )
    lake_schema: Literal["strict", "union"] = Field(
        "strict",
        alias="schema",
        description="all files have the same columns and types; or what any has, null elsewhere, in the wider type",
    )
    where: str | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="the rows that are released, such as year = 2026 and region in (north, south)",
    )
    version: int | None = Field(
        None, ge=0, description="of a Delta Lake or Iceberg table: the version or snapshot; by default as it is now"
    )
    csv: CsvFormat = Field(
        default_factory=lambda: CsvFormat(separator=",", encoding="utf-8"), description="of a source of CSV files"
    )
    target: str = Field(min_length=1, description="the folder of the release, public")
    private: str = Field(min_length=1, description="your own folder: staging, internal report, pairing, log")
    series: str | None = Field(
        None,
        min_length=1,
        max_length=1000,
        pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$",
        description="the series of releases of the same people: a name, whose ledger lies beside the private folder as "
        "NAME.ledger, or the folder of the ledger itself",
    )
    new: str | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="of a series whose source grows: release only what is new, a filter as in where, such as "
        "month = '2026-11'; the ledger knows who was in earlier ones",
    )
    key: str | None = Field(
        None,
        pattern=r"^(env|file):.+",
        description="the secret: env:NAME or file:PATH; by default one is made, and kept in the private folder",
    )
    seed: int | None = Field(None, strict=True, description="instead of a key, for trials: dpmask run --trial")
    order: Literal["shuffled", "within_files", "input"] = Field(
        "shuffled", description="rows in a random order over the whole release, only within each file, or as they came"
    )
    partition_by: Annotated[
        list[Annotated[str, Field(min_length=1)]],
        BeforeValidator(_as_list),
        _ONE_OR_LIST,
    ] = Field(
        [], max_length=10, description="released columns whose values name folders, as Hive has them: region=north/"
    )
    table: Literal["delta", "iceberg"] | None = Field(
        None, description="the release is a Delta Lake or an Iceberg table, too: its log lies beside the manifest"
    )
    block_rows: Annotated[int, BeforeValidator(_whole)] = Field(
        1_000_000, ge=1, description="the most rows a task holds"
    )
    columns: Roles
    missing: dict[str, list[str | int | float]] = Field(
        {}, description='codes that mean a missing value, by column: {occupation: ["?", "NA"]}; read as null'
    )
    accept: dict[str, Annotated[str, Field(min_length=REASON_LENGTH, max_length=1000)]] = Field(
        {},
        description="columns, or order, that the gate would refuse, each with a public reason to release it as it is",
    )
    mask: list[dict[str, Any]] = Field(min_length=1, description="masking steps, applied in order")
    measure: list[dict[str, Any]] = Field([], description="what is measured on the masked table")
    policy: list[str] = Field([], description="rules; a broken one stops the release")
    metadata: Metadata | None = Field(None, description="what catalogues and archives receive about the release")
    publish: Publish = Field(
        default_factory=lambda: Publish(moments=False), description="what the release shows beyond the rest"
    )

    def lake(self) -> Lake:
        """The source, opened."""
        return read_lake(block_rows=self.block_rows, missing=self.missing, **self._opening())

    def source_columns(self) -> list[str]:
        """The columns of the source, by its footers alone."""
        return lake_columns(**self._opening())

    def _opening(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "schema": self.lake_schema,
            "csv": dict(self.csv),
            "where": self.filter,
            "version": self.version,
        }

    @property
    def filter(self) -> str | None:
        """The rows that are taken, by ``where`` and by ``new``."""
        return " and ".join(one for one in (self.where, self.new) if one) or None
