"""What the tests of memberships, rotations and swapping share."""

NUMBERS = ["age", "children", "income", "rate", "money"]
COMPLETE = ["age", "income"]
HYBRID = [
    {"method": "membership_transform", "columns": COMPLETE, "function": "z", "bounds": {"age": [0, 123]}},
    {"method": "rotation", "columns": COMPLETE},
]
SMALL_SHARDS = {"swap_shard_values": 200, "swap_shards": 100}
"""Limits by which hundreds of values are many: several shards, and windows dealt to several of them."""
