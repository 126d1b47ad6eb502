"""Wrong input, each with its own message and exit code, and nothing published."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from conftest import JOB, SECRET, people

from dpmask.masking import METHODS


def column(table, name, values):
    values = pa.array(values) if isinstance(values, np.ndarray) else values
    return table.set_column(table.schema.get_field_index(name), name, values)


def drifting(other):
    """A lake whose last file is another one."""

    def make(place):
        place.lake()
        pq.write_table(other(people(50)), place.folder / "lake" / "part-9.parquet")

    return make


def corrupt_page(place):
    lake = place.lake()
    path = lake / "part-2.parquet"
    data = bytearray(path.read_bytes())
    data[10 : len(data) // 2] = os.urandom(len(data) // 2 - 10)
    path.write_bytes(data)


def corrupt_footer(place):
    (place.lake() / "part-2.parquet").write_bytes(b"PAR1 this is not Parquet PAR1")


def of(values, name="income", **options):
    return lambda place: place.lake(column(people(), name, values), **options)


def two_named_alike(place):
    table = people()
    place.lake(table.append_column("age", table["age"]))


ROWS = people().num_rows
WITH_INFINITY = np.where(np.arange(ROWS) == 500, np.inf, np.arange(ROWS, dtype=float))
CASES = {
    # name: (what makes the lake, changes to the job, exit code, what the message says)
    "no such path": (lambda p: None, {}, 4, "lake: there is no such file or folder"),
    "empty folder": (lambda p: (p.folder / "lake").mkdir(), {}, 4, "lake: holds no .parquet or .csv file"),
    "zero rows": (lambda p: p.lake(people(0), files=2), {}, 4, "lake: has no rows in 2 files"),
    "one row": (lambda p: p.lake(people(1), files=1), {}, 4, "lake: has one row; a release needs at least 2"),
    "corrupt footer": (corrupt_footer, {}, 4, "part-2.parquet: is damaged or not a Parquet file"),
    "corrupt page": (corrupt_page, {}, 4, "part-2.parquet: is damaged"),
    "empty file": (lambda p: (p.lake() / "part-9.parquet").write_bytes(b""), {}, 4, "part-9.parquet: is damaged"),
    "int against string": (
        drifting(lambda t: column(t, "age", t["age"].cast(pa.string()))), {}, 4,
        "part-9.parquet: column 'age' is string, the lake's schema says int32",
    ),
    "a missing column": (
        drifting(lambda t: t.drop_columns(["age"])), {}, 4,
        "part-9.parquet: column 'age' is missing, which part-0.parquet has",
    ),
    "an extra column": (
        drifting(lambda t: t.append_column("shoe", t["age"])), {}, 4,
        "part-9.parquet: column 'shoe' is not in the lake's schema",
    ),
    "other categories": (
        drifting(lambda t: column(t, "region", pa.array(["west"] * 50).dictionary_encode())), {}, 4,
        "part-9.parquet: column 'region' has other categories than the lake's first file",
    ),
    "categories of another type": (
        drifting(lambda t: column(t, "region", t["region"].cast(pa.dictionary(pa.int8(), pa.string())))), {}, 4,
        "part-9.parquet: column 'region' is dictionary<values=string, indices=int8",
    ),
    "undeclared column": (
        lambda p: p.lake(), {"columns": JOB["columns"] | {"plain": ["member"]}}, 2,
        "columns: the source's columns name have no role",
    ),
    "unknown column": (
        lambda p: p.lake(), {"columns": JOB["columns"] | {"plain": ["name", "member", "rgion"]}}, 2,
        "columns.plain[2]: the source has no column 'rgion'. Did you mean 'region'?",
    ),
    "column declared twice": (
        lambda p: p.lake(), {"columns": JOB["columns"] | {"plain": ["name", "member", "age"]}}, 2,
        "column 'age' is declared more than once",
    ),
    "duplicate columns": (two_named_alike, {}, 4, "has more than one column 'age'"),
    "all null": (of(pa.nulls(ROWS, pa.float64())), {}, 4, "column 'income' has no value in any record"),
    "all NaN": (of(np.full(ROWS, np.nan)), {}, 4, "column 'income' has no value in any record"),
    "one value": (
        of(pa.array([None] * (ROWS - 1) + [1.0])), {}, 4, "column 'income'",
    ),
    "infinities": (of(WITH_INFINITY), {}, 4, "column 'income' holds infinite values"),
    "constant": (of(np.full(ROWS, 3.5)), {}, 4, "column 'income' is constant, its standard deviation is 0"),
    "non-numeric for noise": (
        lambda p: p.lake(), {"mask": [{"method": "noise", "columns": ["name"], "scale": 0.1}]}, 2,
        "mask[0]: NoiseAddition: column 'name' must be numeric; it is string",
    ),
    "unknown column for noise": (
        lambda p: p.lake(), {"mask": [{"method": "noise", "columns": ["incme"], "scale": 0.1}]}, 2,
        "mask[0]: NoiseAddition: there is no column 'incme' in the table. Did you mean 'income'?",
    ),
    "noise on an identifier": (
        lambda p: p.lake(), {"mask": [{"method": "noise", "columns": ["id"], "scale": 0.1}]}, 2,
        "column 'id' is an identifier, which is dropped",
    ),
    "target inside the source": (lambda p: p.lake(), {"target": "lake/release"}, 2, "source and target must be different"),
    "source inside the target": (lambda p: p.lake(), {"target": "."}, 2, "source and target must be different"),
    "target is the source": (lambda p: p.lake(), {"target": "lake/../lake"}, 2, "source and target must be different"),
    "target inside a glob": (
        lambda p: p.lake(), {"source": "lake/*.parquet", "target": "lake/out"}, 2, "source and target must be different",
    ),
    "private inside the target": (lambda p: p.lake(), {"private": "release/p"}, 2, "target and private must be different"),
    "target is a file": (
        lambda p: (p.lake(), (p.folder / "release").write_text("x")), {}, 2, "release",
    ),
    "target exists": (
        lambda p: (p.lake(), (p.folder / "release").mkdir(), (p.folder / "release" / "thesis.doc").write_text("x")), {}, 2,
        "release: holds files that are not of a release, such as thesis.doc",
    ),
    "a measure on text": (
        lambda p: p.lake(), {"measure": [{"measure": "il1s", "columns": ["name"]}]}, 2,
        "measure[0]: il1s: column 'name' must be numeric",
    ),
    "a measure on an identifier": (
        lambda p: p.lake(), {"measure": [{"measure": "il1s", "columns": ["id"]}]}, 2, "column 'id' is an identifier",
    ),
    "a measure on nothing": (
        lambda p: p.lake(), {"measure": [{"measure": "il1s", "columns": []}]}, 2, "must be a list of one or more different",
    ),
    "nulls for rotation": (
        lambda p: p.lake(), {"mask": [{"method": "rotation", "columns": ["rate", "income"]}]}, 4,
        "RandomRotation: column 'rate' is missing in",
    ),
    "nulls for synthesis": (
        lambda p: p.lake(), {"mask": [{"method": "ipso", "variant": "A", "dependents": ["rate"], "independents": ["age"]}]}, 4,
        "IPSO: column 'rate' is missing in",
    ),
    "nulls for a measure": (
        lambda p: p.lake(), {"measure": [{"measure": "cluster_distance", "columns": ["rate", "income"], "clusters": 2}]}, 4,
        "cluster_distance: column 'rate' is missing in",
    ),
    "fewer records than a group": (
        lambda p: p.lake(), {"mask": [{"method": "microaggregation", "columns": ["income", "age"], "k": ROWS + 1}]}, 4,
        f"groups of {ROWS + 1} need at least as many records; there are {ROWS}",
    ),
    "a measure of a constant": (
        of(np.full(ROWS, 3.5)), {"mask": [{"method": "noise", "columns": ["age"], "scale": 0.1}],
        "measure": [{"measure": "moments", "columns": ["income"]}]}, 4, "moments: column 'income' is constant",
    ),
    "too large": (of(np.arange(ROWS) * 1e200), {}, 4, "column 'income' is too large or too small"),
    "too small": (of(np.arange(ROWS) * 1e-170), {}, 4, "column 'income' is too large or too small"),
    "private is a file": (lambda p: (p.lake(), (p.folder / "private").write_text("x")), {}, 2, "private"),
    "a password in a URL": (lambda p: p.lake(), {"source": "s3://me:hunter2@bucket/x"}, 2, "does not belong in a URL"),
    "key not set": (lambda p: p.lake(), {"seed": None, "key": "env:NO_SUCH_KEY"}, 2, "NO_SUCH_KEY is not set"),
    "no such protocol": (lambda p: p.lake(), {"source": "gopher://x/y"}, 2, "'gopher' is not a protocol that fsspec knows"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_bad_input(place, case):
    make, changes, code, text = CASES[case]
    make(place)
    before = place.bytes() if (place.folder / "release").is_dir() else None
    source = place.bytes("lake") if (place.folder / "lake").is_dir() else None
    ended = place.run(**changes)
    assert ended.code == code, ended.err
    assert text in ended.err
    assert "Traceback" not in ended.err
    assert (place.bytes() if (place.folder / "release").is_dir() else None) == before
    if source is not None:
        assert place.bytes("lake") == source
    if case not in {"corrupt page", "other categories"}:  # in columns that no step reads: not before all is read
        planned = place.dpmask("plan", "job.yaml")
        assert (planned.code, text in planned.err) == (code, True)


def test_values_are_never_quoted(place):
    table = column(people(), "income", pa.array([f"4711-{n}" for n in range(ROWS)]))
    place.lake(table)
    ended = place.run()
    assert ended.code == 2
    assert "4711" not in ended.err


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() != 0, reason="needs root, to run the command as a user without rights"
)
def test_no_permission_to_write(place):
    place.lake()
    place.job(target="closed/release")
    (place.folder / "closed").mkdir()
    (place.folder / "private").mkdir(0o700)
    os.chown(place.folder / "private", 65534, 65534)
    for path in [place.folder, *place.folder.parents]:
        path.chmod(0o755)
        if path.name.startswith("pytest-of-"):
            break
    # everything is imported before the rights are given up: this user may not even read Python's files
    code = (
        "import os; from dpmask.cli import cli; cli(['plan', 'job.yaml', '--trial'], standalone_mode=False);"
        "import dpmask.job.run; os.setuid(65534); cli(['run', 'job.yaml', '--trial'])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=place.folder, check=False)
    assert ended.returncode == 2, ended.stderr
    assert "closed/release: no permission to write to it" in ended.stderr


JOB_FILES = {
    # the text of a job file: what the message says
    "name: [unclosed": "is not valid YAML",
    "- a\n- list": "must be a mapping of keys",
    "name: a\nname: b": "line 2: name: stands twice",
}


@pytest.mark.parametrize("text", JOB_FILES)
def test_bad_yaml(place, text):
    (place.folder / "job.yaml").write_text(text)
    ended = place.dpmask("run", "job.yaml")
    assert ended.code == 2
    assert JOB_FILES[text] in ended.err


WRONG_KEYS = {
    "unknown key": ({"sorce": "x"}, "sorce: is not a key here. Did you mean 'source'?"),
    "missing key": ({"target": None}, "target: is missing"),
    "unknown role": ({"columns": {"quasy": []}}, "columns.quasy: is not a key here. Did you mean 'quasi'?"),
    "unknown method": (
        {"mask": [{"method": "nose"}]},
        f"mask[0].method: there is no method 'nose'. Did you mean 'noise'? Methods built: {', '.join(sorted(METHODS))}.",
    ),
    "method not built": ({"mask": [{"method": "tea"}]}, "there is no method 'tea'. Methods built: "),
    "no method": ({"mask": [{"scale": 1}]}, "mask[0]: says no method:"),
    "unknown measure": (
        {"measure": [{"measure": "luck"}]},
        "measure[0].measure: there is no measure 'luck'. Measures built: attribute_inference, cluster_distance, ",
    ),
    "unknown parameter": (
        {"mask": [{"method": "noise", "columns": ["age"], "scal": 1}]},
        "mask[0].scal: is not a key here. Did you mean 'scale'?",
    ),
    "bad parameter": (
        {"mask": [{"method": "noise", "columns": ["age"], "scale": -1}]},
        "NoiseAddition: scale must be a number > 0; got -1",
    ),
    "wrong type": ({"mask": [{"method": "noise", "columns": "age", "scale": 1}]}, "mask[0].columns: must be"),
    "column twice": ({"mask": [{"method": "noise", "columns": ["age", "age"], "scale": 1}]}, "got 'age twice'"),
    "empty mask": ({"mask": []}, "mask: must not be empty"),
    "bad order": ({"order": "random"}, "order: must be 'shuffled', 'within_files' or 'input'; got str 'random'"),
    "bad block_rows": ({"block_rows": 0}, "block_rows: must be greater than or equal to 1"),
    "a flag for a number": (
        {"mask": [{"method": "noise", "columns": ["age"], "scale": True}]},
        "mask[0].scale: must not be true",
    ),
    "a flag for a seed": ({"seed": True}, "seed: must not be true or false"),
    "a name of two lines": ({"name": "a\nb"}, "name: must be a text on one line"),
    "an empty name": ({"name": ""}, "name: must be a text on one line, without control characters, and not empty"),
    "an empty source": ({"source": ""}, "source: is wrong: it is empty"),
    "two numbers of households": (
        {"columns": {"household": ["id", "age"]}},
        "columns.household: takes 1 at most; it has 2",
    ),
    "a household with another key": (
        {"columns": {"household": {"column": "id", "drop": True}}},
        "columns.household: is wrong: write NAME, or {column: NAME, release: false}",
    ),
    "a household released somehow": (
        {"columns": {"household": {"column": "id", "release": "yes"}}},
        "columns.household: is wrong: release must be true (as a pseudonym) or false (dropped)",
    ),
    "key and seed": ({"key": "env:X"}, "give key: env:NAME (a secret) or seed: NUMBER (for trials), not both"),
    "measure twice": (
        {"measure": [{"measure": "il1s", "columns": ["age"]}] * 2},
        "measure[1]: 'il1s' stands twice. Name this one with as: NAME",
    ),
    "bad rule": ({"policy": ["be nice"]}, "policy[0]: 'be nice' is no rule"),
    "rule on nothing": (
        {"policy": ["il1s.value < 1"]},
        "policy[0]: 'il1s.value < 1' refers to 'il1s', which the job does not measure",
    ),
    "rule on no field": (
        {"measure": [{"measure": "il1s", "columns": ["age"]}], "policy": ["il1s.rate < 1"]},
        "il1s has no 'rate'. Known: value.",
    ),
}


@pytest.mark.parametrize("case", WRONG_KEYS)
def test_wrong_keys_name_their_line_and_path(place, case):
    place.lake()
    changes, text = WRONG_KEYS[case]
    ended = place.run(**changes)
    assert ended.code == 2
    assert text in ended.err
    assert "job.yaml: " in ended.err


@pytest.mark.parametrize("key", ["hunter2hunter2hunter2hunter2hunter2", ["hunter2"], {"hunter2": "hunter2"}])
def test_a_secret_in_the_job_file_is_not_repeated(place, key):
    place.lake()
    ended = place.run(seed=None, key=key)
    assert ended.code == 2
    assert "the secret itself does not belong in a job file" in ended.err
    assert "hunter2" not in ended.err + ended.out


def for_generated_people(example):
    """The example job without what the generated census has no column for, or what cannot be had together."""
    job = yaml.safe_load(example.read_text())
    first, of_households = job["mask"][0]["requirements"]
    del first["models"]  # of hours_band
    assert of_households["of"] == "households"
    job["mask"][0]["requirements"] = [first]  # cells are not set to missing for households
    job["measure"].append({"measure": "groups", "k": 10})
    return job


def test_the_example_job_lacks_nothing_but_its_files(place, reference, monkeypatch):
    example = place.folder / "example.yaml"
    example.write_text(yaml.safe_dump(for_generated_people(reference.parent / "job-example.yaml")))
    monkeypatch.setenv("MONTH", "may")
    ended = place.dpmask("plan", example)
    assert ended.code == 2
    assert "taxonomies/education.yaml: there is no such file" in ended.err
    own = Path(__file__).parents[2] / "jobs" / "taxonomies" / "education.yaml"
    (place.folder / "taxonomies").mkdir()
    shutil.copy(own, place.folder / "taxonomies")
    assert place.dpmask("generate", "lake", "--rows", "2000").code == 0
    monkeypatch.setenv("DPMASK_KEY", SECRET)
    ended = place.dpmask("plan", example)
    assert ended.code == 0, ended.err
    assert "2,000 rows" in ended.out
