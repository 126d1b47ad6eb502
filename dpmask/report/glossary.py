"""What every number in a report means, which direction is worse, and where it comes from.

A measure says so itself, on the class of its result; here are the fields that measures share, and the figures of
methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

_MORE_RISK = "Larger means more risk."
_LESS_RISK = "Smaller means more risk."
_MORE_LOSS = "Larger means more information lost."
_NEUTRAL = "Neither direction is worse by itself."
_WP216 = "Article 29 Working Party 2014, Opinion 05/2014 on anonymisation techniques (WP216)"
_SAMARATI = "Samarati 2001, Protecting respondents' identities in microdata release"
_TEMPL = "Templ, Kowarik and Meindl 2015, Statistical disclosure control for micro-data using the R package sdcMicro"


class Term(NamedTuple):
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
        """All of it in one line, for who points at the number."""
        return f"{self.definition} {self.direction} Source: {self.source}."


def _terms(source: str, direction: str, **definitions: str) -> list[Term]:
    return [Term(name, text, direction, source) for name, text in definitions.items()]


FIELDS = {
    term.name: term
    for term in [
        *_terms(
            _WP216,
            _MORE_RISK,
            rate="Share of the attacked records or values for which the attack succeeds.",
            excess="How much the rate exceeds that of the same attack with the person's own record held out.",
        ),
        *_terms(
            "Wilson 1927, Probable inference, the law of succession, and statistical inference",
            "The wider, the less is known; a policy is judged by its worse end.",
            interval="95 % interval of a rate that was found on a sample of records; a point where all were attacked.",
        ),
        *_terms(
            _WP216,
            "A risk near it adds nothing to what anybody could do.",
            guessing="What the same attack scores without the release, or by chance alone.",
        ),
        *_terms(
            _WP216,
            "The more, the narrower the interval.",
            attacked="How many records were attacked.",
        ),
        *_terms(
            "Domingo-Ferrer and Torra 2001, A quantitative comparison of disclosure control methods",
            _MORE_RISK,
            by_known="Mean rate of intruders who know the first column, the first two, and so on up to seven.",
            by_sd="Share of values within 1 to 10 % of a standard deviation of their masked value, on average.",
            by_rank="Share of values within 1 to 10 % of the ranks around their masked value, on average.",
        ),
        *_terms(
            "Torra, Abowd and Domingo-Ferrer 2006, Using Mahalanobis distance-based record linkage",
            _MORE_RISK,
            mahalanobis="Rate of an intruder who also knows the covariance of what masking added.",
        ),
        *_terms(
            "Fellegi and Sunter 1969, A theory for record linkage; EM by Jaro 1989",
            _MORE_RISK,
            estimated="Rate of an intruder who has to estimate how masking changes agreement, by EM.",
        ),
        *_terms(
            _TEMPL, _MORE_RISK, joint="Share of records that lie close to their masked one in all columns at once."
        ),
        *_terms(
            _SAMARATI, _LESS_RISK, smallest="Records in the smallest group that shares its values (k), or its model."
        ),
        *_terms(
            _SAMARATI,
            _MORE_RISK,
            uniques="Records that share their quasi-identifiers with no other.",
            below="Records in groups of fewer than k.",
            below_k="Share of records in groups smaller than expected.",
        ),
        *_terms(
            "El Emam 2013, Guide to the de-identification of personal health information",
            _MORE_RISK,
            prosecutor="Mean chance to find a person who is known to be in the release.",
            journalist="Mean chance to find the person behind a released record in a register.",
        ),
        *_terms(
            "Machanavajjhala et al. 2007, l-diversity: privacy beyond k-anonymity",
            _LESS_RISK,
            distinct="Fewest different sensitive values in a group: distinct l.",
            entropy="Fewest sensitive values in a group, weighed by how evenly they occur: entropy l.",
        ),
        *_terms(
            "Wang, Fung and Yu 2005, Template-based privacy preservation in classification problems",
            _MORE_RISK,
            confidence="Largest share of one sensitive value in a group.",
        ),
        *_terms(
            "Li, Li and Venkatasubramanian 2007, t-closeness",
            _MORE_RISK,
            closeness="Largest distance between a group's sensitive values and those of all: t.",
        ),
        *_terms(
            "Liu, Giannella and Kargupta 2006, An attacker's view of distance preserving maps",
            _LESS_RISK,
            error="Root mean square error of recovered values, in standard deviations.",
        ),
        *_terms("the measure's own page in the guide", _MORE_LOSS, value="The measure's headline number."),
        *_terms(
            "Domingo-Ferrer and Mateo-Sanz 2002, Practical data-oriented microaggregation",
            _MORE_LOSS,
            loss="Mean squared error of a standardised variable.",
        ),
        *_terms(
            "dpmask explain microaggregation",
            _MORE_RISK,
            on_records="Share of released rows that lie on a record of the original.",
            dominated="Share of centres of which one record makes up more than half.",
            largest_weight_share="Largest share of one record in a centre.",
        ),
        *_terms(
            "dpmask explain microaggregation", _LESS_RISK, nearest_record="Smallest distance of a row to a record."
        ),
        *_terms(
            "dpmask explain microaggregation",
            _NEUTRAL,
            expected_size="Records in a group, as the parameters ask for.",
            distinct_rows="Different rows among the released ones.",
            group_sizes="How many groups of equal released rows have so many records.",
            cells="Parts of the table that were masked by themselves, and the records in the smallest and largest.",
        ),
        *_terms(
            "dpmask explain regression_synthesis",
            _MORE_RISK,
            small="Share of records whose model has at most two records for each coefficient.",
            reproduced="Largest share of a column's values that are released as they were.",
            on_planes="Largest share of a column's values that are just what their model says.",
        ),
        *_terms(
            "dpmask explain regression_synthesis",
            _NEUTRAL,
            models="Regressions that a set of dependents was synthesised by.",
            dissolved="Models with too few records, whose records went to others.",
            coefficients="Numbers that a model consists of, for each dependent.",
            synthesised="Values that were replaced by what a model says.",
            clipped="Values that were held to a bound.",
            rounded="Values that were rounded to whole numbers.",
        ),
        *_terms(
            "Fung, Wang, Wang and Hung 2009, Privacy-preserving data publishing for cluster analysis",
            _NEUTRAL,
            order="Refinements are made one after the other, the best score first.",
            score="Bits that a refinement tells of the guide's classes, for each record by which the smallest groups "
            "shrank, and one more; guided by distortion, the records it refines.",
        ),
        *_terms(
            "dpmask explain report",
            _NEUTRAL,
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


def measure_term(measure: Mapping[str, Any]) -> Term:
    """The entry of a measure, in its own words."""
    about = measure["about"]
    return Term(measure["name"], about["definition"], about["direction"], about["source"])


def field_term(field: str, measure: Mapping[str, Any] | None = None) -> Term:
    """The entry of a field of a measure; what no glossary knows is told by the measure itself."""
    known = FIELDS.get(field)
    if known is not None and (field != "value" or measure is None):
        return known
    if measure is None:
        return Term(field, "A figure of the method.", _NEUTRAL, "the method's page in the guide")
    return measure_term(measure)
