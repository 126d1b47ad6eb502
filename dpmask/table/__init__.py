"""Tables of blocks and what is done with columns: frames in and out, encoders, pairs, groups, quantiles, checks."""
