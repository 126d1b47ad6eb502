"""A release every month by Airflow 3: put this file into the DAGs folder.

It only calls dpmask, which may live in an environment of its own: set DPMASK to its command. Exit code 0 is done; 5, or
a killed process, is tried again from where it stopped; all others would end the same way, so they are not. ${MONTH} in
the job file, or in an option --set, is the month of the run's logical date: each month is a release of its own.
"""

import os
import subprocess
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowFailException

FINAL = {1: "a bug", 2: "a bad job file, credentials, or a target in the way", 3: "the policy", 4: "unusable input"}


@task(retries=3, retry_delay=timedelta(seconds=int(os.environ.get("DPMASK_RETRY_SECONDS", "600"))))
def release(params: Any = None, ti: Any = None, dag_run: Any = None) -> None:
    command = [os.environ.get("DPMASK", "dpmask"), "run", params["job"], *params["options"]]
    again = ["--resume"] if ti.try_number > 1 else []
    month = f"{dag_run.logical_date or dag_run.run_after:%Y-%m}"
    ended = subprocess.run([*command, *again], cwd=params["folder"], env=os.environ | {"MONTH": month}, check=False)
    if ended.returncode in FINAL:
        raise AirflowFailException(f"dpmask ended with {ended.returncode}: {FINAL[ended.returncode]}")
    ended.check_returncode()


@dag(
    schedule="30 2 1 * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    params={
        "folder": "/srv/office",
        "job": "jobs/public_use_file/job.yaml",
        "options": ["--set", "target=out/public_use_file/${MONTH}/"],
    },
)
def dpmask_release() -> None:
    release()


made = dpmask_release()
