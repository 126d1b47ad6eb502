"""A release in Croissant 1.0 (MLCommons), JSON-LD that catalogues and loaders of data sets read.

Files lie relative to the description, so that it can be loaded wherever the release was copied to.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from dpmask.report.metadata.facts import DescribedColumn, Kind, ReleaseFacts, clean

_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_TYPES: dict[Kind, str] = {
    "integer": "sc:Integer",
    "number": "sc:Float",
    "text": "sc:Text",
    "boolean": "sc:Boolean",
    "date": "sc:Date",
    "time": "sc:Date",
}
_FORMAT = "application/x-parquet"
_RECORDS, _ALL = "records", "files"


def croissant(facts: ReleaseFacts) -> dict[str, Any]:
    """The description."""
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": clean(facts.title),
        "description": clean(facts.description),
        "version": f"1.0.0+{facts.identity}",
        "isLiveDataset": False,
        "citeAs": facts.citation,
        **_given(facts),
        "rai:dataPreprocessingProtocol": facts.statements,
        "distribution": _distribution(facts),
        "recordSet": [_record_set(facts)],
    }


def _given(facts: ReleaseFacts) -> dict[str, Any]:
    """What the job says of the release."""
    given, found = facts.given, dict[str, Any]()
    if facts.licence:
        found["license"] = facts.licence
    if given.get("url"):
        found["url"] = facts.folder
    if given.get("publisher"):
        organisation = {"@type": "sc:Organization", "name": clean(given["publisher"])}
        if facts.contact:
            how, where = facts.contact
            organisation[how] = where
        found |= {"creator": organisation, "publisher": organisation}
    if given.get("issued"):
        found["datePublished"] = given["issued"]
    if given.get("keywords"):
        found["keywords"] = [clean(word) for word in given["keywords"]]
    if facts.period:
        found["temporalCoverage"] = "/".join(facts.period)
    if given.get("spatial"):
        found["spatialCoverage"] = clean(given["spatial"])
    return found


def _distribution(facts: ReleaseFacts) -> list[dict[str, Any]]:
    """Every file; several are one set."""
    files: list[dict[str, Any]] = [
        {
            "@type": "cr:FileObject",
            "@id": file["path"],
            "name": file["path"].rpartition("/")[2],
            "contentUrl": file["path"],
            "contentSize": f"{file['bytes']} B",
            "encodingFormat": _FORMAT,
            "sha256": file["sha256"],
        }
        for file in facts.files
    ]
    if len(files) > 1:
        every = {"@type": "cr:FileSet", "@id": _ALL, "name": _ALL, "encodingFormat": _FORMAT}
        files.append({**every, "includes": f"data/{facts.identity}/*.parquet"})
    return files


def _record_set(facts: ReleaseFacts) -> dict[str, Any]:
    where = {"fileSet": {"@id": _ALL}} if len(facts.files) > 1 else {"fileObject": {"@id": facts.files[0]["path"]}}
    return {
        "@type": "cr:RecordSet",
        "@id": _RECORDS,
        "name": _RECORDS,
        "description": f"{facts.public['rows']} masked records.",
        "field": [_field(column, where) for column in facts.columns],
    }


def _field(column: DescribedColumn, where: dict[str, Any]) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"{_RECORDS}/{quote(column.name, safe='')}",
        "name": clean(column.name),
        "description": f"{column.label}.",
        "dataType": _TYPES[column.kind],
        "source": {**where, "extract": {"column": column.name}},
    }
