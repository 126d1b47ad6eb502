"""The Airflow DAG, run by Airflow: what is retried and what is not."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from office import Checks

PIPELINES = Path(__file__).parents[2] / "jobs" / "pipelines"
os.environ |= {  # read by Airflow when it is imported
    "AIRFLOW_HOME": tempfile.mkdtemp(),
    "AIRFLOW__CORE__DAGS_FOLDER": str(PIPELINES),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
}


@pytest.fixture(scope="module", autouse=True)
def _database():
    subprocess.run([Path(sys.executable).parent / "airflow", "db", "migrate"], check=True, capture_output=True)


class TestAirflow(Checks):
    def run(self, office, *options):
        sys.modules.pop("airflow_dag", None)  # it reads the environment when it is imported
        from airflow_dag import made

        ended = made.test(run_conf={"folder": str(office.folder), "job": "job.yaml", "options": list(options)})
        return ended.state == "success"
