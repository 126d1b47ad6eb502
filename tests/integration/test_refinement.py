"""Refinement on a real cluster: the same refinements for any partitioning, also when a worker dies on the way."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from parts import in_parts, require_same_rows
from servers import kill_a_worker

import dpmask
from dpmask.engine.progress import listening

TREE = {"any": {"ab": ["a", "b"], "cd": {"c": None, "d": None}, "e": None}}


def table(rows=3000):
    rng = np.random.default_rng(5)
    age = rng.integers(0, 90, rows).astype(float)
    age[rng.random(rows) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "age": age,
            "kind": rng.choice([*"abcde", None], rows, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1]),
            "région": rng.choice(["x", "y", "z", "rare"], rows, p=[0.5, 0.3, 0.195, 0.005]),
            "born": pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 9000, rows), "D"),
            "weight": rng.random(rows) * 100,
            "class": np.where(np.nan_to_num(age) > 40, "old", "young"),
        }
    )


METHOD = dpmask.TopDownRefinement(
    requirements=[(["age", "kind", "région"], 12), (["région", "born"], 30), (["born"], 5)],
    taxonomies={"kind": TREE},
    domains={"age": [0, 100], "born": ["1950-01-01", "1980-01-01"]},
    guide={"column": "class"},
)


@pytest.fixture(scope="module")
def embedded():
    frame = table()
    fitted = METHOD.fit(frame, seed=1)
    return frame, fitted, fitted.mask(frame)


@pytest.mark.parametrize("partitions", [1, 20])
def test_refinements_do_not_depend_on_partitions(embedded, partitions, client):
    frame, expected, masked = embedded
    parts = in_parts(frame, partitions)
    found = METHOD.fit(parts, seed=1)
    assert found.steps == expected.steps
    assert found.cuts == expected.cuts
    assert found.figures == expected.figures
    columns = list(METHOD.masks)
    require_same_rows(found.mask(parts)[columns].compute(), masked[columns])


@pytest.mark.parametrize(
    ("partitions", "changed"),
    [(7, {"refinement_cells": 20}), (3, {"memory_share": 0.0})],
)
def test_nor_on_limits(embedded, partitions, changed, client, limit):
    """Rows exchanged by group on the cluster; blocks that do not fit in memory, coded again in every round."""
    frame, expected, _ = embedded
    limit(**changed)
    assert METHOD.fit(in_parts(frame, partitions), seed=1).steps == expected.steps


@pytest.mark.machine
def test_a_killed_worker_costs_time_only(embedded):
    """One of two workers is killed after the fourth round: its codes and groups are computed again. So with drops."""
    from distributed import Client, LocalCluster

    frame, expected, _ = embedded
    dropping = replace(METHOD, suppress_records=0.05)
    rounds = []
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):

        def killing(label, done, total):
            if not total and label.startswith("refinement "):
                rounds.append(label)
                if label.startswith("refinement 4:"):
                    kill_a_worker(cluster)

        with listening(killing):
            assert METHOD.fit(in_parts(frame, 7), seed=1).steps == expected.steps
            found = dropping.fit(in_parts(frame, 7), seed=1)
    for number in (4, 7):  # one search without drops, and two with: from the start on, and after one without
        assert sum(label.startswith(f"refinement {number}:") for label in rounds) == 3
    alone = dropping.fit(frame, seed=1)
    assert (found.steps, found.figures.dropped) == (alone.steps, alone.figures.dropped)


def test_requirements_hold(embedded):
    frame, fitted, masked = embedded
    for requirement in METHOD.requirements:
        assert masked.groupby(list(requirement.columns), dropna=False).size().min() >= requirement.k
    assert "*" in set(masked["région"])
    assert "rare" not in set(masked["région"])
    assert masked["weight"].equals(frame["weight"])
    assert list(fitted.labels(frame)[:3]) == [int(one == "young") for one in frame["class"][:3]]


def test_weights_are_no_people():
    """Ten records of a hundred each are ten people."""
    frame = table(10).assign(weight=100.0)
    with pytest.raises(dpmask.errors.InputError, match="10 records, fewer than k = 30"):
        METHOD.fit(frame, seed=1)


@pytest.mark.parametrize("algorithm", ["bisecting_kmeans", "kmeans", "fuzzy_c_means"])
def test_clusters_guide_the_same_way_everywhere(algorithm, client):
    method = dpmask.TopDownRefinement(
        requirements=[(["age", "kind"], 25)],
        taxonomies={"kind": TREE},
        domains={"age": [0, 100]},
        guide={"clusters": 3, "algorithm": algorithm, "columns": ["age", "kind", "weight"]},
    )
    frame = table()
    alone = method.fit(frame, seed=4)
    found = method.fit(in_parts(frame, 3), seed=4)
    assert [step[:2] for step in found.steps] == [step[:2] for step in alone.steps]
    assert [step.smallest for step in found.steps] == [step.smallest for step in alone.steps]
    assert set(alone.labels(frame)) == {0, 1, 2}


def test_agreement_of_partitions(embedded, client):
    frame, _, masked = embedded
    columns = ["age", "kind", "région"]
    measure = dpmask.utility.partition_agreement
    alone = measure(frame, masked, columns=columns, clusters=3)
    parts = measure(in_parts(frame, 7), in_parts(masked, 7), columns=columns, clusters=3)
    assert parts.table == alone.table
    assert 0.3 < alone.value <= alone.itself + 1e-12
    assert measure(frame, frame, columns=columns, clusters=3).value == 1.0
    assert measure(frame, masked, columns=columns, clusters=3, values="expected").value > 0.3
    assert measure(frame, masked, columns=columns, clusters=3, recluster="kmeans").value > 0.3
