"""Top-down refinement by its definition: the whole table is masked and counted again for every candidate."""

import copy
import math
from collections import Counter

TIE = 1e-12


def entropy(classes):
    total = len(classes)
    return -sum(n / total * math.log2(n / total) for n in Counter(classes).values())


def gain(parts):
    parts = [part for part in parts if part]
    whole = [one for part in parts for one in part]
    return entropy(whole) - sum(len(part) / len(whole) * entropy(part) for part in parts)


class Reference:
    """``records`` are mappings; ``kinds`` say of each attribute: a tree (value, children), a pair [low, high), or None."""

    def __init__(self, records, kinds, requirements, classes, guided=True, allowed=0):
        self.records, self.kinds, self.requirements = records, kinds, requirements
        self.classes, self.guided, self.allowed = classes, guided, allowed
        self.left = set(range(len(records)))
        self.masked = {name: [self.top(name)] * len(records) for name in kinds}
        self.cut = {name: [self.top(name)] for name in kinds}

    def top(self, name):
        kind = self.kinds[name]
        if kind is None:
            return "*"
        missing = any(record[name] is None for record in self.records)
        return ("any", missing, tuple(kind)) if isinstance(kind, list) else ("tree", missing, kind)

    def children(self, name, node):
        """What a node may become: (its name, new value of each record or None for those it does not concern)."""
        mine = [n for n, value in enumerate(self.masked[name]) if value == node]
        raw = [self.records[n][name] for n in mine]
        if not mine:
            return []
        if node == "*":
            values = sorted({value for value in raw if value is not None}) + [None] * (None in raw)
            return [(value, [v, "*"], {n: v if self.records[n][name] == value else "*" for n in mine})
                    for value in values for v in [("value", value)]]  # fmt: skip
        if node[0] == "tree":
            return self.below(node, mine, raw)
        if node[0] in ("any", "interval"):
            return self.cut_in_two(name, node, mine, raw)
        return []

    def below(self, node, mine, raw):
        _, missing, (value, branches) = node
        if not branches and not missing:
            return []
        nodes = [("tree", False, branch) for branch in (branches or ((value, ()),))] + [("missing",)] * missing
        new = {n: next((b for b in nodes if b[0] == "tree" and v in leaves(b[2])), ("missing",))
               for n, v in zip(mine, raw, strict=True)}  # fmt: skip
        return [(value, nodes, new)]

    def cut_in_two(self, name, node, mine, raw):
        if node[0] == "any":
            _, missing, (low, high) = node
            if missing:
                whole = ("interval", low, high)
                return [(None, [whole, ("missing",)],
                         {n: ("missing",) if v is None else whole for n, v in zip(mine, raw, strict=True)})]  # fmt: skip
        else:
            _, low, high = node
        values = sorted(set(raw))
        best = None
        for value in values[1:]:
            left = [self.classes[n] for n, v in zip(mine, raw, strict=True) if v < value]
            right = [self.classes[n] for n, v in zip(mine, raw, strict=True) if v >= value]
            worth = gain([left, right]) if self.guided else -abs(len(left) - len(right))
            if best is None or worth > best[0] + TIE:
                best = worth, value
        if best is None:
            return []
        parts = [("interval", low, best[1]), ("interval", best[1], high)]
        new = {n: parts[v >= best[1]] for n, v in zip(mine, raw, strict=True)}
        return [((low, high), parts, new)]

    def smallest(self, columns, masked):
        return min(Counter(zip(*(masked[name] for name in columns), strict=True)).values())

    def stable(self, masked):
        """The largest set of records whose groups are all large enough."""
        left = set(range(len(self.records)))
        while True:
            small = set()
            for columns, k in self.requirements:
                groups = self.groups(columns, masked, left)
                small.update(n for group in groups if len(group) < k for n in group)
            if not small:
                return left
            left -= small

    def groups(self, columns, masked, left):
        found = {}
        for n in left:
            found.setdefault(tuple(masked[name][n] for name in columns), []).append(n)
        return list(found.values())

    def run_best(self):
        """What is dropped from the start, or only after all that goes without: the first if finer, and coarser nowhere."""
        without = copy.deepcopy(self)
        without.run()
        onward, at_once = copy.deepcopy(without), copy.deepcopy(self)
        shown = {id(onward): onward.run_dropping(onward.trace), id(at_once): at_once.run_dropping()}
        coarser = any(at_once.loss(name) > without.loss(name) + TIE for name in self.kinds)
        finer = sum(map(at_once.loss, self.kinds)) < sum(map(onward.loss, self.kinds)) - TIE
        best = at_once if finer and not coarser else onward
        vars(self).update(vars(best))
        return shown[id(best)]

    def loss(self, name):
        """The normalised certainty penalty of a column, over all records."""
        return sum(map(self.lost, [name] * len(self.records), self.masked[name])) / len(self.records)

    def lost(self, name, value):
        if value[0] == "interval":
            return (value[2] - value[1]) / (self.kinds[name][1] - self.kinds[name][0])
        if value[0] == "tree":
            below = len(leaves(value[2]))
            return below / len(leaves(self.kinds[name])) if below > 1 or value[1] else 0.0
        return float(value[0] in ("*", "any"))

    def run_dropping(self, before=()):
        """With some records dropped: every candidate is tried to the end. Told are the steps that tell of who is left."""
        steps = list(before)
        while True:
            best = None
            for name in self.kinds:
                for node in self.cut[name]:
                    for _, nodes, new in self.children(name, node):
                        masked = dict(self.masked)
                        masked[name] = [new.get(n, value) for n, value in enumerate(self.masked[name])]
                        score = self.dropping_score(name, node, masked, new)
                        left = self.stable(masked)
                        if score is None or len(self.records) - len(left) > self.allowed:
                            continue
                        if best is None or score > best[0] + TIE:
                            best = score, name, node, nodes, masked[name], left, new
            if best is None:
                return [step for step, *taken in steps if self.tells(*taken)]
            score, name, node, nodes, self.masked[name], self.left, new = best
            place = self.cut[name].index(node)
            self.cut[name][place : place + 1] = nodes
            sizes = [len(g) for columns, _ in self.requirements for g in self.groups(columns, self.masked, self.left)]
            steps.append(((name, score, min(sizes)), node, new))

    def tells(self, node, new):
        values = {value for n, value in new.items() if n in self.left}
        if node == "*":
            return bool(values - {"*"})
        return len(values) > (0 if node[0] == "tree" else 1)

    def edges(self, name):
        """The intervals of who is left: each but the first begins with the lowest value in it."""
        found = {}
        for n in self.left:
            if self.masked[name][n] != ("missing",):
                found.setdefault(self.masked[name][n], []).append(self.records[n][name])
        low, high = self.kinds[name]
        hidden = self.masked[name][0][0] == "any"
        return [low, *([] if hidden else sorted(map(min, found.values()))[1:]), high]

    def dropping_score(self, name, node, masked, new):
        falls, most = [], 0
        for columns, k in self.requirements:
            if name not in columns:
                continue
            now = min(len(group) for group in self.groups(columns, self.masked, self.left))
            touched = {n for group in self.groups(columns, self.masked, self.left) for n in group
                       if any(new.get(m, "*") != "*" for m in group)}  # fmt: skip
            after = [g for g in self.groups(columns, masked, self.left) if g[0] in touched]
            if not after:
                return None
            small = [g for g in after if len(g) < k]
            told = {masked[name][g[0]] for g in after if len(g) >= k}
            if node == "*":
                if not told - {"*"}:
                    return None
            elif small and len(told) < 2:
                return None
            lost = sum(map(len, small))
            most = max(most, lost)
            falls.append(now - (0 if lost else min(now, *map(len, after))))
        parts = {}
        for n, value in new.items():
            parts.setdefault(value, []).append(self.classes[n])
        if self.guided:
            return gain(list(parts.values())) / (sum(falls) / len(falls) + 1)
        refined = len(new) if node != "*" else sum(v != "*" for v in new.values())
        return float(refined - most)

    def run(self):
        self.trace = steps = []
        while True:
            best = None
            now = [self.smallest(columns, self.masked) for columns, _ in self.requirements]
            for name in self.kinds:
                for node in self.cut[name]:
                    for _, nodes, new in self.children(name, node):
                        masked = dict(self.masked)
                        masked[name] = [new.get(n, value) for n, value in enumerate(self.masked[name])]
                        after = [self.smallest(columns, masked) for columns, _ in self.requirements]
                        if any(size < k for size, (_, k) in zip(after, self.requirements, strict=True)):
                            continue
                        losses = [
                            b - a
                            for b, a, (columns, _) in zip(now, after, self.requirements, strict=True)
                            if name in columns
                        ]
                        parts = {}
                        for n, value in new.items():
                            parts.setdefault(value, []).append(self.classes[n])
                        score = gain(list(parts.values())) / (sum(losses) / len(losses) + 1)
                        if not self.guided:
                            score = float(len(new) if node != "*" else sum(v != "*" for v in new.values()))
                        if best is None or score > best[0] + TIE:
                            best = score, name, node, nodes, masked[name], min(after), new
            if best is None:
                return [step for step, _, _ in steps]
            score, name, node, nodes, column, smallest, new = best
            self.masked[name] = column
            place = self.cut[name].index(node)
            self.cut[name][place : place + 1] = nodes
            steps.append(((name, score, smallest), node, new))


def leaves(branch):
    value, children = branch
    return [leaf for child in children for leaf in leaves(child)] if children else [value]
