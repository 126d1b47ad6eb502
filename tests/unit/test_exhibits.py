"""Reports draw what any result has by its kind: here of a method and a measure that nobody knows."""

import re
from typing import get_args, get_type_hints

import pytest

from dpmask.job.outcome import About, MeasureOutcome, StepOutcome
from dpmask.report.compared import ComparedTables
from dpmask.report.page import evaluation_page, report_page
from dpmask.results import Exhibit

TREE = {"value": "<all>", "children": [{"value": "left"}, {"value": "right"}]}
OF = {"who": Exhibit("text"), "gone": Exhibit("share", "left out"), "count": Exhibit("number")}
EXHIBITS = {
    "turns": Exhibit("number", "turns taken"),
    "kept": Exhibit("share"),
    "names": Exhibit("text"),
    "spins": Exhibit("numbers", "Spins"),
    "rings": Exhibit("rows", "Rings", of=OF),
    "moves": Exhibit("steps", "Moves", of=OF),
    "packs": Exhibit("sections", "Packs of", of={**OF, "by_size": Exhibit("sizes", "Pack sizes")}),
    "rounds": Exhibit("histories", "Rounds"),
    "bushes": Exhibit("trees", "what it became"),
}
ROW = {"who": "x & y", "gone": 0.125, "count": 12345}
VALUES = {
    "turns": 7,
    "kept": 0.25,
    "names": ["a", "b"],
    "spins": {"first": 1.5},
    "rings": [ROW],
    "moves": [ROW, {"who": "z", "count": 2}],
    "packs": [{**ROW, "columns": ["net", "tax"], "by_size": {"3": 4}}],
    "rounds": {"original": [[9.0, 0.5], [8.5, 0.01]]},
    "bushes": {"region": TREE},
}
SHOWN = {
    "number": 'turns taken</a></td><td class="number">7',
    "share": ">25.00 %",
    "text": ">a, b",
    "numbers": '<td>first</td><td class="number">1.5',
    "rows": '>x &amp; y</td><td data-label="left out" class="number">12.50 %</td><td data-label="count" class="number">12,345',
    "steps": 'class="number">2</td><td data-label="who">z</td><td data-label="left out" class="number">withheld</td>',
    "sections": "<caption>Packs of net, tax</caption>",
    "sizes": '<td class="number">3</td><td class="number">4</td>',
    "histories": "original: 2 passes, objective 8.5.",
    "trees": "<summary>region: what it became</summary>",
}
COMPARED = ComparedTables()


def measure(**fields):
    about = About(definition="How far it spins.", direction="Larger is worse.", source="nobody")
    found = {"public": False, "judged": {"spin": 0.5, "twist": 0.25}, "explanation": "It spins.", "about": about}
    return MeasureOutcome(name="spinning", measure="spinning", **found, **fields)


@pytest.fixture(scope="module")
def page():
    step = StepOutcome(
        method="juggling", parameters={}, withheld=[], statement="Juggled.", solution=None, weaknesses=[],
        figures=VALUES, exhibits=EXHIBITS,
    )  # fmt: skip
    key = {"fingerprint": "f", "salt": None}
    account = {
        "name": "n", "run": "r", "dpmask": "1", "key": key, "trial": False, "rows": 1, "schema": [], "dropped": [], "claims": [],
        "steps": [step], "measures": [], "policy": [],
    }  # fmt: skip
    return report_page(account, COMPARED)


def test_every_kind_is_tried():
    assert set(SHOWN) == set(get_args(get_type_hints(Exhibit)["kind"]))


@pytest.mark.parametrize("kind", SHOWN)
def test_a_method_s_figures_are_drawn(page, kind):
    assert SHOWN[kind] in page


def test_a_measure_s_shares_stand_beside_guessing():
    values = {"guessing": 0.1, "attacked": 20, "intervals": {"spin": [0.4, 0.6]}, "rounds": VALUES["rounds"]}
    exhibits = {"twist": Exhibit("share"), "rounds": EXHIBITS["rounds"]}
    found = {"original": {"url": "a", "rows": 1}, "masked": {"url": "b", "rows": 1}, "pairing": {"by": "position"}}
    shown = {**found, "measures": [measure(values=values, shares=["spin"], exhibits=exhibits)], "not_measured": []}
    text = evaluation_page(shown, COMPARED)
    attacks = re.findall(r"<tr><td[^>]*><a[^>]*>(spinning: \w+)</a></td>(.*?)</tr>", text)
    cells = {name: re.findall(r'class="number">(.*?)</td>', row) for name, row in attacks}
    assert cells == {
        "spinning: spin": ["50.00 %", "40.00 to 60.00 %", "10 %", "20"],
        "spinning: twist": ["25.00 %", "all attacked", "", "20"],
    }
    assert SHOWN["histories"] in text


def test_how_it_is_drawn_is_no_part_of_the_json():
    assert not {"shares", "exhibits"} & set(measure(values={}).model_dump())
