"""What a sweep tries without --over, for the methods of the ready jobs and the others."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from dpmask.job.sweep import parse_axis
from dpmask.job.sweep_axes import tried
from dpmask.masking.of_households import method_of_step

JOBS = Path(__file__).parents[2] / "jobs"
COLUMNS, BY = ["net", "tax"], {"independents": ["age"]}


def job(mask, measure=()):
    """A job as far as a sweep looks at it."""
    parameters = [{name: value for name, value in step.items() if name not in ("method", "as")} for step in mask]
    methods = [method_of_step(step["method"], given) for step, given in zip(mask, parameters, strict=True)]
    return SimpleNamespace(file=SimpleNamespace(mask=mask, measure=list(measure)), methods=methods)


def axes(mask, measure=()):
    return {axis.name: axis.values for axis in (parse_axis(one.over) for one in tried(job(mask, measure)))}


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ({"method": "microaggregation", "columns": COLUMNS, "k": 3}, {"k": [2, 3, 6, 12]}),
        ({"method": "fuzzy_microaggregation", "columns": COLUMNS, "k": 500}, {"k": [250, 500, 1000, 2000]}),
        ({"method": "fuzzy_microaggregation", "columns": COLUMNS, "clusters": 40}, {"clusters": [20, 40, 80, 160]}),
        ({"method": "noise", "columns": COLUMNS, "scale": 0.15}, {"scale": [0.075, 0.15, 0.3, 0.6]}),
        ({"method": "noise", "columns": COLUMNS, "scale": 1}, {"scale": [0.5, 1.0, 2.0, 4.0]}),
        ({"method": "swapping", "columns": COLUMNS, "window": 0.3}, {"window": [0.15, 0.3, 0.6, 1.0]}),
        ({"method": "regression_synthesis", "dependents": COLUMNS, **BY, "clusters": 4}, {"clusters": [2, 3, 4, 5, 8]}),
        ({"method": "ipso", "dependents": COLUMNS, **BY, "variant": "A"}, {"variant": ["A", "B", "C"]}),
    ],
)
def test_one_step(step, expected):
    assert axes([step]) == {f"mask[0].{name}": values for name, values in expected.items()}
    assert all(one.why for one in tried(job([step])))


def test_a_guide_by_clusters_moves_with_the_measure_that_compares_as_many():
    mask = yaml.safe_load((JOBS / "cluster_analysis/job.yaml").read_text(encoding="utf-8"))["mask"]
    measure = [{"measure": "il1s"}, {"measure": "partition_agreement", "clusters": 6}]
    assert axes(mask, measure) == {
        "mask[0].requirements[1].k": [500, 1000, 2000],  # of two the one with most columns
        "mask[0].guide.clusters+measure[1].clusters": [4, 6, 8],
    }


def test_a_step_whose_columns_are_masked_again_is_left_out():
    mask = yaml.safe_load((JOBS / "household_income/job.yaml").read_text(encoding="utf-8"))["mask"]
    assert list(axes(mask)) == ["mask[0].requirements[0].k", "mask[2].k"]
