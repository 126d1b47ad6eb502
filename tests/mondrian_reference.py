"""Mondrian by its definition: a region at a time, every candidate written out and counted from scratch."""

from models_reference import ModelReference, figure, holds, limits
from refinement_reference import TIE, gain


class MondrianReference(ModelReference):
    """``regions()`` gives for each record and column what it is masked to: the same nodes as those of the refinement."""

    def regions(self):
        """The masked columns; None where the whole table breaks a requirement."""
        everybody = list(range(len(self.records)))
        masked = {name: [None] * len(self.records) for name in self.kinds}
        for names, asked in self.connected():
            if not self.met(everybody, asked):
                return None
            for region, box in self.divided(everybody, {name: self.start(name) for name in names}, asked):
                for name in names:
                    for n in region:
                        masked[name][n] = box[name]
        return masked

    def connected(self):
        """The columns that are connected by requirements, or sets of known columns, and all that these ask."""
        found = []
        for columns, one in self.sets:
            met = [pair for pair in found if pair[0] & set(columns)]
            names = set(columns).union(*(pair[0] for pair in met))
            found = [pair for pair in found if pair not in met]
            found.append((names, [other for pair in met for other in pair[1]] + [one]))
        return [([name for name in self.kinds if name in names], asked) for names, asked in found]

    def start(self, name):
        if self.kinds[name] is None:
            return ("*",)
        top = self.top(name)
        return top if top[0] == "tree" or top[1] else ("interval", *self.kinds[name])

    def met(self, region, asked):
        for one in asked:
            if len(region) < one.get("k", 1):
                return False
            for model in one.get("models", ()):
                column, tree = self.values[model["column"]], self.trees.get(model["column"])
                found = figure(model, [column[n] for n in region], column, self.orders[model["column"]], tree)
                if not holds(model, found, limits(model, column)):
                    return False
        return True

    def divided(self, region, box, asked):
        candidates = [(name, parts) for name in box if (parts := self.candidate(name, box[name], region, asked))]
        free = next((name for name, parts in candidates if len(parts) == 1), None) if self.guided else None
        order = [free] if free else self.by_worth(dict(candidates), box, region)
        for name in order:
            parts = dict(candidates)[name]
            if all(self.met(rows, asked) for _, rows in parts):
                return [found for node, rows in parts for found in self.divided(rows, box | {name: node}, asked)]
        return [(region, box)]

    def by_worth(self, candidates, box, region):
        """The columns, the best candidate first: by gain where there is any, otherwise by what they have lost."""
        left, order = list(candidates), []
        while left:
            gains = {name: self.weight(name) * self.gain(candidates[name]) for name in left}
            lost = {name: self.weight(name) * self.lost_of(name, box[name]) for name in left}
            score = gains if self.guided and max(gains.values()) > TIE else lost
            best = next(name for name in left if score[name] >= max(score.values()) - TIE)
            order.append(best)
            left.remove(best)
        return order

    def weight(self, name):
        return self.importance.get(name, 1.0)

    def gain(self, parts):
        return gain([[self.classes[n] for n in rows] for _, rows in parts])

    def lost_of(self, name, node):
        return 1.0 if node == ("*",) else self.lost(name, node)

    def candidate(self, name, node, region, asked):
        """The one division by this column: its parts that anybody is in, as (node, records); None if it has none."""
        raw = {n: self.records[n][name] for n in region}
        k = max(one.get("k", 1) for one in asked)
        if node == ("*",):
            nodes = [("value", value) for value in sorted({v for v in raw.values() if v is not None})] + [("missing",)]
            parts = [(one, [n for n in region if raw[n] == (one[1] if len(one) > 1 else None)]) for one in nodes]
        elif node[0] == "tree":
            found = self.below(node, region, raw.values())
            parts = [(one, [n for n in region if found[0][2][n] == one]) for one in found[0][1]] if found else []
        elif node[0] == "any":
            whole = ("interval", *node[2])
            parts = [(whole, [n for n in region if raw[n] is not None]), (("missing",), [n for n in region if raw[n] is None])]  # fmt: skip
        elif node[0] == "interval":
            return self.in_two(node, region, raw, k)
        else:
            return None
        parts = [(one, rows) for one, rows in parts if rows]
        return parts if parts and (len(parts) == 1 or all(len(rows) >= k for _, rows in parts)) else None

    def in_two(self, node, region, raw, k):
        """In two: by the largest gain, or, where there is none, most evenly."""
        best = None
        for value in sorted(set(raw.values()))[1:]:
            rows = [n for n in region if raw[n] < value], [n for n in region if raw[n] >= value]
            if min(map(len, rows)) < k:
                continue
            parts = [(("interval", node[1], value), rows[0]), (("interval", value, node[2]), rows[1])]
            gained, uneven = self.gain(parts) if self.guided else 0.0, abs(len(rows[0]) - len(rows[1]))
            worth = (gained, 0) if gained > TIE else (0.0, -uneven)
            if best is None or worth[0] > best[0][0] + TIE or (worth[0] == best[0][0] == 0.0 and worth > best[0]):
                best = worth, parts
        return best and best[1]

    def label(self, name, node):
        """What a node is released as."""
        if node[0] == "missing":
            return None
        if node[0] in ("*", "any"):
            return "*"
        return f"[{node[1]:g}, {node[2]:g})" if node[0] == "interval" else node[1] if node[0] == "value" else node[2][0]
