"""The gate: what every release is attacked by, and the limits it is held to unless its policy states others.

The limits stand here and nowhere else; ``dpmask explain gate`` describes them. A rule of the policy about one of
the gate's numbers takes the place of the default rule about that number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from dpmask.errors import PolicyRefusal
from dpmask.release.policy import Rule, Verdict, parse_rule
from dpmask.results import LESS_RISK, MORE_RISK, RATE, Exhibit, Headline, Interval, Result, Risk, Term
from dpmask.table.grouping import GroupSizes

GATE = "gate"
"""What a policy calls it."""
DEFAULT_RULES = ("gate.linkage <= 0.05", "gate.attacks <= 0.05")
SERIES_RULE = "gate.differencing <= 0.05"
"""One more, for jobs of a series."""
_SAMPLE, _FEWEST_ATTACKED, _ATTACKED_VALUES = 20_000, 2_000, 2_000_000
REASON_LENGTH = 10
"""The shortest reason, in characters, to accept what the gate refuses."""
_ALONE, _ALONE_SHARE, _ALONE_FEW = 20, 0.001, 0.1
_HOLDERS = 5
_MOST_SHOWN = 3
_MOST_NAMED = 30


def attacked_by_gate(columns: int) -> int:
    """How many records the gate attacks, of more; fewer by more than 100 columns.

    A policy is judged by the upper 95 % limit, so what a smaller sample cannot show counts as risk.
    """
    return min(_SAMPLE, max(_FEWEST_ATTACKED, _ATTACKED_VALUES // max(columns, 1)))


def default_rules(own: Sequence[Rule], *, series: bool = False) -> list[Rule]:
    """The default rules about numbers of the gate that no rule of the policy names."""
    stated = {rule.field for rule in own if rule.measure == GATE}
    rules = map(parse_rule, [*DEFAULT_RULES, SERIES_RULE] if series else DEFAULT_RULES)
    return [rule for rule in rules if rule.field not in stated]


def is_near_unique(sizes: GroupSizes) -> bool:
    """Whether a column's values identify records.

    More than 20 records, and more than one in a thousand, or more than a tenth of them, are alone with their value; or
    a value is held by fewer than 5 records on average.
    """
    alone = sizes.groups.get(1, 0)
    many = alone > max(_ALONE, _ALONE_SHARE * sizes.records) or alone > _ALONE_FEW * sizes.records
    return many or sizes.distinct * _HOLDERS > sizes.records


def are_near_unique_together(sizes: GroupSizes) -> bool:
    """Whether values of several columns, each of them harmless, identify records.

    More than 20 records and more than a tenth of them are alone with all of their values, or these are shared by fewer
    than 5 records on average.
    """
    alone = sizes.groups.get(1, 0)
    return alone > max(_ALONE, _ALONE_FEW * sizes.records) or sizes.distinct * _HOLDERS > sizes.records


class AttackRate(NamedTuple):
    """What one attack came to: its name, its rate and the rate's 95 % interval."""

    name: str
    rate: float
    interval: Interval


@dataclass(frozen=True, kw_only=True)
class GateRisk(Risk):
    """What the strongest intruders achieve against the release as a whole; ``parts`` has each attack's own rate."""

    linkage: float
    smallest: int
    attacks: float
    columns: Sequence[str]
    quasi: Sequence[str]
    intruder: str
    undone: str = ""
    differencing: float = 0.0
    contributions: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[str, Interval] = field(default_factory=dict)

    judged: ClassVar[tuple[str, ...]] = ("linkage", "smallest", "attacks", "differencing")
    shares: ClassVar[tuple[str, ...]] = ("linkage", "attacks", "differencing")
    headlines: ClassVar[Sequence[Headline]] = ()
    """A page has words of its own for it, with its columns."""
    unreported: ClassVar[tuple[str, ...]] = ("limits",)
    exhibits: ClassVar[Mapping[str, Exhibit]] = {
        "columns": Exhibit("text", "known to the intruder"),
        "intruder": Exhibit("text", "strongest intruder"),
        "contributions": Exhibit("numbers", "how much the joint rate falls without a column, among few records"),
    }
    about: ClassVar[Term] = Term(
        "The attacks that every release is put to, whatever its job asks for: linkage by all released columns that are "
        "quasi-identifiers, sensitive or weights, groups of all quasi-identifiers, and what undoes each method.",
        "Larger rates and smaller groups mean more risk.",
        "dpmask explain gate",
    )
    terms: ClassVar[Mapping[str, Term]] = {
        **Risk.terms,
        "linkage": Term(
            "Share of the attacked records that the strongest intruder, who knows all these columns, links to their "
            "own masked record.",
            MORE_RISK,
            RATE.source,
        ),
        "smallest": Term(
            "Records in the smallest group that shares all its quasi-identifiers.", LESS_RISK, RATE.source
        ),
        "attacks": Term(
            "Rate of the most successful of the attacks that the job's methods name as their own.",
            MORE_RISK,
            RATE.source,
        ),
        "differencing": Term(
            "What this release and all earlier ones of its series show together that none shows alone; 0 where a "
            "refinement counts it exactly, or there are none.",
            MORE_RISK,
            "dpmask explain differencing",
        ),
    }

    @property
    def intervals(self) -> Mapping[str, Interval]:
        """Those of the attacks that the rates come from."""
        return self.limits

    def leading_columns(self) -> list[str]:
        """A line that names the columns that contribute most to the links, if they are known."""
        telling = [column for column, fall in self.contributions.items() if fall > 0]
        most = sorted(telling, key=lambda column: -self.contributions[column])[:_MOST_SHOWN]
        if self.contributions and not most:
            return ["No single column decides: the rate does not fall if any one of them is left out."]
        return [f"The columns that contribute most: {', '.join(most)}."] if most else []

    def explain(self) -> str:
        """What the numbers mean."""
        known = ", ".join(self.columns[:_MOST_NAMED]) or "nothing that was released"
        if len(self.columns) > _MOST_NAMED:
            known += f" and {len(self.columns) - _MOST_NAMED:,} more columns"
        undone = f" {self.undone}, which knows the method, succeeds for {self.attacks:.2%}." if self.undone else ""
        return (
            f"The strongest intruder ({self.intruder}), who knows {known}, links {self.linkage:.2%} of "
            f"{self.attacked:,} records attacked to their own; guessing links {self.guessing:.2%}. The smallest group "
            f"with the same quasi-identifiers has {self.smallest:,} records.{undone} Larger rates mean more risk."
        )


def gate_risk(
    rows: int,
    linkage: tuple[Sequence[str], Any] | None,
    groups: tuple[Sequence[str], Any] | None,
    attacks: Mapping[str, Any],
    untried: Sequence[str] = (),
    differencing: Risk | None = None,
) -> GateRisk:
    """What the gate found: of linkage and groups the columns and the result, and the methods' own attacks by name.

    ``differencing`` is that of a series. An attack that could not be tried may succeed for everybody.
    """
    columns, linked = linkage or ((), None)
    quasi, grouped = groups or ((), None)
    worst = max(_intruders("", linked), key=_rate, default=AttackRate("guessing", 1.0 / rows, (1.0 / rows, 1.0 / rows)))
    undoing = [AttackRate(name, float(getattr(one, one.judged[0])), one.interval) for name, one in attacks.items()]
    undoing += [AttackRate(f"{name} (not tried)", 1.0, (1.0, 1.0)) for name in untried]
    strongest = max(undoing, key=_rate, default=None)
    found = [*_intruders("linkage: ", linked), *undoing]
    return GateRisk(
        linkage=max((one.rate for one in _intruders("", linked)), default=worst.rate),
        smallest=rows if grouped is None else grouped.smallest,
        attacks=strongest.rate if strongest else 0.0,
        differencing=_worst(differencing),
        columns=tuple(columns),
        quasi=tuple(quasi),
        intruder=worst.name,
        undone=strongest.name if strongest else "",
        limits={"linkage": worst.interval, "attacks": strongest.interval if strongest else (0.0, 0.0)},
        guessing=linked.guessing if linked else 1.0 / rows,
        attacked=linked.attacked if linked else rows,
        contributions=dict(linked.contributions) if linked else {},
        parts={one.name: one.rate for one in found},
    )


def _worst(found: Risk | None) -> float:
    """The first number of a risk, 0 without any."""
    return 0.0 if found is None else float(getattr(found, found.judged[0]))


def _rate(one: AttackRate) -> float:
    return one.interval[1]


def _intruders(prefix: str, linked: Result | None) -> list[AttackRate]:
    """Every intruder of a linkage."""
    if linked is None:
        return []
    names = sorted(linked.shares, key=lambda name: name == "rate")  # the worst of all: named only if none of them is
    rates = {name: float(getattr(linked, name)) for name in names}
    return [
        AttackRate(f"{prefix}{name.replace('_', ' ')}", rate, linked.intervals.get(name, (rate, rate)))
        for name, rate in rates.items()
    ]


def closed(findings: Mapping[str, str]) -> PolicyRefusal:
    """The refusal of a job whose columns, or whose order, by name, nothing protects and nobody accepted."""
    lines = [f"  {name}: {found}" for name, found in findings.items()]
    accept = [f'  {name}: "why it may be released as it is"' for name in findings]
    return PolicyRefusal(
        "\n".join(
            [
                "The gate is closed; nothing was masked or published.",
                *lines,
                "Mask each of these columns in a step, drop it (columns: identifier), or accept it in the job file "
                "with a reason, which the release shows:",
                "accept:",
                *accept,
                "More: dpmask explain gate",
            ]
        )
    )


def refused(broken: Sequence[Verdict], found: Mapping[str, Sequence[str]]) -> PolicyRefusal:
    """The refusal of a release that breaks rules, with what was found about each, by its text."""
    lines = ["The policy forbids this release; nothing was published."]
    for one in broken:
        default = " (a default of the gate)" if one.rule.text in (*DEFAULT_RULES, SERIES_RULE) else ""
        lines.append(f"  {one.rule.text}{default}: it is {one.judged:.6g}")
        lines += [f"    {line}" for line in found.get(one.rule.text, ())]
    return PolicyRefusal("\n".join(lines))
