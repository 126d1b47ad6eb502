"""Residual linkage: an intruder who knows that values are predictions of a regression refits it, and links by it.

The intruder has a register with independents and dependents, knows which is which and how many models there are, and
sees the released dependents. Least squares of these on the independents gives back the regression that was kept; fuzzy
c-regression the several models, on whose planes values may even lie (refitted_models.py). Then

* ``residuals``: persons whose known value, less its prediction, is nearest to what is left of their own record's
  released value less what its released independents predict; in units of the covariance of the known residuals;
* ``predictions``: persons whose nearest model predicts the released value of their own record best, in units of the
  noise around the models. Where nothing was drawn around several models, values lie on their planes, which somebody
  patient finds: they are taken as found, and what they predict of a person is the released value itself. Where
  residuals were drawn, models are refitted from several starts, which end in different optima: the best few are all
  tried, and the one that links most counts;
* ``disclosed``: values that are within 1 to 10 % of a standard deviation of what the release's regression predicts from
  the independents alone, on average; ``error`` is the root mean square error of these predictions, in standard
  deviations, and ``error_of_best`` what the best predicted tenth of the values stays within.

``rate`` is the better of both links, or that by the dependents as they are, if it finds more. Models are refitted to a
sample, by which values are also predicted, and a part of it is linked to all released records. Passes: one or two for
scales and levels, one for the sample, one to link. Memory per task: one block; the sample travels with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from dpmask.clustering.design import Design, make_design
from dpmask.engine.collection import merge_each
from dpmask.engine.limits import current_limits
from dpmask.errors import InputError, JobError
from dpmask.kernels.arrays import Counts, Floats
from dpmask.kernels.hash_sample import HashSample, hash_sample, merge_hash_samples, position_words
from dpmask.kernels.intervals import PERCENTS
from dpmask.kernels.linkage.nearest import merge_found
from dpmask.kernels.linkage.neighbours import Sought, as_near
from dpmask.kernels.warm_up import KernelUse, Task
from dpmask.kernels.wilson import wilson
from dpmask.lake.arrow import array_of
from dpmask.lake.reading import Rows
from dpmask.measures.measure import Measure, require_integers, timed
from dpmask.measures.risk.refitted_models import RefittedModels, refit
from dpmask.measures.risk.synthesised_records import (
    SynthesisedRecords,
    complete_records,
    is_present,
    released_dependents,
    shown_z,
)
from dpmask.results import LESS_RISK, MORE_RISK, RATE, Headline, Interval, Risk, Term
from dpmask.table.columns import floats, require_numeric
from dpmask.table.distinct_rows import distinct_rows
from dpmask.table.encoders.one_hot import require_predictors
from dpmask.table.pairs import POSITION, masked_name, pair
from dpmask.table.table import Frame

_WHO = "residual_linkage"
_MOST_SAMPLED = 100_000
_BEST = 0.1
_BURRIDGE = "Burridge 2003, Information preserving statistical obfuscation; Cano and Torra 2009"


@dataclass(frozen=True, kw_only=True)
class ResidualLinkage(Risk):
    """``rate`` by the best of ``residuals``, ``predictions`` and the values ``as_released``; what is predicted."""

    rate: float
    residuals: float
    predictions: float
    as_released: float
    disclosed: float
    error: float
    error_of_best: float
    records: int

    judged: ClassVar[tuple[str, ...]] = (
        "rate", "residuals", "predictions", "as_released", "disclosed", "error", "error_of_best",
    )  # fmt: skip
    shares: ClassVar[tuple[str, ...]] = ("rate", "residuals", "predictions")
    headlines: ClassVar[Sequence[Headline]] = [
        Headline("learned", "disclosed", "of the values are predicted closely by the release's own regression"),
    ]
    about: ClassVar[Term] = Term(
        "What an intruder learns who knows that values are predictions of a regression, refits it and subtracts it: "
        "records linked, and values that are predicted well.",
        "Larger shares and smaller errors mean more risk.",
        _BURRIDGE,
    )
    terms: ClassVar[Mapping[str, Term]] = {
        **Risk.terms,
        "rate": RATE,
        "residuals": Term("The same, by what is left of values when predictions are subtracted.", MORE_RISK, _BURRIDGE),
        "predictions": Term("The same, by what the nearest model predicts.", MORE_RISK, _BURRIDGE),
        "as_released": Term("The same, by the dependents as they are.", MORE_RISK, _BURRIDGE),
        "disclosed": Term(
            "Share of values within 1 to 10 % of a standard deviation of what the release's regression predicts.",
            MORE_RISK,
            _BURRIDGE,
        ),
        "error": Term("Root mean square error of the predictions, in standard deviations.", LESS_RISK, _BURRIDGE),
        "error_of_best": Term(
            "The error, in standard deviations, that the best predicted tenth of the values stays within.",
            LESS_RISK,
            _BURRIDGE,
        ),
    }

    @property
    def intervals(self) -> Mapping[str, Interval]:
        """Wilson's of the links, but for a sample of all records."""
        names = (*self.shares, "as_released")
        if self.attacked >= self.records:
            return {name: (getattr(self, name), getattr(self, name)) for name in names}
        return {name: wilson(getattr(self, name), self.attacked) for name in names}

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"An intruder who refits the regression links {self.rate:.2%} of {self.attacked:,} persons to their own "
            f"record ({self.residuals:.2%} by residuals, {self.predictions:.2%} by predictions, {self.as_released:.2%} "
            f"by released values as they are), where guessing links {self.guessing:.2g}; the independents predict "
            f"{self.disclosed:.2%} of the values, and a tenth of them within {self.error_of_best:.2g} standard "
            "deviations. Larger shares and smaller errors mean more risk."
        )


@timed
def residual_linkage(
    original: Frame,
    masked: Frame,
    *,
    columns: Sequence[str],
    independents: Sequence[str],
    clusters: int = 1,
    joint: bool = False,
    residual_noise: bool = False,
    sample: int = 1000,
    seed: int = 0,
) -> ResidualLinkage:
    """What an intruder learns who knows that columns were synthesised by regression on others.

    Parameters
    ----------
    original, masked
        The tables: frames are paired by index, lakes by position.
    columns
        The numeric columns that were synthesised: the dependents.
    independents
        The columns that they were predicted from, numbers or categories; the intruder knows the original ones, and
        sees what is released of them.
    clusters
        How many linear models there are: the parameter of ``regression_synthesis``; 1 for ``ipso``.
    joint
        Whether all columns share their models.
    residual_noise
        Whether residuals were drawn around several models.
    sample
        How many persons are linked.
    seed
        Chooses the persons, and where the refit starts.

    Returns
    -------
    ResidualLinkage
        Records linked by residuals, by predictions and by released values as they are, and how well these are
        predicted.

    Examples
    --------
    >>> import dpmask, pandas
    >>> people = pandas.DataFrame({"age": range(100), "income": [(7 * n) % 100 + 0.5 * n for n in range(100)]})
    >>> method = dpmask.IPSO(variant="A", dependents=["income"], independents=["age"])
    >>> masked = method.fit(people, seed=7).mask(people)
    >>> found = dpmask.risk.residual_linkage(people, masked, columns=["income"], independents=["age"])
    >>> found.predictions, found.as_released < 0.1
    (1.0, True)
    """
    _require(columns, independents, clusters, {"joint": joint, "residual_noise": residual_noise}, sample, seed)
    pairs = pair(original, masked, [*independents, *columns], _WHO, marks=True)
    require_numeric(pairs.masked_schema, [*columns, *map(masked_name, columns)], _WHO)
    design = make_design(pairs, columns, independents, _WHO, drop=True)
    rows = pairs.select([*design.columns, *map(masked_name, design.columns), POSITION])
    most = max(sample, current_limits().refitted_records)
    merge = partial(merge_hash_samples, most=most)
    chosen = rows.reduce(partial(_chosen, design, most, seed), merge, f"{_WHO}: sample")
    known = SynthesisedRecords.of(design, chosen.values)
    if known.z.shape[1] <= design.width:
        raise InputError(
            f"{_WHO}: more than {design.width} records must have a value in all columns, before and after masking."
        )
    on_planes = clusters > 1 and not residual_noise
    refits = refit(known.z, known.y, known.released, 1 if on_planes else clusters, joint, seed)
    persons = _sought(chosen, known, refits, sample, on_planes=on_planes)
    found = rows.reduce(partial(_linked, design, refits, persons), partial(merge_each, merge_found), f"{_WHO}: link")
    return _result(found, known, refits[0], design.counted.records)


def _require(
    columns: Sequence[str],
    independents: Sequence[str],
    clusters: int,
    flags: Mapping[str, bool],
    sample: int,
    seed: int,
) -> None:
    require_integers(_WHO, 1, _MOST_SAMPLED, sample=sample)
    require_integers(_WHO, 0, 1 << 31, seed=seed)
    require_integers(_WHO, 1, 1 << 31, clusters=clusters)
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise JobError(f"{_WHO}: {name} must be true or false; got {flag!r}.")
    for name, given in {"columns": columns, "independents": independents}.items():
        if isinstance(given, str) or not given:
            raise JobError(f"{_WHO}: {name} must be a list of one or more columns; got {given!r}.")
    both = sorted(set(columns) & set(independents))
    if both:
        raise JobError(f"{_WHO}: {', '.join(both)} must be either in columns or in independents; got both.")


def _chosen(design: Design, most: int, seed: int, rows: Rows) -> HashSample:
    """Of a block's records that lack nothing those with the smallest words: twice as many are looked at first."""
    words, positions = position_words(floats(rows, POSITION), seed)
    every, looks = np.arange(rows.num_rows), 2 * most
    few = [np.sort(np.argpartition(words, looks)[:looks])] if rows.num_rows > 2 * looks else []
    for some in (*few, every):
        known, kept = complete_records(design, rows.take(array_of(some)))
        if kept.sum() >= most:
            break
    return hash_sample(words[some][kept], positions[some][kept], np.concatenate(known), most)


def _released_points(released: Floats, expected: Floats, refits: Sequence[RefittedModels]) -> list[Floats]:
    """Where released records lie in each way to look for them, by what the regression expects of them."""
    left = refits[0].residual_points(released, expected)
    return [left, released, *(models.noise_points(released) for models in refits)]


def _sought(
    chosen: HashSample, known: SynthesisedRecords, refits: Sequence[RefittedModels], sample: int, *, on_planes: bool
) -> list[Sought]:
    """Who is looked for in each way, as points among those of the records, and where their own records lie."""
    some = SynthesisedRecords(*(one[:, :sample] for one in known))
    predicted = [one.noise_points(some.released if on_planes else one.nearest(some.z, some.y)) for one in refits]
    points = [refits[0].residual_points(some.y, refits[0].expected(some.z)), some.y, *predicted]
    own = _released_points(some.released, refits[0].expected(some.shown), refits)
    positions = chosen.positions[:sample].astype(np.float64)
    return [Sought(*both, positions) for both in zip(points, own, strict=True)]


def _linked(design: Design, refits: Sequence[RefittedModels], persons: Sequence[Sought], rows: Rows) -> list[Counts]:
    """What a block answers: of what is known only whether it is there is read, released independents once each."""
    released = design.outputs.upright.to_units(released_dependents(design, rows))
    kept = np.isfinite(released).all(axis=0)
    for name in design.columns:
        kept &= is_present(rows, name)
    distinct, members = distinct_rows(rows, [masked_name(name) for name in design.predictors.columns], exact=False)
    expected = refits[0].expected(shown_z(design, distinct))[:, members.numbers()[kept]]
    after = _released_points(released[:, kept], expected, refits)
    positions = floats(rows, POSITION)[kept]
    return [as_near(sought, records, positions) for sought, records in zip(persons, after, strict=True)]


def _result(found: list[Counts], known: SynthesisedRecords, models: RefittedModels, records: int) -> ResidualLinkage:
    rates = [float(np.where(one > 0, 1.0 / np.maximum(one, 1), 0.0).mean()) for one in found]
    residuals, plain, predictions = *rates[:2], max(rates[2:])
    gaps = np.abs(models.expected(known.z) - known.y)
    return ResidualLinkage(
        rate=max(residuals, predictions, plain),
        residuals=residuals,
        predictions=predictions,
        as_released=plain,
        disclosed=float(np.mean([gaps <= percent / 100 for percent in PERCENTS])),
        error=float(np.sqrt((gaps**2).mean())),
        error_of_best=float(np.quantile(gaps, _BEST)),
        guessing=1.0 / records,
        attacked=len(found[0]),
        records=records,
        parts={"residuals": residuals, "predictions": predictions, "values as released": plain},
    )


def _check(schema: object, *, columns: Sequence[str], independents: Sequence[str] = (), **_: object) -> None:
    require_numeric(schema, columns, _WHO)
    require_predictors(schema, independents, _WHO)


def _kernels(parameters: Mapping[str, object]) -> KernelUse:
    several = (Task("fuzzy", 2.0), Task("memberships", 2.0), Task("starts"))
    refitted = parameters.get("clusters", 1) != 1 and parameters.get("residual_noise", False)
    return KernelUse((Task("nearer"), Task("regression"), *(several if refitted else ())))


_REFIT_SECONDS, _LINK_SECONDS = 1.0, 2.5e-6
"""CPU of refitting the models, and of linking to one released record; from synthetic_teaching_file, 1e5 and 1e6."""


def _work(_: Mapping[str, object], rows: int) -> float:
    return _REFIT_SECONDS * min(1.0, rows / current_limits().refitted_records) + _LINK_SECONDS * rows


MEASURE = Measure(
    function=residual_linkage,
    result=ResidualLinkage,
    passes=4,
    work=_work,
    varied=True,
    check=_check,
    kernels=_kernels,
)
