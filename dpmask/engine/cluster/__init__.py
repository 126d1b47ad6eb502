"""Getting a Dask cluster: by address, by a cluster file, with certificates."""
