"""Every code block of README, guide and docs: Python is run, lines of a job file are checked as a job, commands by their
options; those of the start page are run as they stand, and what it shows of their output is compared, numbers about.

All on one small census. Formulas are not run; other output is compared in test_printed_texts.py."""

import re
import shlex
import warnings
from pathlib import Path

import pandas as pd
import pytest
import yaml
from text_blocks import blocks

import dpmask
from dpmask.cli import cli
from dpmask.job.model import read_job
from dpmask.lake.generate import generate_lake

ROOT = Path(__file__).parents[2]
TEXTS = [
    *(ROOT / name for name in ("README.md", "jobs/README.md")),
    *sorted((ROOT / "dpmask/guide").glob("*.md")),
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "reference"),
]
SECRET = "6b0d1c88a4e94f53b1f2d7a9c05e3f62"
FOUND = {path: blocks(path.read_text(encoding="utf-8")) for path in TEXTS}
GROUPED = {
    "name": "a job whose first step has a k",
    **{"source": "lake", "target": "release", "private": "private", "seed": 1},
    "columns": {
        **{"identifier": ["person_id", "household_id"], "quasi": ["age"], "sensitive": ["net"]},
        "drop": ["education", "gross", "hours", "occupation", "region", "sex", "tax", "weight"],
    },
    "mask": [{"method": "microaggregation", "columns": ["age", "net"], "k": 5}],
}
LANGUAGES = {"sh", "python", "yaml", "text", "toctree", "literalinclude"}


def named(*kinds):
    """The texts that have blocks of a kind."""
    return pytest.mark.parametrize(
        "text",
        [path for path, found in FOUND.items() if any(block.kind in kinds for block in found)],
        ids=lambda path: str(path.relative_to(ROOT)),
    )


def of_kind(text, kind):
    return [block for block in FOUND[text] if block.kind == kind]


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    """A folder with a small census, the ready jobs, a taxonomy, and tables as the examples name them."""
    folder = tmp_path_factory.mktemp("texts")
    generate_lake(str(folder / "lake"), rows=400, files=2, seed=1, nulls=False)
    (folder / "jobs").symlink_to(ROOT / "jobs")
    (folder / "education.yaml").write_text((ROOT / "jobs/taxonomies/education.yaml").read_text(encoding="utf-8"))
    (folder / "job.yaml").write_text(yaml.safe_dump(GROUPED), encoding="utf-8")
    people = dpmask.read_lake(str(folder / "lake")).to_dask().compute()
    people.assign(income=people["gross"]).to_parquet(folder / "people.parquet")
    return folder


@pytest.fixture
def names(office, monkeypatch):
    monkeypatch.chdir(office)
    people = dpmask.read_lake("lake/").to_dask().compute().reset_index(drop=True)
    more = {"wage": people["net"], "dividends": people["tax"], "income": people["gross"]}
    people = people.assign(**more, rent=people.groupby("household_id")["net"].transform("mean"), town=people["region"])
    numbers = ["age", "net", "tax", "gross", "hours", "wage", "income"]
    masked = people.assign(**{name: people[name].astype(float) for name in numbers})
    masked = dpmask.NoiseAddition(columns=numbers, scale=0.1).fit(masked, seed=1).mask(masked)
    table = people[["net", "tax", "hours"]].set_axis(["a", "b", "c"], axis=1).astype(float)
    return {
        **{"dpmask": dpmask, "pandas": pd, "people": people, "original": people, "masked": masked, "table": table},
        **{"january": people, "february": people, "secret": SECRET},
    }


def test_every_block_has_a_kind():
    strange = {(path.name, one.line, one.kind) for path, found in FOUND.items() for one in found}
    assert not {one for one in strange if one[2] not in LANGUAGES}


@named("python")
def test_python_runs(text, names, reference):
    """All blocks of a text, one after another; a number in the comment behind an expression is its value."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for block in of_kind(text, "python"):
            if "census.csv" in block.text:
                names["pandas"] = type("Pandas", (), {"read_csv": lambda name: pd.read_csv(reference / name)})
            exec(compile("\n" * block.line + block.text, text.name, "exec"), names)
            for line, value in re.findall(r"^([\w.]+(?:\(.*\))?[\w.]*) +# ([\d.]+)(?::|$)", block.text, re.MULTILINE):
                assert eval(line, names) == pytest.approx(float(value), abs=5.1e-5)


BASE = {
    "name": "a job of the texts",
    **{"source": "lake", "target": "release", "private": "private"},
    "columns": {"quasi": ["age"], "sensitive": ["net"]},
    "mask": [{"method": "noise", "columns": ["net"], "scale": 0.1}],
    "measure": [{"measure": name, "columns": ["net"]} for name in ("distance_linkage", "il1s", "correlations")],
}


@named("yaml")
def test_lines_of_a_job_are_a_job(text, office, monkeypatch):
    """With what they leave out, also by an ellipsis; steps are checked with all their parameters, rules by their names."""
    monkeypatch.chdir(office)
    monkeypatch.setenv("MONTH", "2026-01")
    for block in of_kind(text, "yaml"):
        said = yaml.safe_load(re.sub(r", \.\.\.", "", block.text.replace(": ...", ": {}")))
        if "apiVersion" in said:  # Kubernetes' own, which tests/unit/test_deployment.py validates
            continue
        if "requirements" in said:
            said = {"mask": [{"method": "refinement", **said}]}
        more = {"series": "of-the-texts"} if "new" in said else {}
        (office / "text.yaml").write_text(yaml.safe_dump({**BASE, **more, **said}), encoding="utf-8")
        read_job("text.yaml")


@named("sh")
def test_commands_have_their_options(text):
    for block in of_kind(text, "sh"):
        for line in re.findall(r"(?m)(?:^|&& |bin/|^\w+=\S+ )dpmask ([a-z].*)", block.text):
            words = re.split(r"[\s\[\]|]+", line.partition("  #")[0].partition("&&")[0])
            command = cli.commands[words[0]]
            if words[0] in ("ledger", "taxonomy"):
                command = command.commands[words[1]]
            known = {option for parameter in command.params for option in parameter.opts}
            assert {word for word in words if word.startswith("--")} <= known, line
        for line in re.findall(r"(?m)^python (\S+\.py)", block.text):
            assert (ROOT / line).is_file(), line


def normalised(text):
    """Lines without numbers, the widths of tables, folders, and the columns that happen to contribute most."""
    text = re.sub(r"(contribute most: ).*", r"\1", re.sub(r"to \S*/?out/release", "to out/release", text))
    return [re.sub(r" {2,}", "  ", re.sub(r"[\d.,]*\d", "N", line)).strip() for line in text.splitlines()]


def test_the_start_page_as_it_stands(place):
    """Its commands, but for the installation; its output blocks, and those of the README, are lines that these printed."""
    (place.folder / "jobs").symlink_to(ROOT / "jobs")
    commands = [line for block in of_kind(ROOT / "docs/start.md", "sh") for line in block.text.splitlines()]
    ended = [place.dpmask(*shlex.split(line)[1:]) for line in commands if line.startswith(".venv/bin/dpmask")]
    assert [one.code for one in ended] == [0, 0, 0, 0, 3]
    printed = normalised("\n".join(one.out + one.err for one in ended))
    shown = [*of_kind(ROOT / "docs/start.md", "text"), *of_kind(ROOT / "README.md", "text")]
    for line in normalised("\n".join(block.text for block in shown)):
        assert any(line.rstrip(".") in one for one in printed), line
    found = figures(ended[4].err) | figures(ended[2].out)
    for name, value in figures("\n".join(block.text for block in of_kind(ROOT / "docs/start.md", "text"))).items():
        assert found[name] == pytest.approx(value, rel=0.25), name  # of another key


def figures(text):
    """The found numbers of a printed table, and the one that a refusal names."""
    rows = re.findall(r"(?m)^(\w+) +(\w+) +([\d.,]+\d)(?= |$)", text)
    refused = re.findall(r"(\S+) <= \S+ \(a default of the gate\): it is ([\d.]+)", text)
    return {(one, two): float(value.replace(",", "")) for one, two, value in rows} | {
        one: float(value) for one, value in refused
    }
