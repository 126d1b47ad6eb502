"""The explorer's page in a real Chromium: moved, answered, saved, by the keyboard alone, narrow and dark."""

import threading
from contextlib import chdir

import pytest
from browser import CHROMIUM, Browser
from explore_job import TEXT, write_job

from dpmask.explore.server import ExplorerServer
from dpmask.explore.session import Explorer

K = '[data-name="mask[0].requirements[0].k"]'
MEANS = '[data-name="mask[1].k"]'
READY = "document.querySelector('#verdict .verdict') && document.querySelector('.control') && !document.querySelector('[aria-busy]')"
VERDICT = "document.querySelector('#verdict .verdict').innerText"
RULES = "[...document.querySelectorAll('#verdict tbody tr')].map(row => [...row.cells].map(cell => cell.innerText)).filter(cells => cells.length == 3)"
PICTURES = "[...document.querySelectorAll('#views section')].map(one => [one.id, one.querySelectorAll('svg').length])"
CHARTS = "[...document.querySelectorAll('#map svg, #trees svg, #clusters svg, #groups svg')].map(one => one.outerHTML)"
POINTS = "document.querySelector('#tried tbody').rows.length"
CODE = "[...document.querySelectorAll('#views section details pre')].map(one => one.textContent)"
UNNAMED = """[...document.querySelectorAll('input, select, button')].filter(one =>
  !(one.labels && one.labels.length) && !one.ariaLabel && !one.innerText).map(one => one.outerHTML)"""
FOCUS = "(document.activeElement.closest('.control') || {dataset: {}}).dataset.name + ' ' + document.activeElement.type"
COLOURS = """[getComputedStyle(document.body).color, getComputedStyle(document.querySelector('svg text')).fill,
  getComputedStyle(document.querySelector('.bar')).backgroundColor]"""
ENTER, TAB, RIGHT, SPACE = ("Enter", 13, "\r"), ("Tab", 9), ("ArrowRight", 39), (" ", 32, " ")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    with Browser(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture
def server(tmp_path):
    write_job(tmp_path)
    with chdir(tmp_path), ExplorerServer(Explorer("job.yaml")) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        server.full_run.wait()
        thread.join()


def slide(control, value):
    return f"""(() => {{ const slider = document.querySelector('{control} input[type=range]'); slider.value = {value};
      for (const kind of ['input', 'change']) slider.dispatchEvent(new Event(kind, {{bubbles: true}})); }})()"""


def fill(control, value):
    return f"""(() => {{ const field = document.querySelector('{control} input[type=number]'); field.value = '{value}';
      field.dispatchEvent(new Event('change', {{bubbles: true}})); }})()"""


def message(control):
    return f"document.querySelector('{control} .message')?.innerText"


def test_moved_and_saved(browser, server, tmp_path):
    async def steps(tab):
        await tab.until(READY)
        assert await tab.value("location.href") == f"http://127.0.0.1:{server.server_port}/", "the token is gone"
        assert dict(await tab.value(PICTURES)) == {
            "verdict": 0, "map": 1, "clusters": 1, "groups": 1, "distributions": 5, "trees": 3, "everything": 0,
            "tried": 0, "save": 0,
        }  # fmt: skip
        assert await tab.value(VERDICT) == "The gate would let this pass."
        assert await tab.value(UNNAMED) == []
        before = await tab.value(CHARTS)
        await tab.value(slide(K, 5))
        await tab.until(f"{POINTS} == 2 && {READY}")
        assert await tab.value(VERDICT) == "The gate would refuse this."
        rules = {row[0]: row[1:] for row in await tab.value(RULES)}
        assert rules["gate.smallest >= 20"][1] == "broken"
        assert rules["il1s.value <= 0.9"][1] == "holds"
        assert "about income" in await tab.value("document.getElementById('verdict').innerText"), (
            "rules name their columns"
        )
        after = await tab.value(CHARTS)
        assert all(one != other for one, other in zip(before[:2], after[:2], strict=True)), "map and tree change"
        code = await tab.value(CODE)
        assert any("dpmask run job.yaml --set 'mask[0].requirements[0].k=5' --trial" in text for text in code)
        assert any("Explorer('job.yaml', settings=['mask[0].requirements[0].k=5']" in text for text in code)

        await tab.value(fill(MEANS, 1))
        await tab.until(f"{message(MEANS)} != ''")
        assert "k must be an integer >= 2; got 1" in await tab.value(message(MEANS))
        assert await tab.value(f"document.querySelector('{MEANS} input').getAttribute('aria-invalid')") == "true"
        assert await tab.value(POINTS) == 2, "nothing was taken"

        await tab.value("document.getElementById('undo').click()")
        await tab.until(f"{VERDICT} == 'The gate would let this pass.' && {READY}")
        assert await tab.value(message(MEANS)) == ""
        await tab.value("document.getElementById('redo').click()")
        await tab.until(f"{VERDICT} == 'The gate would refuse this.' && {READY}")

        await tab.value("document.querySelector('[data-do=everything]').click()")
        await tab.until("document.querySelector('#everything details').open && !document.querySelector('[aria-busy]')")
        numbers = (
            "[...document.querySelectorAll('#everything tbody tr')].map(row => [...row.cells].map(c => c.innerText))"
        )
        found = {name: (sample, exact) for name, sample, exact in await tab.value(numbers)}
        assert found["il1s.value"][0] == found["il1s.value"][1] != ""
        assert not (tmp_path / "release").exists()

        assert "+      - {columns: [age, region, born], k: 5}   # one in twenty" in await tab.value(
            "document.getElementById('difference').innerText"
        )
        await tab.value("document.getElementById('save-name').value = '../job.yaml'")
        await tab.value("document.querySelector('[data-do=save]').click()")
        await tab.until("document.getElementById('save-message').innerText.includes('name of a file beside')")
        await tab.value("document.getElementById('save-name').value = 'job.yaml'")
        await tab.value("document.querySelector('[data-do=save]').click()")
        await tab.until("document.getElementById('save-message').innerText == 'Saved job.yaml.'")
        assert (tmp_path / "job.yaml").read_text(encoding="utf-8") == TEXT.replace("k: 20}", "k: 5}")

        await tab.ask("Page.reload")
        await tab.until(f"{READY} && {POINTS} == 2")
        own = f"http://127.0.0.1:{server.server_port}/"
        assert {url for url in tab.fetched if not url.startswith((own, "data:"))} == set()
        assert tab.complaints == []

    browser.drive(server.address, steps)


def test_by_the_keyboard_alone(browser, server):
    async def steps(tab):
        await tab.until(READY)
        reached = []
        for _ in range(60):
            await tab.press(*TAB)
            reached.append(await tab.value(FOCUS))
            if reached[-1] == "mask[1].k range":
                break
        assert "mask[0].requirements[0].k range" in reached
        assert "mask[0].guide.algorithm select-one" in reached
        await tab.press(*RIGHT)
        await tab.until(f"{POINTS} == 2 && {READY}")
        assert await tab.value(FOCUS) == "mask[1].k range", "the keyboard stays where it was"
        assert await tab.value("document.activeElement.value") == "5"
        await tab.press(*TAB)
        await tab.press(*TAB)
        assert await tab.value(FOCUS) == "columns.age checkbox"
        await tab.press(*TAB)
        await tab.press(*SPACE)
        await tab.until(f"{POINTS} == 3 && {READY}")
        assert server.explorer.changes == {"mask[1].k": 5, "columns.region": False}
        assert await tab.value("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        await tab.value("document.getElementById('undo').focus()")
        await tab.press(*ENTER)
        await tab.until(f"document.querySelector('[data-name=\"columns.region\"] input').checked && {READY}")

    browser.drive(server.address, steps)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_and_in_both_colours(browser, server, scheme):
    async def steps(tab):
        await tab.until(READY)
        assert await tab.value("document.documentElement.scrollWidth - window.innerWidth") <= 0
        text, chart, bar = await tab.value(COLOURS)
        assert text == chart
        assert (sum(map(int, text[4:-1].split(", "))) > 380) == (scheme == "dark")
        assert (sum(map(int, bar[4:-1].split(", "))) < 380) == (scheme == "dark")
        assert tab.complaints == []

    browser.drive(server.address, steps, width=400, scheme=scheme)


def test_what_is_lost_is_shown(browser, server, monkeypatch):
    from dpmask.errors import ClusterError

    def lost(*_):
        raise ClusterError("The cluster is gone. Start it again.")

    async def steps(tab):
        await tab.until(READY)
        monkeypatch.setattr("dpmask.explore.session.evaluated", lost)
        await tab.value(slide(MEANS, 6))
        await tab.until(f"{message(MEANS)} == 'The cluster is gone. Start it again.'")
        monkeypatch.setattr("dpmask.explore.everything.measured_point", lost)
        await tab.value("document.querySelector('[data-do=everything]').click()")
        await tab.until("document.querySelector('#everything [role=alert]')?.innerText.includes('cluster is gone')")

    browser.drive(server.address, steps)

    async def again(tab):
        await tab.until("document.getElementById('problem')?.innerText")
        assert "works once" in await tab.value("document.getElementById('problem').innerText")

    browser.drive(f"http://127.0.0.1:{server.server_port}/#used", again)
