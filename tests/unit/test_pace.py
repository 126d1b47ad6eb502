"""Plans count in the time of this machine: all that was measured elsewhere is taken by its pace."""

import pytest

from dpmask.engine import pace as paces
from dpmask.job import estimate
from dpmask.job.model import read_job


def test_the_least_of_several_times_counts(monkeypatch):
    """Whoever else uses the machine makes some of them longer, and none shorter."""
    times = iter([9.0, 4.0, 2.0, 7.0, 3.0])
    monkeypatch.setattr(paces, "_seconds", lambda values: next(times) * paces._REFERENCE)
    assert paces.pace.__wrapped__() == pytest.approx(2.0)


def test_it_measures_the_processor():
    assert 0.1 < paces.pace.__wrapped__() < 20.0


def test_a_slow_machine_takes_longer(place, monkeypatch):
    place.lake()
    job = read_job(str(place.folder / place.job(seed=1)))
    found = {}
    for pace in (1.0, 10.0):
        monkeypatch.setattr(estimate, "pace", lambda pace=pace: pace)
        monkeypatch.setattr(estimate, "_sample", lambda *_: (0.0, 0.0))
        found[pace] = estimate.plan(job, trial=True)
    assert found[1.0].cpu_seconds > 1.0
    assert found[10.0].cpu_seconds == pytest.approx(10.0 * found[1.0].cpu_seconds, rel=0.1)
    assert found[10.0].seconds == pytest.approx(10.0 * found[1.0].seconds, rel=0.1)
