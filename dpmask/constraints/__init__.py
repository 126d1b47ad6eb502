"""Linear constraints as people write them, and the sets of rows that keep them."""
