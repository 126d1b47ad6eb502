"""Docstrings that are completed: own entries stay, shared ones are added in the order of the parameters."""

import inspect
from textwrap import dedent

from dpmask.docstrings import completed, parameter_texts

SHARED = {"first, second": "The tables.", "columns": "The columns.", "weight": "The weight."}


class Found:
    """A number and
    its parts.

    More about it.
    """


def test_own_texts_stay_and_shared_ones_are_added_in_order():
    text = """What it does.

    Parameters
    ----------
    seed
        Chooses the
            records.
    columns, k
        Its own.

    Examples
    --------
    >>> 1
    1
    """
    expected = """\
    What it does.

    Parameters
    ----------
    first, second
        The tables.
    columns, k
        Its own.
    weight
        The weight.
    seed
        Chooses the
            records.

    Returns
    -------
    Found
        A number and
        its parts.

    Examples
    --------
    >>> 1
    1"""
    names = ["first", "second", "columns", "weight", "k", "seed", "unknown"]
    found = completed(text, names, SHARED, Found)
    assert found == dedent(expected)
    assert completed(found, names, SHARED, Found) == found
    assert "unknown" not in found


def test_a_list_is_made_where_there_is_none():
    assert completed("What it does.", ["columns"], SHARED) == (
        "What it does.\n\nParameters\n----------\ncolumns\n    The columns."
    )
    assert parameter_texts("No list.") == {}


def test_methods_of_a_base_class_describe_all_their_parameters():
    import dpmask

    methods = dpmask.Microaggregation, dpmask.FuzzyMicroaggregation, dpmask.IPSO, dpmask.RegressionSynthesis
    for method in (*methods, dpmask.KMeans, dpmask.FuzzyCMeans):
        described = ", ".join(parameter_texts(method.__doc__)).split(", ")
        assert sorted(described) == sorted(inspect.signature(method).parameters)
