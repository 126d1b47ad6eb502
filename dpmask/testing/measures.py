"""What every measure must keep, as one check: ``check_measure``. Ours pass it, and yours should."""

from __future__ import annotations

import inspect
import json
import math
import pickle
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_type_hints

import dask.dataframe as dd
import numpy as np
import pandas as pd

from dpmask.docstrings import parameter_texts
from dpmask.engine.collection import itself
from dpmask.errors import DpmaskError
from dpmask.guide import page
from dpmask.measures import MEASURES
from dpmask.measures.measure import Measure
from dpmask.results import Loss, Plain, Result
from dpmask.table.table import Frame
from dpmask.testing.tables import Recognisable, logged

if TYPE_CHECKING:
    from distributed import Client

_PARTITIONS = (1, 4)
_SAME = 1e-9


def check_measure(
    measure: Measure[Any], original: Frame, masked: Frame, *, client: Client | None = None, **parameters: object
) -> None:
    """Check that a measure keeps its contract; an AssertionError says what it breaks.

    Parameters
    ----------
    measure
        The measure.
    original, masked
        pandas frames of some hundred records, with a unique and increasing index of integers.
    client
        The cluster on which partitions are measured; by default the scheduler inside this process.
    parameters
        Those of the measure; ``columns`` are the numeric columns of both tables by default.

    Examples
    --------
    >>> import pandas
    >>> from dpmask.measures.utility.il1s import MEASURE
    >>> original = pandas.DataFrame({"income": range(50)})
    >>> check_measure(MEASURE, original, original + 0.5)
    """
    if not isinstance(measure, Measure):
        raise AssertionError(f"{measure!r} is no Measure: give the MEASURE of its file")
    given = _with_columns(measure, original, masked, parameters)
    texts: list[str] = []
    with logged(texts), warnings.catch_warnings(record=True) as warned:
        result = measure.function(original, masked, **given)
        _check_result(measure, result)
        _check_partitions(measure, (original, masked), given, result, client)
        _check_identity(measure, original, given)
        texts += _refusals(measure, original, masked, given)
    texts += [*(str(one.message) for one in warned), repr(result), result.explain(), result._repr_html_()]
    secrets = Recognisable(pd.concat([original, masked]), repr(given))
    shown = any(map(secrets.found_in, texts))
    _require(not shown, measure, "a record's value is in a repr, an explanation, a log line or an error")
    _check_documented(measure)


def _require(kept: bool, measure: Measure[Any], what: str) -> None:
    if not kept:
        raise AssertionError(f"{measure.name}: {what}")


def _with_columns(
    measure: Measure[Any], original: Frame, masked: Frame, parameters: Mapping[str, object]
) -> dict[str, object]:
    numeric = [name for name in original.select_dtypes("number") if name in masked.select_dtypes("number")]
    chosen = {"columns": numeric[: measure.most_columns]} if "columns" in measure.parameters else {}
    return {**chosen, **parameters}


def _check_result(measure: Measure[Any], result: Result) -> None:
    """The result says what its numbers mean, is JSON, a frame, HTML, and can be sent to another process."""
    _require(type(result) is measure.result, measure, f"returns {type(result).__name__}, not {measure.result.__name__}")
    _require(bool(result.judged), measure, "has no number that a policy may name")
    for name in result.judged:
        _require(all(result.term(name)), measure, f"'{name}' lacks definition, direction or source")
    for name in set(result.shares).intersection(result.judged):
        _require(0.0 <= getattr(result, name) <= 1.0, measure, f"'{name}' is a share, and not between 0 and 1")
    numbers = result.to_dict()
    _require(_same(json.loads(json.dumps(numbers)), numbers), measure, "to_dict is not JSON")
    _require(set(result.judged) <= set(numbers), measure, "to_dict lacks a number that a policy may name")
    _require(bool(result.explain()), measure, "explain says nothing")
    _require(result.to_frame()["number"].tolist() == list(result.judged), measure, "to_frame lacks numbers")
    _require(_same(pickle.loads(pickle.dumps(result)).to_dict(), numbers), measure, "a pickled result is another")  # noqa: S301
    if isinstance(result, Loss):
        declared = result.public or vars(type(result)).get("public") is False
        _require(declared, measure, "a loss is public, unless its class itself says that it is not")


def _check_partitions(
    measure: Measure[Any], tables: tuple[Frame, Frame], given: dict[str, Any], result: Result, client: Client | None
) -> None:
    """The same for any partitions, an empty one among them."""
    with client.as_current() if client else nullcontext():
        for count in _PARTITIONS:
            found = measure.function(*(_in_parts(table, count) for table in tables), **given).to_dict()
            different = _differences(found, result.to_dict())
            _require(not different, measure, f"{', '.join(different)} depend on the partitions ({count} and one empty)")


def _in_parts(frame: Frame, partitions: int) -> Frame:
    """The rows in so many partitions, and an empty one, with known divisions: joins need no shuffle."""
    end = int(frame.index[-1]) + 1
    cuts = [end * number // partitions for number in range(partitions + 1)]
    pieces = [frame.loc[(frame.index >= low) & (frame.index < high)] for low, high in pairwise(cuts)]
    return dd.from_map(itself, [*pieces, frame.iloc[:0]], meta=frame.iloc[:0], divisions=(*cuts, end + 1))


def _check_identity(measure: Measure[Any], original: Frame, given: dict[str, Any]) -> None:
    """A table has lost nothing against itself."""
    if issubclass(measure.result, Loss):
        value = measure.function(original, original, **given).value
        best = 1.0 if measure.result.larger_is_better else 0.0
        _require(_same(value, best), measure, f"a table against itself is {value:.6g}, not {best}")


def _refusals(measure: Measure[Any], original: Frame, masked: Frame, given: dict[str, Any]) -> list[str]:
    """What it says of tables that hardly can be measured: it measures them or raises a DpmaskError."""
    numeric = list(original.select_dtypes("number"))
    holes = original.assign(**{name: original[name].where(np.arange(len(original)) % 3 > 0) for name in numeric})
    cases = {
        "one row": (original.iloc[:1], masked.iloc[:1]),
        "no row": (original.iloc[:0], masked.iloc[:0]),
        "missing values": (holes, masked),
        "nothing but missing values": (original, masked.assign(**dict.fromkeys(numeric, np.nan))),
        "infinite values": (original, masked.assign(**dict.fromkeys(numeric, np.inf))),
        "text for numbers": (original, masked.assign(**{name: masked[name].astype(str) + " EUR" for name in numeric})),
    }
    return [_refusal(measure, name, tables, given) for name, tables in cases.items()]


def _refusal(measure: Measure[Any], case: str, tables: tuple[Frame, Frame], given: dict[str, Any]) -> str:
    try:
        return repr(measure.function(*tables, **given))
    except DpmaskError as error:
        _require(bool(str(error)), measure, f"{case}: the error says nothing")
        return str(error)
    except Exception as error:
        raise AssertionError(f"{measure.name}: {case}: {type(error).__name__} instead of a DpmaskError") from error


def _check_documented(measure: Measure[Any]) -> None:
    try:
        get_type_hints(measure.function)
    except NameError as error:
        raise AssertionError(f"{measure.name}: jobs check parameters by their types, and {error}") from None
    described = ", ".join(parameter_texts(measure.function.__doc__ or "")).split(", ")
    for name in inspect.signature(measure.function).parameters:
        _require(name in described, measure, f"the docstring does not describe {name}")
    if measure.name in MEASURES:
        _require(page(measure.name).startswith(f"# {measure.name}"), measure, "the guide's page has another title")


def _differences(found: Mapping[str, Plain], expected: Mapping[str, Plain]) -> list[str]:
    names = [name for name in {**found, **expected} if name != "seconds"]
    return [name for name in names if not _same(found.get(name), expected.get(name))]


def _same(one: Plain, two: Plain) -> bool:
    """Counts and texts exactly, floats to 1e-9."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(_same(one[name], two[name]) for name in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(_same, one, two))
    if isinstance(one, float) and isinstance(two, float):
        return (math.isnan(one) and math.isnan(two)) or math.isclose(one, two, rel_tol=_SAME, abs_tol=_SAME)
    return one == two
