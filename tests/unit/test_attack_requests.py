"""The attacks that a job takes by itself: an intruder knows the strata that steps mask in, as each step saw them."""

import pyarrow as pa
import pytest

import dpmask
from dpmask.job.attacks import attack_requests

BEFORE = pa.schema([("income", pa.float64()), ("region", pa.string()), ("sex", pa.string())])
REFINEMENT = dpmask.TopDownRefinement(
    requirements=[(["region"], 5)], taxonomies={"region": {"value": "*", "children": ["north", "south"]}}
)


def requests(*methods):
    steps = [(f"step {number}", method) for number, method in enumerate(methods)]
    return attack_requests(BEFORE, BEFORE, steps, [], ["income", "region"])


def test_strata_are_known_as_the_step_saw_them():
    swap = dpmask.RankSwapping(columns=["income"], window=0.1, by=["region", "sex"], zeros="keep")
    (before,), (after,) = requests(swap, REFINEMENT), requests(REFINEMENT, swap)
    assert (before.parameters["by"], before.parameters["zeros"]) == (["region", "sex"], "keep")
    assert before.parameters["by_masked"] == []
    assert after.parameters["by_masked"] == ["region"]


def test_other_strata_are_another_attack():
    noise = {"columns": ["income"], "scale": 0.1}
    some = [dpmask.NoiseAddition(**noise, by=by) for by in ([], ["sex"], ["sex"])]
    assert [one.parameters["by"] for one in requests(*some)] == [[], ["sex"]]


MEANS = dpmask.Microaggregation(columns=["income"], k=5, by=["region"])


@pytest.mark.parametrize(
    ("methods", "found"),
    [
        ([MEANS], ["income"]),
        ([REFINEMENT, MEANS], ["region", "income"]),  # labels follow from the values, and are not drawn
        ([REFINEMENT], None),
        ([MEANS, dpmask.NoiseAddition(columns=["income"], scale=0.1)], None),
        ([dpmask.NoiseAddition(columns=["income"], scale=0.1), MEANS], None),  # the means of drawn values
        ([dpmask.MembershipTransform(columns=["income"], function="s")], ["income"]),
    ],
)
def test_what_is_not_drawn_is_repeated(methods, found):
    asked = [one.parameters["repeated"] for one in requests(*methods) if one.measure == "repeated_linkage"]
    assert asked == ([] if found is None else [found])


def test_what_a_job_measures_itself_is_not_repeated_twice():
    (request,) = requests(MEANS)
    assert not attack_requests(BEFORE, BEFORE, [("means", MEANS)], [request], ["income", "region"])
