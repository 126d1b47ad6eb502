"""Disclosure risk: what an intruder learns from a masked table."""
