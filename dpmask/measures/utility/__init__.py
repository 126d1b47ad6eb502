"""Information loss: how much of the original's statistics a masked table has lost."""
