"""Every table and figure of the papers by one command, here of each paper the cheapest; and without the data, a message."""

import pytest
import run
import sheets

CHEAPEST = {
    "torra-2020": ("table-4", "1.5 constrained"),
    "torra-2009": ("table-3", "225.27"),
    "ahmad-2014": ("table-6", "0.3202"),
    "cano-torra-2009": ("table-2", "46.6"),
    "fung-2009": ("table-5", "0.7491"),
}
FIGURES = {"torra-2020": 0, "fung-2009": 0}


def test_every_paper_is_tried():
    assert {*CHEAPEST, "open-questions", "gallery"} == set(run.PAPERS)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("paper", CHEAPEST)
def test_an_exhibit(paper, reference, tmp_path, capsys):
    """Its numbers are printed and kept, with why they differ; its figure is drawn."""
    name, number = CHEAPEST[paper]
    run.main([paper, name, "--quick", "--to", str(tmp_path)])
    shown = capsys.readouterr().out
    assert number in shown
    assert "printed" in shown
    assert "\n* " in shown
    assert (tmp_path / f"{paper}-{name}.txt").read_text(encoding="utf-8") in shown
    drawn = [file.read_text(encoding="utf-8") for file in tmp_path.glob("*.svg")]
    assert len(drawn) == FIGURES.get(paper, 1)
    assert all(svg.startswith("<svg") for svg in drawn)


@pytest.mark.parametrize("name", ["torra-2020-table-3", "torra-2020-table-4", "fung-2009-table-2", "fung-2009-table-5"])
def test_the_site_shows_what_comes_out(name):
    paper, _, exhibit = name.rpartition("-table-")
    shown = (sheets.HOME / f"docs/papers/{name}.txt").read_text(encoding="utf-8")
    assert run.exhibits(paper)[f"table-{exhibit}"](sheets.Size()).text() == shown


def test_the_site_shows_all_of_them_whole():
    kept = {file.stem: file.read_text(encoding="utf-8") for file in (sheets.HOME / "docs/papers").glob("*.txt")}
    assert set(kept) == {f"{paper}-{name}" for paper in run.PAPERS for name in run.exhibits(paper)}
    assert not [name for name, text in kept.items() if run.QUICK in text]


def test_all_are_listed(capsys):
    run.main([])
    shown = capsys.readouterr().out
    for exhibit in ("proposition-8", "table-1", "figure-13", "figures-1-3", "table-7"):
        assert exhibit in shown


def test_without_the_data(monkeypatch, tmp_path):
    monkeypatch.setenv("DPMASK_REFERENCE_DATA", str(tmp_path))
    with pytest.raises(sheets.InputError, match=r"census.csv is not there: the CASC .* Set DPMASK_REFERENCE_DATA"):
        sheets.census()
