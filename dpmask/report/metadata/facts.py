"""What all descriptions of a release take from its manifest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dpmask.errors import printable

Kind = Literal["integer", "number", "text", "boolean", "date", "time"]

_SPDX = "https://spdx.org/licenses/"
_LONGEST = 1_000_000
_ROLES = {
    "quasi": "Quasi-identifier",
    "sensitive": "Sensitive column",
    "weight": "Survey weight",
    "household": "Pseudonym of the household",
    "plain": "Column",
}
_KINDS: tuple[tuple[str, Kind], ...] = (
    (r"u?int\d+", "integer"),
    (r"(half)?float|double|decimal\d*\(.*\)", "number"),
    (r"bool", "boolean"),
    (r"date\d+\[.*\]", "date"),
    (r"timestamp\[.*\]", "time"),
)


@dataclass(frozen=True)
class DescribedColumn:
    """A column of the release."""

    name: str
    kind: Kind
    label: str


@dataclass(frozen=True)
class ReleaseFacts:
    """A release as its manifest describes it: the public account, its identity, and its files of data."""

    public: Mapping[str, Any]
    identity: str
    files: Sequence[Mapping[str, Any]]

    @property
    def given(self) -> Mapping[str, Any]:
        """What the job says of the release: title, publisher and so on."""
        return self.public.get("metadata") or {}

    @property
    def title(self) -> str:
        """The title, or the name of the release; a trial is called so."""
        title = self.given.get("title") or self.public["name"]
        return f"TRIAL, not a release: {title}" if self.public["trial"] else str(title)

    @property
    def description(self) -> str:
        """What the job says, or else how many records of what there are."""
        columns = len(self.public["schema"])
        size = f"{self.public['rows']:,} masked records of {columns} column{'s' * (columns != 1)}."
        return str(self.given.get("description") or size)

    @property
    def licence(self) -> str | None:
        """The address of the licence."""
        found = self.given.get("licence")
        return found if found is None or "://" in found else f"{_SPDX}{found}"

    @property
    def folder(self) -> str:
        """The address of the release: as the job says, or else as seen from a description, which lies in it."""
        url = self.given.get("url")
        return "./" if url is None else f"{url.rstrip('/')}/"

    @property
    def citation(self) -> str:
        """How to cite the release."""
        who, year = self.given.get("publisher"), str(self.given.get("issued") or "")[:4]
        dated = f"({year})" if year else ""
        return clean(
            f"{' '.join(filter(None, (who, dated)))}: {self.title}, release {self.identity}".removeprefix(": ")
        )

    @property
    def period(self) -> tuple[str, str] | None:
        """The first and the last day, month or year that the data are about."""
        found = self.given.get("temporal")
        if found is None:
            return None
        start, _, end = found.partition("/")
        return start, end or start

    @property
    def contact(self) -> tuple[Literal["email", "url"], str] | None:
        """Whom to ask: an e-mail address or a page."""
        found = self.given.get("contact")
        return None if found is None else ("url" if "://" in found else "email", found)

    @property
    def statements(self) -> list[str]:
        """What was done to the data, step by step."""
        return [clean(step["statement"]) for step in self.public["steps"]]

    @property
    def columns(self) -> list[DescribedColumn]:
        """The columns, in their order."""
        return [
            DescribedColumn(one["name"], kind_of(one["type"]), _label(one["role"], masked=one["masked"]))
            for one in self.public["schema"]
        ]


def kind_of(arrow_type: str) -> Kind:
    """What the values of an Arrow type are, for people: labels of a dictionary are those of its values."""
    inner = re.match(r"dictionary<values=(.*), indices=", arrow_type)
    name = inner[1] if inner else arrow_type
    return next((kind for pattern, kind in _KINDS if re.fullmatch(pattern, name)), "text")


def clean(text: str) -> str:
    """A text in which nothing is obeyed: control and bidi characters are shown escaped, lines stay lines."""
    return "\n".join(printable(line, _LONGEST) for line in text.split("\n"))


def _label(role: str, *, masked: bool) -> str:
    return f"{_ROLES.get(role, 'Column')}, {'masked' if masked else 'released as it was'}"
