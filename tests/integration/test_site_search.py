"""The site's own search, in a real Chromium that reaches no network: built from the guide as it lies."""

import shutil
import subprocess
import sys
from pathlib import Path

import browser
import pytest

ROOT = Path(__file__).parents[2]
CONF = """
include_patterns = ["index.md", "dpmask/guide/**"]
extensions = ["myst_parser"]
html_theme = "furo"
suppress_warnings = ["myst.header", "myst.xref_missing", "toc.not_included"]
"""
DONE = "/found/.test(document.querySelector('#search-results p')?.textContent)"
RESULTS = "document.querySelectorAll('#search-results li a')"


@pytest.mark.skipif(browser.CHROMIUM is None, reason="needs a chromium")
def test_a_word_is_found_without_a_network(tmp_path):
    pytest.importorskip("myst_parser")
    source, site = tmp_path / "source", tmp_path / "site"
    shutil.copytree(
        ROOT / "dpmask/guide", source / "dpmask/guide", ignore=shutil.ignore_patterns("*.py", "__pycache__")
    )
    (source / "conf.py").write_text(CONF, encoding="utf-8")
    (source / "index.md").write_text("# Guide\n", encoding="utf-8")
    subprocess.run([sys.executable, "-m", "sphinx", "-q", str(source), str(site)], check=True)

    async def search(tab):
        found = {}
        for word in ("k-anonymity", "weights", "policy"):
            await tab.ask("Page.navigate", url=f"{(site / 'search.html').as_uri()}?q={word}")
            await tab.until(f"location.search == '?q={word}' && {DONE}")
            found[word] = await tab.value(f"[...{RESULTS}].map(one => one.getAttribute('href')).join(' ')")
        return found

    (tmp_path / "user").mkdir()
    with browser.Browser(tmp_path / "user") as chromium:
        found = chromium.drive((site / "index.html").as_uri(), search)
    assert "refinement" in found["k-anonymity"]
    assert "calibrated_weights" in found["weights"]
    assert "gate" in found["policy"]
