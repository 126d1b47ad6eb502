"""One block of rows in, one small summary or one new block out. No Dask, no files, no randomness of their own."""
