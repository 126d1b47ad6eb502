"""Fuzzy clustering of one block: memberships, sums of centres, tolerance, draws, starts, acceleration."""
