"""Attacks on one block: nearest records, agreement patterns, transformations undone from known records."""
