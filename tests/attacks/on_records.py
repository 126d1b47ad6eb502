"""Released rows that lie on a record: all masked numbers of a row are those of somebody in the register.

The intruder takes such a row for that person's. A row lies on somebody by chance, too: a mean of a thousand people, and
a draw for who earns little, is a whole number as incomes are; then the person's own row is another one, or one of many
that are equal.
"""

from collections import Counter

import numpy as np
from intruder import numeric_columns


def attack(release, register, owner):
    """The share of rows that lie on anybody, but for zeros alone, and the people that are found by it.

    Of q equal rows the intruder takes one at random. ``owner`` is the person of each row, and only scores.
    """
    masked = {one["name"] for one in release.manifest["schema"] if one["masked"]}
    columns = [name for name in numeric_columns(release, register) if name in masked]
    if not columns:
        return 0.0, 0.0
    people, rows = (list(map(tuple, frame[columns].to_numpy(float))) for frame in (register, release.rows))
    known = {one for one in people if any(one)}
    on_somebody = [row in known for row in rows]
    equal = Counter(rows)
    own = [1 / equal[row] for row, person in zip(rows, owner, strict=True) if row in known and people[person] == row]
    return float(np.mean(on_somebody)), float(sum(own))
