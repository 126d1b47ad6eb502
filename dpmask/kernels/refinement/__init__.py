"""Refinement of one block: groups, the cells a finer value would cut them into, information gain."""
