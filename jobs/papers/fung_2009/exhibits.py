"""Tables 1, 2, 5 and 7 and figures 3 to 14 of Fung, Wang, Wang and Hung (2009)."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

from fung_2009.example import TABLE_7, f_measure, match_point, table_1, table_2, table_5
from fung_2009.quality import (
    ALGORITHMS,
    adult,
    contingency,
    crx,
    mean_interval,
    natural,
    quality,
    random_requirements,
    ranked,
    raw_quality,
    refined,
    requirement,
)
from fung_2009.runtime import figure_9
from sheets import Sheet, Size, plot

MEASURES = {"f": "F-measure", "match": "match point"}
GUIDES = {"cluster": True, "distort": False}
PUBLISHED = {  # benefit over k = 2, 6, 10: from, to, in per cent
    ("Adult", "f", "basic k-means"): "24 to 125", ("Adult", "f", "bisecting k-means"): "34 to 66",
    ("Adult", "match", "basic k-means"): "28 to 85", ("Adult", "match", "bisecting k-means"): "5 to 32",
    ("CRX", "f", "basic k-means"): "40 to 155", ("CRX", "f", "bisecting k-means"): "0, 45, 57",
    ("CRX", "match", "basic k-means"): "9 to 60", ("CRX", "match", "bisecting k-means"): "0, 13, 8",
}  # fmt: skip
WHY = [
    "Means over seeds and thresholds with 95 % intervals over these; the paper has one run each, with CLUTO's clusterings, and draws "
    "bars and curves without printing their values. Here k-means++ takes the best of several starts on min-max scaled numbers and "
    "one-hot categories; a masked interval stands for its middle, a generalised value for a category of its own.",
    "The paper's percentages are those of one run of its clusterings; what can be compared is the direction, and the size about. "
    "k-means on Adult agrees with itself from another seed at F 0.66 to 0.97 only, so that one run shows little.",
]
RANKS = "The paper ranks columns by C4.5 and prints the order for Adult, k = 6, only, taken here throughout; those of CRX are ranked by mutual information with the raw clusters."
DATA = {"Adult": adult, "CRX": crx}


def thresholds(size: Size) -> Sequence[int]:
    """The published 5, 10, ..., 100."""
    return size.of(range(5, 101, 5), (5, 50, 100))


def seeds(name: str, size: Size) -> Sequence[int]:
    """More of the small table."""
    return size.of(range(1, 4), range(1, 3)) if name == "Adult" else size.of(range(1, 6), range(1, 3))


def _row(label: Sequence[Any], values: Sequence[float]) -> list[Any]:
    mean, low, high = mean_interval(values)
    return [*label, mean, f"{low:.3f} to {high:.3f}"]


def _both(label: Sequence[Any], found: Sequence[Any]) -> list[Any]:
    return [*_row(label, [one.f for one in found]), mean_interval([one.match for one in found])[0]]


def homogeneous(name: str, measure: str, size: Size) -> Sheet:
    """Figures 3, 4, 10 and 11: guided by clusters and by distortion, over h and k."""
    data, rows, curves = DATA[name], [], []
    for algorithm, clusters in product(ALGORITHMS, (2, 6, 10)):
        means = {}
        for guide, guided in GUIDES.items():
            every = []
            for h in thresholds(size):
                found = []
                for seed in seeds(name, size):
                    top9 = ranked(data, algorithm, clusters, seed)[:9]
                    found.append(
                        getattr(quality(data, [requirement(top9, h)], guided, algorithm, clusters, seed), measure)
                    )
                mean, low, high = mean_interval(found)
                curves.append(
                    {
                        "x": h,
                        "y": mean,
                        "low": low,
                        "high": high,
                        "line": guide,
                        "panel": f"{algorithm}, k = {clusters}",
                    }
                )
                every += found
            means[guide] = every
            rows.append(_row([algorithm, clusters, guide], every))
        cluster, distort = (sum(means[guide]) for guide in GUIDES)
        rows[-2] += [f"{100 * (cluster / distort - 1):.0f} %", PUBLISHED[name, measure, algorithm]]
        rows[-1] += [None, None]
    heads = {
        "algorithm": "",
        "k": "d",
        "guide": "",
        MEASURES[measure]: ".3f",
        "interval": "",
        "benefit": "",
        "printed, over k": "",
    }
    charts = {"over h": plot(curves, "h", MEASURES[measure])}
    return Sheet(
        f"Fung et al. 2009: {MEASURES[measure]} for homogeneous clustering on {name}",
        heads,
        rows,
        [*WHY, RANKS],
        charts,
    )


def qid_size(name: str, size: Size) -> Sheet:
    """Figures 6 and 12: QIDs of the three to nine highest ranks, k = 6."""
    data, rows, curves = DATA[name], [], []
    for algorithm, top in product(ALGORITHMS, size.of(range(3, 10), (3, 6, 9))):
        for guide, guided in GUIDES.items():
            found = [
                quality(data, [requirement(ranked(data, algorithm, 6, seed)[:top], h)], guided, algorithm, 6, seed)
                for h in size.of(range(5, 101, 5), (5, 100))
                for seed in seeds(name, size)
            ]
            rows.append(_both([algorithm, top, guide], found))
            for measure, text in MEASURES.items():
                values = [getattr(one, measure) for one in found]
                curves.append({"x": top, "y": mean_interval(values)[0], "line": f"{guide}, {text}", "panel": algorithm})
    heads = {"algorithm": "", "top": "d", "guide": "", "F-measure": ".3f", "interval": "", "match point": ".3f"}
    return Sheet(
        f"Fung et al. 2009: increasing QID size on {name}, k = 6",
        heads,
        rows,
        [*WHY, RANKS],
        {"over QID size": plot(curves, "attributes in the QID", "agreement")},
    )


def several_qids(name: str, size: Size) -> Sheet:
    """Figures 7 and 13: random sets of QIDs against their union, k = 6."""
    data, rows, bars = DATA[name], [], []
    cases = random_requirements(data().columns, size.of([30], [4])[0])
    for algorithm, h in product(ALGORITHMS, size.of((20, 50, 80), (20, 80))):
        for kind in ("MultiQID", "SingleQID"):
            found = []
            for qids in cases:
                union = [tuple(sorted({column for qid in qids for column in qid}))]
                some = [requirement(qid, h) for qid in (qids if kind == "MultiQID" else union)]
                found.append(quality(data, some, True, algorithm, 6, 1))
            rows.append(_both([algorithm, h, kind], found))
            bars.append({"x": f"h = {h}", "y": rows[-1][3], "line": kind, "panel": algorithm})
    heads = {"algorithm": "", "h": "d", "requirement": "", "F-measure": ".3f", "interval": "", "match point": ".3f"}
    notes = [
        f"{len(cases)} random requirements of 3 to 7 QIDs of 2 to 9 columns; the paper has 30, and finds MultiQID better on average, by less on CRX. Few of them do not show it: on Adult the union was ahead in four, as the search for the best refinement is greedy.",
        *WHY[1:],
    ]
    return Sheet(
        f"Fung et al. 2009: several QIDs and their union on {name}, k = 6",
        heads,
        rows,
        notes,
        {"F-measure": plot(bars, "", "F-measure", mark="bar")},
    )


def heterogeneous(name: str, size: Size) -> Sheet:
    """Figures 8 and 14: the recipient clusters by another algorithm."""
    rows, bars = [], []
    for clusters, (holder, recipient) in product((2, 6, 10), _orders()):
        for kind, found in _masked_and_raw(name, holder, recipient, clusters, size):
            rows.append(_both([clusters, f"{holder} -> {recipient}", kind], found))
            bars.append(
                {
                    "x": f"k = {clusters}",
                    "y": rows[-1][3],
                    "line": f"{holder.split()[0]} -> {recipient.split()[0]}, {kind}",
                }
            )
    heads = {"k": "d", "holder -> recipient": "", "data": "", "F-measure": ".3f", "interval": "", "match point": ".3f"}
    notes = [
        "raw: both algorithms on the raw data, without any masking; what the masked lines lose beyond it is lost by masking. In the paper the "
        "two disagree on the raw data nearly as much as after masking, and it blames them for the drop. Here each takes the best of several "
        "starts, and they agree far better on the raw data: part of that drop were the starts.",
        *WHY[:1],
        RANKS,
    ]
    return Sheet(
        f"Fung et al. 2009: heterogeneous clustering on {name}",
        heads,
        rows,
        notes,
        {"F-measure": plot(bars, "", "F-measure", mark="bar")},
    )


def _orders() -> list[tuple[str, str]]:
    basic, bisecting = ALGORITHMS
    return [(basic, bisecting), (bisecting, basic)]


def _masked_and_raw(
    name: str, holder: str, recipient: str, clusters: int, size: Size
) -> Iterator[tuple[str, list[Any]]]:
    data, some = DATA[name], seeds(name, size)
    yield "raw", [raw_quality(data, holder, recipient, clusters, seed) for seed in some]
    yield (
        "masked",
        [
            quality(
                data,
                [requirement(ranked(data, holder, clusters, seed)[:9], h)],
                True,
                holder,
                clusters,
                seed,
                recipient,
            )
            for seed, h in product(some, size.of(range(5, 101, 5), (5, 100)))
        ],
    )


def table_7(_: Size) -> Sheet:
    """The contingency table of Adult, h = 120, k = 6: printed, and ours."""
    top9, labels = ranked(adult, "bisecting k-means", 6, 1)[:9], natural(adult, "bisecting k-means", 6, 1)
    ours = contingency(adult, [requirement(top9, 120)], labels, *["bisecting k-means"] * 2, 6, 1)
    rows: list[list[Any]] = []
    for title, counts in (("printed", TABLE_7), ("dpmask", ours)):
        rows += [[f"{title}, C{number}", *(int(count) for count in row)] for number, row in enumerate(counts, start=1)]
        rows.append([f"{title}: F {f_measure(counts):.4f}, match point {match_point(counts):.4f}", *[None] * 6])
    notes = [
        "F 0.90 and match point 0.97 are printed, and follow from the printed counts. Clusters are numbered at will; ours, by bisecting k-means, are "
        "theirs but for some hundred records: two of 6,198 and 6,513 stay together here as there.",
    ]
    return Sheet(
        "Fung et al. 2009, Table 7: natural and query clusters, Adult, h = 120, k = 6",
        {"": "", **{f"K{n}": "d" for n in range(1, 7)}},
        rows,
        notes,
    )


def figure_5(_: Size) -> Sheet:
    """The tree that refinement grows for education-num, k = 6."""
    labels = natural(adult, "basic k-means", 6, 1)
    fitted, _table = refined(adult, [requirement(["education-num"], 120)], labels, 1)
    rows = [[number, step.value, step.score] for number, step in enumerate(fitted.steps, start=1)]
    edges = ", ".join(f"{edge:g}" for edge in fitted.cuts["education-num"])
    notes = [
        f"Edges in the end: {edges}. The paper's tree has its first split at 13, too, where university begins. Here no other column competes "
        "for the records of a group, h = 120.",
    ]
    heads = {"refinement": "d", "interval split": "", "score": ".4g"}
    return Sheet("Fung et al. 2009, Figure 5: the tree of education-num, Adult, k = 6", heads, rows, notes)


EXHIBITS = {
    "table-1": table_1,
    "table-2": table_2,
    "table-5": table_5,
    "table-7": table_7,
    "figure-3": partial(homogeneous, "Adult", "f"),
    "figure-4": partial(homogeneous, "Adult", "match"),
    "figure-5": figure_5,
    "figure-6": partial(qid_size, "Adult"),
    "figure-7": partial(several_qids, "Adult"),
    "figure-8": partial(heterogeneous, "Adult"),
    "figure-9": figure_9,
    "figure-10": partial(homogeneous, "CRX", "f"),
    "figure-11": partial(homogeneous, "CRX", "match"),
    "figure-12": partial(qid_size, "CRX"),
    "figure-13": partial(several_qids, "CRX"),
    "figure-14": partial(heterogeneous, "CRX"),
}
