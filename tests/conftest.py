"""What many tests share: small lakes, job files, the command line, a real cluster, a real object store."""

import hashlib
import json
import logging
import os
import re
import shutil
import time
from collections import Counter
from contextlib import ExitStack, chdir
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from open_gate import opened
from servers import object_store

QUIET = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
}
"""What clusters that wait for a test do not need to look at: it takes a seventh of a core, less than a thirtieth so."""


def pytest_configure():
    os.environ.update(QUIET)  # before anybody imports Dask
    from dpmask.job import keys

    keys.new_secret = repeatable_token
    keys.secrets = SimpleNamespace(token_hex=repeatable_token)


_TOKENS, _PROCESS = Counter(), os.getpid()


def repeatable_token(size=32):
    """A key or a salt that follows from the test that asks for it: draws of a run in this process are the same each time.

    So what a test says of rates either holds or does not. Processes that are forked from this one get others.
    """
    test = os.environ.get("PYTEST_CURRENT_TEST", "")
    _TOKENS[test] += 1
    forked = "" if os.getpid() == _PROCESS else os.getpid()
    return hashlib.sha256(f"{test} {_TOKENS[test]} {forked}".encode()).hexdigest()[: 2 * size]


def pytest_collection_modifyitems(items):
    """Real processes that are killed and real clocks fail now and then on a busy machine: such tests have a second try.

    They are marked one by one. What no load can change, such as bytes, counts and races that must have one winner, is
    never tried again.
    """
    for item in items:
        if item.get_closest_marker("machine"):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(autouse=True)
def _logging_as_it_was(monkeypatch):
    """A run that logs events leaves that to its process, and to the clusters that later tests would start from it."""
    monkeypatch.setenv("DASK_LOGGING", "")
    monkeypatch.delenv("DASK_LOGGING")
    before = logging.root.handlers[:]
    yield
    if logging.root.handlers != before:
        logging.captureWarnings(False)
        logging.root.handlers[:] = before


REFERENCE = Path(os.environ.get("DPMASK_REFERENCE_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def reference():
    if not REFERENCE.is_dir():
        pytest.skip(f"no reference data at {REFERENCE}; set DPMASK_REFERENCE_DATA")
    return REFERENCE


@pytest.fixture(scope="session")
def census(reference):
    """The CASC census data, standardised with ddof=0, columns x rows."""
    table = np.loadtxt(reference / "census.csv", delimiter=",", skiprows=1)
    return np.ascontiguousarray(((table - table.mean(axis=0)) / table.std(axis=0)).T)


def people(rows=600, seed=0):
    """A table with every type a lake may hold."""
    rng = np.random.default_rng(seed)
    income = rng.lognormal(9, 1, rows).round(2)
    return pa.table(
        {
            "id": pa.array(np.arange(rows)),
            "age": pa.array(rng.integers(0, 100, rows), pa.int32()),
            "children": pa.array(rng.integers(0, 5, rows), pa.int8(), mask=rng.random(rows) < 0.1),
            "income": income,
            "rate": pa.array(rng.normal(size=rows), pa.float32(), mask=rng.random(rows) < 0.1),
            "money": pa.array(
                [None if r < 0.1 else f"{x:.2f}" for x, r in zip(income, rng.random(rows), strict=True)]
            ).cast(pa.decimal128(12, 2)),
            "name": pa.array([f"né{n % 17}" for n in range(rows)]),
            "region": pa.array([["north", "south", "east"][n % 3] for n in range(rows)]).dictionary_encode(),
            "member": pa.array(rng.random(rows) < 0.5, mask=rng.random(rows) < 0.1),
            "born": pa.array(rng.integers(0, 20000, rows), pa.int32()).cast(pa.date32()),
            "seen": pa.array(rng.integers(0, 10**15, rows)).cast(pa.timestamp("us", tz="UTC")),
        }
    )


@pytest.fixture(scope="session")
def frame():
    """The people as a pandas frame, to read only."""
    return people(1000).to_pandas()


def write_lake(folder, table, files=4, row_group_size=120):
    folder.mkdir(parents=True, exist_ok=True)
    rows = table.num_rows
    for number in range(files):
        start, end = rows * number // files, rows * (number + 1) // files
        pq.write_table(
            table.slice(start, end - start), folder / f"part-{number}.parquet", row_group_size=row_group_size
        )
    return folder


SECRET = "6b0d1c88a4e94f53b1f2d7a9c05e3f62"
"""A key that is strong enough."""

JOB = {
    "name": "people",
    "source": "lake",
    "target": "release",
    "private": "private",
    "seed": 7,
    "block_rows": 200,
    "columns": {
        "identifier": ["id"],
        "quasi": ["age", "children", "region", "born"],
        "sensitive": ["income", "rate", "money", "seen"],
        "plain": ["name", "member"],
    },
    "mask": [{"method": "noise", "columns": ["age", "children", "income", "rate", "money"], "scale": 0.1}],
}


def refinement_step(*least):
    """A step that refines ``people`` under two requirements, with so many records in the groups of each."""
    quasi = [["age", "region"], ["children", "born"]]
    return {
        "method": "refinement",
        "requirements": [{"columns": columns, "k": k} for columns, k in zip(quasi, least, strict=True)],
        "taxonomies": {"region": {"land": {"coast": ["north", "east"], "inland": ["south"]}}},
        "domains": {"age": [0, 100], "children": [0, 10], "born": ["1970-01-01", "2030-01-01"]},
        "guide": {"column": "member"},
    }


class Ended(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


def as_trial(arguments, folder="."):
    """The arguments of a command; of one that runs, plans or fits a job with a seed, as a trial."""
    arguments = [str(argument) for argument in arguments]
    if arguments[:1] in (["run"], ["plan"], ["fit"]) and len(arguments) > 1:
        job = Path(folder, arguments[1])
        if os.path.isfile(job) and re.search(rb"^[\s{]*[\"']?seed[\"']?:", job.read_bytes(), re.MULTILINE):
            arguments.append("--trial")
    return arguments


class Workplace:
    """A folder with a lake and a job file, and the command line to use them."""

    def __init__(self, folder, capfd):
        self.folder, self.capfd = folder, capfd

    def lake(self, table=None, name="lake", **options):
        return write_lake(self.folder / name, people() if table is None else table, **options)

    def job(self, **changes):
        said = opened({key: value for key, value in (JOB | changes).items() if value is not None})
        (self.folder / "job.yaml").write_text(yaml.safe_dump(said, allow_unicode=True), encoding="utf-8")
        return "job.yaml"

    def dpmask(self, *arguments):
        """The command line in this process."""
        from dpmask.cli import main

        self.capfd.readouterr()
        try:
            code = main(as_trial(arguments, self.folder)) or 0
        except SystemExit as end:
            code = end.code or 0
        return Ended(code, *self.capfd.readouterr())

    def run(self, *options, **changes):
        return self.dpmask("run", self.job(**changes), *options)

    def run_once(self, sign=None, **changes):
        """A trial for all tests of a module, which are not to change it: they take a copy of the place."""
        from dpmask.job.run import run_job

        with chdir(self.folder):
            outcome = run_job(self.job(**changes), trial=True, sign=sign)
        assert outcome.status == "released", outcome
        return self

    def copy_of(self, other):
        """This place, with all that is in another one."""
        shutil.copytree(other.folder, self.folder, dirs_exist_ok=True)
        return self

    def released(self, target="release"):
        manifest = json.loads((self.folder / target / "manifest.json").read_text(encoding="utf-8"))
        return manifest, pa.concat_tables([pq.read_table(self.folder / target / f["path"]) for f in manifest["files"]])

    def measured(self, private="private"):
        """What the last run measured, exactly, by name."""
        result = json.loads((self.folder / private / "result.json").read_text(encoding="utf-8"))
        return {one["name"]: one["values"] for one in result["measures"]}

    def pairing(self, manifest):
        """Which record each released row was, in the order of the release's files."""
        folder = self.folder / "private" / manifest["run"] / "pairing"
        names = [file["path"].rsplit("/", 1)[-1] for file in manifest["files"]]
        return np.concatenate([pq.read_table(folder / name)["position"].to_numpy() for name in names])

    def by_original(self, table):
        """Released rows put back into the source's order."""
        manifest, released = self.released()
        positions = self.pairing(manifest)
        assert sorted(positions) == list(range(table.num_rows))
        return released.take(pa.array(np.argsort(positions)))

    def bytes(self, target="release"):
        root = self.folder / target
        return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.fixture
def limit():
    """Go by other limits from now on to the end of the test."""
    from dpmask.engine.limits import limits

    with ExitStack() as stack:
        yield lambda **changes: stack.enter_context(limits(**changes))


@pytest.fixture
def place(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    return Workplace(tmp_path, capfd)


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """A place for what is made once for all tests of a module."""
    return Workplace(tmp_path_factory.mktemp("once"), None)


@pytest.fixture(scope="session")
def cluster():
    """A real cluster of two worker processes, reached by address."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as made:
        yield made


@pytest.fixture
def client(cluster):
    from distributed import Client

    with Client(cluster.scheduler_address) as made:
        yield made


@pytest.fixture(params=[1, 3, 10])
def partitions(request):
    """Partitions to cut a table into: the most of them, more than a pass has tasks, on the cluster."""
    if request.param == 10:
        request.getfixturevalue("client")
    return request.param


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """A real S3 server on loopback, stopped by its own process id."""
    with object_store(tmp_path_factory.mktemp("store")) as made:
        yield made


@pytest.fixture
def s3(store, monkeypatch):
    """A fresh bucket, with the right credentials in the environment."""
    import s3fs

    use_credentials(monkeypatch, store, store.right)
    s3fs.S3FileSystem.clear_instance_cache()
    fs = s3fs.S3FileSystem(skip_instance_cache=True)
    bucket = f"b{time.time_ns()}"
    fs.mkdir(bucket)
    yield f"s3://{bucket}"
    use_credentials(monkeypatch, store, store.right)
    s3fs.S3FileSystem(skip_instance_cache=True).rm(bucket, recursive=True)


def use_credentials(monkeypatch, store, pair):
    monkeypatch.setenv("AWS_ENDPOINT_URL", store.endpoint)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", pair[0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", pair[1])
