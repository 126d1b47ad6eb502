"""Tables in and out: reading a Parquet lake with one schema, writing a release. fsspec and pyarrow live here only."""
