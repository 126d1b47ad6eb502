"""Synthetic values by regressions: fuzzy c-regression and IPSO."""
