"""Clustering over Dask: kernels for one block, the engine's passes, and the loops that bring them to a fixed point."""
