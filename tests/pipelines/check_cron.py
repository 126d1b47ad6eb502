"""The script that cron calls: what is retried and what is not."""

import os
import subprocess
from pathlib import Path

import pytest
from office import ENDS, Checks, Office

JOBS = Path(__file__).parents[2] / "jobs"
SCRIPT = JOBS / "pipelines" / "run.sh"


class TestCron(Checks):
    def run(self, office, *options):
        return subprocess.run([SCRIPT, "job.yaml", *options], cwd=office.folder, check=False).returncode == 0


def test_the_next_month(tmp_path):
    """The same line again, a month later."""
    office = Office(tmp_path)
    for month in ("2026-11", "2026-12"):
        command = [SCRIPT, "job.yaml", "--set", "target=release/${MONTH}/"]
        subprocess.run(command, cwd=tmp_path, env=os.environ | {"MONTH": month}, check=True)
        assert (tmp_path / "release" / month / "manifest.json").exists()
    assert office.codes == [0, 0]


@pytest.mark.parametrize("end", ["released", "refused by the policy"])
def test_the_line_in_the_crontab(tmp_path, end):
    """As cron runs it, but for the places: quiet if all is well, the reason if not, the metrics in any case."""
    changes, code = ENDS[end]
    office = Office(tmp_path, changes)
    (tmp_path / "out").mkdir()
    (tmp_path / "jobs").symlink_to(JOBS)
    (tmp_path / "key.env").write_text("export DPMASK_KEY=6b0d1c88a4e94f53b1f2d7a9c05e3f62\n")
    line = (JOBS / "pipelines" / "crontab").read_text().splitlines()[-1].split(maxsplit=5)[5]
    places = {
        "/srv/office": tmp_path,
        "jobs/public_use_file/job.yaml": "job.yaml",
        "/var/lib/node_exporter/textfile": tmp_path,
    }
    for there, here in places.items():
        line = line.replace(there, str(here))
    ended = subprocess.run(["sh", "-c", line], env=os.environ, capture_output=True, text=True, check=True)
    assert office.codes == [code]
    assert (ended.stdout == "") == (code == 0)
    assert code == 0 or "il1s.value <= 0: it is" in ended.stdout
    assert f'dpmask_run_exit_code{{name="office"}} {code}' in (tmp_path / "dpmask_public_use_file.prom").read_text()
