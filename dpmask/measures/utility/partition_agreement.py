"""Whether a masked table still falls into the clusters of the original: both are clustered, and compared.

The original's clusters are the natural ones. The masked table is clustered by the same algorithm, or by a recipient's
own (``recluster``), and the contingency table gives F-measure, match point (Fung, Wang, Wang and Hung 2009, eqs. 6-10)
and the adjusted Rand index. A clustering from another seed does not agree with itself: how well the original's does is
reported with them, and no masked table can be expected to do better.

Masked values are taken as a recipient would take them: an interval by its middle, a generalised value or '*' as a
category of its own. With ``values: expected`` they stand for the mean features of the original records that share them,
which only the data holder can compute. Records that were dropped are left out of the comparison, not of the original's
clustering. Passes: those of the clusterings, and one or two over both tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dpmask.clustering.features import Features, find_features
from dpmask.clustering.partition import ALGORITHMS, FittedPartition, partition
from dpmask.engine.draws import make_key
from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Counts, Floats
from dpmask.kernels.partitions import adjusted_rand, f_measure, match_point
from dpmask.kernels.warm_up import CRISP, KernelUse, Task
from dpmask.lake.reading import Rows
from dpmask.measures.measure import Measure, require_integers
from dpmask.results import Loss, Term
from dpmask.table.columns import require_known
from dpmask.table.encoders.base import NumberEncoder
from dpmask.table.encoders.category import CategoryEncoder, category_encoder, count_texts
from dpmask.table.encoders.interval import is_ordered
from dpmask.table.encoders.numeric import RangeEncoder
from dpmask.table.pairs import PRESENT, masked_name, pair
from dpmask.table.table import Frame, Table, as_table

_WHO = "partition_agreement"


@dataclass(frozen=True, kw_only=True)
class PartitionAgreement(Loss):
    """``value`` is the overall F-measure; ``itself`` that of the original's clustering from other seeds.

    Small cells of the contingency ``table`` are not reported: a release may show the rest.
    """

    match_point: float
    adjusted_rand: float
    itself: float
    clusters: int
    records: int
    table: Sequence[Sequence[int]] = field(default=(), repr=False)

    judged: ClassVar[tuple[str, ...]] = ("value", "match_point", "adjusted_rand", "itself")
    unreported: ClassVar[tuple[str, ...]] = ("table",)
    larger_is_better: ClassVar[bool] = True
    about: ClassVar[Term] = Term(
        "The F-measure of each original cluster with the masked table's cluster that fits it best, weighted by size; "
        "match point and adjusted Rand from the same contingency table.",
        "1 means the same clusters; smaller means more information lost.",
        "Fung, Wang, Wang and Hung 2009; Hubert and Arabie 1985 for the adjusted Rand index",
    )

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"The masked table falls into the original's {self.clusters} clusters with F = {self.value:.4g} (1 is the "
            f"same clusters); the original's clustering agrees with itself at {self.itself:.4g} from another seed. "
            f"{self.match_point:.2%} of pairs of records are together, or apart, as they were."
        )


def _check(schema: Any, *, columns: Sequence[str], **_: object) -> None:
    require_known(schema, columns, _WHO)


def partition_agreement(
    original: Frame,
    masked: Frame,
    *,
    columns: Sequence[str],
    clusters: int,
    algorithm: str = "bisecting_kmeans",
    recluster: str | None = None,
    values: str = "midpoint",
    repeats: int = 3,
    seed: int = 0,
) -> PartitionAgreement:
    """How well the clusters of two tables agree.

    Parameters
    ----------
    columns
        The columns to cluster by, of any type; in a job, by default those declared quasi.
    algorithm, recluster
        How the original is clustered, and the masked table if another way: ``bisecting_kmeans`` or ``kmeans``.
    values
        What a generalised value stands for: ``midpoint`` or ``expected``.
    repeats
        From how many other seeds the original is clustered again, to see how it agrees with itself.
    seed
        Chooses the starts.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"age": [21, 22, 23, 61, 62, 63], "work": list("yyynnn")})
    >>> masked = original.assign(age=[21, 22, 62, 61, 62, 63], work=list("yynnnn"))
    >>> round(dpmask.utility.partition_agreement(original, masked, columns=["age", "work"], clusters=2).value, 4)
    0.8286
    """
    _require(algorithm, recluster, values, clusters)
    before, after = as_table(original, _WHO), as_table(masked, _WHO)
    for table in (before, after):
        _check(table.masked_schema, columns=columns)
    pairs = pair(original, masked, columns, _WHO, marks=True)
    known = find_features(before, columns, _WHO)
    runs = [_clustered(before, known, clusters, algorithm, seed + number) for number in range(1 + repeats)]
    if values == "expected":
        found = _expected(pairs, after, runs[0].features)
    else:
        found = find_features(after, columns, _WHO, intervals=_labelled(before, after, columns))
    query = _clustered(after, found, clusters, recluster or algorithm, seed)
    names = [*columns, *map(masked_name, columns), PRESENT]
    count = partial(_counted, runs, query, tuple(columns))
    tables = pairs.select(names).reduce(count, np.add, f"{_WHO}: count")
    return _result(tables, clusters)


def _require(algorithm: str, recluster: str | None, values: str, clusters: int) -> None:
    for name, value, known in (
        ("algorithm", algorithm, ALGORITHMS),
        ("recluster", recluster or algorithm, ALGORITHMS),
        ("values", values, ("midpoint", "expected")),
    ):
        if value not in known:
            raise JobError(f"{_WHO}: {name} must be {' or '.join(known)}; got {value!r}.")
    require_integers(_WHO, 2, clusters=clusters)


def _clustered(table: Table, features: Features, clusters: int, algorithm: str, seed: int) -> FittedPartition:
    key = make_key(_WHO, seed=seed).subkey(_WHO)
    return partition(table, features.columns, clusters, algorithm, key, features=features)


def _labelled(before: Table, after: Table, columns: Sequence[str]) -> list[str]:
    """Columns that were numbers or dates and are texts now."""
    kinds = [(name, before.masked_schema.field(name).type, after.masked_schema.field(name).type) for name in columns]
    return [name for name, old, new in kinds if is_ordered(old) and not is_ordered(new)]


def _counted(runs: Sequence[FittedPartition], query: FittedPartition, columns: tuple[str, ...], rows: Rows) -> Counts:
    """The contingency tables of the natural clusters with the query's, and with those of other seeds."""
    size, rows = runs[0].method.clusters, _released(rows)
    masked = rows.select([masked_name(name) for name in columns]).rename_columns(list(columns))
    values = runs[0].features.values(rows.select(list(columns)))
    natural = runs[0].of_values(values)
    others = [query.of(masked), *(run.of_values(values) for run in runs[1:])]
    return np.array([np.bincount(natural * size + one, minlength=size**2).reshape(size, size) for one in others])


def _released(rows: Rows) -> Rows:
    """The pairs whose masked record is there: one that was dropped is in no cluster."""
    there = rows.column(PRESENT)
    return rows.filter(there.is_valid()) if there.null_count else rows


def _result(tables: Counts, clusters: int) -> PartitionAgreement:
    table, *others = tables
    if not table.sum():
        raise InputError(f"{_WHO}: no record of the original is in the masked table.")
    parts = {"f_measure": f_measure(table), "match_point": match_point(table), "adjusted_rand": adjusted_rand(table)}
    measures = {"f_measure": f_measure, "match_point": match_point, "adjusted_rand": adjusted_rand}
    for name, measure in measures.items():
        parts[f"{name}_with_itself"] = float(np.mean([measure(one) for one in others])) if others else float("nan")
    return PartitionAgreement(
        value=parts["f_measure"],
        match_point=parts["match_point"],
        adjusted_rand=parts["adjusted_rand"],
        itself=parts["f_measure_with_itself"],
        clusters=clusters,
        records=int(table.sum()),
        parts=parts,
        table=table.tolist(),
    )


@dataclass(frozen=True, repr=False)
class _ExpectedEncoder(NumberEncoder):
    """A masked column whose values stand for the mean features of the original records that share them."""

    category: CategoryEncoder
    means: Floats  # codes x features

    @property
    def size(self) -> int:
        """How many features it has."""
        return self.means.shape[1]

    def encode(self, rows: Rows) -> Floats:
        """Features x rows."""
        return self.means[self.category.encode(rows)].T


def _expected(pairs: Table, after: Table, known: Features) -> Features:
    """The features of masked values, from one pass over both tables; numbers that are still numbers stay so."""
    schema = after.masked_schema
    texts = [name for name in known.columns if not is_ordered(schema.field(name).type)]
    found = count_texts(after, texts, _WHO)
    categories = {name: category_encoder(name, found[name], _WHO) for name in texts}
    names = [*texts, *map(masked_name, texts), PRESENT]
    parts = dict(zip(known.columns, known.parts, strict=True))
    sums = pairs.select(names).reduce(partial(_summed, categories, parts), _added, f"{_WHO}: expected") if texts else {}
    encoders: list[NumberEncoder] = []
    for name in known.columns:
        if name in sums:
            totals, counts = sums[name]
            encoders.append(_ExpectedEncoder(name, categories[name], totals / np.maximum(counts, 1)[:, None]))
        else:
            number = isinstance(parts[name], RangeEncoder)
            encoders.append(find_features(after, [name], _WHO).parts[0] if number else parts[name])
    return Features(tuple(encoders))


_Sums = dict[str, tuple[Floats, Counts]]


def _summed(categories: Mapping[str, CategoryEncoder], parts: Mapping[str, NumberEncoder], rows: Rows) -> _Sums:
    found, rows = {}, _released(rows)
    for name, category in categories.items():
        codes, size = category.on(masked_name(name)).encode(rows), category.size
        totals = np.array([np.bincount(codes, one, size) for one in parts[name].encode(rows)]).reshape(-1, size).T
        found[name] = np.ascontiguousarray(totals), np.bincount(codes, minlength=size)
    return found


def _added(left: _Sums, right: _Sums) -> _Sums:
    return {name: (left[name][0] + right[name][0], left[name][1] + right[name][1]) for name in left}


_FIT_SECONDS, _ROW_SECONDS = 0.2, 2.1e-5
"""CPU of clustering a sample, and each record of the table; from the passes of the job cluster_analysis."""


def _work(_: Mapping[str, Any], rows: int) -> float:
    return _FIT_SECONDS + _ROW_SECONDS * rows


MEASURE = Measure(
    function=partition_agreement,
    result=PartitionAgreement,
    passes=7,
    work=_work,
    roles={"columns": "quasi"},
    follows={"clusters": "guide.clusters"},
    check=_check,
    kernels=KernelUse(CRISP, (Task("fuzzy", 1.2),)),
)
