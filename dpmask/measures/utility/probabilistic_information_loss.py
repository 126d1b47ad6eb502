"""Probabilistic information loss: how many of a table's statistics changed by more than chance would change them.

For a statistic theta of the original and theta' of the masked table (Mateo-Sanz, Domingo-Ferrer and Sebe 2005,
"Probabilistic information loss measures in confidentiality protection of continuous microdata"),

    pil(theta) = 100 erf(|theta' - theta| / sqrt(2 Var(theta)))

is the chance, in percent, that a sample's statistic lies closer to theta than theta' does. Var is the variance of theta
in samples of n records, with mu the original's central moments, divided by n:

    mean          mu2 / n
    variance      (mu4 - mu2^2) / n
    covariance    (mu22 - mu11^2) / n
    correlation   { mu22/(mu20 mu02) + (r^2/4) [mu40/mu20^2 + mu04/mu02^2 + 2 mu22/(mu20 mu02)]
                    - r [mu31/(mu20^1.5 mu02^.5) + mu13/(mu20^.5 mu02^1.5)] } / n
    quantile a    a (1 - a) / (n f^2), f the share of values within h of it over 2 h, h = range / 1000

for a = 5 %, 10 %, ..., 95 %, exact order statistics. It is averaged over each of these five groups, and then over the
groups. Var shrinks as n grows, so that in a census any change at all scores 100: ``at_reference`` is the same with
n_ref in place of n. A statistic that cannot vary and did not change says nothing and is left out; one that cannot and
did scores 100. Means, variances and quantiles are those of the values present, the others of the records that have
both. A masked column that is constant correlates with nothing: r' = 0. Three or four passes, one for all moments.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import erf

from dpmask.kernels.arrays import Floats
from dpmask.kernels.comoments import CoMoments
from dpmask.kernels.elementary import power
from dpmask.kernels.warm_up import ORDER, KernelUse, Task
from dpmask.measures.measure import Measure, Need, require_integers
from dpmask.measures.utility.quantile_search import PERCENTS, WINDOW
from dpmask.measures.utility.summary import Summary, summarised
from dpmask.measures.utility.weights import WeightedLoss, one_weight
from dpmask.results import Term
from dpmask.table.checks import require_values
from dpmask.table.table import Frame

_WHO = "probabilistic_information_loss"
_NEEDS = Need.MOMENTS | Need.HIGHER | Need.QUANTILES

_ROUNDING = 1e-12
_GROUPS = ("means", "variances", "covariances", "correlations", "quantiles")


@dataclass(frozen=True, kw_only=True)
class ProbabilisticLoss(WeightedLoss):
    """``value`` with the table's own size, ``at_reference`` with n_ref; ``parts`` has the five groups for both."""

    at_reference: float
    n_ref: int

    judged: ClassVar[tuple[str, ...]] = ("value", "at_reference")
    about: ClassVar[Term] = Term(
        "100 erf(|theta' - theta| / sqrt(2 Var theta)), averaged over means, variances, covariances, correlations and "
        "the quantiles 5 % to 95 %, then over these five groups; Var is that of samples of n (or n_ref) records.",
        "0 means unchanged, 100 changed beyond chance; larger means more information lost.",
        "Mateo-Sanz, Domingo-Ferrer and Sebe 2005, Probabilistic information loss measures in confidentiality "
        "protection of continuous microdata",
    )

    def one_record(self, name: str, rows: int) -> float:
        """A statistic is compared with its own standard error, so one record counts for more than its share."""
        return math.sqrt(self.n_ref) / max(rows, 1) if name == "at_reference" else 1 / math.sqrt(max(rows, 1))

    def explain(self) -> str:
        """What the numbers mean."""
        return (
            f"PIL is {self.value:.4g} %: the chance that a sample as large as the table would have statistics closer "
            f"to the original's than the masked table has; {self.at_reference:.4g} % for a sample of "
            f"{self.n_ref:,} records. 0 means that no statistic changed; larger means more information lost."
            f"{self.weighed}"
        )


def probabilistic_information_loss(
    original: Frame,
    masked: Frame,
    *,
    columns: Sequence[str],
    n_ref: int = 1000,
    weight: str | Sequence[str] | None = None,
    weighted: bool = True,
) -> ProbabilisticLoss:
    """PIL, in percent: how many statistics changed by more than chance would change them.

    Parameters
    ----------
    n_ref
        The sample size that ``at_reference`` is for.

    Examples
    --------
    >>> import dpmask, pandas
    >>> original = pandas.DataFrame({"income": range(100)})
    >>> masked = original + 3.0
    >>> round(dpmask.utility.probabilistic_information_loss(original, masked, columns=["income"]).value, 1)
    56.7
    """
    require_integers(_WHO, 1, n_ref=n_ref)
    one = one_weight(weight, _WHO, weighted=weighted)
    return _from_summary(summarised(original, masked, columns, _NEEDS, _WHO, one), n_ref)


class _Change(NamedTuple):
    """Statistics' changes, their variances in samples of one record, how many records there are, and their scale."""

    difference: Floats
    variance: Floats  # NaN where the statistic does not exist
    records: Floats
    scale: Floats


def _from_summary(found: Summary, n_ref: int = 1000) -> ProbabilisticLoss:
    require_integers(_WHO, 1, n_ref=n_ref)
    before, after = found.before, found.after
    for table in (before, after):
        require_values(table.moments, found.numbers, _WHO)
    changes = dict(zip(_GROUPS, _changes(found), strict=True))
    own = {name: _loss(one, one.records) for name, one in changes.items()}
    reference = {name: _loss(one, np.full_like(one.records, n_ref)) for name, one in changes.items()}
    parts = {name: value for name, value in own.items() if value is not None}
    parts |= {f"{name} at {n_ref} records": value for name, value in reference.items() if value is not None}
    return ProbabilisticLoss(value=_mean(own), at_reference=_mean(reference), n_ref=n_ref, parts=parts, **found.weighed)


def _mean(groups: Mapping[str, float | None]) -> float:
    left = [value for value in groups.values() if value is not None]
    return sum(left) / len(left) if left else 0.0  # nothing can vary, and nothing did change


def _loss(one: _Change, records: Floats) -> float | None:
    """The average of a group; None where nothing is left of it."""
    difference = np.abs(one.difference)
    difference = np.where(difference <= _ROUNDING * one.scale, 0.0, difference)
    kept = ~np.isnan(one.variance) & ((difference > 0.0) | (one.variance > 0.0))
    with np.errstate(divide="ignore"):
        losses = 100.0 * erf(difference[kept] / np.sqrt(2.0 * one.variance[kept] / records[kept]))
    return float(losses.mean()) if len(losses) else None


def _changes(found: Summary) -> list[_Change]:
    before, after = found.before, found.after
    pairs = np.triu_indices(len(before.values), k=1)
    return [
        _of_means(before, after),
        _of_variances(before, after),
        _of_covariances(before, after, pairs),
        _of_correlations(before, after, pairs),
        _of_quantiles(found),
    ]


def _of_means(before: CoMoments, after: CoMoments) -> _Change:
    one, two = before.moments, after.moments
    difference = (two.mean - one.mean) + (two.rest - one.rest)
    scale = np.maximum(np.abs(one.mean), np.abs(two.mean))
    return _Change(difference, one.squares / one.values, before.effective.diagonal(), scale)


def _of_variances(before: CoMoments, after: CoMoments) -> _Change:
    (mu2, mu4), theirs = (before.central(p, p).diagonal() for p in (1, 2)), after.central(1, 1).diagonal()
    records = before.effective.diagonal()
    return _Change(theirs - mu2, _difference(mu4, mu2**2), records, np.maximum(mu2, theirs))


def _of_covariances(before: CoMoments, after: CoMoments, pairs: Any) -> _Change:
    mu11, theirs = before.central(1, 1)[pairs], after.central(1, 1)[pairs]
    scale = [np.sqrt(one.central(2, 0) * one.central(2, 0).T)[pairs] for one in (before, after)]
    variance = _difference(before.central(2, 2)[pairs], mu11**2)
    return _Change(theirs - mu11, _where_any(before, pairs, variance), before.effective[pairs], np.maximum(*scale))


def _of_correlations(before: CoMoments, after: CoMoments, pairs: Any) -> _Change:
    r, theirs = before.correlation[pairs], np.nan_to_num(after.correlation[pairs])
    mu20, mu40, mu31 = (before.central(p, q) for p, q in ((2, 0), (4, 0), (3, 1)))
    mu02, mu04, mu13 = (one.T[pairs] for one in (mu20, mu40, mu31))
    mu20, mu40, mu31, mu22 = mu20[pairs], mu40[pairs], mu31[pairs], before.central(2, 2)[pairs]
    with np.errstate(invalid="ignore", divide="ignore"):
        joint = mu22 / (mu20 * mu02)
        gained = joint + r**2 / 4 * (mu40 / mu20**2 + mu04 / mu02**2 + 2 * joint)
        lost = r * (mu31 / (power(mu20, 1.5) * mu02**0.5) + mu13 / (mu20**0.5 * power(mu02, 1.5)))
    return _Change(theirs - r, _difference(gained, lost), before.effective[pairs], np.ones_like(r))


def _of_quantiles(found: Summary) -> _Change:
    before = found.before
    ours, theirs = (np.array(some) for some in found.quantiles)
    records = np.repeat(before.effective.diagonal()[:, None], len(PERCENTS), axis=1)
    near = [some / sample.size for some, sample in zip(found.around.within, found.found[0].samples, strict=True)]
    width = 2 * (before.high - before.low) / WINDOW
    share = PERCENTS / 100
    variance = share * (1 - share) * (width[:, None] / np.array(near)) ** 2
    scale = np.maximum(np.abs(ours), np.abs(theirs))
    return _Change(*(part.ravel() for part in (theirs - ours, variance, records, scale)))


def _difference(larger: Floats, smaller: Floats) -> Floats:
    """What is left of a difference that is never below 0, without what rounding leaves of nothing."""
    left = larger - smaller
    return np.where(left <= _ROUNDING * np.abs(larger), 0.0, left)


def _where_any(before: CoMoments, pairs: Any, variance: Floats) -> Floats:
    return np.where(before.sum(0, 0)[pairs] > 0, variance, np.nan)


MEASURE = Measure(
    function=probabilistic_information_loss,
    result=ProbabilisticLoss,
    roles={"weight": "weight"},
    needs=_NEEDS,
    from_summary=_from_summary,
    kernels=KernelUse((*ORDER.always, Task("windows")), ORDER.sometimes),
)
