"""Microaggregation: groups of records that share one released row, by fuzzy clusters or by MDAV."""
