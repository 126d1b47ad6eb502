"""The same job file on a real S3 server."""

import json

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
    assert "Already released" in again.out


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

    def beaten(self, data):
        self.fs.pipe_file(self.path, b"{}")
        create(self, data)

    monkeypatch.setattr(Place, "create", beaten)
    ended = remote.run(**remote.remote)
    assert ended.code == 2
    assert "another run has just published here" in ended.err


def test_a_manifest_replaced_meanwhile_is_not_overwritten(remote, monkeypatch):
    from dpmask.lake.storage import Place

    assert remote.run(**remote.remote).code == 0
    version = Place.version
    monkeypatch.setattr(Place, "version", lambda self: (version(self), self.fs.pipe_file(self.path, b"{}"))[0])
    ended = remote.run("--overwrite", **remote.remote, seed=8)
    assert ended.code == 2
    assert "changed while this run was under way" in ended.err


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
    ended = remote.run(**remote.remote)
    assert ended.code == 2
    assert "no permission to write to it" in ended.err


def test_no_server(remote, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    _forget()
    ended = remote.run(**remote.remote)
    assert ended.code == 5
    assert "storage failed (EndpointConnectionError)" in ended.err


def test_no_bucket(remote):
    ended = remote.run(**remote.remote | {"source": "s3://no-such-bucket-here/lake"})
    assert ended.code == 4
    assert "there is no such file or folder" in ended.err


def test_read_lake_from_a_bucket(remote):
    import dpmask

    lake = dpmask.read_lake(remote.remote["source"])
    assert lake.rows == 1000
    frame = lake.to_dask().compute()
    assert frame["income"].tolist() == pq.read_table(remote.folder / "lake")["income"].to_pylist()


def _forget():
    """Make s3fs read the environment again."""
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
