"""What every number in a report means, which direction is worse, and where it comes from.

The result of a measure or a method has the terms of its own numbers; here are those that all attacks share, and of what
the report itself draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dpmask.results import ATTACKED, GUESSING, INTERVAL, LESS_RISK, MORE_RISK, NEUTRAL, RATE


class GlossaryEntry(NamedTuple):
    """One entry of the glossary."""

    name: str
    definition: str
    direction: str
    source: str

    @property
    def anchor(self) -> str:
        """Where it stands in the page."""
        return "term-" + "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in self.name)

    @property
    def hint(self) -> str:
        """All of it in one line, shown when a reader points at the number."""
        return f"{self.definition} {self.direction} Source: {self.source}."


def _terms(source: str, direction: str, **definitions: str) -> list[GlossaryEntry]:
    return [GlossaryEntry(name, text, direction, source) for name, text in definitions.items()]


FIELDS = {
    term.name: term
    for term in [
        GlossaryEntry("rate", *RATE),
        GlossaryEntry("interval", *INTERVAL),
        GlossaryEntry("guessing", *GUESSING),
        GlossaryEntry("attacked", *ATTACKED),
        *_terms(
            "Fung, Wang, Wang and Hung 2009, Privacy-preserving data publishing for cluster analysis",
            NEUTRAL,
            order="Refinements are made one after the other, the best score first.",
            score="Bits of information that a refinement gives about the guide's classes, for each record by which the "
            "smallest groups shrank, and one more; guided by distortion, the records it refines.",
        ),
        *_terms(
            "dpmask explain report",
            NEUTRAL,
            distribution="Share of the records with a value that lie in each bar; the same bars before and after.",
            correlation="Pearson's r over the records that have both values.",
        ),
        *_terms(
            "dpmask explain report",
            LESS_RISK,
            candidates="Released rows that fit a record at least as well as its own, by the columns that are known.",
        ),
        *_terms(
            "dpmask explain report",
            MORE_RISK,
            chance="Chance of a right link: 1 over the rows as near as the own, 0 where another is nearer.",
        ),
        *_terms(
            "dpmask explain report",
            "The farther from zero, the more information was lost.",
            change="Correlation after masking less correlation before.",
        ),
    ]
}


def measure_term(measure: Mapping[str, Any]) -> GlossaryEntry:
    """The entry of a measure, or of a method's figures, as a whole."""
    about = measure["about"]
    return GlossaryEntry(measure["name"], about["definition"], about["direction"], about["source"])


def field_term(field: str, measure: Mapping[str, Any] | None = None) -> GlossaryEntry:
    """The entry of a number: of a measure's result, or of a method's figures."""
    if measure is not None:
        own = measure["about"].get("terms", {}).get(field)  # a point that an earlier sweep kept has none
        return GlossaryEntry(field, **own) if own else measure_term(measure)
    return FIELDS.get(field) or GlossaryEntry(
        field, "A figure of the method.", NEUTRAL, "the method's page in the guide"
    )
