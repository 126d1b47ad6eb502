"""What a refinement came to, in numbers: groups, losses, steps and trees, why columns stopped, what models allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from dpmask.masking.refinement.series import SeriesFigure
from dpmask.masking.refinement.solution import RefinementStep
from dpmask.masking.refinement.stops import Alternative, Stop
from dpmask.results import LESS_RISK, MORE_LOSS, MORE_RISK, NEUTRAL, Exhibit, Plain, Result, Term, plain
from dpmask.table.requirement import MODELS

_DIVERSITY = "Machanavajjhala et al. 2007, l-diversity: privacy beyond k-anonymity"
_FUNG = "Fung, Wang, Wang and Hung 2009, section 3 and Algorithm 1."

IN_ORDER = "What was refined, in this order"
REFINED = {"attribute": Exhibit("text"), "value": Exhibit("text"), "score": Exhibit("number")}
_MODELS = {
    "requirement": Exhibit("text"),
    "limited": Exhibit("text", "what is limited"),
    "figure": Exhibit("number", "worst group"),
    "limit": Exhibit("number"),
}
_STOPS = {
    "column": Exhibit("text"),
    "value": Exhibit("text", "what stays as it is"),
    "requirement": Exhibit("text"),
    "group": Exhibit("number", "records of the group"),
    "blocked_by": Exhibit("text", "blocked by"),
}
_ALTERNATIVES = {
    "change": Exhibit("text"),
    "column": Exhibit("text", "column that is refined"),
    "value": Exhibit("text", "what is refined"),
    "gain": Exhibit("number", "gain, or records refined"),
}
_SERIES = {
    "columns": Exhibit("text"),
    "releases": Exhibit("text", "with"),
    "people": Exhibit("text", "people who are"),
    "least": Exhibit("number", "records left, at least"),
    "k": Exhibit("number"),
}
TREES = Exhibit("trees", "what its values are masked to")


class ModelFigure(NamedTuple):
    """The worst figure of one limit of a model in the groups of a requirement."""

    requirement: str
    model: str
    limited: str
    figure: float
    limit: float


def _worst_of(model: str) -> Any:
    """A property: the worst figure of a model in any requirement; None without one."""
    worse = min if model in {"distinct_l", "entropy_l"} else max
    return property(lambda found: worse((one.figure for one in found.models if one.model == model), default=None))


@dataclass(frozen=True, repr=False)
class Figures(Result):
    """What a refinement came to: the smallest group of each requirement that counts, steps, trees, records dropped."""

    groups: Mapping[str, int]
    steps: tuple[RefinementStep, ...]
    trees: Mapping[str, Any]
    rows: int
    dropped: int = 0
    cells: Mapping[str, int] = field(default_factory=dict)
    models: tuple[ModelFigure, ...] = ()
    stops: tuple[Stop, ...] = ()
    alternatives: tuple[Alternative, ...] = field(default=(), compare=False)
    """None where the cells of all groups outgrow the driver's budget."""
    losses: Mapping[str, float] = field(default_factory=dict)
    """What each column lost: the normalised certainty penalty (attributes.py)."""
    regions: int = 0
    """Of the search mondrian, and beside it what one cut for all records would lose."""
    one_cut: Mapping[str, float] = field(default_factory=dict)
    series: tuple[SeriesFigure, ...] = ()
    """What earlier releases of a series leave."""

    judged: ClassVar[tuple[str, ...]] = ("smallest", "refinements", "loss", "suppressed", "suppressed_cells", *MODELS)
    exhibits: ClassVar[Mapping[str, Exhibit]] = {
        "suppressed_records": Exhibit("number", "records left out"),
        "suppressed": Exhibit("share", "share of records left out"),
        "suppressed_cells": Exhibit("share", "share of cells set to missing"),
        "cells": Exhibit("numbers", "Cells set to missing", term="suppressed_cells"),
        "requirements": Exhibit("numbers", "Smallest groups", term="smallest"),
        "loss": Exhibit("number"),
        "losses": Exhibit("numbers", "What each column lost", term="loss"),
        "regions": Exhibit("number"),
        "loss_of_one_cut": Exhibit("number", "loss of the one-cut search"),
        "one_cut": Exhibit("numbers", "What each column would lose by one cut for all records", term="loss"),
        "models": Exhibit("rows", "What models allow", of=_MODELS),
        "steps": Exhibit("steps", IN_ORDER, of={**REFINED, "smallest": Exhibit("number", "smallest group after it")}),
        "stops": Exhibit("rows", "Why each column stopped", of=_STOPS),
        "alternatives": Exhibit("rows", "What would allow one refinement more", of=_ALTERNATIVES),
        "series": Exhibit("rows", "What is left to an intruder who has earlier releases, too", of=_SERIES),
        "trees": TREES,
    }
    about: ClassVar[Term] = Term("Records in the smallest group of any requirement.", LESS_RISK, _FUNG)
    terms: ClassVar[Mapping[str, Term]] = {
        "refinements": Term("Refinements that were taken.", NEUTRAL, _FUNG),
        "loss": Term(
            "The normalised certainty penalty: the mean over records and columns of what a value lost, of an interval "
            "its share of the domain, of a tree's node the share of all values below it.",
            MORE_LOSS,
            "Xu et al. 2006, Utility-based anonymization using local recoding",
        ),
        "suppressed": Term("The share of records that were dropped.", MORE_LOSS, "dpmask."),
        "suppressed_cells": Term("The share of the masked columns' cells set to missing.", MORE_LOSS, "dpmask."),
        "distinct_l": Term("Fewest different sensitive values in a group.", LESS_RISK, _DIVERSITY),
        "entropy_l": Term("Fewest sensitive values in a group, by their entropy.", LESS_RISK, _DIVERSITY),
        "recursive_l": Term("Largest share in a group over that of the l-th and all later.", MORE_RISK, _DIVERSITY),
        "confidence": Term(
            "Largest share of a limited sensitive value in a group.",
            MORE_RISK,
            "Wang, Fung and Yu 2005, Template-based privacy preservation in classification problems",
        ),
        "t_closeness": Term(
            "Largest distance of a group's sensitive values from those of all.",
            MORE_RISK,
            "Li, Li and Venkatasubramanian 2007, t-closeness",
        ),
    }
    distinct_l = _worst_of("distinct_l")
    entropy_l = _worst_of("entropy_l")
    recursive_l = _worst_of("recursive_l")
    confidence = _worst_of("confidence")
    t_closeness = _worst_of("t_closeness")

    @property
    def smallest(self) -> int:
        """Records in the smallest group of any requirement."""
        return min(self.groups.values())

    @property
    def refinements(self) -> int:
        """How many refinements there were."""
        return len(self.steps)

    @property
    def loss(self) -> float:
        """The mean of what the columns lost."""
        return sum(self.losses.values()) / len(self.losses)

    @property
    def loss_of_one_cut(self) -> float:
        """The same with one cut for all records."""
        return sum(self.one_cut.values()) / len(self.one_cut)

    @property
    def suppressed_cells(self) -> float:
        """The share of the masked columns' cells that were set to missing."""
        return sum(self.cells.values()) / (self.rows * len(self.losses))

    @property
    def suppressed(self) -> float:
        """The share of records that were dropped."""
        return self.dropped / self.rows

    def explain(self) -> str:
        """The numbers in a sentence."""
        if self.regions:
            return (
                f"{self.regions:,} regions of at least {self.smallest:,} records; a loss (normalised certainty "
                f"penalty) of {self.loss:.4g}, where one cut for all records would lose {self.loss_of_one_cut:.4g}."
            )
        return (
            f"{self.refinements} refinements; at least {self.smallest:,} records share every row of a requirement; "
            f"{self.dropped:,} of {self.rows:,} records were dropped"
            + (f", and {sum(self.cells.values()):,} cells set to missing." if self.cells else ".")
        )

    def to_dict(self) -> dict[str, Plain]:
        """The numbers, for JSON."""
        found = {name: plain(getattr(self, name)) for name in self.judged}
        return {name: value for name, value in found.items() if value is not None} | {
            "suppressed_records": self.dropped,
            **({"cells": plain(self.cells)} if self.cells else {}),
            "requirements": plain(self.groups),
            "losses": plain(self.losses),
            **(self._of_regions() if self.regions else {}),
            **({"models": [plain(one._asdict()) for one in self.models]} if self.models else {}),
            **({"series": [plain(one._asdict()) for one in self.series]} if self.series else {}),
            "steps": [plain(step._asdict()) for step in self.steps],
            "stops": [plain(one._asdict()) for one in self.stops],
            "alternatives": [plain(one._asdict()) for one in self.alternatives],
            "trees": plain(self.trees),
        }

    def _of_regions(self) -> dict[str, Plain]:
        return {"regions": self.regions, "loss_of_one_cut": self.loss_of_one_cut, "one_cut": plain(self.one_cut)}

    def __repr__(self) -> str:
        """No step and no tree: bounds of intervals are values of records."""
        return f"<{type(self).__name__}: {self.explain()}>"
