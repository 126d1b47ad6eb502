"""A release as a DDI Codebook 2.5 (DDI Alliance), the XML that archives of social science keep.

Only elements that version 2.6 has in the same places are used. There are no categories and no statistics: these would
be values of the release, which its files have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree

from dpmask.report.metadata.facts import DescribedColumn, Kind, ReleaseFacts, clean

_NAMESPACE = "ddi:codebook:2_5"
_SCHEMA = "http://www.ddialliance.org/Specification/DDI-Codebook/2.5/XMLSchema/codebook.xsd"
_INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
_CONTINUOUS: tuple[Kind, ...] = ("number", "time")
_NUMERIC: tuple[Kind, ...] = ("integer", "number")


def ddi(facts: ReleaseFacts) -> bytes:
    """The codebook, in UTF-8, with one spelling."""
    attributes = {
        "xmlns": _NAMESPACE,
        "xmlns:xsi": _INSTANCE,
        "xsi:schemaLocation": f"{_NAMESPACE} {_SCHEMA}",
        "version": "2.5",
        "ID": f"R-{facts.identity}",
    }
    root = ElementTree.Element("codeBook", attributes)
    _study(root, facts)
    for number, file in enumerate(facts.files, start=1):
        _file(root, facts, number, file)
    data = _add(root, "dataDscr")
    for number, column in enumerate(facts.columns, start=1):
        _variable(data, facts, number, column)
    ElementTree.indent(root, " ")
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _add(
    parent: ElementTree.Element, element: str, text: str | None = None, /, **attributes: str
) -> ElementTree.Element:
    found = ElementTree.SubElement(parent, element, attributes)
    found.text = None if text is None else clean(text)
    return found


def _study(root: ElementTree.Element, facts: ReleaseFacts) -> None:
    study, given = _add(root, "stdyDscr"), facts.given
    citation = _add(study, "citation")
    title = _add(citation, "titlStmt")
    _add(title, "titl", facts.title)
    _add(title, "IDNo", facts.identity, agency="dpmask")
    if given.get("publisher"):
        _add(_add(citation, "rspStmt"), "AuthEnty", given["publisher"])
        _add(_add(citation, "prodStmt"), "producer", given["publisher"])
    if facts.contact or given.get("publisher") or given.get("issued"):
        distribution = _add(citation, "distStmt")
        if given.get("publisher"):
            _add(distribution, "distrbtr", given["publisher"])
        for name, attributes in _contacts(facts):
            _add(distribution, "contact", name, **attributes)
        if given.get("issued"):
            _add(distribution, "distDate", given["issued"], date=given["issued"])
    if given.get("url"):
        _add(citation, "holdings", facts.title, URI=facts.folder)
    _information(study, facts)
    method = _add(study, "method")
    for statement in facts.statements:
        _add(method, "dataProcessing", statement, type="masking")
    if facts.licence:
        _add(_add(_add(study, "dataAccs"), "useStmt"), "conditions", facts.licence)


def _contacts(facts: ReleaseFacts) -> Iterator[tuple[str, dict[str, str]]]:
    if facts.contact:
        how, where = facts.contact
        yield str(facts.given.get("publisher") or where), {"email" if how == "email" else "URI": where}


def _information(study: ElementTree.Element, facts: ReleaseFacts) -> None:
    information, given = _add(study, "stdyInfo"), facts.given
    if given.get("keywords"):
        subject = _add(information, "subject")
        for word in given["keywords"]:
            _add(subject, "keyword", word)
    _add(information, "abstract", facts.description)
    summary = _add(information, "sumDscr")
    if facts.period:
        start, end = facts.period
        ends = (("single", start),) if start == end else (("start", start), ("end", end))
        for event, date in ends:
            _add(summary, "timePrd", date, event=event, date=date)
    if given.get("spatial"):
        _add(summary, "geogCover", given["spatial"])
    _add(summary, "dataKind", "Masked microdata")


def _file(root: ElementTree.Element, facts: ReleaseFacts, number: int, file: Mapping[str, Any]) -> None:
    description = _add(root, "fileDscr", ID=f"F{number}", URI=f"{facts.folder}{file['path']}")
    text = _add(description, "fileTxt")
    _add(text, "fileName", file["path"].rpartition("/")[2])
    fingerprint = _add(text, "dataFingerprint", type="dataFile")
    _add(fingerprint, "digitalFingerprintValue", file["sha256"])
    _add(fingerprint, "algorithmSpecification", "SHA-256")
    size = _add(text, "dimensns")
    _add(size, "caseQnty", str(file["rows"]))
    _add(size, "varQnty", str(len(facts.public["schema"])))
    _add(text, "fileType", "Apache Parquet")


def _variable(data: ElementTree.Element, facts: ReleaseFacts, number: int, column: DescribedColumn) -> None:
    """A variable; where there are several files, each has all of them."""
    attributes = {"ID": f"V{number}", "name": clean(column.name)}
    if len(facts.files) == 1:
        attributes["files"] = "F1"
    continuous = "contin" if column.kind in _CONTINUOUS else "discrete"
    variable = _add(data, "var", **attributes, intrvl=continuous)
    _add(variable, "labl", column.name)
    _add(variable, "txt", f"{column.label}.")
    kind = "numeric" if column.kind in _NUMERIC else "character"
    _add(variable, "varFormat", type=kind, schema="other", formatname=column.kind)
