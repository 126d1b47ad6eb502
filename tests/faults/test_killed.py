"""The driver killed in the middle of publishing, interrupted, out of space, unheard."""

import signal
import subprocess
import sys
import time

import dask
import pytest
from conftest import people
from fault_tools import cli

KILLS = {
    # where the driver dies: code that makes it die there
    "at the first file": ("bring_to", 0, False),
    "between two files": ("bring_to", 3, False),
    "before the manifest": ("create", 0, False),
    "while the manifest is put": ("create", 0, True),
    "before old files are deleted": ("remove", 0, False),
}


def dying(method, calls, after):
    return f"""
from dpmask.lake.storage import Place
original, seen = Place.{method}, []
def method(self, *arguments):
    if {"private" if method == "remove" else "nothing"!r} in self.path: return original(self, *arguments)
    if {after}: original(self, *arguments)
    seen.append(1)
    if len(seen) > {calls}: os.kill(os.getpid(), signal.SIGKILL)
    return original(self, *arguments)
Place.{method} = method
"""


@pytest.mark.parametrize("case", KILLS)
def test_the_driver_killed_while_publishing_and_started_again(place, case):
    method, calls, after = KILLS[case]
    place.lake(people(800))
    source = place.bytes("lake")
    assert place.run(target="undisturbed", private="p2").code == 0
    job = place.job()
    died = cli(place, "run", job, code=dying(method, calls, after))
    _, err = died.communicate(timeout=120)
    assert died.returncode == -signal.SIGKILL, err
    if (place.folder / "release" / "manifest.json").exists():
        # a manifest stands only over complete files
        ended = place.dpmask("verify", "release")
        assert ended.code == 0 or "is not in the manifest" in ended.err
    else:
        assert place.dpmask("verify", "release").code == 4
    assert place.bytes("lake") == source
    ended = place.run()
    assert ended.code == 0, ended.err
    assert place.bytes() == place.bytes("undisturbed")
    assert place.dpmask("verify", "release").code == 0


@pytest.mark.parametrize(("method", "calls"), [("bring_to", 2), ("replace", 0), ("remove", 0)])
def test_the_driver_killed_while_replacing_leaves_the_old_release_or_the_new(place, method, calls):
    place.lake(people(800))
    assert place.run().code == 0
    old = place.bytes()
    assert place.run(seed=8, target="undisturbed", private="p2").code == 0
    job = place.job(seed=8)
    died = cli(place, "run", job, "--overwrite", code=dying(method, calls, after=False))
    died.communicate(timeout=120)
    assert died.returncode == -signal.SIGKILL
    now = place.bytes()
    new = place.bytes("undisturbed")
    whole = old if now["manifest.json"] == old["manifest.json"] else new
    assert now["manifest.json"] == whole["manifest.json"]
    assert whole.items() <= now.items(), "every file the manifest names is there"
    ended = place.run("--overwrite", seed=8)
    assert ended.code == 0, ended.err
    assert place.bytes() == new


def test_no_space_left(place):
    """A disk of one megabyte: the run ends with exit code 5 and nothing published."""
    small = place.folder / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a small disk")
    try:
        place.lake(people(1_500))
        for folders in ({"private": "small/private"}, {"target": "small/release"}):
            ended = place.run(**folders)
            assert ended.code == 5, ended.err
            assert "no space is left" in ended.err
            assert not (place.folder / folders.get("target", "release") / "manifest.json").exists()
            subprocess.run(["rm", "-rf", *small.glob("*")], check=True)
    finally:
        subprocess.run(["umount", small], check=True)


def test_no_scheduler(place):
    import distributed  # noqa: F401 - its settings must be there before one is changed

    place.lake(people(400))
    with dask.config.set({"distributed.comm.timeouts.connect": "2s"}):
        ended = place.run("--scheduler", "tcp://127.0.0.1:9")
    assert ended.code == 5
    assert "No Dask scheduler answers at tcp://127.0.0.1:9" in ended.err
    assert place.run("--cluster", "nowhere.yaml").code == 2


def test_nobody_reads_the_output(place):
    """A closed pipe changes neither the release nor the exit code."""
    place.lake(people(400))
    job = place.job()
    script = f"{sys.executable} -m dpmask run {job} --trial 2>&1 | head -1 >/dev/null; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", script], cwd=place.folder, check=False)
    assert ended.returncode == 0
    assert place.dpmask("verify", "release").code == 0
    for closed in ("2>&-", ">&-", ">/dev/full"):
        script = f"{sys.executable} -m dpmask run {job} --trial --overwrite {closed}"
        assert (
            subprocess.run(["bash", "-c", script], cwd=place.folder, check=False, stderr=subprocess.DEVNULL).returncode
            == 0
        )


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(place, sent):
    place.lake(people(1_600), row_group_size=20)
    job = place.job(block_rows=20)
    run = cli(place, "run", job)
    deadline = time.monotonic() + 60
    while not list(place.folder.glob("private/*/staging/*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    run.send_signal(sent)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    assert "Interrupted; nothing was published." in err
    assert "Traceback" not in err
    assert '"status": "interrupted"' in (place.folder / "private" / "result.json").read_text()
    assert not (place.folder / "release").exists()
    assert place.run(block_rows=20).code == 0


def test_interrupted_when_the_release_stands(place, monkeypatch):
    place.lake(people(400))

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpmask.job.stages.verify", interrupted)
    ended = place.run()
    assert ended.code == 130
    assert "the release may stand. Run the job again, or dpmask verify." in ended.err
    assert place.dpmask("verify", "release").code == 0


def test_a_killed_run_leaves_no_old_result(place):
    place.lake(people(400))
    assert place.run().code == 0
    job = place.job(seed=9, target="other")
    died = cli(place, "run", job, code=dying("bring_to", 0, after=False))
    died.communicate(timeout=120)
    assert '"status": "running"' in (place.folder / "private" / "result.json").read_text()
