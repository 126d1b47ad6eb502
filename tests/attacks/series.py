"""An intruder who has all releases of a table that grows: who can be told from the others by what differs.

Of a person are known age, town and sex, and from which release on the person is in. Labels are read as sets of values,
and records of two releases compared by them alone: a record of one that no record of the other can be is not the
person's.
"""

from collections import Counter, defaultdict
from functools import cache


def meanings(tree):
    """What each label of a taxonomy stands for: a set of values."""
    children = tree.get("children", [])
    found = {label: values for child in children for label, values in meanings(child).items()}
    return found | {tree["value"]: frozenset().union(*found.values()) if children else frozenset([tree["value"]])}


def age_set(label):
    low, high = label.strip("[)").split(", ")
    return frozenset(range(int(low), int(high)))


def counted(release):
    """For each row of labels how many records have each illness."""
    found = defaultdict(Counter)
    for *row, illness in release:
        found[tuple(row)][illness] += 1
    return found


def comparing(sets):
    """Whether a record with one row of labels may be one with another: in every column one contains the other."""

    @cache
    def comparable(one, other):
        return all(a <= b or b <= a for a, b in zip(sets(one), sets(other), strict=True))

    return comparable


def left(releases, since, comparable):
    """For each person among how many records of the last release the intruder cannot choose.

    ``releases``: (labels..., illness) of each person who is in it, in the order of arrival; ``since``: the first release
    of each person.
    """
    groups = [counted(release) for release in releases]
    last, rows = groups[-1], [[tuple(row[:-1]) for row in release] for release in releases]
    found = []
    new_left = {}
    for person in range(len(rows[-1])):
        mine = [(groups[n], rows[n][person]) for n in range(since[person], len(releases))]
        group = rows[-1][person]
        least = sum(min(one[row][illness] for one, row in mine) for illness in last[group])
        for before in range(since[person]):
            if (before, group) not in new_left:
                new_left[before, group] = _of_new(groups[before], last, group, comparable)
            least = min(least, new_left[before, group])
        found.append(least)
    return found


def _of_new(before, last, group, comparable):
    """Records of a group that may be of people who are new: by definition, illness by illness."""
    size = 0
    for illness, g2 in last[group].items():
        firsts = [row for row, one in before.items() if one[illness] and comparable(row, group)]
        seconds = [row for row, one in last.items() if one[illness] and any(comparable(row, other) for other in firsts)]
        old, all_of_them = sum(before[row][illness] for row in firsts), sum(last[row][illness] for row in seconds)
        size += g2 - min(g2, max(0, old - (all_of_them - g2)))
    return size
