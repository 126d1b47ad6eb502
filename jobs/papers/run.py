"""The tables and figures of the five papers behind dpmask, ours beside what was published, and experiments of our own.

    python jobs/papers/run.py                        lists them
    python jobs/papers/run.py torra-2009 table-2     one of them, or several; without a name, all of that paper
    python jobs/papers/run.py all --to FOLDER        everything

Numbers are printed and, with the figures, kept in out/papers/ or the folder of --to. The data are found by
DPMASK_REFERENCE_DATA, or in ../shared/data. --quick takes fewer runs where all that was published takes minutes.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from sheets import Exhibit, Size, drawn

from dpmask.errors import DpmaskError
from dpmask.report import drawing

PAPERS = {
    "torra-2009": "Torra, Endo, Miyamoto 2009: comparing fuzzy clusters",
    "torra-2020": "Torra 2020: fuzzy microaggregation with constraints",
    "ahmad-2014": "Ahmad, Haque, Tauhid 2014: membership transforms and rotation",
    "cano-torra-2009": "Cano, Torra 2009: synthetic data by fuzzy c-regression",
    "fung-2009": "Fung, Wang, Wang, Hung 2009: k-anonymity for cluster analysis",
    "open-questions": "What these papers left open, by experiments of our own",
    "gallery": "All methods of numbers beside each other on four tables",
}

QUICK = "Made with --quick: fewer runs than the experiment has."


def exhibits(paper: str) -> dict[str, Exhibit]:
    """The tables and figures of a paper by name."""
    return import_module(f"{paper.replace('-', '_')}.exhibits").EXHIBITS


def show(paper: str, name: str, size: Size, folder: Path) -> None:
    """Print one, and keep its text and its figures."""
    sheet = exhibits(paper)[name](size)
    if size.quick and size.asked:
        sheet = replace(sheet, notes=[*sheet.notes, QUICK])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{paper}-{name}.txt").write_text(sheet.text(), encoding="utf-8")
    print(sheet.text())
    for number, (label, chart) in enumerate(sheet.charts.items()):
        file = folder / f"{paper}-{name}{f'-{number + 1}' if number else ''}.svg"
        file.write_text(drawn(chart), encoding="utf-8")
        print(f"{label}: {file}", flush=True)


def listing() -> str:
    """Every paper and what of it there is."""
    return "\n".join(f"{paper:<17}{title}\n{'':<17}{', '.join(exhibits(paper))}" for paper, title in PAPERS.items())


def main(arguments: list[str]) -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paper", nargs="?", choices=[*PAPERS, "all"])
    parser.add_argument("exhibits", nargs="*", metavar="exhibit")
    parser.add_argument("--to", type=Path, default=Path("out/papers"), help="where texts and figures are kept")
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    asked = parser.parse_args(arguments)
    if asked.paper is None:
        print(listing())
        return
    for paper in PAPERS if asked.paper == "all" else [asked.paper]:
        known = list(exhibits(paper))
        for name in asked.exhibits:
            if name not in known:
                parser.error(f"{paper} has no {name}; it has {', '.join(known)}")
        for name in asked.exhibits or known:
            show(paper, name, Size(asked.quick), asked.to)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # small groups and single starts are the papers' own
    drawing.SECONDS = 600.0  # a report does without a chart that takes long, a sheet does not
    try:
        main(sys.argv[1:])
    except DpmaskError as error:
        sys.exit(str(error))
