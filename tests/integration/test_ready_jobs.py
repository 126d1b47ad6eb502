"""The ready jobs, as their users run them: on a generated census, from the folder that has jobs/."""

import subprocess
import sys
from pathlib import Path

import pytest

JOBS = Path(__file__).parents[2] / "jobs"
READY = sorted(path.parent.name for path in JOBS.glob("*/job.yaml"))


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    """A folder with a census of 20,000 people and the ready jobs."""
    from dpmask.lake.generate import generate_lake

    folder = tmp_path_factory.mktemp("office")
    generate_lake(str(folder / "lake"), rows=20_000, files=4, seed=1, nulls=False)
    (folder / "jobs").symlink_to(JOBS)
    return folder


def test_an_offices_usual_releases_are_there():
    assert {"public_use_file", "scientific_use_file", "synthetic_teaching_file", "cluster_analysis"} < set(READY)


@pytest.mark.parametrize("name", READY)
def test_a_ready_job_is_released_once(office, place, monkeypatch, name):
    """Its policy holds, what it released verifies, and a second run says so and changes nothing."""
    monkeypatch.chdir(office)
    job = f"jobs/{name}/job.yaml"
    first = place.dpmask("run", job, "--json")
    assert first.code == 0, first.err
    assert first.json["policy"], "a ready job says what must hold"
    release = Path(first.json["release"])
    assert place.dpmask("verify", release).code == 0
    before = {path: path.stat().st_mtime_ns for path in release.rglob("*")}
    again = place.dpmask("run", job)
    assert again.code == 0
    assert "Already released 20,000 records" in again.out
    assert {path: path.stat().st_mtime_ns for path in release.rglob("*")} == before


def test_the_script_ends_as_the_command_does():
    ended = subprocess.run([sys.executable, JOBS / "release.py", "nowhere.yaml"], capture_output=True, check=False)
    assert (ended.returncode, b"nowhere.yaml" in ended.stderr) == (2, True)
