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


def test_the_condition_of_a_retry_decides_and_does_not_fail():
    """Prefect takes a condition that fails for a no, so the checks above cannot tell."""
    from prefect.states import Failed
    from prefect_flow import FinalError, worth_a_retry

    assert worth_a_retry(None, None, Failed(data=FinalError())) is False
    assert worth_a_retry(None, None, Failed(data=OSError())) is True
