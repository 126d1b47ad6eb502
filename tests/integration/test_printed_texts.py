"""What guide and docs show of output, files and events is what comes out of a small run, but for numbers and names.

The start page and the README are compared in test_texts.py. Here every other block that is neither code nor lines of a job is
either compared, here or where it is run (series.md's table in test_ready_jobs.py), or listed as a formula."""

import json
import re
import warnings
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from text_blocks import blocks

import dpmask
from dpmask.engine.cluster.file import read_description
from dpmask.lake.generate import generate_lake

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "dpmask/guide"
FORMULAS = {"distance_linkage": 2, "fuzzy_c_means": 1, "probabilistic_information_loss": 1, "probabilistic_linkage": 1}
COMPARED = {
    "clusters": 1,
    "evaluate": 1,
    "job": 1,
    "pipelines": 2,
    "refinement": 2,
    "series": 1,
    "strata": 1,
    "sweep": 1,
}
QUASI = ["age", "sex"]
JOB = {
    "name": "texts",
    **{"source": "lake", "target": "out/release", "private": "out/private", "seed": 1},
    "columns": {
        **{"identifier": ["person_id", "household_id"], "quasi": QUASI, "sensitive": ["net", "tax"]},
        "drop": ["education", "gross", "hours", "occupation", "region", "weight"],
    },
    "mask": [
        {"method": "refinement", "requirements": [{"columns": QUASI, "k": 50}], "domains": {"age": [0, 120]}},
        {"method": "noise", "columns": ["net", "tax"], "scale": 1, "zeros": "mask"},
    ],
    "measure": [{"measure": name, "columns": ["net", "tax"]} for name in ("il1s", "interval_disclosure")],
    "policy": ["gate.linkage <= 1", "gate.smallest >= 2", "interval_disclosure.rate <= 0.5"],
}


def shown(name, place=0):
    """A block of a page that is none of code."""
    found = [block.text for block in blocks((GUIDE / f"{name}.md").read_text(encoding="utf-8")) if block.kind == "text"]
    return found[place]


def normalised(text):
    """Without numbers, and one space for several."""
    return re.sub(r" +", " ", re.sub(r"[\d.,]*\d", "N", text)).strip()


@pytest.fixture
def office(place):
    generate_lake(str(place.folder / "lake"), rows=1500, files=1, seed=1, nulls=False)
    (place.folder / "job.yaml").write_text(yaml.safe_dump(JOB), encoding="utf-8")
    return place


def test_every_such_block_is_compared_or_a_formula():
    found = {}
    for path in [*GUIDE.glob("*.md"), *(path for path in (ROOT / "docs").rglob("*.md") if path.stem != "start")]:
        number = sum(block.kind == "text" for block in blocks(path.read_text(encoding="utf-8")))
        if number and path.parent.name != "reference":
            found[path.stem] = number
    assert found == {**FORMULAS, **COMPARED}


def test_a_run_its_files_its_log_and_metrics(office):
    """job.md's listing, pipelines.md's event and alert, evaluate.md's table."""
    ended = office.dpmask("run", "job.yaml", "--log-format", "json", "--metrics", "run.prom")
    assert ended.code == 0, ended.err
    listed = [name for line in shown("job").splitlines() for name in re.findall(r"^((?:target|private)/\S+?),? ", line)]
    others = ("private/<run>/pairing", "private/<run>/checkpoint", "target/_delta_log")  # not of every run
    there = [name for name in listed if not name.startswith(others)]
    assert len(there) == 8
    for name in [*there, "private/log.txt"]:
        assert list((office.folder / "out").glob(_pattern(name))), name
    assert "dpmask schema result" in shown("job")
    events = [json.loads(line) for line in ended.err.splitlines() if line.startswith("{")]
    printed = json.loads(shown("pipelines"))
    passes = [event for event in events if event["event"] == printed["event"]]
    assert list(passes[0]) == list(printed)
    assert [type(value) for value in passes[0].values()] == [type(value) for value in printed.values()]
    metrics = (office.folder / "run.prom").read_text(encoding="utf-8")
    for name in set(re.findall(r"dpmask_\w+(?=\{)", shown("pipelines", 1))):
        assert f'{name}{{name="texts"}}' in metrics
    asked = ("--columns", "net,tax", "--quasi", "age,sex", "--sensitive", "net", "--json", "found.json")
    found = office.dpmask("evaluate", "lake/", "out/release/", "--paired-by", "out/private", *asked)
    assert found.code == 0, found.err
    lines = set(map(normalised, found.out.splitlines()))
    assert {normalised(line) for line in shown("evaluate").splitlines() if line.strip() != "..."} <= lines


def _pattern(name):
    return re.sub(r"<\w+>", "*", name.replace("target/", "release/").replace("NNNNN", "*"))


def test_a_sweep(office):
    """sweep.md's own job, on fewer people: the same words, and numbers like those shown."""
    (job,) = (one.text for one in blocks((GUIDE / "sweep.md").read_text(encoding="utf-8")) if one.kind == "yaml")
    (office.folder / "page.yaml").write_text(job, encoding="utf-8")
    ended = office.dpmask("sweep", "page.yaml", "--over", "mask[0].scale=0.1,0.2,0.5,1")
    assert ended.code == 0, ended.err
    head, *rows, advice, page = ended.out.splitlines()
    told, *lines, take, where = shown("sweep").splitlines()
    assert (head.split(), normalised(advice)) == (told.split(), normalised(take))
    assert page.partition(":")[0] == where.partition(":")[0]
    for row, line in zip(map(str.split, rows), map(str.split, lines), strict=True):
        assert (row[0], row[4:]) == (line[0], line[4:])
        assert {row[3], line[3]} <= {"holds", "broken"}  # by a limit that is wider for fewer people
        assert list(map(float, row[1:3])) == pytest.approx(list(map(float, line[1:3])), rel=0.1)


def test_why_a_refinement_stopped(some_refinements):
    fitted, names = some_refinements
    printed = {_without_names(line, names) for one in fitted for line in one.explain().splitlines()}
    columns = ["age + education + marital-status + race + sex", "marital-status", "education", "race", "age"]
    for line in shown("refinement").splitlines():
        assert _without_names(line, columns) in printed, line


def _without_names(line, names):
    for name in sorted(names, key=len, reverse=True):
        line = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", "X", line)
    return normalised(re.sub(r"'[^']*'", "V", line))


@pytest.fixture
def some_refinements(place):
    """Small groups and several k, so that every kind of advice is printed."""
    generate_lake(str(place.folder / "lake"), rows=1500, files=1, seed=1, nulls=False)
    people, columns = dpmask.read_lake("lake").to_dask().compute(), ["age", "sex", "region", "education"]
    trees = {"education": str(ROOT / "jobs/taxonomies/education.yaml")}
    more = {"domains": {"age": [0, 120]}, "taxonomies": trees, "guide": {"clusters": 3, "columns": ["net"]}}
    methods = [dpmask.TopDownRefinement(requirements=[(columns, k)], **more) for k in (3, 4, 5, 7)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [method.fit(people, seed=1) for method in methods], [" + ".join(columns), *columns]


def test_files_of_others(place):
    """A cluster file, a taxonomy, a step of a job."""
    (place.folder / "cluster.yaml").write_text(shown("clusters"), encoding="utf-8")
    assert read_description("cluster.yaml").workers == 4
    place.lake(pa.table({"education": ["none", "master", "primary"] * 9}))
    (place.folder / "education.yaml").write_text(shown("refinement", 1), encoding="utf-8")
    checked = place.dpmask("taxonomy", "check", "education.yaml", "lake")
    assert checked.code == 0, checked.err
    assert "any schooling" in checked.out
    (step,) = yaml.safe_load(shown("strata"))
    dpmask.Microaggregation(**{name: value for name, value in step.items() if name != "method"})
