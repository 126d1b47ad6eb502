"""What the tests of memberships, rotations and swapping share."""

from dpmask.masking import swapping

NUMBERS = ["age", "children", "income", "rate", "money"]
COMPLETE = ["age", "income"]
HYBRID = [
    {"method": "membership_transform", "columns": COMPLETE, "function": "z", "bounds": {"age": [0, 123]}},
    {"method": "rotation", "columns": COMPLETE},
]


def small_shards(patch):
    """Hundreds of values count as many: several shards, and windows dealt to several of them."""
    patch.setattr(swapping, "_SHARD", 200)
    patch.setattr(swapping, "_MOST_SHARDS", 100)
