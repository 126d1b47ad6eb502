"""Information loss in passes: the same for any partitions and sample, alone or together, and no pass too many."""

from functools import partial

import dask
import numpy as np
import pytest
from conftest import people, write_lake
from loss_tools import NUMBERS, PIL, passes_of, small_samples, table
from parts import in_parts

import dpmask
from dpmask.errors import JobError
from dpmask.job.measures import passes_of as passes_counted
from dpmask.job.measures import takers
from dpmask.measures.measure import MeasureRequest, Need
from dpmask.measures.utility import summary
from dpmask.measures.utility.shared_passes import shared_measures

SHARED = tuple(shared_measures())


def test_nothing_depends_on_partitions(partitions):
    frame, masked = table(6000)
    columns = list(frame)
    alone = dpmask.utility.summarise(frame, masked, columns=columns)
    found = dpmask.utility.summarise(in_parts(frame, partitions), in_parts(masked, partitions), columns=columns)
    assert list(found) == list(alone) == list(SHARED)
    for name in SHARED:
        assert found[name].value == pytest.approx(alone[name].value, rel=1e-9, abs=1e-12), name
        assert found[name].parts == pytest.approx(dict(alone[name].parts), rel=1e-9, abs=1e-12), name
    for name in ("kolmogorov_smirnov", "total_variation", "hellinger"):
        assert found[name].parts == alone[name].parts  # counts are exact
    same = dpmask.utility.propensity(
        in_parts(frame, partitions), in_parts(masked, partitions), columns=columns, sample=500
    )
    assert same.to_dict() == dpmask.utility.propensity(frame, masked, columns=columns, sample=500).to_dict()


def test_the_embedded_scheduler_gives_the_same(tmp_path):
    frame, masked = table(500)
    with dask.config.set(scheduler="synchronous"):
        one = dpmask.utility.probabilistic_information_loss(in_parts(frame, 3), in_parts(masked, 3), columns=NUMBERS)
    assert one == PIL(in_parts(frame, 3), in_parts(masked, 3), columns=NUMBERS)


def test_passes_are_shared(tmp_path, limit):
    """Three passes for all; a measure alone makes those it needs, over each table by itself."""
    small_samples(limit)
    write_lake(tmp_path / "lake", people(3000), row_group_size=300)
    lake = dpmask.read_lake(tmp_path / "lake", block_rows=400)
    masked = lake.masked_by(dpmask.NoiseAddition(columns=["income", "age"], scale=0.1).fit(lake, seed=1))
    columns = ["income", "age", "region"]
    found, labels = passes_of(lambda: dict(dpmask.utility.summarise(lake, masked, columns=columns)))
    assert len(labels) == 3
    made = {
        "probabilistic_information_loss": 3,
        "kolmogorov_smirnov": 2,
        "moments": 1,
        "correlations": 1,
        "total_variation": 3,
    }
    for name, passes in made.items():
        own, labels = passes_of(lambda name=name: getattr(dpmask.utility, name)(lake, masked, columns=columns[:2]))
        assert len(labels) == 2 * passes, name
        if name != "total_variation":
            assert own.parts == pytest.approx(dict(found[name].parts), rel=1e-12)
    _, labels = passes_of(lambda: dpmask.utility.hellinger(lake, masked, columns=["region", "member", "born"]))
    assert len(labels) == 2


def test_what_is_too_much_to_gather_is_counted_in_a_fourth_pass(tmp_path, limit):
    small_samples(limit)
    write_lake(tmp_path / "lake", people(3000), row_group_size=300)
    lake = dpmask.read_lake(tmp_path / "lake", block_rows=400)
    masked = lake.masked_by(dpmask.NoiseAddition(columns=["income", "age"], scale=0.1).fit(lake, seed=1))
    measure = partial(dpmask.utility.summarise, lake, masked, columns=["income", "age", "region"])
    expected, labels = passes_of(lambda: dict(measure()))
    limit(gathered_values=0)
    found, more = passes_of(lambda: dict(measure()))
    assert (len(labels), len(more)) == (3, 4)
    assert found == expected


def test_exact_quantiles_at_any_sample(limit):
    frame, masked = table(3000)
    expected = dict(dpmask.utility.summarise(frame, masked, columns=NUMBERS))
    limit(quantile_sample=3, quantile_values=50)
    found = dpmask.utility.summarise(in_parts(frame, 4), in_parts(masked, 4), columns=NUMBERS)
    for name in ("probabilistic_information_loss", "total_variation"):
        assert found[name].parts == pytest.approx(dict(expected[name].parts), rel=1e-9)
    numbers = [frame[name].dropna().sort_values().to_numpy() for name in NUMBERS]
    seen = summary.summarised(frame, masked, NUMBERS, Need.BINS, "test")
    for column, quantiles in zip(numbers, seen.quantiles[0], strict=True):
        assert quantiles.tolist() == [column[(len(column) - 1) * j // 20] for j in range(1, 20)]


def test_tables_of_other_sizes_compare_without_pairs():
    frame, masked = table(2000)
    for name in [*SHARED[1:], "propensity"]:
        assert getattr(dpmask.utility, name)(frame, masked.iloc[:900], columns=NUMBERS).value > 0, name


def the_same_as_alone(frame, masked, columns):
    for name, found in dpmask.utility.summarise(frame, masked, columns=columns).items():
        alone = getattr(dpmask.utility, name)(frame, masked, columns=columns)
        assert found.to_dict() == alone.to_dict(), name


@pytest.mark.parametrize("cut", [lambda frame: frame, partial(in_parts, partitions=3)], ids=["pandas", "dask"])
def test_dropped_records_are_not_missing_values(cut, limit):
    """A masked table that lost records, and one that has other records instead: each measure is what it is alone."""
    small_samples(limit)
    frame, masked = table(2000)
    left = masked[frame["smooth"] < 1.5]
    the_same_as_alone(cut(frame), cut(left), NUMBERS)
    others = masked.set_axis(masked.index + 500)
    the_same_as_alone(cut(frame), cut(others), NUMBERS)
    both = [frame["smooth"] < 1.5, frame["smooth"] > 0.0]
    shares = [frame["région"][some].value_counts(normalize=True) for some in both]
    found = dpmask.utility.summarise(cut(frame), cut(frame[both[0]]), columns=["smooth", "région"])
    assert found["total_variation"].parts["région"] == pytest.approx(np.abs(shares[0] - shares[1]).sum() / 2)
    assert found["il1s"].value == 0.0


def asked(*measures, columns):
    return [MeasureRequest(f"my {name}", name, {"columns": columns}) for name in measures]


def test_losses_of_the_same_columns_share_passes_and_stay_the_same(tmp_path, limit):
    small_samples(limit)
    write_lake(tmp_path / "lake", people(3000), row_group_size=300)
    lake = dpmask.read_lake(tmp_path / "lake", block_rows=400)
    masked = lake.masked_by(dpmask.NoiseAddition(columns=["income", "age"], scale=0.1).fit(lake, seed=1))
    wanted = [
        *asked(*SHARED, columns=["income", "age"]),
        MeasureRequest("small", "probabilistic_information_loss", {"columns": ["income", "age"], "n_ref": 50}),
        *asked("propensity", columns=["income", "age"]),
    ]
    found, labels = passes_of(lambda: {name: take() for name, take in takers(lake, masked, wanted).items()})
    assert len(labels) == passes_counted(wanted, lake.schema) + 1 == 5  # propensity reads each table by itself
    for one in wanted:
        alone = getattr(dpmask.utility, one.measure)(lake, masked, **one.parameters)
        assert found[one.name] == alone, one.name
    both = asked("hellinger", "total_variation", "moments", columns=["income", "region"])
    take = takers(lake, masked, both)
    assert take["my hellinger"]() == dpmask.utility.hellinger(lake, masked, columns=["income", "region"])
    with pytest.raises(JobError, match="moments: column 'region' must be numeric"):
        take["my moments"]()
