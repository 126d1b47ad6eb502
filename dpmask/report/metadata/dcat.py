"""A release in DCAT 3 (W3C) as DCAT-AP 3 takes it, JSON-LD that open data portals harvest.

Without an address of its own in the job, the release is described relative to the description.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dpmask.report.metadata.facts import ReleaseFacts, clean

_CONTEXT = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "spdx": "http://spdx.org/rdf/terms#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_PARQUET = "https://www.iana.org/assignments/media-types/application/vnd.apache.parquet"
_URL = r'https?://[^\s<>"{}|\\^`]+'
_DAYS = {4: "xsd:gYear", 7: "xsd:gYearMonth", 10: "xsd:date"}
"""Types of dates, by their length."""


def dcat(facts: ReleaseFacts) -> dict[str, Any]:
    """The description."""
    return {
        "@context": _CONTEXT,
        "@id": facts.folder,
        "@type": "dcat:Dataset",
        "dct:title": clean(facts.title),
        "dct:description": clean(facts.description),
        "dct:identifier": facts.identity,
        "dcat:version": facts.identity,
        **_given(facts),
        "dct:provenance": [{"@type": "dct:ProvenanceStatement", "rdfs:label": one} for one in facts.statements],
        "dcat:distribution": [_distribution(facts, file) for file in facts.files],
    }


def _given(facts: ReleaseFacts) -> dict[str, Any]:
    """What the job says of the release."""
    given, found = facts.given, dict[str, Any]()
    if given.get("publisher"):
        found["dct:publisher"] = {"@type": "foaf:Agent", "foaf:name": clean(given["publisher"])}
    if facts.contact:
        how, where = facts.contact
        named = {"vcard:fn": clean(given.get("publisher") or where)}
        link = {"vcard:hasURL": {"@id": where}} if how == "url" else {"vcard:hasEmail": {"@id": f"mailto:{where}"}}
        found["dcat:contactPoint"] = {"@type": "vcard:Kind", **named, **link}
    if given.get("issued"):
        found["dct:issued"] = _date(given["issued"])
    if given.get("keywords"):
        found["dcat:keyword"] = [clean(word) for word in given["keywords"]]
    if facts.period:
        start, end = map(_date, facts.period)
        found["dct:temporal"] = {"@type": "dct:PeriodOfTime", "dcat:startDate": start, "dcat:endDate": end}
    if given.get("spatial"):
        place = given["spatial"]
        named = {"@id": place} if re.fullmatch(_URL, place) else {"skos:prefLabel": clean(place)}
        found["dct:spatial"] = {**named, "@type": "dct:Location"}
    return found


def _date(text: str) -> dict[str, str]:
    return {"@value": text, "@type": _DAYS[len(text)]}


def _distribution(facts: ReleaseFacts, file: Mapping[str, Any]) -> dict[str, Any]:
    url = f"{facts.folder}{file['path']}"
    return {
        "@id": url,
        "@type": "dcat:Distribution",
        "dct:title": file["path"].rpartition("/")[2],
        "dcat:accessURL": {"@id": facts.folder},
        "dcat:downloadURL": {"@id": url},
        "dcat:mediaType": {"@id": _PARQUET, "@type": "dct:MediaType"},
        "dcat:byteSize": {"@value": str(file["bytes"]), "@type": "xsd:nonNegativeInteger"},
        **({"dct:license": {"@id": facts.licence, "@type": "dct:LicenseDocument"}} if facts.licence else {}),
        "spdx:checksum": {
            "@type": "spdx:Checksum",
            "spdx:algorithm": {"@id": "spdx:checksumAlgorithm_sha256", "@type": "spdx:ChecksumAlgorithm"},
            "spdx:checksumValue": {"@value": file["sha256"], "@type": "xsd:hexBinary"},
        },
    }
