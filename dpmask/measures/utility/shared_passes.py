"""Several measures of information loss from passes they share: at most four over both tables, however many measures.

Distances between records take a fifth, over the pairs, where tables are frames or the masked one lost records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from html import escape
from operator import or_
from typing import TYPE_CHECKING, Any

from dpmask.errors import JobError, nearest
from dpmask.measures import LOSSES, find_measure
from dpmask.measures.measure import Measure, MeasureRequest, Need
from dpmask.measures.utility.summary import Summary, summarised
from dpmask.measures.utility.weights import one_weight
from dpmask.results import Result
from dpmask.table.table import Frame

if TYPE_CHECKING:
    import pandas as pd

_WHO = "summarise"
_OF_SUMMARY = ("columns", "weight", "weighted")


def shared_measures() -> dict[str, Measure[Any]]:
    """The measures that share passes, by name."""
    return {name: one for name in LOSSES if (one := find_measure(name)).needs}


def groups_of(requests: Sequence[MeasureRequest], is_numeric: Callable[[str], bool]) -> list[list[MeasureRequest]]:
    """Those measures that are better taken together: of the same columns and weight, two or more, which all take."""
    groups: dict[tuple[str | None, tuple[str, ...]], list[MeasureRequest]] = {}
    for one in requests:
        columns = tuple(one.parameters.get("columns", ()))
        measure = one.definition
        if measure.needs and (measure.takes_categories or all(map(is_numeric, columns))) and _has_one_weight(one):
            groups.setdefault((_weight_of(one), columns), []).append(one)
    return [group for group in groups.values() if len(group) > 1]


def _has_one_weight(request: MeasureRequest) -> bool:
    try:
        _weight_of(request)
    except JobError:  # it raises it again when it is taken alone
        return False
    return True


def _weight_of(request: MeasureRequest) -> str | None:
    given = request.parameters
    return one_weight(given.get("weight"), request.name, weighted=given.get("weighted", True))


def needs_of(measures: Iterable[str]) -> Need:
    """What measures that share passes need of the tables, all of them."""
    return reduce(or_, (find_measure(name).needs for name in measures))


def take_together(
    original: Frame, masked: Frame, group: Sequence[MeasureRequest], who: str
) -> dict[str, Callable[[], Result]]:
    """What gives each measure of a group, from passes they share: the same as it would be alone."""
    columns = group[0].parameters["columns"]
    needs, weight = needs_of(one.measure for one in group), _weight_of(group[0])
    summary = summarised(original, masked, columns, needs, who, weight)
    others = [{name: value for name, value in one.parameters.items() if name not in _OF_SUMMARY} for one in group]
    each = zip(group, others, strict=True)
    return {one.name: partial(_from_summary, one.measure, summary, **parameters) for one, parameters in each}


def _from_summary(name: str, summary: Summary, **parameters: Any) -> Result:
    from_summary = find_measure(name).from_summary
    assert from_summary is not None
    return from_summary(summary, **parameters)


class SharedResults(Mapping[str, Result]):
    """Results by measure. Each is worked out when it is asked for, and may then refuse the columns by an error."""

    def __init__(self, summaries: Mapping[str, Summary]) -> None:
        self._summaries = summaries

    def __getitem__(self, name: str) -> Result:
        return _from_summary(name, self._summaries[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._summaries)

    def __len__(self) -> int:
        return len(self._summaries)

    def __repr__(self) -> str:
        columns = next(iter(self._summaries.values())).columns if self._summaries else ()
        return f"SharedResults({', '.join(self._summaries)}; of {', '.join(columns)})"

    def to_frame(self) -> pd.DataFrame:
        """A row for each number of each measure."""
        import pandas as pd

        return pd.concat({name: one.to_frame() for name, one in self.items()}, names=["measure", None])

    def _repr_html_(self) -> str:
        """The tables of all measures, for notebooks."""
        return "".join(f"<h4>{escape(name)}</h4>{one._repr_html_()}" for name, one in self.items())


def summarise(
    original: Frame,
    masked: Frame,
    *,
    columns: Sequence[str],
    measures: Sequence[str] | None = None,
    weight: str | None = None,
) -> SharedResults:
    """Several measures of information loss, from passes they share.

    Parameters
    ----------
    original, masked
        The tables: frames are paired by index, lakes by position.
    columns
        Numbers or categories; measures that take numbers only see the numbers among them.
    measures
        The measures' names; by default all that share passes and that the columns suffice for.
    weight
        The column of survey weights, for those of the measures that take one.

    Returns
    -------
    SharedResults
        A mapping from each measure's name to its result.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"income": [0.0, 2.0, 4.0]})
    >>> masked = pandas.DataFrame({"income": [0.0, 3.0, 4.0]})
    >>> dpmask.utility.summarise(original, masked, columns=["income"], measures=["il1s", "moments"])
    SharedResults(il1s, moments; of income)
    """
    known = shared_measures()
    names = _known(measures, known)
    weighing = [name for name in names if weight and "weight" in known[name].parameters]
    others = [name for name in names if name not in weighing]
    found: dict[str, Summary] = {}
    for some, own in ((weighing, weight), (others, None)):
        seen = found[weighing[0]].numbers if found and not needs_of(some or weighing) & Need.BINS else columns
        if some and seen:
            found |= dict.fromkeys(some, summarised(original, masked, seen, needs_of(some), _WHO, own))
    if measures is None:
        names = [name for name in names if name in found and _suffices(found[name], known[name])]
    return SharedResults({name: found[name] for name in names})


def _suffices(summary: Summary, measure: Measure[Any]) -> bool:
    return measure.takes_categories or len(summary.numbers) >= measure.least_columns


def _known(measures: Sequence[str] | None, known: Mapping[str, Measure[Any]]) -> list[str]:
    names = list(known if measures is None else measures)
    if not names:
        raise JobError(f"{_WHO}: measures must name one or more of {', '.join(known)}; got none.")
    for name in names:
        if name not in known:
            raise JobError(f"{_WHO}: '{name}' shares no passes with others. {nearest(name, known)}")
    return names
