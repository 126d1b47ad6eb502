"""The examples in the help of public names are run. Every measure has one."""

import doctest

import pytest

import dpmask

NAMES = [
    *((dpmask, name) for name in dpmask.__all__ if name not in {"risk", "utility", "__version__"}),
    *((dpmask.risk, name) for name in dpmask.risk.__all__),
    *((dpmask.utility, name) for name in dpmask.utility.__all__),
]


@pytest.mark.parametrize(("module", "name"), NAMES, ids=lambda one: getattr(one, "__name__", one))
def test_examples_run(module, name):
    tests = doctest.DocTestFinder(recurse=False).find(getattr(module, name), name, globs={})
    examples = [example for one in tests for example in one.examples]
    assert examples or module is dpmask, f"the help of {name} has no example"
    said = []
    for one in tests:
        doctest.DocTestRunner(verbose=False).run(one, out=said.append)
    assert not said, "".join(said)
