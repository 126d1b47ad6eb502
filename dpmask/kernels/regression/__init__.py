"""Regressions on one block: Gram matrices, fuzzy c-regression, least squares, logistic regression."""
