"""A real S3 server behind a proxy that fails: for a while, and the run does not mind; for good, and it ends cleanly."""

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest
from conftest import people, use_credentials


class Proxy(ThreadingHTTPServer):
    """Hands requests on as they are, but for those it fails: some of them, counted from now, or all."""

    daemon_threads = True

    def __init__(self, upstream):
        super().__init__(("127.0.0.1", 0), Handler)
        self.upstream, self.lock = urlsplit(upstream).netloc, threading.Lock()
        self.heal()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def heal(self):
        self.seen, self.fails, self.how, self.failed = 0, range(0), "500", 0

    def fail(self, how, first, count):
        self.seen, self.fails, self.how, self.failed = 0, range(first, first + count), how, 0

    def fails_now(self):
        with self.lock:
            self.seen += 1
            now = self.seen - 1 in self.fails
            self.failed += now
            return now


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_one(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.server.fails_now():
            self._refuse()
            return
        connection = http.client.HTTPConnection(self.server.upstream, timeout=60)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        self._answer(connection.getresponse())
        connection.close()

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_one

    def _answer(self, response):
        data = response.read()
        self.send_response_only(response.status)
        for name, value in response.getheaders():
            if name.lower() not in {"content-length", "transfer-encoding", "connection"}:
                self.send_header(name, value)
        length = response.getheader("Content-Length") if self.command == "HEAD" else str(len(data))
        self.send_header("Content-Length", length or "0")
        self.end_headers()
        self.wfile.write(data)

    def _refuse(self):
        if self.server.how != "dropped":
            expired = self.server.how == "expired"
            body = b"<Error><Code>ExpiredToken</Code></Error>" if expired and self.command != "HEAD" else b""
            self.send_response_only(400 if expired else int(self.server.how))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture
def proxy(store):
    made = Proxy(store.endpoint)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture
def remote(place, s3, store, proxy, monkeypatch):
    """A lake in a bucket behind the proxy, and what its release looks like."""
    import s3fs

    place.lake(people(), files=3)
    s3fs.S3FileSystem().put(str(place.folder / "lake"), f"{s3}/lake", recursive=True)
    assert place.run(target="undisturbed").code == 0
    use_credentials(monkeypatch, store._replace(endpoint=proxy.url), store.right)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    s3fs.S3FileSystem.clear_instance_cache()
    place.said = {"source": f"{s3}/lake", "target": f"{s3}/release", "private": f"{s3}/private"}
    yield place
    s3fs.S3FileSystem.clear_instance_cache()


def bucket(url):
    import s3fs

    fs = s3fs.S3FileSystem()
    fs.invalidate_cache()
    root = url.removeprefix("s3://") + "/"
    return {path.removeprefix(root): fs.cat_file(path) for path in fs.find(root)}


@pytest.mark.parametrize("how", ["500", "dropped"])
def test_errors_for_a_while(remote, proxy, how):
    proxy.fail(how, 60, 8)
    ended = remote.run(**remote.said)
    assert ended.code == 0, ended.err
    assert proxy.failed == 8
    assert bucket(remote.said["target"]) == remote.bytes("undisturbed")


def test_errors_for_good(remote, proxy, limit):
    """The old release stays as it was; when the store is back, the run goes on from where it was."""
    assert remote.run(**remote.said, seed=8).code == 0
    old = bucket(remote.said["target"])
    limit(journal_seconds=0.0, lock_seconds=0.2, lock_patience=1.0)  # the lock stays behind
    proxy.fail("503", 100, 10**9)
    ended = remote.run("--overwrite", **remote.said)
    assert ended.code == 5, ended.err
    assert "Traceback" not in ended.err
    assert proxy.failed > 0
    proxy.heal()
    assert bucket(remote.said["target"]) == old
    ended = remote.run("--overwrite", "--resume", "--json", **remote.said)
    assert ended.code == 0, ended.err
    assert ended.json["resumed"]["passes"] > 0
    assert bucket(remote.said["target"]) == remote.bytes("undisturbed")
    assert not [name for name in bucket(remote.said["private"]) if "checkpoint" in name or "staging" in name]


@pytest.mark.parametrize("first", [100, 101])
def test_an_expired_token_is_named_and_the_run_goes_on_with_another(remote, proxy, limit, first):
    limit(journal_seconds=0.0, lock_seconds=0.2, lock_patience=1.0)
    proxy.fail("expired", first, 10**9)
    ended = remote.run(**remote.said)
    assert ended.code == 2, ended.err
    assert "the credentials have expired" in ended.err
    assert "--resume" in ended.err
    proxy.heal()
    ended = remote.run("--resume", "--json", **remote.said)
    assert ended.code == 0, ended.err
    assert ended.json["resumed"]["passes"] > 0
    assert bucket(remote.said["target"]) == remote.bytes("undisturbed")
