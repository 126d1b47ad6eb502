"""Job, taxonomy, cluster and key files that are made to harm: a clear error in 2 s of CPU and 200 MB, never a bug."""

import json
import os
import resource
import subprocess
import sys

import pytest
import yaml
from apart import Apart, forked, main_code
from conftest import JOB, people, write_lake

pytestmark = pytest.mark.machine

BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9))]
)
MERGES = "\n".join(["m0: &m0 {x: 1}", *(f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 9)}]}}" for n in range(1, 9))])
BOMBS = {
    "many keys": "\n".join(f"k{number}: 1" for number in range(24_000)),
    "aliases": BOMB,
    "merges": MERGES,
    "itself": "a: &a [*a]",
    "deep": "a: " + "[" * 20_000,
    "deep mappings": "a: " + "{a: " * 20_000,
    "deep blocks": "\n".join(" " * n + "- a:" for n in range(0, 1200)),
    "a huge integer": "a: " + "9" * 50_000,
    "a huge hex number": "a: 0x" + "f" * 200_000,
    "a huge base 60": "a: 1" + ":11" * 50_000,
    "list keys": "? [a, b]\n: c",
    "mapping keys": "? {a: b}\n: c",
    "a million characters": "name: " + "x" * 1_000_000,
    "half a million characters": "name: " + "x" * 500_000,
    "many values": "a: [" + "1," * 300_000 + "1]",
    "a tag": "a: !!python/object/apply:os.system [id]",
    "bytes": "a: !!binary aGVsbG8=",
    "a set": "a: !!set {x, y}",
    "an integer without digits": "!!int",
    "a flag that is none": "a: !!bool maybe",
    "a time that is none": "a: !!timestamp soon",
    "no date": "a: 2001-99-99",
    "half a character": 'a: "\\ud800"',
    "a key twice": "a: 1\na: 2",
    "control characters": "a: \x01",
    "two documents": "a: 1\n---\nb: 2",
    "a tab": "a:\n\t- b",
    "nothing": "",
    "a list": "- a",
}


TAXONOMIES = {
    "deep.json": "[" * 100_000,
    "twice.json": '{"a": 1, "a": 2}',
    "long integer.json": json.dumps({"a": 10**4000}) + "9" * 5000,
    "long name.json": json.dumps(["x" * 1_000_000]),
    "many.json": "[" + "1," * 1_000_000 + "1]",
    "many.yaml": "[" + "1," * 150_000 + "1]",
    "large.yaml": "a: " + "x" * (3 << 20),
    "deep.csv": ";".join(map(str, range(5000))),
    "many.csv": "".join(f"{number};*\n" for number in range(200_000)),
    "many levels.csv": "\n".join(";".join(f"{line}.{part}" for part in range(60)) for line in range(4500)),
    "nul.csv": "a\0;b",
    "utf16.yaml": "a: b".encode("utf-16").decode("latin-1"),
}


@pytest.fixture(scope="module")
def alone():
    """The command line in a process of its own, which has imported what a plain start imports."""
    apart = Apart()
    yield lambda *arguments: apart(forked, main_code, *arguments)
    apart.end()


COMMANDS = {
    "job": ("plan", "bad.yaml"),
    "cluster": ("plan", "job.yaml", "--trial", "--cluster", "bad.yaml"),
    "taxonomy": ("taxonomy", "check", "bad.yaml", "lake", "--column", "region"),
}


@pytest.fixture(scope="module")
def checking(alone, tmp_path_factory):
    """The seconds of CPU that checking a plain taxonomy takes, which reads the lake."""
    folder = tmp_path_factory.mktemp("plain")
    write_lake(folder / "lake", people())
    (folder / "plain.csv").write_text("north;*\n")
    ended = alone("taxonomy", "check", str(folder / "plain.csv"), str(folder / "lake"), "--column", "region")
    assert ended.code == 4, ended.text
    return ended.seconds


def within_limits(ended, besides=0.0):
    print(f"{ended.seconds:.2f} s, {ended.megabytes:.0f} MB")
    assert ended.seconds < 2 + besides
    assert ended.megabytes < 200
    assert max(map(len, ended.text.splitlines())) <= 520


@pytest.mark.parametrize("kind", COMMANDS)
@pytest.mark.parametrize("case", BOMBS)
def test_a_hostile_file(place, alone, checking, case, kind):
    """What is refused names the file, in 2 s of CPU and 200 MB beyond a plain start, or beyond checking a plain tree."""
    place.lake()
    place.job()
    (place.folder / "bad.yaml").write_bytes(BOMBS[case].encode())
    ended = alone(*COMMANDS[kind])
    is_a_tree = (kind, case) == ("taxonomy", "a list")
    within_limits(ended, checking if is_a_tree else 0)
    if is_a_tree:
        assert ended.code == 4, "a tree, but it lacks the values of the lake"
    else:
        assert (ended.code, "bad.yaml" in ended.text) == (2, True), ended.text


@pytest.mark.parametrize(("name", "text"), TAXONOMIES.items(), ids=TAXONOMIES)
def test_hostile_json_and_table_taxonomies(place, alone, checking, name, text):
    place.lake()
    (place.folder / name).write_text(text, encoding="utf-8")
    ended = alone("taxonomy", "check", name, "lake", "--column", "region")
    is_a_tree = name == "nul.csv"
    within_limits(ended, checking if is_a_tree else 0)
    assert ended.code == (4 if is_a_tree else 2), ended.text


ALONE = """
import atexit, re, resource, sys
from dpmask.cli import main

def report():
    used = resource.getrusage(resource.RUSAGE_SELF)
    with open("/proc/self/status") as status:  # ru_maxrss would be that of whoever started this process
        peak = re.search(r"VmHWM:\\s+(\\d+)", status.read())[1]
    with open("used", "w") as file:
        file.write(f"{used.ru_utime + used.ru_stime} {peak}")

atexit.register(report)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("kind", COMMANDS)
def test_in_a_process_that_has_imported_nothing(place, kind):
    """The whole of a process, imports among them: 200 MB, and 2 s of CPU more than that of a file with a wrong word."""
    place.lake()
    place.job()
    used = {}
    for name, text in {"a wrong word": "wrong: 1", "many values": BOMBS["many values"]}.items():
        (place.folder / "bad.yaml").write_text(text)
        ended = subprocess.run([sys.executable, "-c", ALONE, *COMMANDS[kind]], capture_output=True, check=False)
        assert ended.returncode in {2, 4}
        used[name] = [float(one) for one in (place.folder / "used").read_text().split()]
    assert used["many values"][0] < 2 + used["a wrong word"][0]
    assert used["many values"][1] < 200 << 10


def test_a_hundred_thousand_columns(place):
    place.lake()
    names = [f"c{n}" for n in range(100_000)]
    (place.folder / "job.yaml").write_text(yaml.dump(JOB | {"columns": {"plain": names}}, Dumper=yaml.CSafeDumper))
    before = resource.getrusage(resource.RUSAGE_SELF)
    ended = place.dpmask("plan", "job.yaml")
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert ended.code == 2
    assert "job.yaml" in ended.err
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2


def test_ten_thousand_columns_are_checked_at_once(place):
    """Work grows with the columns: four times as many take far less than the sixteen times that their square would."""
    place.lake()
    place.dpmask("plan", place.job(columns={"plain": ["age", "c0"]}))  # which imports what a plan needs
    few, many = (cpu_of_a_refusal(place, columns) for columns in (2_500, 10_000))
    assert many < 8 * few


def cpu_of_a_refusal(place, columns):
    before = resource.getrusage(resource.RUSAGE_SELF)
    ended = place.dpmask("plan", place.job(columns={"plain": ["age", *(f"c{n}" for n in range(columns))]}))
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert (ended.code, "has no column" in ended.err) == (2, True)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("what", ["job", "key", "signer", "cluster", "taxonomy", "source"])
def test_a_pipe_or_a_device_is_refused_and_not_waited_for(place, what):
    place.lake()
    for name in ("pipe", "pipe.yaml", "lake/pipe.parquet"):
        if what != "source" and name.startswith("lake"):
            continue
        os.mkfifo(place.folder / name)
    for path in ("pipe", "/dev/zero"):
        given = {
            "job": lambda path=path: ("plan", path),
            "key": lambda path=path: ("run", place.job(seed=None, key=f"file:{path}")),
            "signer": lambda path=path: ("run", place.job(), "--sign", path),
            "cluster": lambda path=path: ("plan", place.job(), "--cluster", path),
            "taxonomy": lambda path=path: ("taxonomy", "check", path, "lake", "--column", "region"),
            "source": lambda path=path: ("plan", place.job()),
        }[what]()
        ended = place.dpmask(*given)
        assert ended.code in {2, 4}, ended.err
        assert "a pipe or a device" in ended.err or "must be a file" in ended.err


def test_names_of_a_million_characters_on_the_command_line(place):
    place.lake()
    long = "x" * 100_000
    for arguments in (
        ("plan", long),
        ("verify", long),
        ("taxonomy", "check", long, "lake"),
        ("evaluate", "lake", long),
    ):
        ended = place.dpmask(*arguments)
        assert ended.code in {2, 4}
        assert len(ended.err) < 1200
