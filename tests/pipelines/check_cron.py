"""The script that cron calls: what is retried and what is not."""

import subprocess
from pathlib import Path

from office import Checks

SCRIPT = Path(__file__).parents[2] / "jobs" / "pipelines" / "run.sh"


class TestCron(Checks):
    def run(self, office, *options):
        return subprocess.run([SCRIPT, "job.yaml", *options], cwd=office.folder, check=False).returncode == 0
