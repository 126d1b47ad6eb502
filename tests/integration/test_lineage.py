"""OpenLineage events of runs: to a file, to a server, and what they say of columns."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest


def events(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_events_of_a_release_a_refusal_and_a_mistake(place):
    place.lake()
    assert place.run("--lineage", "lineage.json", where="age < 90").code == 0
    start, complete = events(place.folder / "lineage.json")
    assert [one["eventType"] for one in (start, complete)] == ["START", "COMPLETE"]
    assert start["run"]["runId"] == complete["run"]["runId"]
    (source,), (target,) = complete["inputs"], complete["outputs"]
    assert (source["namespace"], source["name"]) == ("file", str(place.folder / "lake"))
    assert target["name"] == str(place.folder / "release")
    assert "id" in [field["name"] for field in source["facets"]["schema"]["fields"]]
    released = place.released()[1]
    assert [field["name"] for field in target["facets"]["schema"]["fields"]] == released.schema.names
    lineage = target["facets"]["columnLineage"]
    masked = {
        name: field["inputFields"][0]["transformations"][0]["masking"] for name, field in lineage["fields"].items()
    }
    assert masked == {name: name in {"age", "children", "income", "rate", "money"} for name in released.schema.names}
    assert lineage["fields"]["age"]["inputFields"][0]["transformations"][0]["description"] == "masked by noise"
    assert [(one["field"], one["transformations"][0]["subtype"]) for one in lineage["dataset"]] == [("age", "FILTER")]
    assert target["outputFacets"]["outputStatistics"]["rowCount"] == released.num_rows
    assert all("_schemaURL" in facet for facet in target["facets"].values())
    refused = place.run(
        "--lineage",
        "lineage.json",
        target="other",
        measure=[{"measure": "il1s", "columns": ["income"]}],
        policy=["il1s.value <= 0"],
    )
    assert refused.code == 3
    fail = events(place.folder / "lineage.json")[-1]
    assert (fail["eventType"], "il1s.value" in fail["run"]["facets"]["errorMessage"]["message"]) == ("FAIL", True)
    assert "outputFacets" not in fail["outputs"][0]
    assert place.run("--lineage", "lineage.json", columns={}).code == 2
    text = (place.folder / "lineage.json").read_text()
    assert not any(name in text for name in released["name"].to_pylist())


def test_a_file_that_cannot_be_written_is_refused_first(place):
    place.lake()
    (place.folder / "folder").mkdir()
    for where in ("folder", "s3://bucket/lineage.json"):
        ended = place.run("--lineage", where)
        assert (ended.code, "--lineage" in ended.err) == (2, True), ended.err
    assert not (place.folder / "release").exists()


class _Server(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.got.append((self.path, self.headers.get("Authorization"), body["eventType"]))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("status", [201, 500])
def test_a_server_gets_them_and_may_fail(place, monkeypatch, status):
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "token")
    place.lake()
    with HTTPServer(("127.0.0.1", 0), _Server) as server:
        server.got, server.status = [], status
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ended = place.run("--lineage", f"http://127.0.0.1:{server.server_port}/api/v1/lineage")
        server.shutdown()
    assert ended.code == 0, ended.err
    assert server.got == [("/api/v1/lineage", "Bearer token", kind) for kind in ("START", "COMPLETE")]
    assert ("did not take an event (500)" in ended.out) == (status == 500)
