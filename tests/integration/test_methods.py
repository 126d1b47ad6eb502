"""Every masking method of the registry passes the public checks, on frames and on a real cluster of processes."""

import doctest
import pickle
import warnings
from contextlib import ExitStack
from importlib import import_module

import numpy as np
import pytest
from method_examples import EXAMPLES, example, workers
from parts import in_parts
from servers import all_workers_run, kill_a_worker

from dpmask.engine.progress import listening
from dpmask.guide import page
from dpmask.masking import METHODS, method_class
from dpmask.masking.method import FittedMethod, Method
from dpmask.testing import check_method

NEEDED = {"membership_transform": "its bounds are the extremes: without them nothing could be masked"}


@pytest.fixture(scope="module")
def opened():
    """What the tests of this module have opened."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def mortal(opened):
    """The client of a cluster whose two workers may be killed: each has a nanny that starts it again.

    A nanny now and then fails to: what follows then has a new cluster.
    """
    client = getattr(opened, "client", None)
    if client is None or not all_workers_run(client.cluster):
        from distributed import Client, LocalCluster

        cluster = opened.enter_context(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None))
        client = opened.client = opened.enter_context(Client(cluster, set_as_default=False))
    return client


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in METHODS])
def test_on_frames(name):
    check_method(example(name), workers())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EXAMPLES)
def test_analysts_are_told_what_each_method_does_to_statistics(name):
    fitted = example(name).fit(workers(), seed=7)
    assert any(column in line for line in fitted.for_analysts() for column in fitted.inputs), "it names the columns"


@pytest.mark.machine
@pytest.mark.parametrize("name", METHODS)
def test_on_frames_and_a_cluster_whose_workers_are_killed(name, mortal):
    check_method(example(name), workers(), client=mortal)


@pytest.mark.machine
def test_regions_after_killed_workers(mortal, limit):
    """Killed after the first level of large regions, and when the rows of others are to meet in shards."""
    method, frame = example("refinement, mondrian"), workers()
    expected, seen = method.fit(frame, seed=7).mask(frame), []
    limit(refinement_shard_rows=100)

    def killing(label, done, total):
        if not total and label.startswith("mondrian: "):
            first = label not in seen and (not seen or label.endswith("shards"))
            seen.append(label)
            if first:
                kill_a_worker(mortal.cluster)

    with mortal.as_current(), listening(killing):
        assert method.fit(in_parts(frame, 5), seed=7).mask(frame).equals(expected)
    assert len(seen) > 1


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_a_method_and_has_a_page_that_names_it(name):
    assert issubclass(method_class(name), Method)
    assert name in page(name)


@pytest.mark.parametrize("name", EXAMPLES)
def test_pickles_hold_no_extreme_of_a_column(name):
    """What masking needs must travel; the smallest and largest originals are needed by one method alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = example(name).fit(workers(), seed=7)
    assert isinstance(fitted, FittedMethod)
    incomes = workers()["income"]
    shown = [np.float64(end).tobytes() for end in (incomes.min(), incomes.max())]
    shown += [end[::-1] for end in shown]
    assert any(end in pickle.dumps(fitted) for end in shown) == (name in NEEDED)


@pytest.mark.parametrize("name", METHODS)
def test_the_example_of_its_docstring_runs(name):
    cls = method_class(name)
    (found,) = [one for one in doctest.DocTestFinder(recurse=False).find(cls, cls.__name__) if one.examples]
    found.globs = vars(import_module(cls.__module__)).copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert doctest.DocTestRunner().run(found).failed == 0
