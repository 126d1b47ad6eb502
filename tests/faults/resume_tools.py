"""What the tests of checkpoints share: jobs with every method and measure, and runs that stop before the end."""

import json

import pytest
from conftest import JOB, refinement_step

from dpmask.engine import checkpointed, collection, files
from dpmask.errors import StorageError
from dpmask.job import stages

NUMBERS = ["age", "income"]
FUZZY = {"method": "fuzzy_microaggregation", "columns": NUMBERS, "clusters": 5, "fuzziness": 1.4}
REFINEMENT = refinement_step(10, 5)
DROPPING = REFINEMENT | {"suppress_records": 0.1}
MASKS = {
    "noise": [JOB["mask"][0]],
    "few clusters": [FUZZY],
    "cells": [
        {"method": "microaggregation", "columns": NUMBERS, "k": 3, "cell_size": 100},
        {"method": "fuzzy_microaggregation", "columns": NUMBERS, "k": 3, "cell_size": 100},
    ],
    "refinement": [REFINEMENT],
    "dropped, then swapped": [DROPPING, {"method": "swapping", "columns": ["income"], "share": 0.5, "window": 0.1}],
    "dropped, then cells": [DROPPING, {"method": "microaggregation", "columns": ["income"], "k": 3, "cell_size": 100}],
    "transforms": [
        {"method": "membership_transform", "columns": NUMBERS, "function": "s"},
        {"method": "swapping", "columns": NUMBERS, "share": 0.5, "window": 0.1},
        {"method": "rotation", "columns": NUMBERS},
    ],
    "synthesis": [
        {"method": "regression_synthesis", "dependents": ["income"], "independents": ["age", "region"], "clusters": 2},
        {"method": "ipso", "variant": "C", "dependents": ["income"], "independents": ["age"]},
    ],
}
CELLS = MASKS["cells"]
MEASURES = [
    {"measure": name, "columns": NUMBERS}
    for name in (
        "il1s", "probabilistic_information_loss", "moments", "correlations", "kolmogorov_smirnov", "total_variation",
        "hellinger", "propensity", "distance_linkage", "interval_disclosure", "probabilistic_linkage", "known_records",
    )
]  # fmt: skip
MEASURES += [
    {"measure": "cluster_distance", "columns": NUMBERS, "clusters": 3},
    {"measure": "misclassification", "columns": NUMBERS, "clusters": 3},
    {"measure": "partition_agreement", "columns": NUMBERS, "clusters": 3},
    {"measure": "groups", "quasi": ["region", "member"]},
    {"measure": "attribute_inference", "columns": NUMBERS, "target": "member"},
]


def stopped(place, *options, **said):
    """Run a job until nothing is left to do but to publish."""

    def fail(*_):
        raise StorageError("not today")

    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(stages, "publish", fail)
        ended = place.run(*options, **said)
    assert ended.code == 5, ended.err
    assert "run it again with --resume" in ended.err
    return ended


def resumed(ended):
    return json.loads(ended.out)["resumed"]


def computing(monkeypatch):
    """The labels of the passes that are computed in this process from now on."""
    original, seen = collection.computed, []

    def counted(work, runs, label, *on_result):
        found = original(work, runs, label, *on_result)  # a rehearsal ends before its passes are computed
        seen.extend([label] * bool(runs))
        return found

    for module in (checkpointed, collection, files):
        monkeypatch.setattr(module, "computed", counted)
    return seen


def computed_before_publishing(computed):
    return [label for label in computed if not label.startswith(("verify", "publish"))]


def header(place):
    return next(place.folder.glob("private/*/checkpoint/header.json"))
