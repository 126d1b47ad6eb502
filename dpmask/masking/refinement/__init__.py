"""Top-down refinement: k-anonymity for several quasi-identifiers jointly (Fung et al. 2009)."""
