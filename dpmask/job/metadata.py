"""The job file's ``metadata``: what catalogues and archives receive about a release beside its manifest."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

_LINE = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$"
_DATE = r"[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?"
_URL = r'https?://[^\s<>"{}|\\^`]+'
_Line = Annotated[str, Field(pattern=_LINE, max_length=1000)]


def _as_text(value: object) -> object:
    """YAML reads a year as a number, and a day as a date."""
    return str(value) if type(value) in {int, date} else value


def _real_dates(text: str) -> str:
    """Refuse days that the calendar does not have, and an end before the start."""
    ends = [date.fromisoformat(f"{one}-01-01"[:10]) for one in text.split("/")]
    if ends != sorted(ends):
        raise ValueError("it ends before it starts")
    return text


_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_PERIOD = rf"^{_DATE}(/{_DATE})?$"
_Day = Annotated[
    str,
    BeforeValidator(_as_text),
    Field(pattern=_DAY),
    AfterValidator(_real_dates),
    WithJsonSchema({"type": "string", "pattern": _DAY}),
]
_Period = Annotated[
    str,
    BeforeValidator(_as_text),
    Field(pattern=_PERIOD),
    AfterValidator(_real_dates),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": _PERIOD}, {"type": "integer"}]}),
]


class Metadata(BaseModel):
    """What catalogues and archives receive about the release."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: _Line | None = Field(None, description="by default the name of the job")
    description: str | None = Field(
        None, pattern=r"^[^\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]+$", max_length=10_000, description="a text"
    )
    publisher: _Line | None = Field(None, description="who publishes it: the name of the office")
    contact: str | None = Field(
        None,
        pattern=rf'^({_URL}|[^\s@<>"]+@[^\s@<>"]+)$',
        max_length=1000,
        description="whom to ask: an e-mail address, or the address of a page",
    )
    licence: str | None = Field(
        None,
        pattern=rf"^({_URL}|[A-Za-z0-9.+-]+)$",
        max_length=1000,
        description="its SPDX identifier, such as CC-BY-4.0, or an address",
    )
    url: str | None = Field(
        None, pattern=rf"^{_URL}$", max_length=1000, description="where the folder of the release will be found"
    )
    issued: _Day | None = Field(None, description="the day it is published, as 2026-11-30")
    keywords: list[_Line] = Field([], max_length=100)
    temporal: _Period | None = Field(
        None,
        description="what the data are about: a day, month or year, or two with a slash, as 2025-10/2026-03",
    )
    spatial: _Line | None = Field(None, description="the place that they are about: its name or its address")

    def given(self) -> dict[str, Any]:
        """What the job says."""
        return self.model_dump(exclude_unset=True, exclude_none=True)


METADATA_FORMS: Mapping[str | int, str] = {
    "contact": "an e-mail address, or the address of a page",
    "description": "a text without control characters",
    "licence": "an SPDX identifier, such as CC-BY-4.0, or an address",
    "url": "an address that starts with https:// or http://",
    "issued": "a day, such as 2026-11-30",
    "temporal": "a day, month or year, or two of them with a slash, such as 2025-10/2026-03",
}
"""What its keys take, for messages."""
