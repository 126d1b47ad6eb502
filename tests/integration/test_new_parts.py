"""A method and a measure that nobody knows, registered by one line each: job, report, sweep and explorer have them."""

import ast
import re
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import yaml
from conftest import people, write_lake

import dpmask
from dpmask.explore.controls import moved_values
from dpmask.explore.proportion import in_proportion
from dpmask.explore.session import Explorer
from dpmask.job.model import read_job
from dpmask.job.sweep import goals_of
from dpmask.job.sweep_axes import tried
from dpmask.masking import METHODS
from dpmask.masking.method import FittedMethod, Method
from dpmask.masking.movable import ParameterRange, Trial
from dpmask.measures import MEASURES
from dpmask.measures.measure import Measure, timed
from dpmask.parameters import Names, require_columns
from dpmask.results import MORE_RISK, Exhibit, Headline, Loss, Risk, Term
from dpmask.table.columns import floats, with_floats
from dpmask.table.pairs import pair_numbers

ROOT = Path(dpmask.__file__).parent
TREE = {"value": "<all>", "children": [{"value": "odd"}, {"value": "even"}]}


@dataclass(frozen=True, kw_only=True)
class CoarsenedFigures(Loss):
    """What coarsening came to."""

    trees: dict

    judged: ClassVar[tuple[str, ...]] = ("value",)
    exhibits: ClassVar = {"trees": Exhibit("trees", "what it became")}
    about: ClassVar = Term("How coarse it is.", "Larger means more information lost.", "nobody")

    def explain(self):
        return "It is coarse."


@dataclass(frozen=True, kw_only=True)
class Coarsening(Method["FittedCoarsening"]):
    """Values rounded to multiples of a base."""

    columns: Names
    base: float = 100
    size: int = 2
    many: int = 10

    figures: ClassVar = CoarsenedFigures
    ranges: ClassVar = {
        "base": ParameterRange(1, trial=Trial("a larger base loses more")),
        "size": ParameterRange(2, whole=True, counts="records"),
    }

    def __post_init__(self):
        require_columns(self, "columns")

    def fit_table(self, table, key):
        return FittedCoarsening(self, key, CoarsenedFigures(value=0.5, trees={"income": TREE}))


@dataclass(frozen=True)
class FittedCoarsening(FittedMethod):
    """It, ready to mask."""

    method: Coarsening
    key: object
    figures: CoarsenedFigures

    def mask_rows(self, rows, first):
        base = self.method.base
        for column in self.changes:
            rows = with_floats(rows, column, np.rint(floats(rows, column) / base) * base)
        return rows

    def statement(self):
        return "Incomes were coarsened."

    def weaknesses(self):
        return ["A record stays near its original."]


@dataclass(frozen=True, kw_only=True)
class NearRisk(Risk):
    """``rate`` of values that stay near."""

    rate: float

    headlines: ClassVar = (Headline("learned", "rate", "of incomes are known to a hundred"),)
    about: ClassVar = Term("Share of values that stay near.", MORE_RISK, "nobody")

    def explain(self):
        return f"{self.rate:.1%} stay near."


@timed
def staying_near(original, masked, *, columns: Names) -> NearRisk:
    """How many values stay near."""
    pairs, names = pair_numbers(original, masked, columns, "staying_near")
    near = pairs.reduce(names, lambda block: (np.abs(block[0] - block[1]) < 100).sum(), np.add, "near")
    return NearRisk(rate=float(near / pairs.rows), guessing=0.0, attacked=pairs.rows)


MEASURE = Measure(function=staying_near, result=NearRisk)

TEXT = """\
name: people
source: lake
target: release
private: private
seed: 7
columns:
  identifier: [id, name, seen, money, age, region, born, rate, member, children]
  sensitive: [income]
mask:
  - {method: coarsening, columns: [income], base: 200, size: 40, many: 10}
measure:
  - {measure: staying_near, columns: [income]}
policy:
  - gate.linkage <= 1
  - coarsening.value <= 1
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("new")
    write_lake(folder / "lake", people(400))
    (folder / "job.yaml").write_text(TEXT, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch, chdir(folder):
        patch.setitem(METHODS, "coarsening", f"{__name__}:Coarsening")
        patch.setitem(MEASURES, "staying_near", __name__)
        yield folder


def test_the_report_shows_them(home):
    from dpmask.job.run import run_job

    outcome = run_job("job.yaml", trial=True)
    assert outcome.status == "released", outcome
    page = Path(outcome.report.removeprefix("file://")).read_text(encoding="utf-8")
    words = " ".join(re.sub(r"<[^>]*>", " ", page).split())
    assert "of incomes are known to a hundred; 0 % without the release" in words, "it stands first"
    assert "coarsening" in words
    assert "income: what it became" in words
    assert "staying_near" in page.replace("<wbr>", "")


def test_a_sweep_tries_its_parameter_and_compares_by_its_measure(home):
    job = read_job("job.yaml")
    found = [(one.over, one.why) for one in tried(job)]
    assert found == [("mask[0].base=100.0, 200.0, 400.0, 800.0", "a larger base loses more")]
    assert goals_of(job, loss="coarsening.value")[0].name == "staying_near.rate"


def test_the_explorer_moves_it(home):
    explorer = Explorer("job.yaml", rows=200, loss="coarsening.value")
    found = {one.name: one for one in explorer.controls if one.heading.startswith("1.")}
    assert list(found) == ["mask[0].base", "mask[0].size", "mask[0].many"]
    assert (found["mask[0].base"].low, found["mask[0].many"].low, found["mask[0].many"].whole) == (1, 0, True)
    assert explorer.move("mask[0].base", 50.0).trees == {"coarsening": {"income": TREE}}
    values = moved_values(yaml.safe_load(TEXT), explorer.controls, {"mask[0].many": 7})
    scaled, changed = in_proportion(values, explorer.job.methods, 0.1)
    assert changed == {"mask[0].size": (40, 4)}
    assert scaled["mask"][0]["many"] == 7


SHARED = {
    "masking": {"claims", "earlier_releases", "method", "movable", "of_households", "parts", "saved", "state"},
    "measures": {"measure", "risk.exposed"},
}
"""What the rooms that show methods and measures may know of them: contracts, and the records most at risk."""
WORDS = {
    "differencing",
    "groups",
    "households",
    "consistency",
    "correlations",
    "moments",
    "noise",
    "rotation",
    "tails",
    "totals",
}
"""Names that are words of their own: of sections of a page, of a number of the gate."""
PAGES = [page for room in ("explore", "report") for page in (ROOT / room).glob("*.j2")]
ROOMS = [
    *(path for room in ("explore", "report", "terminal", "cli") for path in (ROOT / room).rglob("*.py")),
    *(path for name in ("*sweep*", "movable", "account", "series") for path in (ROOT / "job").glob(f"{name}.py")),
]


@pytest.mark.parametrize("path", ROOMS, ids=lambda path: path.name)
def test_no_method_or_measure_is_known_by_name(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    for module in modules:
        _, room, *rest = [*module.split("."), "", ""]
        own = ".".join(part for part in rest if part)
        assert not own or room not in SHARED or own in SHARED[room], module
    names = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert not (names & {*METHODS, *MEASURES}) - WORDS


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_page_knows_one_by_name(path):
    names = re.findall(r"[\"'](\w+)[\"']", path.read_text(encoding="utf-8"))
    assert not (set(names) & {*METHODS, *MEASURES}) - WORDS
