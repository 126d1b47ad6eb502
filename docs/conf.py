"""The documentation site, of docs/ and dpmask/guide/ where they lie.

sphinx-build -W -c docs . site builds it. It needs no network, to build or to read: search is in the page, equations are MathML.
"""

import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from references import gallery, job_file, open_questions, papers, python_api

project = "dpmask"
author = "the dpmask authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
root_doc = "docs/index"
include_patterns = ["docs/**", "dpmask/guide/**"]
exclude_patterns = [".*", "build", "dist", "lake", "out", "site", "tests"]
smartquotes = False  # --trial is two hyphens
html_theme = "furo"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_title = "dpmask"
html_show_copyright = False
html_copy_source = False
html_math_renderer = "mathml"
autodoc_typehints = "none"
suppress_warnings = ["myst.header"]  # pages of the guide begin with the name that dpmask explain takes


def write_references(_: Sphinx, __: Any) -> None:
    """The pages that follow from the code."""
    folder = HERE / "reference"
    folder.mkdir(exist_ok=True)
    texts = {"job_file": job_file(), "python": python_api(), **papers(), **open_questions(), **gallery()}
    for stale in {path.stem for path in folder.glob("*.md")} - set(texts):
        (folder / f"{stale}.md").unlink()
    for name, text in texts.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def inline_math(self: HTML5Translator, node: nodes.math) -> None:
    """An equation in a line."""
    self.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def block_math(self: HTML5Translator, node: nodes.math_block) -> None:
    """An equation of its own."""
    self.body.append(f'<div class="equation">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def write_front_door(app: Sphinx, error: Exception | None) -> None:
    """A first page at the top of the site."""
    if error is None:
        text = '<!doctype html><title>dpmask</title><meta http-equiv="refresh" content="0; url=docs/index.html">'
        (app.outdir / "index.html").write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """What Sphinx calls."""
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    app.connect("config-inited", write_references)
    app.connect("build-finished", write_front_door)
