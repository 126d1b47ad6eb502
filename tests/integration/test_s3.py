"""The same job file on a real S3 server."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow.parquet as pq
import pytest
from conftest import people, use_credentials


@pytest.fixture
def remote(place, s3):
    """A lake in a bucket, and the same on disk."""
    import s3fs

    lake = place.lake(people(), files=3)
    s3fs.S3FileSystem().put(str(lake), f"{s3}/lake", recursive=True)
    place.remote = {"source": f"{s3}/lake", "target": f"{s3}/release", "private": f"{s3}/private"}
    return place


def bucket_bytes(url):
    import s3fs

    fs = s3fs.S3FileSystem()
    fs.invalidate_cache()
    root = url.removeprefix("s3://") + "/"
    return {path.removeprefix(root): fs.cat_file(path) for path in fs.find(root)}


def test_workers_read_and_write_a_bucket(remote):
    """Workers take credentials from their environment; the same bytes as on disk."""
    (remote.folder / "two.yaml").write_text(
        "cluster: distributed.LocalCluster\noptions: {n_workers: 2, threads_per_worker: 1, dashboard_address: null}\n"
    )
    assert remote.run().code == 0
    ended = remote.run("--cluster", "two.yaml", **remote.remote)
    assert ended.code == 0, ended.err
    assert bucket_bytes(remote.remote["target"]) == remote.bytes()


def test_a_torn_upload_leaves_nothing(remote):
    from dpmask.lake.storage import Place

    place = Place(remote.remote["private"]) / "file"
    place.write(b"old")

    def tear():
        with place.replaced() as file:
            file.write(b"half")
            raise ValueError("torn")

    with pytest.raises(ValueError, match="torn"):
        tear()
    assert place.read() == b"old"


def test_a_release_in_a_bucket_is_the_same_as_on_disk(remote):
    measure = [{"measure": "il1s", "columns": ["income"]}]
    assert remote.run(measure=measure).code == 0
    ended = remote.run(**remote.remote, measure=measure)
    assert ended.code == 0, ended.err
    assert bucket_bytes(remote.remote["target"]) == remote.bytes()
    assert remote.dpmask("verify", remote.remote["target"]).code == 0
    private = bucket_bytes(remote.remote["private"])
    assert not [name for name in private if "staging" in name]
    assert json.loads(private["result.json"])["status"] == "released"
    again = remote.run(**remote.remote, measure=measure)
    assert "nothing was changed" in again.out


def test_from_a_bucket_to_disk_and_back(remote):
    assert remote.run(**remote.remote | {"target": "here"}).code == 0
    assert remote.run(**remote.remote | {"source": "lake"}).code == 0
    assert bucket_bytes(remote.remote["target"]) == remote.bytes("here")


def test_overwriting_needs_the_word_and_clears_the_old(remote):
    assert remote.run(**remote.remote).code == 0
    old = bucket_bytes(remote.remote["target"])
    assert remote.run(**remote.remote, seed=8).code == 2
    assert bucket_bytes(remote.remote["target"]) == old
    ended = remote.run("--overwrite", **remote.remote, seed=8)
    assert ended.code == 0, ended.err
    new = bucket_bytes(remote.remote["target"])
    assert not set(old) & set(new) - {"manifest.json"}


def test_of_two_who_publish_one_is_told(remote, monkeypatch):
    """Somebody else's manifest appears after ours was found absent: the conditional put must lose."""
    from dpmask.lake.storage import Place

    create = Place.create

    def beaten(self, data, **more):
        if self.path.endswith("manifest.json"):
            self.fs.pipe_file(self.path, b"{}")
        create(self, data, **more)

    monkeypatch.setattr(Place, "create", beaten)
    ended = remote.run(**remote.remote)
    assert ended.code == 2
    assert "another run has just published here" in ended.err


def test_a_manifest_replaced_meanwhile_is_not_overwritten(remote, monkeypatch):
    from dpmask.lake.storage import Place

    assert remote.run(**remote.remote).code == 0
    version = Place.version

    def replaced_then(self):
        found = version(self)
        if self.path.endswith("manifest.json"):
            self.fs.pipe_file(self.path, b"{}")
        return found

    monkeypatch.setattr(Place, "version", replaced_then)
    ended = remote.run("--overwrite", **remote.remote, seed=8)
    assert ended.code == 2
    assert "another run has published here since this one began" in ended.err


def test_an_emptied_folder_has_no_files(s3):
    """The store keeps the folder; listed, it names itself."""
    from dpmask.lake.storage import Place

    folder = Place(f"{s3}/private/staging")
    (folder / "part").write(b"x")
    assert folder.files() == ["part"]
    folder.clear()
    assert folder.files() == []
    folder.clear()


@pytest.mark.parametrize("pair", [("holder", "wrong"), ("nobody", "holdersecret")])
def test_wrong_credentials(remote, store, monkeypatch, pair):
    use_credentials(monkeypatch, store, pair)
    _forget()
    ended = remote.run(**remote.remote)
    assert ended.code == 2
    assert "no permission to" in ended.err
    assert "wrong" not in ended.err
    assert "holdersecret" not in ended.err


def test_credentials_that_may_only_read(remote, store, monkeypatch):
    use_credentials(monkeypatch, store, store.reader)
    _forget()
    for command in ("plan", "run"):
        ended = remote.dpmask(command, remote.job(**remote.remote | {"private": "mine"}))
        assert ended.code == 2
        assert f"/release: no permission to write to it at {store.endpoint}" in ended.err
        assert not (remote.folder / "mine").exists()


def test_the_right_to_write_is_tried_without_a_trace(remote, s3):
    before = bucket_bytes(s3)
    assert remote.dpmask("plan", remote.job(**remote.remote)).code == 0
    assert bucket_bytes(s3) == before


class WantsTls(BaseHTTPRequestHandler):
    """What many servers answer to http:// where they expect https://."""

    def do_HEAD(self):
        self.send_response(400)
        self.end_headers()

    do_GET = do_HEAD

    def log_message(self, *_):
        pass


ENDPOINTS = {
    "nobody": ("http://127.0.0.1:9", "no store answers at http://127.0.0.1:9"),
    "unknown": ("http://store.invalid", "no store answers at http://store.invalid"),
    "no scheme": ("127.0.0.1:9", "the endpoint 127.0.0.1:9 is not a URL; it must begin with"),
    "password": ("http://me:secret@127.0.0.1:9", "no store answers at http://127.0.0.1:9"),
}


@pytest.mark.parametrize("command", ["plan", "run"])
@pytest.mark.parametrize("which", [*ENDPOINTS, "https for http", "http for https"])
def test_a_wrong_endpoint_is_named_before_anything_is_done(remote, store, monkeypatch, command, which):
    with ThreadingHTTPServer(("127.0.0.1", 0), WantsTls) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        tls = store.endpoint.replace("http", "https")
        plain = f"http://127.0.0.1:{other.server_port}"
        cases = ENDPOINTS | {
            "https for http": (tls, f"what answers at {tls} uses no TLS"),
            "http for https": (plain, f"what answers at {plain} refuses"),
        }
        endpoint, text = cases[which]
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        _forget()
        ended = remote.dpmask(command, remote.job(**remote.remote | {"target": "there", "private": "mine"}))
        other.shutdown()
    assert ended.code == 2, ended.err
    assert text in ended.err
    assert "AWS_ENDPOINT_URL" in ended.err
    assert "me:secret" not in ended.err
    assert not (remote.folder / "mine").exists()


@pytest.mark.parametrize("key", ["source", "target", "private"])
def test_places_that_cannot_be_written_or_opened(place, key):
    place.lake()
    ended = place.run(**{key: "hdfs://namenode/lake"})
    assert (ended.code, "hdfs:// cannot be opened" in ended.err) == (2, True)
    if key != "source":
        ended = place.run(**{key: "http://127.0.0.1:9/there"})
        assert (ended.code, "http:// can only be read" in ended.err) == (2, True)
    assert not (place.folder / "private").exists()


def test_no_bucket(remote, store):
    ended = remote.run(**remote.remote | {"source": "s3://no-such-bucket-here/lake"})
    assert ended.code == 4
    assert f"there is no such file or folder at {store.endpoint}" in ended.err


def test_small_files_are_fetched_together_and_large_ones_in_parts(remote, monkeypatch):
    import dpmask
    from dpmask.lake import reading

    lake = dpmask.read_lake(remote.remote["source"])
    wanted = pq.read_table(remote.folder / "lake", columns=["income", "id"])
    assert lake.blocks[0].content.read(["income", "id"]).equals(wanted)
    monkeypatch.setattr(reading, "_SMALL", 0)
    assert lake.blocks[0].content.read(["income", "id"]).equals(wanted)


def test_footers_are_read_once(remote, s3, monkeypatch):
    """Some requests to find the files, then one for each footer; a file that is gone meanwhile is named."""
    import s3fs

    import dpmask
    from dpmask.errors import InputError
    from dpmask.lake import footers

    asked = []
    call = s3fs.S3FileSystem._call_s3

    async def counted(self, method, *arguments, **options):
        asked.append(method)
        return await call(self, method, *arguments, **options)

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", counted)
    assert dpmask.read_lake(remote.remote["source"], columns=["income"]).rows == 600
    assert asked.count("get_object") == 3
    listed = footers.list_files

    def and_deleted(source, *where):
        found = listed(source, *where)
        source.fs.rm_file(f"{source.path}/part-1.parquet")
        return found

    monkeypatch.setattr(footers, "list_files", and_deleted)
    with pytest.raises(InputError, match=r"part-1\.parquet: does not exist"):
        dpmask.read_lake(remote.remote["source"])


def test_read_lake_from_a_bucket(remote):
    import dpmask

    lake = dpmask.read_lake(remote.remote["source"])
    assert lake.rows == 600
    frame = lake.to_dask().compute()
    assert frame["income"].tolist() == pq.read_table(remote.folder / "lake")["income"].to_pylist()


def _forget():
    """Make s3fs read the environment again."""
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
