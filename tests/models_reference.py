"""Privacy models and a refinement under them by their definitions: every candidate is masked and counted from scratch."""

import math
from collections import Counter
from itertools import combinations

from refinement_reference import TIE, Reference, gain, leaves

SLACK = 1e-9


def distance(p, q, model, values, tree):
    """The distance of two distributions over ``values``, in their order."""
    kind = model.get("distance", "equal")
    if kind == "equal":
        return sum(abs(p[v] - q[v]) for v in values) / 2
    if kind == "ordered":
        occurring = [v for v in values if q[v] > 0]
        parts, cumulated = [], 0.0
        for v in occurring:
            cumulated += p[v] - q[v]
            parts.append(abs(cumulated))
        return sum(parts[:-1]) / max(len(occurring) - 1, 1)
    return transport(p, q, tree, None in values)[0] / height(tree)


def height(branch):
    return 1 + max(map(height, branch[1])) if branch[1] else 0


def transport(p, q, branch, missing):
    """What moving inside a branch costs, in levels, and what is left over."""
    value, children = branch
    if not children:
        return 0.0, p[value] - q[value]
    below = [transport(p, q, child, False) for child in children]
    extras = [extra for _, extra in below] + ([p[None] - q[None]] if missing else [])
    surplus, shortage = sum(e for e in extras if e > 0), -sum(e for e in extras if e < 0)
    return sum(cost for cost, _ in below) + height(branch) * min(surplus, shortage), sum(extras)


def figure(model, values, everybody, order=(), tree=None):
    """The figure of a group of sensitive values; a confidence with named values has one for each of them."""
    n, counts = len(values), Counter(values)
    ranked = sorted(counts.values(), reverse=True)
    kind = model["model"]
    if kind == "distinct_l":
        return [len(counts)]
    if kind == "entropy_l":
        return [math.exp(-sum(c / n * math.log(c / n) for c in ranked))]
    if kind == "recursive_l":
        rest = sum(ranked[model["l"] - 1 :])
        return [ranked[0] / rest if rest else math.inf]
    if kind == "confidence":
        named = [counts[value] / n for value in model.get("values", {}) if value in everybody]
        return named + ([ranked[0] / n] if "most" in model or not named else [])
    p = {v: counts[v] / n for v in order}
    whole = Counter(everybody)
    q = {v: whole[v] / len(everybody) for v in order}
    return [distance(p, q, model, order, tree)]


def limits(model, everybody):
    kind = model["model"]
    if kind == "confidence":
        named = [share for value, share in model.get("values", {}).items() if value in everybody]
        return named + ([model.get("most", 1)] if "most" in model or not named else [])
    return [model["t"] if kind == "t_closeness" else model["c"] if kind == "recursive_l" else model["l"]]


def holds(model, found, bounds):
    if model["model"] in ("distinct_l", "entropy_l"):
        return all(one >= bound - SLACK for one, bound in zip(found, bounds, strict=True))
    if model["model"] == "recursive_l":
        return all(one < bound - SLACK for one, bound in zip(found, bounds, strict=True))
    return all(one <= bound + SLACK for one, bound in zip(found, bounds, strict=True))


def deciles(values):
    """The class of each number: how many of the deciles that occur, but for the smallest number, are at or below it."""
    there = sorted(v for v in values if v is not None)
    if len(set(there)) <= 10:
        return list(values)
    edges = sorted({there[len(there) * n // 10] for n in range(10)})[1:]
    return [None if v is None else sum(edge <= v for edge in edges) for v in values]


def covers(other, mine):
    """Whether what is asked of some columns follows from what is asked of others."""
    models = other[1].get("models", ())
    return (
        set(mine[0]) <= set(other[0])
        and mine[1].get("k", 1) <= other[1].get("k", 1)
        and all(model in models for model in mine[1].get("models", ()))
    )


class ModelReference(Reference):
    """``requirements`` are mappings of columns, k, models and known; ``trees`` and ``importance`` by column."""

    def __init__(self, records, kinds, requirements, classes, guided=True, trees=(), importance=()):
        super().__init__(records, kinds, requirements, classes, guided)
        self.trees, self.importance = dict(trees), dict(importance)
        columns = {model["column"] for one in requirements for model in one.get("models", ())}
        self.values = {name: self.coded(name) for name in columns}
        self.orders = {name: self.order(name) for name in columns}
        self.sets = []
        every = [
            (names, one)
            for one in requirements
            for names in combinations(one["columns"], one.get("known") or len(one["columns"]))
        ]
        for number, mine in enumerate(every):
            if not any(
                covers(other, mine) and (n < number or not covers(mine, other))
                for n, other in enumerate(every)
                if n != number
            ):
                self.sets.append(mine)

    def coded(self, name):
        values = [record[name] for record in self.records]
        return deciles(values) if any(isinstance(v, float) for v in values) else values

    def order(self, name):
        there = [v for v in self.values[name] if v is not None]
        values = leaves(self.trees[name]) if name in self.trees else sorted(set(there))
        return values + [None] * (None in self.values[name])

    def counted(self, names, one, masked):
        """The smallest group, each model's worst figures, and whether all hold."""
        groups = self.groups(names, masked, range(len(self.records)))
        smallest, worst, valid = min(map(len, groups)), [], True
        valid = smallest >= one.get("k", 1)
        for model in one.get("models", ()):
            column = self.values[model["column"]]
            tree = self.trees.get(model["column"])
            found = [
                figure(model, [column[n] for n in group], column, self.orders[model["column"]], tree)
                for group in groups
            ]
            valid = valid and all(holds(model, each, limits(model, column)) for each in found)
            worse = min if model["model"] in ("distinct_l", "entropy_l") else max
            worst.append([worse(each) for each in zip(*found, strict=True)])
        return smallest, worst, valid

    def candidates(self):
        for name in self.kinds:
            for node in self.cut[name]:
                for _, nodes, new in self.children(name, node):
                    masked = dict(self.masked)
                    masked[name] = [new.get(n, value) for n, value in enumerate(self.masked[name])]
                    yield name, node, nodes, new, masked

    def score(self, name, node, new, now, after):
        losses = []
        for (names, one), before, then in zip(self.sets, now, after, strict=True):
            if name in names:
                loss = before[0] - then[0]
                for model, old, new_figures in zip(one.get("models", ()), before[1], then[1], strict=True):
                    if model["model"] == "confidence":
                        loss += sum(before[0] * max(b - a, 0) for a, b in zip(old, new_figures, strict=True))
                losses.append(loss)
        weight = self.importance.get(name, 1.0)
        if not self.guided:
            return weight * (len(new) if node != "*" else sum(v != "*" for v in new.values()))
        parts = {}
        for n, value in new.items():
            parts.setdefault(value, []).append(self.classes[n])
        return weight * gain(list(parts.values())) / (sum(losses) / len(losses) + 1)

    def run(self):
        """The steps; None where the requirements are broken before the first."""
        now = [self.counted(names, one, self.masked) for names, one in self.sets]
        if not all(valid for _, _, valid in now):
            return None
        steps = []
        while True:
            best = None
            for name, node, nodes, new, masked in self.candidates():
                after = [
                    self.counted(names, one, masked) if name in names else before
                    for (names, one), before in zip(self.sets, now, strict=True)
                ]
                if not all(valid for _, _, valid in after):
                    continue
                score = self.score(name, node, new, now, after)
                if best is None or score > best[0] + TIE:
                    best = score, name, node, nodes, masked[name], after
            if best is None:
                return steps
            score, name, node, nodes, self.masked[name], now = best
            place = self.cut[name].index(node)
            self.cut[name][place : place + 1] = nodes
            steps.append((name, score, min(size for size, _, _ in now)))
