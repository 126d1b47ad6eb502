"""What groups of records come to: the worst of all quasi-identifiers, and each one's own numbers by readable names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from dpmask.kernels.groups import Diversity, Groups
from dpmask.measures.risk.group_counts import BothGroups, MatchedGroups
from dpmask.results import LESS_RISK, MORE_RISK, Headline, Risk, Term
from dpmask.table.matching import MatchedRecords
from dpmask.table.requirement_counts import CountedRequirement

_COUNTED = ("uniform", "inferred", "distant")
_SAMARATI = "Samarati 2001, Protecting respondents' identities in microdata release"
_EL_EMAM = "El Emam 2013, Guide to the de-identification of personal health information"
_DIVERSITY = "Machanavajjhala et al. 2007, l-diversity: privacy beyond k-anonymity"


@dataclass(frozen=True, kw_only=True)
class GroupRisk(Risk):
    """The worst of all quasi-identifiers; ``parts`` has each one's own numbers, ``before`` those of the original."""

    smallest: int
    uniques: int
    below: int
    k: int
    prosecutor: float
    journalist: float
    distinct: float | None
    entropy: float | None
    confidence: float | None
    closeness: float | None
    uniform: float | None
    inferred: float | None
    distant: float | None
    uniques_jointly: int
    uniques_with_weight: int | None
    unmet: float | None = None
    before: Mapping[str, float] = field(default_factory=dict)

    judged: ClassVar[tuple[str, ...]] = (
        "smallest",
        "uniques",
        "below",
        "prosecutor",
        "journalist",
        "distinct",
        "entropy",
        "confidence",
        "closeness",
        "uniform",
        "inferred",
        "distant",
        "uniques_jointly",
        "uniques_with_weight",
        "unmet",
    )
    shares: ClassVar[tuple[str, ...]] = ("prosecutor", "journalist")
    headlines: ClassVar[Sequence[Headline]] = [
        Headline("alike", "smallest", "their quasi-identifiers"),
        Headline("learned", "inferred", "of records are in groups that give a sensitive value away"),
    ]
    about: ClassVar[Term] = Term(
        "Groups of records with the same quasi-identifiers: the smallest one, those of one record, records in "
        "groups below k, and what a group gives away of its members' sensitive values.",
        "Smaller groups mean more risk; a larger confidence or t, and fewer different sensitive values, too.",
        "Sweeney 2002, k-anonymity; Machanavajjhala et al. 2007, l-diversity; Li, Li and Venkatasubramanian 2007, "
        "t-closeness",
    )
    terms: ClassVar[Mapping[str, Term]] = {
        **Risk.terms,
        "smallest": Term("Records in the smallest group that shares its values (k).", LESS_RISK, _SAMARATI),
        "uniques": Term("Records that share their quasi-identifiers with no other.", MORE_RISK, _SAMARATI),
        "below": Term("Records in groups of fewer than k.", MORE_RISK, _SAMARATI),
        "prosecutor": Term("Mean chance to find a person who is known to be in the release.", MORE_RISK, _EL_EMAM),
        "journalist": Term(
            "Mean chance to find the person behind a released record in a register.", MORE_RISK, _EL_EMAM
        ),
        "distinct": Term("Fewest different sensitive values in a group: distinct l.", LESS_RISK, _DIVERSITY),
        "entropy": Term(
            "Fewest sensitive values in a group, weighed by how evenly they occur: entropy l.", LESS_RISK, _DIVERSITY
        ),
        "confidence": Term(
            "Largest share of one sensitive value in a group.",
            MORE_RISK,
            "Wang, Fung and Yu 2005, Template-based privacy preservation in classification problems",
        ),
        "closeness": Term(
            "Largest distance between a group's sensitive values and those of all: t.",
            MORE_RISK,
            "Li, Li and Venkatasubramanian 2007, t-closeness",
        ),
        "uniform": Term(
            "Share of records in groups with fewer than least_distinct different sensitive values.",
            MORE_RISK,
            _DIVERSITY,
        ),
        "inferred": Term(
            "Share of records in groups that give a sensitive value away with more than most_confidence.",
            MORE_RISK,
            "Wang, Fung and Yu 2005, Template-based privacy preservation in classification problems",
        ),
        "distant": Term(
            "Share of records in groups whose t is larger than most_closeness.",
            MORE_RISK,
            "Li, Li and Venkatasubramanian 2007, t-closeness",
        ),
        "uniques_jointly": Term(
            "Records alone with their values of all quasi-identifiers together.", MORE_RISK, _SAMARATI
        ),
        "unmet": Term(
            "Share of records in groups that break one of the given requirements: too small, or with a broken model.",
            MORE_RISK,
            _DIVERSITY,
        ),
        "uniques_with_weight": Term(
            "Records alone with their values of all quasi-identifiers and the weight together.", MORE_RISK, _SAMARATI
        ),
    }

    def explain(self) -> str:
        """What the numbers mean."""
        inferred = ""
        if self.confidence is not None:
            inferred = (
                f" Inside a group a sensitive value can be inferred with a confidence of up to {self.confidence:.4g}, "
                f"where there are at least {self.distinct:g} different ones (t = {self.closeness:.4g}); "
                f"{self.inferred:.2%} of the records are in groups that give one away so."
            )
        return (
            f"The smallest group with the same quasi-identifiers has {self.smallest} of {self.attacked:,} records; "
            f"{self.uniques} are alone in theirs, {self.below} in one of fewer than {self.k}. "
            f"Smaller groups mean more risk.{inferred}"
        )


def group_risk(
    found: dict[str, tuple[list[str], BothGroups]], k: int, jointly: int, with_weight: int | None
) -> GroupRisk:
    """The result of each quasi-identifier's groups; uniques by all columns jointly, and with the weight."""
    names = {label: names for label, (names, _) in found.items()}
    parts = [_parts({label: both[table] for label, (_, both) in found.items()}, names) for table in (0, 1)]
    after = [both.after for _, both in found.values()]
    diversities = [each for one in after for each in one.diversities]
    records = after[0].records
    return GroupRisk(
        smallest=min(one.smallest for one in after),
        uniques=max(one.uniques for one in after),
        below=max(one.below for one in after),
        k=k,
        prosecutor=max(one.groups / records for one in after),
        journalist=max(one.matched / records for one in after),
        **_worst_diversities(diversities, records),
        uniques_jointly=jointly,
        uniques_with_weight=with_weight,
        guessing=1.0 / records,
        attacked=records,
        parts=parts[1],
        before=parts[0],
    )


def _worst_diversities(diversities: Sequence[Diversity], records: int) -> dict[str, Any]:
    """The worst of all sensitive columns, by field; None without any."""
    return {
        "distinct": min((one.distinct for one in diversities), default=None),
        "entropy": min((one.entropy for one in diversities), default=None),
        "confidence": max((one.confidence for one in diversities), default=None),
        "closeness": max((one.closeness for one in diversities), default=None),
        **{name: max((getattr(one, name) / records for one in diversities), default=None) for name in _COUNTED},
    }


def _parts(found: dict[str, Groups], sensitive: dict[str, list[str]]) -> dict[str, float]:
    """Each quasi-identifier's own numbers under readable names."""
    parts: dict[str, float] = {}
    for label, one in found.items():
        parts |= {
            f"{label}: smallest group": one.smallest,
            f"{label}: groups": one.groups,
            f"{label}: uniques": one.uniques,
            f"{label}: records in groups below k": one.below,
            f"{label}: prosecutor": one.groups / one.records,
            f"{label}: journalist": one.matched / one.records,
        }
        parts |= _diversity_parts(label, sensitive[label], one.diversities, one.records)
    return parts


def _diversity_parts(
    label: str, names: Sequence[str], diversities: Sequence[Diversity], records: int
) -> dict[str, float]:
    parts: dict[str, float] = {}
    for name, found in zip(names, diversities, strict=True):
        parts |= {f"{label}: {name}: {key}": value for key, value in found._asdict().items()}
        parts |= {f"{label}: {name}: {key}": getattr(found, key) / records for key in _COUNTED}
    return parts


def with_matches(
    result: GroupRisk,
    matched: Mapping[str, MatchedGroups],
    sensitive: Mapping[str, list[str]],
    unique: Sequence[MatchedRecords],
) -> GroupRisk:
    """The result with groups of all that match a record; ``unique``: by all columns jointly, and with weights."""
    rows, parts = result.attacked, dict(result.parts)
    for label, (one, diversities) in matched.items():
        parts |= {
            f"{label}: smallest group": one.smallest,
            f"{label}: uniques": one.records.get(1, 0),
            f"{label}: records in groups below k": one.below(result.k),
            f"{label}: prosecutor": one.chance / rows,
            f"{label}: journalist": parts[f"{label}: journalist"] + one.suppressed_chance / rows,
            **_diversity_parts(label, sensitive[label], diversities, rows),
        }
    own = [one.records for one in matched.values()]
    jointly, with_weight = unique
    return replace(
        result,
        smallest=min(one.smallest for one in own),
        uniques=max(one.records.get(1, 0) for one in own),
        below=max(one.below(result.k) for one in own),
        prosecutor=max(one.chance for one in own) / rows,
        journalist=max(parts[f"{label}: journalist"] for label in matched),
        uniques_jointly=jointly.records.get(1, 0),
        uniques_with_weight=None if result.uniques_with_weight is None else with_weight.records.get(1, 0),
        parts=parts,
        **_worst_diversities([each for one in matched.values() for each in one.diversities], rows),
    )


def with_requirements(result: GroupRisk, counted: Sequence[CountedRequirement]) -> GroupRisk:
    """The result with what the requirements came to: each one's smallest group and worst figures among its parts."""
    parts = dict(result.parts)
    for one in counted:
        parts[f"{one.name}: records in broken groups"] = one.broken / result.attacked
        parts[f"{one.name}: smallest group of k = {one.requirement.k}"] = one.smallest
        for limit, figure in one.figures:
            parts[f"{one.name}: {limit.name} (limit {limit.condition.limit:g})"] = figure
    return replace(result, parts=parts, unmet=max(one.broken for one in counted) / result.attacked)
