"""A release every month by Prefect 3: python jobs/pipelines/prefect_flow.py serves it until it is stopped.

It only calls dpmask, which may live in an environment of its own: set DPMASK to its command. Exit code 0 is done; 5, or
a killed process, is tried again from where it stopped; all others would end the same way, so they are not. ${MONTH} in
the job file, or in an option --set, is the month that the run was scheduled for: each month is a release of its own.
"""

import os
import subprocess
from typing import Any

from prefect import flow, task
from prefect.context import TaskRunContext
from prefect.runtime import flow_run

FINAL = {1: "a bug", 2: "a bad job file, credentials, or a target in the way", 3: "the policy", 4: "unusable input"}


class FinalError(Exception):
    """Ended in a way that no retry can mend."""


def worth_a_retry(task: Any, run: Any, state: Any) -> bool:
    return not isinstance(state.result(raise_on_failure=False), FinalError)


@task(
    retries=3,
    retry_delay_seconds=int(os.environ.get("DPMASK_RETRY_SECONDS", "600")),
    retry_condition_fn=worth_a_retry,
)
def release(folder: str, job: str, options: list[str]) -> None:
    command = [os.environ.get("DPMASK", "dpmask"), "run", job, *options]
    again = ["--resume"] if TaskRunContext.get().task_run.run_count > 1 else []
    month = f"{flow_run.scheduled_start_time:%Y-%m}"
    ended = subprocess.run([*command, *again], cwd=folder, env=os.environ | {"MONTH": month}, check=False)
    if ended.returncode in FINAL:
        raise FinalError(f"dpmask ended with {ended.returncode}: {FINAL[ended.returncode]}")
    ended.check_returncode()


@flow
def dpmask_release(
    folder: str = "/srv/office", job: str = "jobs/public_use_file/job.yaml", options: list[str] | None = None
) -> None:
    release(folder, job, options if options is not None else ["--set", "target=out/public_use_file/${MONTH}/"])


if __name__ == "__main__":
    dpmask_release.serve(cron="30 2 1 * *")
