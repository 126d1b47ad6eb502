"""The ready jobs, as their users run them: on a generated census, from the folder that has jobs/."""

import subprocess
import sys
from pathlib import Path

import pytest

JOBS = Path(__file__).parents[2] / "jobs"
READY = sorted(path.parent.name for path in JOBS.glob("*/job.yaml"))


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    """A folder with a census of 20,000 people, 50,000 tax units, and the ready jobs."""
    from dpmask.lake.generate import generate_lake

    folder = tmp_path_factory.mktemp("office")
    generate_lake(str(folder / "lake"), rows=20_000, files=4, seed=1, nulls=False)
    generate_lake(str(folder / "units"), rows=50_000, files=2, seed=1, kind="tax_units")
    (folder / "jobs").symlink_to(JOBS)
    return folder


def test_an_offices_usual_releases_are_there():
    assert {
        "public_use_file",
        "scientific_use_file",
        "synthetic_teaching_file",
        "cluster_analysis",
        "household_survey",
        "tax_units",
    } < set(READY)


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
    assert f"Already released {first.json['rows']:,} records" in again.out
    assert {path: path.stat().st_mtime_ns for path in release.rglob("*")} == before


def test_the_first_try_of_the_readme_is_refused_by_the_gate(office, place, monkeypatch):
    """Its own rule holds; all columns at once lead to most people."""
    monkeypatch.chdir(office)
    ended = place.dpmask("run", "jobs/household_income/first_try.yaml", "--json")
    assert ended.code == 3
    broken = {rule["rule"]: rule["judged"] for rule in ended.json["policy"] if not rule["held"]}
    assert list(broken) == ["gate.linkage <= 0.05"]
    assert broken["gate.linkage <= 0.05"] > 0.5
    assert "The columns that contribute most" in ended.json["error"]


def test_the_script_ends_as_the_command_does():
    ended = subprocess.run([sys.executable, JOBS / "release.py", "nowhere.yaml"], capture_output=True, check=False)
    assert (ended.returncode, b"nowhere.yaml" in ended.stderr) == (2, True)


def test_a_year_of_a_series_begins(tmp_path):
    """Two months of jobs/monthly_census, as the guide shows them: nobody is below k in the series, others are without it."""
    (tmp_path / "jobs").symlink_to(JOBS)
    year = [sys.executable, "jobs/monthly_census/year.py", "--until", "2"]
    ended = subprocess.run(year, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    heading, *months = printed = [line.split() for line in ended.stdout.splitlines()]
    guide = (JOBS.parent / "dpmask/guide/series.md").read_text(encoding="utf-8").splitlines()
    first = next(number for number, line in enumerate(guide) if line.split() == heading)
    assert printed == [line.split() for line in guide[first : first + 3]]
    assert [row[3] for row in months] == ["0", "0"]
    assert [int(row[4]) > 0 for row in months] == [False, True]
