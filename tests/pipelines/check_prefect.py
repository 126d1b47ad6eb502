"""The Prefect flow, run by Prefect: what is retried and what is not."""

import sys

import pytest
from office import Checks


@pytest.fixture(scope="module", autouse=True)
def _server():
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness():
        yield


class TestPrefect(Checks):
    def run(self, office, *options):
        sys.modules.pop("prefect_flow", None)  # it reads the environment when it is imported
        from prefect_flow import dpmask_release

        return dpmask_release(str(office.folder), "job.yaml", list(options), return_state=True).is_completed()
