"""Released rows that lie on a record: all masked numbers of a row are those of one person in the register."""

import numpy as np
from intruder import numeric_columns


def attack(release, register, owner):
    """The share of rows that lie on exactly one person, but for equal zeros, and of those that are this person's own.

    A row lies on somebody by chance, too: means of a thousand people, and draws for who earns little, are whole numbers
    as incomes are. It shows nothing of that person, whose row is another one. ``owner`` is the person of each row, and
    only scores.
    """
    masked = {one["name"] for one in release.manifest["schema"] if one["masked"]}
    columns = [name for name in numeric_columns(release, register) if name in masked]
    if not columns:
        return 0.0, 0.0
    people, rows = (list(map(tuple, frame[columns].to_numpy(float))) for frame in (register, release.rows))
    alone = register[columns].drop_duplicates(keep=False).index
    person = {people[one]: one for one in alone if np.any(people[one])}
    found = np.array([person.get(row, -1) for row in rows])
    return float(np.mean(found >= 0)), float(np.mean(found == owner))
