"""Columns as numbers: categories as codes, values as codes, one-hot."""
