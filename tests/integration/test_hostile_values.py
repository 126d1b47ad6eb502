"""Names and values with control characters, escapes, markup and bidi characters, and very long ones: shown, never obeyed."""

import re

import pyarrow as pa
import pytest
from conftest import people

from dpmask.report.drawing import Drawer, drawer

VALUES = [
    "\x00", "\x01\x02", "\x1b[2J\x1b]0;owned\x07", "<script>alert(1)</script>", "</title><img src=x onerror=y>", "\u202egnp.exe",
    "a\nb\r\nc", "\u2028", "]]>", "{{ 7 * 7 }}", "[x](javascript:alert(1))", "`rm`", "x" * 3_000_000, "\ud7ff\ufffe", "'\"&",
]  # fmt: skip
ROLES = {"quasi": ["age", "group"], "sensitive": ["income"]}
LOSSES = [{"measure": "total_variation", "columns": ["group"]}, {"measure": "il1s", "columns": ["income"]}]
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]")


def with_values(name="group"):
    table = people().select(["age", "income"])
    values = [VALUES[n % len(VALUES)][:200] for n in range(table.num_rows)]
    return table.append_column(name, pa.array([max(VALUES, key=len), *values[1:]]))


def shown(place):
    """Every text that a run left for people, but for the data."""
    files = [*(place.folder / "private").rglob("*"), *(place.folder / "release").rglob("*")]
    return {path.name: path.read_text("utf-8") for path in files if path.suffix in {".html", ".md", ".txt"}}


def test_hostile_values_are_shown_escaped(place):
    place.lake(with_values())
    step = [{"method": "noise", "columns": ["income", "age"], "scale": 0.1}]
    ended = place.run(columns=ROLES, mask=step, measure=LOSSES)
    assert ended.code == 0, ended.err[-600:]
    assert place.dpmask("verify", "release").code == 0
    texts = shown(place)
    assert {"report.html", "statement.md", "log.txt"} <= set(texts)
    for name, text in texts.items():
        assert not UNSAFE.search(text), name
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert len(text) < 2_000_000, name
    assert not UNSAFE.search(ended.out + ended.err)


@pytest.mark.parametrize(
    "name", ["<b>x</b>", "{{ 7 * 7 }}", "\u202eemocni", "[x](javascript:y)", "a\u200bb", "`x`", "=cmd|'x'!A0"]
)
def test_hostile_names_of_columns(place, name):
    place.lake(people().select(["age", "income"]).rename_columns(["age", name]))
    step = [{"method": "noise", "columns": [name, "age"], "scale": 0.1}]
    roles = {"quasi": ["age"], "sensitive": [name]}
    ended = place.run(columns=roles, mask=step, measure=[{"measure": "il1s", "columns": [name]}])
    assert ended.code == 0, ended.err[-600:]
    assert place.dpmask("verify", "release").code == 0
    for file, text in shown(place).items():
        assert not UNSAFE.search(text)
        assert "<b>x</b>" not in text
        assert "](javascript" not in text or file.endswith(".html"), "no link in Markdown"


@pytest.mark.parametrize("name", ["a\nb", "\x1b[2J", "x" * 1000, "\u2028", " ", "a\x85b"])
def test_names_that_cannot_be_shown_are_refused(place, name):
    place.lake(people().select(["age", "income"]).rename_columns(["age", name]))
    ended = place.dpmask("plan", place.job(columns={"quasi": ["age"], "sensitive": ["x"]}))
    assert ended.code == 4
    assert "a column cannot be called" in ended.err
    assert not UNSAFE.search(ended.err)


def test_a_converter_that_crashes_or_hangs_costs_a_picture_only():
    """The process that draws is killed on the way, three times: no chart, no error, then it is not started again."""
    spec = {"data": {"values": [{"a": 1}]}, "mark": "bar", "encoding": {"x": {"field": "a", "type": "quantitative"}}}
    mine = Drawer()
    assert mine.drawn(spec).startswith("<svg")
    for _ in range(3):
        assert mine.drawn(spec) is not None
        mine.process.kill()
        mine.process.wait()
        assert mine.drawn(spec) is None
    assert mine.drawn(spec) is None
    assert mine.process is None
    slow = Drawer(seconds=0.001)
    assert slow.drawn(spec) is None
    slow.close()


def test_texts_that_ended_the_converter_are_drawn_short_and_printable():
    values = [{"a": value, "b": 1} for value in VALUES]
    spec = {
        "data": {"values": values},
        "mark": "bar",
        "encoding": {"y": {"field": "a", "type": "nominal"}, "x": {"field": "b", "type": "quantitative"}},
    }
    svg = drawer.drawn(spec)
    assert svg is not None
    assert not UNSAFE.search(svg)
    assert "<script>" not in svg
