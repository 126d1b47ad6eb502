"""What people read: the public manifest and statement, the internal report."""
