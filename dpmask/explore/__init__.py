"""The explorer: a page for the data holder alone, on which a job's parameters move and their effect is seen at once."""
