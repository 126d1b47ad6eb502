"""Released rows that lie on a record: all masked numbers of a row are those of somebody in the register.

The intruder takes such a row for that person's. Rows lie on somebody by chance, too: a mean of a thousand people, and a
draw for those who earn little, is a whole number as incomes are. So the intruder compares with strangers, as many people of
the same population who are not in the data: rows that lie on people of the register no more often than on strangers say
nothing about the register. And where a row lies on somebody whose own row is another one, or one of many that are equal,
nobody is found by it.
"""

from collections import Counter
from typing import NamedTuple

from intruder import numeric_columns


class OnRecords(NamedTuple):
    """Different released rows that lie on people and on strangers, but for zeros alone, and people found by them."""

    people: int
    strangers: int
    found: float
    """Of q equal rows the intruder takes one at random."""

    @property
    def chance(self):
        """On how many people rows lie by chance, hardly ever more: as many as on strangers, and three standard errors."""
        return self.strangers + 3 * (self.strangers + 1) ** 0.5


def attack(release, register, strangers, owner):
    """What rows lie on; ``owner`` is the person of each row, and only scores."""
    masked = {one["name"] for one in release.manifest["schema"] if one["masked"]}
    columns = [name for name in numeric_columns(release, register) if name in masked]
    if not columns:
        return OnRecords(0, 0, 0.0)
    people, others, rows = (
        list(map(tuple, frame[columns].to_numpy(float))) for frame in (register, strangers, release.rows)
    )
    equal = Counter(rows)
    on_people, on_strangers = (equal.keys() & {one for one in some if any(one)} for some in (people, others))
    own = [
        1 / equal[row] for row, person in zip(rows, owner, strict=True) if row in on_people and people[person] == row
    ]
    return OnRecords(len(on_people), len(on_strangers), float(sum(own)))
