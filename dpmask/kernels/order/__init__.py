"""Order statistics of one block: doubles in order, quantiles, histograms, bins."""
