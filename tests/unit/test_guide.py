"""The guide: its pages by name and by word, and that the links of all texts lead somewhere."""

import re
from pathlib import Path

import pytest

from dpmask.errors import JobError
from dpmask.guide import contents, explained, pages

ROOT = Path(__file__).parents[2]
TEXTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "jobs/README.md")),
    *(ROOT / "dpmask/guide").glob("*.md"),
    *(
        path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "reference"
    ),  # those are written for the site
]


def test_every_page_has_a_line():
    lines = contents().splitlines()
    assert [line.split()[0] for line in lines] == pages()
    assert all(len(line.split(maxsplit=1)[1]) > 3 for line in lines)


@pytest.mark.parametrize(
    ("word", "page"),
    [("k-anonymity", "refinement"), ("Weights", "totals"), ("policy", "job"), ("exit code", "commands")],
)
def test_pages_are_found_by_a_word(word, page):
    assert page in [line.split()[0] for line in explained(word).splitlines()]


def test_the_pages_that_say_most_of_a_word_come_first():
    found = [line.split()[0] for line in contents("cron").splitlines()]
    assert found[0] == "pipelines"


@pytest.mark.parametrize(("asked", "hint"), [("gatte", "'gate'"), ("zeroes", "'zeros'"), ("qqqqqq", "Known: attack, ")])
def test_a_word_that_no_page_has(asked, hint):
    with pytest.raises(JobError, match=rf"no page '{asked}'.*{hint}"):
        explained(asked)


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.stem)
def test_links_lead_somewhere(text):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text.read_text(encoding="utf-8"))
    broken = [link for link in links if "://" not in link and not (text.parent / link).exists()]
    assert not broken


EXTERNAL = {"https://openlineage.io"}  # known addresses; examples are of example.org


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.stem)
def test_external_links_are_known_ones(text):
    found = set(re.findall(r"https?://[^\s)>`\"',]+", text.read_text(encoding="utf-8"))) - {"https://", "http://"}
    strange = {one for one in found if not re.match(r"https://(\w+\.)*example\.org(/|$)", one)}
    assert strange <= EXTERNAL


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 150
