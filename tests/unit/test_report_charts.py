"""Charts and their numbers: ticks people read, zeros apart, ratios for skewed columns, intervals in order."""

import re
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from dpmask.explore import charts
from dpmask.report import svg
from dpmask.report.arrangement import arranged
from dpmask.report.attacks import attack_rows
from dpmask.report.line_charts import MapPoint, PolicyLimits, convergence_chart, map_chart
from dpmask.report.log_bars import log_bars, log_counts, log_edges
from dpmask.report.rules import broken_rules, limit_of, parts, upper_limit
from dpmask.report.svg_parts import AxisScale, share_text, tick_text
from dpmask.report.sweep_map import Sweep, SweepPoint, map_page
from dpmask.report.words import kind_words


def texts(chart):
    return re.findall(r"<text[^>]*>([^<]*)</text>", chart)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (-0.5, 199_999.5, ["0", "50,000", "100k", "150k"]),
        (0.0, 0.037, ["0", "0.01", "0.02", "0.03"]),
        (7.0, 7.0, []),
        (-1.7e308, 1.7e308, ["-1e+308", "0", "1e+308"]),
    ],
)
def test_ticks_are_round(low, high, ticks):
    assert [tick_text(one) for one in AxisScale(low, high, 0, 100).ticks()] == ticks


def test_ticks_of_ratios_are_powers_of_ten_or_finer():
    assert AxisScale(0.5, 2e6, 0, 1, logarithmic=True).ticks(7) == [1, 10, 100, 1e3, 1e4, 1e5, 1e6]
    assert AxisScale(90, 600, 0, 1, logarithmic=True).ticks(5) == [100, 200, 500]


def test_shares_keep_the_digits_that_they_have():
    assert [share_text(one) for one in (0, 0.00001, 0.0007, 0.0103, 0.5)] == [
        "0 %",
        "< 0.01 %",
        "0.07 %",
        "1.03 %",
        "50 %",
    ]


def test_counts_by_ratio_against_numpy():
    values = np.append(np.exp(np.random.default_rng(1).normal(8, 2, 5000)), [0.0, 0.0, -3.0, np.nan])
    edges = log_edges(20.0, 5e5)
    counts = log_counts(values, edges)
    inside = np.histogram(values[values > 0], edges)[0]
    assert counts[1:-2][: len(inside) - 1].tolist() == inside[:-1].tolist()
    assert counts[-1] == 1
    assert counts.sum() == 5000 + 1 + 1, "all but the zeros"
    bars = log_bars(edges, [counts], 32, 0.005, whole=False)
    assert len(bars.counts[0]) <= 32
    assert bars.counts[0] == np.histogram(values[values > 0], bars.edges)[0].tolist()
    assert sum(bars.counts[0]) + bars.below[0] + bars.above[0] == 5001
    assert bars.below[0] + bars.above[0] <= 0.01 * 5001
    whole = log_bars(edges, [counts], 32, 0.005, whole=True)
    assert {f"{edge:e}"[0] for edge in whole.edges} <= {"1", "2", "5"}


def test_zeros_stand_apart_on_their_own_scale():
    chart = svg.histogram_chart([1, 10, 100, 1000], [[0.02, 0.05, 0.03], [0.02, 0.06, 0.02]], "x",
                                zeros={"before": 0.9, "after": 0.5}, logarithmic=True)  # fmt: skip
    assert "zero" in texts(chart)
    assert {"0 %", "50 %", "100 %"} <= set(texts(chart))
    assert {"1", "10", "100", "1,000"} <= set(texts(chart))
    tall = [float(one) for one in re.findall(r'<rect [^>]*height="([\d.]+)"', chart)]
    assert tall[0] / tall[1] == pytest.approx(0.9 / 0.5, rel=0.01)


def test_intervals_and_numbers_keep_their_order():
    counts = Counter({"[20, 40)": 5, "[0, 20)": 1, "[100, 120)": 9, "[40, 100)": 3, "*": 2})
    found = arranged(counts)
    assert found.labels == ["[0, 20)", "[20, 40)", "[40, 100)", "[100, 120)", "*"]
    assert found.counted(counts) == [1, 5, 3, 9, 2]
    assert arranged(Counter({"10": 1, "9": 5})).labels == ["9", "10"]
    assert arranged(Counter({"b": 1, "a": 5, "c": 9})).labels == ["c", "a", "b"]
    many = arranged(Counter({f"[{n}, {n + 1})": 1 for n in range(100)}))
    assert len(many.labels) <= 33
    assert many.labels[0] == "[0, 4)"
    gaps = arranged(Counter({f"[{2 * n}, {2 * n + 1})": 1 for n in range(100)}))
    assert gaps.labels[0] == "[0, 1) to [6, 7)"
    assert arranged(Counter(map(str, range(100)))).labels[-1] == "96 to 99"
    assert sum(map(len, many.texts)) == 100


def test_the_map_has_the_limits_of_the_policy():
    points = [MapPoint(0.1, 0.2, "1", "k = 3", False, True, False), MapPoint(0.3, 0.02, "2", "k = 9", True, True, True)]
    chart = map_chart(points, ("gate.linkage", "il1s.value"), PolicyLimits(risk=0.05), "map")
    assert texts(chart).count("limit of the policy") == 1
    assert chart.count('stroke-dasharray="7 4"') == 1
    assert "<title>k = 9</title>" in chart
    assert "limit of the policy" not in map_chart(points, ("a", "b"), PolicyLimits(), "map")


def test_the_explorers_map_has_limits_that_are_near():
    point = charts.SettingPoint(0.1, 0.04, (0.09, 0.11), (0.03, 0.05), True, True, False, "as in the file")
    drawn = [charts.map_chart([point], ("il1s.value", "gate.linkage"), PolicyLimits(*one)).count("stroke-dasharray")
             for one in ((None, None), (0.05, None), (0.1, 0.3), (0.9, 40.0))]  # fmt: skip
    assert drawn == [0, 1, 2, 0]


def test_groups_are_counted_by_round_numbers():
    ticks = [int(one) for one in texts(svg.sizes_chart({"2 to 3": 45, "4 to 7": 3}, "x")) if one.isdigit()]
    assert ticks == [0, 20, 40]
    assert "1" in texts(svg.sizes_chart({"2": 1}, "x"))


def test_a_convergence_that_ends_at_zero_is_drawn():
    assert "<svg" in convergence_chart({"original": [0.5, 0.01, 0.0], "one": [1.0]}, "shift")
    assert convergence_chart({}, "shift") == ""


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("dictionary<values=string, indices=int32, ordered=0>", "text"),
        ("large_string", "text"),
        ("int32", "whole number"),
        ("double", "number"),
        ("decimal128(12, 2)", "decimal, 2 places"),
        ("date32[day]", "date"),
        ("timestamp[us, tz=UTC]", "date and time"),
        ("list<item: int64>", "nested values"),
    ],
)
def test_types_in_words(kind, words):
    assert kind_words(kind) == words


class Rule:
    def __init__(self, rule, held=True, judged=0.0):
        self.rule, self.held, self.judged, self.columns = rule, held, judged, ["age"]


def test_rules_know_their_numbers_and_limits():
    policy = [Rule("gate.linkage <= 0.05"), Rule("gate.linkage < 0.2"), Rule("x.smallest >= 5")]
    assert parts("gate.linkage <= 0.05") == ("gate.linkage", "<=", 0.05)
    assert upper_limit(policy, "gate.linkage") == 0.05
    assert upper_limit(policy, "x.smallest") is None
    assert limit_of("gate.linkage <= 0.05", share=True) == "at most 5 %"
    (broken,) = broken_rules([*policy, Rule("il1s.value <= 0.1", False, 0.4)], [], [])
    assert (broken.rule, broken.judged, broken.columns) == ("il1s.value <= 0.1", 0.4, ["age"])
    assert broken.advice
    assert not broken.sampled


def test_a_broken_rule_says_by_what_it_was_judged():
    result = SimpleNamespace(name="gate", judged={"linkage": 0.4}, values={}, explanation="Found.", lost=False)
    rules = [Rule("gate.linkage <= 0.05", False, judged) for judged in (0.4, 0.43)]
    assert [one.sampled for one in broken_rules(rules, [result], [])] == [False, True]
    result.values["contributions"] = {"age": 0.0, "net": 0.2, "sex": -0.1, "tax": 0.3}
    assert broken_rules(rules, [result], [])[0].leading == ["tax", "net"]
    result.values["contributions"] = {"age": 0.0, "sex": -0.1}
    assert "No single column decides" in broken_rules(rules, [result], [])[0].found


def test_what_a_series_is_attacked_by_is_drawn_of_a_series_alone():
    values = {"guessing": 0.0, "attacked": 9}
    gate = SimpleNamespace(name="gate", judged={"linkage": 0.1, "differencing": 0.0}, values=values, exhibits={},
                           shares=["linkage", "differencing"], about=None)  # fmt: skip
    names = [
        [one["name"] for one in attack_rows([gate], policy)] for policy in ((), [Rule("gate.differencing <= 0.05")])
    ]
    assert names == [["gate: linkage"], ["gate: linkage", "gate: differencing"]]
    gate.judged["differencing"] = 0.2
    assert len(attack_rows([gate])) == 2


@pytest.mark.parametrize(("linkage", "held"), [(0.7, False), (0.01, True)])
def test_the_map_does_not_praise_a_point_that_the_strongest_intruder_finds(linkage, held):
    about = {
        name: {"definition": "What it is.", "direction": "Larger is worse.", "source": "nobody"} for name in ("a", "b")
    }
    rules = ("a.rate <= 0.1", "gate.linkage <= 0.05")
    point = SweepPoint(parameters={"k": 3}, run="0", values={"gate.linkage": linkage}, risk=0.04, loss=0.1, about=about,
                       broken=() if held else rules[1:])  # fmt: skip
    page = map_page(Sweep(name="x", risk="a.rate", loss="b.value", points=(point,), rules=rules))
    assert f"An intruder with all columns at risk finds {share_text(linkage)} (gate.linkage)." in page
    first = page[: page.index("What was lost")]
    assert ("card good" in first) == held
    assert ("card bad" in first) != held
