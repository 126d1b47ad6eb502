"""The pages as people see them, in a real Chromium: nothing fetched, charts drawn, tables right, at two widths."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest
import yaml
from browser import CHROMIUM, Browser
from conftest import people, write_lake
from open_gate import NO_LIMIT, opened

from dpmask.job.evaluate import evaluate
from dpmask.job.run import run_job
from dpmask.job.sweep import sweep

CHARTS = """[...document.querySelectorAll('svg')].map(one => {
  const box = one.getBoundingClientRect();
  return {label: one.getAttribute('aria-label'), width: box.width, height: box.height,
          marks: [...one.querySelectorAll('path, rect, line, text')].filter(mark => {
            const size = mark.getBoundingClientRect(); return size.width + size.height > 0; }).length};
})"""
TABLES = """[...document.querySelectorAll('table')].map(one => ({
  caption: one.caption ? one.caption.textContent : '',
  rows: [...one.rows].map(row => [...row.cells].map(cell => cell.textContent.trim()))}))"""
LOST = """[...document.querySelectorAll('a[href^="#"]')].map(one => one.hash.slice(1))
  .filter(name => !document.getElementById(name))"""
TERMS = """[...document.querySelectorAll('a.term')].map(one => [one.tabIndex, one.title.length > 40,
  document.getElementById(one.hash.slice(1)).nextElementSibling.textContent.length > 40])"""
UNEXPLAINED = """[...document.querySelectorAll('td.number')].filter(cell => {
  const table = cell.closest('table'), head = table.tHead && table.tHead.rows[0].cells[cell.cellIndex];
  const places = [cell.parentElement, table.caption, cell.closest('figure')?.querySelector('figcaption'), head];
  const counts = head && ['point', 'records', 'step'].includes(head.textContent);
  return !counts && !places.some(place => place && place.querySelector('a.term'));
}).map(cell => cell.parentElement.textContent)"""
CUT = """[...document.querySelectorAll('svg')].flatMap(one => {
  const box = one.getBoundingClientRect();
  return [...one.querySelectorAll('text')].filter(text => {
    const size = text.getBoundingClientRect();
    return size.left < box.left - 1 || size.right > box.right + 1; }).map(text => text.textContent);
})"""
TWICE = "[...document.querySelectorAll('[id]')].map(one => one.id).filter((id, n, all) => all.indexOf(id) !== n)"
OPEN = "document.querySelectorAll('details').forEach(one => { one.open = true; })"
OPEN_SECTIONS = "document.querySelectorAll('details.section').forEach(one => { one.open = true; })"
CLIPPED = """[...document.querySelectorAll('.wide')].filter(one => one.scrollWidth > one.clientWidth + 1)
  .map(one => one.textContent.slice(0, 80))"""
FIRST = """(() => { const top = name => document.querySelector(name).getBoundingClientRect().top;
  const places = ['.verdict', '.cards', '#pictures', '#distributions', '#details', '#sign'].map(top);
  return places.every((one, n) => n == 0 || places[n - 1] < one); })()"""
TOO_WIDE = "document.documentElement.scrollWidth - window.innerWidth"
COLOURS = """({page: getComputedStyle(document.body).color, chart: getComputedStyle(
  document.querySelector('svg text')).fill, dark: matchMedia('(prefers-color-scheme: dark)').matches})"""
NESTED = """Object.fromEntries([...document.querySelectorAll('table')].filter(one => one.caption?.textContent == 'Parameters')
  .flatMap(one => [...one.rows]).map(row => [row.cells[0].textContent, [...row.cells[1].querySelectorAll('li')].map(one => {
    let depth = 0;
    for (let up = one.parentElement.closest('li'); up; up = up.parentElement.closest('li')) depth++;
    const told = one.querySelector(':scope > details > summary') ?? one.firstChild;
    return '  '.repeat(depth) + told.textContent.trim(); })]))"""
UNFOLDED = (
    "[...document.querySelectorAll('td details li')].map(one => one.checkVisibility({contentVisibilityAuto: true}))"
)

COLUMNS = ["age", "children", "income", "rate", "money"]
ODD = 'in<come> & "more"'
NAMES = {"né": {"few": [f"né{n}" for n in range(8)], "many": [f"né{n}" for n in range(8, 17)]}}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A release, an evaluation and a sweep: every kind of page."""
    folder = tmp_path_factory.mktemp("pages")
    table = people(2000).rename_columns([ODD if name == "income" else name for name in people(1).schema.names])
    write_lake(folder / "lake", table)
    names = [ODD if name == "income" else name for name in COLUMNS]
    job = {
        "name": "people & others",
        "source": str(folder / "lake"),
        "target": str(folder / "release"),
        "private": str(folder / "private"),
        "seed": 7,
        "block_rows": 500,
        "columns": {
            "identifier": ["id"],
            "quasi": ["age", "region"],
            "sensitive": [ODD, "rate", "money"],
            "plain": ["children", "born", "seen", "name", "member"],
        },
        "mask": [
            {"method": "noise", "columns": names[:2] + names[3:], "scale": 0.1},
            {"method": "microaggregation", "columns": [ODD], "k": 5},
        ],
        "measure": [
            {"measure": "il1s", "columns": names},
            {"measure": "interval_disclosure", "columns": names},
            {"measure": "groups"},
        ],
        "policy": ["il1s.value <= 0.5", "interval_disclosure.rate <= 0.99"],
    }
    job = opened(job)
    (folder / "job.yaml").write_text(yaml.safe_dump(job, allow_unicode=True), encoding="utf-8")
    outcome = run_job(str(folder / "job.yaml"), trial=True)
    assert outcome.status == "released", outcome
    evaluate(
        job["source"],
        job["target"],
        paired_by=job["private"],
        columns=["age", ODD],
        quasi=["region", "name"],
        report=str(folder / "evaluation.html"),
    )
    sweep(str(folder / "job.yaml"), ["mask[0].scale=0.05,0.5"], report=str(folder / "map.html"))
    return folder, outcome


@pytest.fixture(scope="module")
def pages(made):
    folder, _ = made
    return {
        "internal": next(folder.glob("private/*/report.html")),
        "records": next(folder.glob("private/*/records.html")),
        "public": next(folder.glob("release/report/*/report.html")),
        "evaluation": folder / "evaluation.html",
        "map": folder / "map.html",
    }


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    with Browser(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


KINDS = ("internal", "records", "public", "evaluation", "map")


@pytest.mark.parametrize("kind", KINDS)
def test_no_address_and_no_script_in_any_page(pages, kind):
    text = pages[kind].read_text(encoding="utf-8")
    assert not re.findall(r"https?://|//[a-z]+\.|url\(|@import|<script|<link|<img|<iframe|\bon\w+=", text)
    assert str(pages[kind].parents[1]) not in text or kind == "evaluation"


@pytest.mark.parametrize("kind", KINDS)
def test_opens_from_disk_at_two_widths(browser, pages, kind):
    for width in (400, 1200):
        asked = {"open": OPEN, "charts": CHARTS, "lost": LOST, "terms": TERMS, "twice": TWICE, "wide": TOO_WIDE}
        asked["clipped"] = CLIPPED
        seen = browser.look(pages[kind], width=width, **asked, unexplained=UNEXPLAINED, cut=CUT)
        assert seen.fetched == [pages[kind].as_uri()], "no request but the page itself"
        assert seen.complaints == []
        assert seen.values["wide"] <= 0, "nothing lies beyond the page's right edge"
        assert seen.values["clipped"] == [], "no table is wider than its place"
        assert seen.values["lost"] == []
        assert seen.values["twice"] == []
        assert seen.values["unexplained"] == [], "every number says what it is"
        assert seen.values["cut"] == [], "no text of a chart ends at its edge"
        assert seen.values["terms"]
        assert all(reached >= 0 and hint and told for reached, hint, told in seen.values["terms"])
        assert seen.values["charts"]
        for chart in seen.values["charts"]:
            assert chart["label"]
            assert chart["marks"] >= 1, chart
            assert 60 < chart["width"] <= width, chart
            assert chart["height"] > 30


@pytest.mark.parametrize("kind", KINDS)
def test_charts_follow_the_colour_scheme(browser, pages, kind):
    colours = [browser.look(pages[kind], scheme=scheme, found=COLOURS).values["found"] for scheme in ("light", "dark")]
    for found in colours:
        assert found["chart"] == found["page"]
    assert [found["dark"] for found in colours] == [False, True]
    assert colours[0]["page"] != colours[1]["page"]


def labels(seen):
    return [chart["label"] for chart in seen.values["charts"]]


def table(seen, caption):
    return next(one["rows"] for one in seen.values["tables"] if one["caption"].startswith(caption))


def test_the_internal_report(browser, made, pages):
    _, outcome = made
    seen = browser.look(pages["internal"], first=FIRST, charts=CHARTS, tables=TABLES)
    assert seen.values["first"], "verdict, three numbers, pictures, details, sign-off"
    drawn = labels(seen)
    for name in ("age", "children", "rate", "money", ODD):
        assert f"{name}: share of records in each bar, before and after masking" in drawn
    assert sum("orrelations" in label for label in drawn) == 4
    assert "How many groups have how many records" in drawn
    assert "Rates of attacks beside what guessing scores" in drawn
    measures = {measure.name: measure for measure in outcome.measures}
    attacks = {row[0]: row[1:] for row in table(seen, "Attacks")[1:]}
    risk = measures["interval_disclosure"].values
    assert attacks["interval_disclosure"][0] == f"{100 * risk['rate']:.2f} %"
    assert attacks["interval_disclosure"][2] == f"{100 * risk['guessing']:.3g} %"
    assert attacks["interval_disclosure"][3] == "2,000"
    shares = table(seen, f"{ODD}: share of records")
    assert shares[0] == ["value", "before", "after"]
    for side in (1, 2):
        assert sum(float(row[side].split()[0]) for row in shares[1:]) == pytest.approx(100, abs=0.3)
    first = [one["rows"][0][0] for one in seen.values["tables"]].index("rule")
    zeros = [one["caption"] for one in seen.values["tables"]].index("Zeros and missing values")
    assert zeros < first, "what a statistician asks for comes before the decision"
    verdicts = seen.values["tables"][first]["rows"][1:]
    assert [row[0] for row in verdicts] == ["il1s.value <= 0.5", "interval_disclosure.rate <= 0.99", *NO_LIMIT]
    assert [row[3] for row in verdicts] == ["holds"] * 4
    assert float(verdicts[0][2]) == pytest.approx(measures["il1s"].values["value"], rel=1e-5)


def test_the_public_page_shows_nothing_of_risk_or_of_originals(browser, made, pages):
    folder, outcome = made
    seen = browser.look(pages["public"], open=OPEN, charts=CHARTS, tables=TABLES, text="document.body.innerText")
    for question in ("What was protected", "What was lost", "Which limits hold"):
        assert question in seen.values["text"]
    assert "Who could be found" not in seen.values["text"]
    text = seen.values["text"].lower()
    for rule in (one.rule for one in outcome.policy):
        assert text.count(rule) == 1, "a rule is public, by its text alone"
        text = text.replace(rule, "")
    for word in ("before masking", "guessing", "attack", "weakness", "not protect", "uniques", "smallest group of"):
        assert word not in text
    for measure in outcome.measures:
        if not measure.public:
            numbers = [value for value in measure.judged.values() if isinstance(value, float) and value % 1]
            assert not any(f"{value:.4g}" in text for value in numbers)
    manifest = json.loads((folder / "release" / "manifest.json").read_text(encoding="utf-8"))
    assert f"release {manifest['release']}" in text
    assert pages["public"].relative_to(folder / "release").as_posix() in {one["path"] for one in manifest["documents"]}
    shares = table(seen, "age: share of records")[1:]
    assert shares[0][0].startswith("below ")
    assert shares[-1][0].endswith(" and more")
    assert all(20 * float(row[1].split()[0]) >= 9.9 for row in shares), "ten records or more"
    assert "at least 5 records share each row" in text


def test_the_evaluation(browser, pages):
    seen = browser.look(pages["evaluation"], charts=CHARTS, tables=TABLES)
    regions = table(seen, "region: share of records")
    assert regions[1:] == [
        [name, share, share] for name, share in (("north", "33.35 %"), ("south", "33.35 %"), ("east", "33.30 %"))
    ]
    assert "region: share of records in each bar, before and after masking" in labels(seen)


def test_the_map(browser, pages):
    seen = browser.look(pages["map"], charts=CHARTS, tables=TABLES, text="document.querySelector('svg').textContent")
    assert "1: recommended" in seen.values["text"]
    header, *rows = seen.values["tables"][0]["rows"]
    assert header[:6] == ["point", "mask[0].scale", "interval_disclosure.rate", "il1s.value", "policy", "frontier"]
    assert [row[1] for row in rows] == ["0.05", "0.5"]
    assert [row[5] for row in rows] == ["yes, recommended", "yes"]


def test_figures_of_refined_and_synthetic_columns(browser, place):
    place.lake()
    steps = [
        {
            "method": "refinement",
            "requirements": [{"columns": ["region", "member"], "k": 5}, {"columns": ["name"], "k": 7}],
            "taxonomies": {"region": {"<land>": {"coast": ["north", "east"], "inland": ["south"]}}, "name": NAMES},
            "guide": "distortion",
        },
        {"method": "regression_synthesis", "dependents": ["income"], "independents": ["age"], "clusters": 2},
        {"method": "membership_transform", "columns": ["age"], "function": "z", "bounds": {"age": [0, 98765]}},
    ]
    assert place.run(mask=steps).code == 0
    internal = next(place.folder.glob("private/*/report.html"))
    public = next(place.folder.glob("release/report/*/report.html"))
    for page, tables in ((internal, 4), (public, 1)):
        seen = browser.look(page, tables=TABLES, lost=LOST, terms=TERMS, unexplained=UNEXPLAINED).values
        told = ("Smallest groups", "What was refined", "Models", "Synthetic values", "Score")
        assert sum(table["caption"].startswith(told) for table in seen["tables"]) == tables
        assert not seen["lost"]
        assert not seen["unexplained"]
        assert all(all(term) for term in [term[1:] for term in seen["terms"]])
        nested_parameters_are_trees(browser, page, withheld=page == public)


def nested_parameters_are_trees(browser, page, *, withheld):
    """Long ones are folded, but on paper; what is withheld is in no tree."""
    found = browser.look(page, open=OPEN_SECTIONS, nested=NESTED, unfolded=UNFOLDED).values
    tree = found["nested"]["taxonomies"]
    assert found["nested"]["requirements"] == ["columns: region, member; k: 5", "columns: name; k: 7"]
    assert tree[21:] == ["region", "  <land>", "    coast", "      north", "      east", "    inland", "      south"]
    assert tree[:4] == ["name, 20 lines", "  né", "    few", "      né0"]
    assert found["nested"]["bounds"] == ([] if withheld else ["age: 0.0, 98765.0"])
    assert ("98765" in page.read_text(encoding="utf-8")) != withheld
    assert found["unfolded"] == [False] * 20
    assert browser.look(page, media="print", unfolded=UNFOLDED).values["unfolded"] == [True] * 20
    assert browser.look(page, width=400, open=OPEN, wide=TOO_WIDE).values["wide"] <= 0


def test_print_hides_the_navigation(browser, pages):
    shown = "getComputedStyle(document.querySelector('nav')).display"
    assert browser.look(pages["internal"], media="print", nav=shown).values["nav"] == "none"


@pytest.mark.machine
def test_a_hundred_columns(browser, tmp_path):
    """Below 5 MB, drawn within 3 seconds, nothing fetched and no complaint, every page."""
    rng = np.random.default_rng(1)
    names = [f"column {n}" for n in range(100)]
    base = rng.normal(size=500)
    table = pa.table({name: rng.normal(size=500) * (n + 1) + base * n for n, name in enumerate(names)})
    write_lake(tmp_path / "lake", table)
    job = {
        "name": "wide",
        **{key: str(tmp_path / key) for key in ("target", "private")},
        "source": str(tmp_path / "lake"),
        "seed": 1,
        "columns": {"quasi": names},
        "mask": [{"method": "noise", "columns": names, "scale": 0.1}],
        "measure": [{"measure": "il1s", "columns": names}],
    }
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(opened(job)))
    outcome = run_job(str(tmp_path / "job.yaml"), trial=True)
    assert outcome.status == "released", outcome
    written = ("private/*/report.html", "target/report/*/report.html", "private/*/records.html")
    for page, charts in zip([next(tmp_path.glob(one)) for one in written], (100, 100, 1), strict=True):
        assert page.stat().st_size < 5e6
        seen = browser.look(page, charts=CHARTS)
        assert len(seen.values["charts"]) >= charts
        assert (seen.fetched, seen.complaints) == ([page.as_uri()], [])
        assert any(browser.look(page).seconds < 3 for _ in range(5)), "one of five: the machine may be busy"


def test_the_same_bytes_each_time(made, tmp_path):
    """Drawn again in this process, and by a run into other folders: no time, no path, no counter in the page."""
    folder, _ = made
    job = yaml.safe_load((folder / "job.yaml").read_text(encoding="utf-8"))
    job |= {"target": str(tmp_path / "release"), "private": str(tmp_path / "private")}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job, allow_unicode=True), encoding="utf-8")
    assert run_job(str(tmp_path / "job.yaml"), trial=True).status == "released"
    for name in (
        "manifest.json",
        *(str(path.relative_to(tmp_path / "release")) for path in tmp_path.rglob("release/report/*/*")),
    ):
        assert (tmp_path / "release" / name).read_bytes() == (folder / "release" / name).read_bytes()


def test_no_page_needs_a_library_that_draws(made, tmp_path, monkeypatch):
    """Of a sweep with one point, too: its scales have no width."""
    folder, _ = made
    monkeypatch.setattr("dpmask.report.drawing.find_spec", lambda name: None)
    sweep(str(folder / "job.yaml"), ["mask[0].scale=0.5"], report=str(tmp_path / "map.html"))
    text = (tmp_path / "map.html").read_text(encoding="utf-8")
    assert text.count("<svg") == 1
    assert text.count(">limit of the policy</text>") == 2
    assert "interval_disclosure" in text
