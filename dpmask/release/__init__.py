"""Deciding, publishing and checking: the policy, staged files, the manifest, verification."""
