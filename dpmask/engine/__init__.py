"""The only map-reduce code: blocks, passes over them, and draws that belong to records. Dask, no statistics."""
