"""What every masking method promises, as a check that tests call."""

from __future__ import annotations

import json
import os
import pickle
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, is_dataclass
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from dpmask.engine.draws import Subkey
from dpmask.errors import DpmaskError, nearest
from dpmask.guide import pages
from dpmask.masking import METHODS
from dpmask.masking.method import FittedMethod, Method
from dpmask.masking.saved import load
from dpmask.measures import RISKS
from dpmask.table.table import as_table
from dpmask.testing.tables import Recognisable, in_partitions, logged, require_alike

_SEED = 7
_PARTITIONS = (1, 3, 7)
_TOLERANCE = 1e-9
_EVERY = 5
_MOSTLY, _NEAR = 0.9, 1e-3
_WORKERS_BACK = 30.0


def check_method(method: Method[Any], table: Any, *, client: Any = None) -> None:
    """Check that a masking method keeps what dpmask promises of all of them.

    Parameters
    ----------
    method
        The method, with parameters that fit the table.
    table
        A table that it can mask: pandas, Dask or a lake; small, as it is masked some twenty times.
    client
        The client of a cluster of several processes. Its workers are killed, so it should start them again.

    Raises
    ------
    AssertionError
        The first check that failed, by name: contract, index and columns, same bytes, draws, saved, another table,
        partitions, few records, missing values, killed worker, values of records (in a repr, a log, an error or a
        warning), guide.

    Examples
    --------
    >>> import pandas as pd
    >>> from dpmask import NoiseAddition
    >>> people = pd.DataFrame({"income": [n * 812.25 + 1000 for n in range(50)]})
    >>> check_method(NoiseAddition(columns=["income"], scale=0.5), people)

    """
    if not isinstance(method, Method):
        raise AssertionError(f"{type(method).__name__}: a method is derived from dpmask.masking.method.Method")
    frame = table if isinstance(table, pd.DataFrame) else as_table(table, "check_method").to_dask().compute()
    case = _Case(method, frame, client)
    with logged(case.texts):
        for name, check in _CHECKS.items():
            try:
                check(case)
            except AssertionError as error:
                raise AssertionError(f"{method.who}: {name}: {error}") from error
            except Exception as error:
                raise AssertionError(f"{method.who}: {name}: {_described(error)}") from error


def _described(error: Exception) -> str:
    """An error with its text; where dpmask withheld that of another, with that one's: the records are a test's."""
    shown = f"{type(error).__name__}: {error}"
    hidden = error.__context__ if type(error) is DpmaskError else None
    return f"{shown} It is {type(hidden).__name__}: {hidden}" if hidden is not None else shown


@dataclass
class _Case:
    """A method on a table, and every text that it wrote on the way."""

    method: Method[Any]
    frame: pd.DataFrame
    client: Any
    texts: list[str] = field(default_factory=list)

    def fit(self, table: Any) -> Any:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = self.method.fit(table, seed=_SEED)
        self.texts += [repr(fitted), str(fitted), *(str(one.message) for one in caught)]
        return fitted

    def masked(self, table: Any) -> pd.DataFrame:
        masked = self.fit(table).mask(table)
        return masked if isinstance(masked, pd.DataFrame) else masked.compute()

    def refused_or_masked(self, frame: pd.DataFrame, what: str) -> None:
        """Fail unless a frame is masked, or refused with an error of dpmask's own."""
        try:
            masked = self.masked(frame)
        except DpmaskError as error:
            if type(error) is DpmaskError:
                raise AssertionError(f"with {what}: {_described(error)}") from error
            self.texts.append(str(error))
            return
        except Exception as error:
            advice = "Mask it, or refuse it with an InputError of dpmask.errors."
            raise AssertionError(f"with {what}: {_described(error)}. {advice}") from error
        assert set(masked.index) <= set(frame.index), "the index differs"
        assert self.method.drops or len(masked) == len(frame), "records were lost"


def _contract(case: _Case) -> None:
    method = case.method
    assert is_dataclass(method), "the parameters must be a dataclass"
    fitted = case.fit(case.frame)
    assert pickle.loads(pickle.dumps(method)) == method, "the parameters differ after pickling"  # noqa: S301
    assert isinstance(fitted, FittedMethod), "fit_table must return a FittedMethod"
    assert fitted.method == method, "the fitted method must have its parameters in .method"
    assert isinstance(fitted.key, Subkey), "the fitted method must have the key of its draws in .key"
    assert isinstance(fitted.statement(), str), "the statement is no text"
    assert fitted.statement().strip(), "the statement is empty"
    for claim in fitted.claims():
        assert "columns" in claim, "a claim names its columns (dpmask/masking/claims.py)"
    assert json.dumps(fitted.solution()), "the solution is not JSON"
    for name in method.attacks():
        assert name in RISKS, f"attacks() names '{name}', which is no risk measure. {nearest(name, RISKS)}"
    assert fitted.weaknesses(), "weaknesses() names none; every method has some"
    if method.figures is None:
        assert fitted.figures is None, "the method must name the class of its figures"
    else:
        assert isinstance(fitted.figures, method.figures), "the figures are not of the class that the method names"
        fitted.figures.to_dict()
        assert fitted.figures.explain(), "the figures explain nothing"


def _index_and_columns(case: _Case) -> None:
    fitted = case.fit(case.frame)
    masked = fitted.mask(case.frame)
    assert set(case.method.masks) <= set(fitted.changes), "it must say that it changes the columns it masks"
    kept = case.frame.loc[masked.index] if case.method.drops else case.frame
    other = [name for name in case.frame.columns if name not in fitted.changes]
    require_alike(masked[other], kept[other])
    schema = fitted.masked_schema(as_table(case.frame, "check_method").schema)
    assert set(masked.columns) == set(schema.names), "masked_schema names other columns than there are"
    masks = [name for name in case.method.masks if name in masked]
    assert not masked[masks].equals(kept[masks]), "nothing was masked"


def _same_bytes(case: _Case) -> None:
    require_alike(case.masked(case.frame), case.masked(case.frame))


def _draws(case: _Case) -> None:
    """Another key gives other values, but for a method that says that it does not draw."""
    if not case.method.draws:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first, second = (case.method.fit(case.frame, seed=seed).mask(case.frame) for seed in (_SEED, _SEED + 1))
    rows = first.index.intersection(second.index)
    alike = [_alike(first.loc[rows, name], second.loc[rows, name]) for name in case.method.masks if name in first]
    assert not alike or min(alike) < _MOSTLY, (
        "another key gives nearly the same values: draw from the key, or say that it does not: draws = False"
    )


def _alike(first: pd.Series, second: pd.Series) -> float:
    """The share of equal values, or, of numbers, of values that differ by next to nothing."""
    if pd.api.types.is_numeric_dtype(first):
        return float(((first - second).abs() <= _NEAR * first.std()).mean())
    return float((first == second).mean())


def _saved(case: _Case) -> None:
    fitted = case.fit(case.frame)
    with TemporaryDirectory() as folder:
        fitted.save(f"{folder}/fit")
        loaded = load(f"{folder}/fit", seed=_SEED)
        require_alike(loaded.mask(case.frame), fitted.mask(case.frame))
    case.texts.append(repr(loaded))


def _another_table(case: _Case) -> None:
    """Another table is refused, or masked by draws of its own."""
    fitted, other = case.fit(case.frame), case.frame.iloc[::-1]
    try:
        found = fitted.for_table(as_table(other, "check_method"))
    except DpmaskError as error:
        case.texts.append(str(error))
        return
    assert found.key != fitted.key, "the draws are those of the table that it was fitted on"
    assert fitted.mask(other).index.isin(other.index).all(), "the index differs"


def _partitions(case: _Case) -> None:
    whole = case.masked(case.frame)
    for partitions in _PARTITIONS:
        require_alike(case.masked(in_partitions(case.frame, partitions)), whole, _TOLERANCE)


def _few_records(case: _Case) -> None:
    for rows in (0, 1, 2, 3):
        case.refused_or_masked(case.frame.head(rows), f"{rows} records")


def _missing_values(case: _Case) -> None:
    for column in case.fit(case.frame).inputs:
        for rows in (case.frame.index[::_EVERY], case.frame.index):
            gaps = case.frame.convert_dtypes()
            gaps.loc[rows, column] = pd.NA
            case.refused_or_masked(gaps, f"missing values of '{column}' in {len(rows)} of {len(gaps)} records")


def _killed_worker(case: _Case) -> None:
    """Kill a worker while it is fitted and one before it masks; the result must be that without a cluster.

    The last worker is left alone: a nanny now and then fails to start one again, which is no fault of the method.
    """
    if case.client is None:
        return
    table = in_partitions(case.frame, _PARTITIONS[-1])
    undisturbed = case.masked(table)
    with case.client.as_current():
        case.client.wait_for_workers(1, timeout=_WORKERS_BACK)
        workers = len(_workers(case.client))
        killer = threading.Timer(0.05, _kill, [case.client])
        killer.start()
        fitted = case.fit(table)
        killer.join()
        with suppress(TimeoutError):
            case.client.wait_for_workers(workers, timeout=_WORKERS_BACK)
        _kill(case.client)
        require_alike(fitted.mask(table).compute(), undisturbed)


def _workers(client: Any) -> list[str]:
    return list(client.scheduler_info(n_workers=-1)["workers"])


def _kill(client: Any) -> None:
    workers = _workers(client)
    if len(workers) > 1:
        with suppress(OSError):
            client.run(os._exit, 1, workers=workers[:1], on_error="ignore")


def _values_of_records(case: _Case) -> None:
    for column in case.method.masks:
        texts = case.frame[column].astype(str) + " or so"
        case.refused_or_masked(case.frame.assign(**{column: texts}), f"texts in '{column}'")
    values = Recognisable(case.frame, repr(case.method))
    shown = [text for text in case.texts if values.found_in(text)]
    assert not shown, f"a repr, log, error or warning shows one: {shown[0][:200] if shown else ''}"


def _guide(case: _Case) -> None:
    place = f"{type(case.method).__module__}:{type(case.method).__qualname__}"
    for name in [name for name, registered in METHODS.items() if registered == place]:
        assert name in pages(), f"the guide has no page {name}.md"


_CHECKS: dict[str, Callable[[_Case], None]] = {
    "contract": _contract,
    "index and columns": _index_and_columns,
    "same bytes": _same_bytes,
    "draws": _draws,
    "saved": _saved,
    "another table": _another_table,
    "partitions": _partitions,
    "few records": _few_records,
    "missing values": _missing_values,
    "killed worker": _killed_worker,
    "values of records": _values_of_records,
    "guide": _guide,
}
