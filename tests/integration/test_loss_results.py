"""What measures of information loss say, refuse, and are in a job."""

import json

import numpy as np
import pandas as pd
import pytest
from loss_tools import NUMBERS, PIL, table

import dpmask
from dpmask.errors import InputError, JobError
from dpmask.guide import page
from dpmask.measures import MEASURES, find_measure
from dpmask.measures.utility.shared_passes import shared_measures

SHARED = tuple(shared_measures())


@pytest.mark.parametrize("name", [*SHARED, "propensity"])
def test_results_speak_for_themselves(name):
    frame, masked = table(300)
    found = getattr(dpmask.utility, name)(frame, masked, columns=NUMBERS)
    assert found.public
    assert found.value in [getattr(found, field) for field in found.judged]
    assert "arger means" in found.explain()
    assert json.loads(json.dumps(found.to_dict()))["value"] == found.value
    assert page(name).startswith(f"# {name}")


def test_measures_say_what_they_are():
    """Every measure's result, and each number that a policy may name, has a definition, a direction and a source."""
    for name in MEASURES:
        result = find_measure(name).result
        for term in (result.about, *map(result.term, result.judged)):
            assert term.definition.endswith(".")
            assert term.direction.endswith(".")
            assert not term.source.endswith(".")
            assert "arger" in term.direction or "maller" in term.direction
        if "value" in result.judged:
            assert result.larger_is_better != ("arger means more" in result.about.direction), name


@pytest.mark.parametrize("name", [*SHARED, "propensity"])
@pytest.mark.parametrize(
    ("columns", "error", "text"),
    [
        (["nowhere", "smooth"], JobError, "no column 'nowhere'"),
        ([], JobError, "must be"),
        (["smooth", "smooth"], JobError, "must be"),
        (["endless", "smooth"], InputError, "infinite"),
        (["empty", "smooth"], InputError, "no (value|record)"),
        (["région", "smooth"], JobError, "must be numeric"),
        (["nested", "smooth"], JobError, "(must be numeric|not grouped)"),
    ],
)
def test_bad_columns(name, columns, error, text):
    frame, masked = (side.assign(endless=np.inf, empty=np.nan, nested=[[1]] * len(side)) for side in table(40))
    takes = {"total_variation", "hellinger"}
    fine = (name in {*takes, "propensity"} and columns[:1] == ["région"]) or (
        name in {*takes, "kolmogorov_smirnov"} and columns[:1] == ["endless"]
    )
    measure = getattr(dpmask.utility, name)
    if fine:
        assert measure(frame, masked, columns=columns).value >= 0
        return
    with pytest.raises(error, match=text):
        measure(frame, masked, columns=columns)


def test_more_bad_input():
    frame, masked = table(40)
    with pytest.raises(InputError, match="'tied' is constant"):
        dpmask.utility.moments(frame.assign(tied=1), masked, columns=["tied"])
    with pytest.raises(JobError, match="two or more different columns; got 1"):
        dpmask.utility.correlations(frame, masked, columns=["tied"])
    with pytest.raises(JobError, match="n_ref must be an integer >= 1; got 0"):
        PIL(frame, masked, columns=["tied"], n_ref=0)
    with pytest.raises(JobError, match="sample must be an integer from 10"):
        dpmask.utility.propensity(frame, masked, columns=["tied"], sample=5)
    with pytest.raises(JobError, match="'grops' shares no passes"):
        dpmask.utility.summarise(frame, masked, columns=["tied"], measures=["grops"])
    with pytest.raises(JobError, match="got none"):
        dpmask.utility.summarise(frame, masked, columns=["tied"], measures=[])
    many = pd.DataFrame({"id": [f"{n:x}" for n in range(70_000)]})
    with pytest.raises(JobError, match="column 'id' has more than 65,536 different values"):
        dpmask.utility.hellinger(many, many, columns=["id"])
    one = dpmask.utility.summarise(frame, masked, columns=["région"])
    assert set(one) == {"total_variation", "hellinger"}
    with pytest.raises(KeyError):
        one["il1s"]
    for rows in (1, 2):
        assert PIL(frame.iloc[:rows], masked.iloc[:rows], columns=["smooth"]).value > 0


def test_in_a_job(place):
    place.lake()
    step = [
        {"measure": "probabilistic_information_loss", "columns": ["income", "age", "rate"], "n_ref": 500},
        {"measure": "total_variation", "columns": ["income", "region", "member"]},
        {"measure": "propensity", "columns": ["income", "region"], "sample": 500},
    ]
    refused = place.run(measure=step, policy=["probabilistic_information_loss.at_reference <= 0.01"])
    assert refused.code == 3, refused.err
    done = place.run(
        measure=step, policy=["probabilistic_information_loss.value <= 99", "total_variation.largest <= 0.9"]
    )
    assert done.code == 0, done.err
    manifest, _ = place.released()
    assert [one["measure"] for one in manifest["information_loss"]] == [one["measure"] for one in step]
    wrong = place.run(measure=[{"measure": "correlations", "columns": ["income"]}])
    assert wrong.code == 2
    assert "two or more" in wrong.err


def test_propensity_needs_values_that_records_share():
    frame = pd.DataFrame({"born": pd.date_range("2000-01-01", periods=500)})
    with pytest.raises(InputError, match="no value of born is shared by 1% of the records"):
        dpmask.utility.propensity(frame, frame, columns=["born"])
