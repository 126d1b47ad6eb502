"""What every number in a report means, which direction is worse, and where it comes from.

A measure's result has the terms of its own numbers; here are those that all attacks share, the figures of methods, and
what the report itself draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dpmask.results import ATTACKED, GUESSING, INTERVAL, LESS_RISK, MORE_LOSS, MORE_RISK, NEUTRAL, RATE

_SAMARATI = "Samarati 2001, Protecting respondents' identities in microdata release"


class Entry(NamedTuple):
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


def _terms(source: str, direction: str, **definitions: str) -> list[Entry]:
    return [Entry(name, text, direction, source) for name, text in definitions.items()]


FIELDS = {
    term.name: term
    for term in [
        Entry("rate", *RATE),
        Entry("interval", *INTERVAL),
        Entry("guessing", *GUESSING),
        Entry("attacked", *ATTACKED),
        *_terms(
            _SAMARATI, LESS_RISK, smallest="Records in the smallest group that shares its values (k), or its model."
        ),
        *_terms(_SAMARATI, MORE_RISK, below_k="Share of records in groups smaller than expected."),
        *_terms(
            "Domingo-Ferrer and Mateo-Sanz 2002, Practical data-oriented microaggregation",
            MORE_LOSS,
            loss="Mean squared error of a standardised variable.",
        ),
        *_terms(
            "dpmask explain microaggregation",
            MORE_RISK,
            on_records="Share of released rows that lie on a record of the original.",
            dominated="Share of centres of which one record makes up more than half.",
            largest_weight_share="Largest share of one record in a centre.",
        ),
        *_terms("dpmask explain microaggregation", LESS_RISK, nearest_record="Smallest distance of a row to a record."),
        *_terms(
            "dpmask explain microaggregation",
            NEUTRAL,
            expected_size="Records in a group, as the parameters ask for.",
            distinct_rows="Different rows among the released ones.",
            group_sizes="How many groups of equal released rows have so many records.",
            cells="Parts of the table that were masked by themselves, and the records in the smallest and largest.",
        ),
        *_terms(
            "dpmask explain regression_synthesis",
            MORE_RISK,
            small="Share of records whose model has at most two records for each coefficient.",
            reproduced="Largest share of a column's values that are released as they were.",
            on_planes="Largest share of a column's values that lie on their model's hyperplane.",
        ),
        *_terms(
            "dpmask explain regression_synthesis",
            NEUTRAL,
            models="Regressions that a set of dependents was synthesised by.",
            dissolved="Models with too few records, whose records went to others.",
            coefficients="Numbers that a model consists of, for each dependent.",
            synthesised="Values that were replaced by those of a model.",
            clipped="Values that were moved to a bound.",
            rounded="Values that were rounded to whole numbers.",
        ),
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
            "The farther from zero, the more information was lost.",
            change="Correlation after masking less correlation before.",
        ),
    ]
}


def measure_term(measure: Mapping[str, Any]) -> Entry:
    """The entry of a measure as a whole."""
    about = measure["about"]
    return Entry(measure["name"], about["definition"], about["direction"], about["source"])


def field_term(field: str, measure: Mapping[str, Any] | None = None) -> Entry:
    """The entry of a number: of a measure's result, or of a method's figures."""
    if measure is not None:
        own = measure["about"].get("terms", {}).get(field)  # a point that an earlier sweep kept has none
        return Entry(field, **own) if own else measure_term(measure)
    return FIELDS.get(field) or Entry(field, "A figure of the method.", NEUTRAL, "the method's page in the guide")
