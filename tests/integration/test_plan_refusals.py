"""What a run refuses before it masks, or in its first passes, ``dpmask plan`` refuses with the same exit code."""

import numpy as np
import pyarrow as pa
import pytest

from dpmask.job.model import read_job

ROWS = 300
NUMBERS = ["income", "tax", "wealth"]
COLUMNS = {"plain": ["age", "sex", "region", *NUMBERS, "weight", "home"]}
KNOWN = {"quasi": ["age", "income"], "plain": ["sex", "region", "tax", "wealth", "weight", "home"]}
WEIGHTED = {"plain": ["age", "sex", "region", *NUMBERS, "home"], "weight": ["weight"]}
AT_HOME = {"plain": ["age", "sex", "region", *NUMBERS, "weight"], "household": ["home"]}


def table(**columns):
    rng = np.random.default_rng(5)
    income = np.exp(rng.normal(10, 0.5, ROWS))
    people = {
        "age": rng.integers(18, 90, ROWS),
        "sex": rng.choice(["f", "m"], ROWS),
        "region": rng.choice(["north", "south", "west"], ROWS),
        "income": income,
        "tax": income * 0.2 + rng.normal(0, 50, ROWS),
        "wealth": rng.gamma(2.0, 1e4, ROWS),
        "weight": rng.uniform(1, 9, ROWS),
        "home": rng.integers(0, 50, ROWS),
    }
    return pa.table(people | columns)


def one(name, value):
    """The table with one value that is another."""
    values = table()[name].to_pylist()
    values[7] = value
    return {name: pa.array(values)}


NULL, NAN, INFINITE = (one("income", value) for value in (None, float("nan"), float("inf")))
CONSTANT, EMPTY = {"income": np.full(ROWS, 3.0)}, {"income": pa.nulls(ROWS, pa.float64())}
NOISE = {"method": "noise", "columns": [*NUMBERS, "weight"], "scale": 0.3}
OTHERS = {"method": "noise", "columns": ["tax", "wealth", "weight"], "scale": 0.3}
IPSO = {"method": "ipso", "variant": "A", "dependents": ["tax"], "independents": ["income"]}
AGES = {"method": "refinement", "requirements": [{"columns": ["age"], "k": 10}], "domains": {"age": [0, 120]}}
MODELS = {"method": "regression_synthesis", "dependents": ["income"], "independents": ["wealth"], "clusters": 2}


def micro(**more):
    return {"method": "microaggregation", "columns": NUMBERS, "k": 5, **more}


def refined(columns, **more):
    return {"method": "refinement", "requirements": [{"columns": columns, "k": 10}], **more}


def measured(measure, mask=OTHERS, **parameters):
    columns = {"columns": ["income", "wealth"]} | parameters
    return {"mask": [mask], "measure": [{"measure": measure, **columns}]}


CASES = {
    # name: (columns of the table that are others, the job, exit code)
    "gaps of few, microaggregation": (NULL, {"mask": [micro()]}, 4),
    "not numbers, microaggregation": (NAN, {"mask": [micro(by=["region"])]}, 4),
    "not numbers, fuzzy": (NAN, {"mask": [micro(method="fuzzy_microaggregation", k=20)]}, 4),
    "not numbers, rotation": (NAN, {"mask": [{"method": "rotation", "columns": NUMBERS}]}, 4),
    "not numbers, ipso": (NAN, {"mask": [IPSO]}, 4),
    "not numbers, models": (NAN, {"mask": [MODELS]}, 4),
    "not numbers, clusters": (NAN, measured("cluster_distance", clusters=3), 4),
    "infinite, microaggregation": (INFINITE, {"mask": [micro()]}, 4),
    "infinite, ipso": (INFINITE, {"mask": [IPSO]}, 4),
    "infinite, refinement": (INFINITE, {"mask": [refined(["income"], domains={"income": [0, 1e9]})]}, 4),
    "infinite, totals": (INFINITE, measured("totals"), 4),
    "infinite, tails": (INFINITE, measured("tails"), 4),
    "infinite, propensity": (INFINITE, measured("propensity"), 4),
    "infinite, linkage": (INFINITE, measured("distance_linkage"), 4),
    "infinite, inference": (INFINITE, measured("attribute_inference", target="tax"), 4),
    "constant, models": (CONSTANT, {"mask": [MODELS]}, 4),
    "constant, k-means": (CONSTANT, measured("misclassification", clusters=3), 4),
    "empty, fuzzy": (EMPTY, {"mask": [micro(method="fuzzy_microaggregation", k=20)]}, 4),
    "empty, Hellinger": (EMPTY, measured("hellinger"), 4),
    "empty, rank linkage": (EMPTY, measured("rank_linkage", window=0.1), 4),
    "negative weights, totals": (one("weight", -1.0), measured("totals", micro()) | {"columns": WEIGHTED}, 4),
    "no weight, moments": (one("weight", None), measured("moments", micro()) | {"columns": WEIGHTED}, 4),
    "negative weights by noise": (
        {},
        measured("moments", NOISE | {"scale": 3.0, "bounds": {"weight": [None, 100]}}) | {"columns": WEIGHTED},
        4,
    ),
    "gaps of too few, with zeros": (
        {"income": pa.array([None] * 3 + [float(n % 10) for n in range(3, ROWS)])},
        {"mask": [micro(columns=["income"])]},
        4,
    ),
    "weights of groups": (one("weight", -1.0), {"mask": [micro(weight="weight")], "columns": WEIGHTED}, 4),
    "outside the domain": ({}, {"mask": [refined(["age"], domains={"age": [30, 60]})]}, 4),
    "not in the taxonomy": ({}, {"mask": [refined(["sex"], taxonomies={"sex": {"any": {"f": {}, "x": {}}}})]}, 4),
    "outside the bounds": ({}, {"mask": [NOISE | {"bounds": {"income": [0, 20000]}}]}, 4),
    "no household": (
        one("home", None),
        {
            "mask": [
                refined(["age"], domains={"age": [0, 120]})
                | {"requirements": [{"columns": ["age"], "k": 5, "of": "households"}]}
            ],
            "columns": AT_HOME,
        },
        4,
    ),
    "households that differ": ({}, {"mask": [micro(of="households")], "columns": AT_HOME}, 4),
    "rows that are alike": ({}, {"mask": [NOISE], "where": "tax = 3"}, 4),
    "too many clusters": ({}, measured("partition_agreement", clusters=5000), 4),
    "too large models": ({}, {"mask": [MODELS | {"minimum_size": 5000}]}, 4),
    "k above the rows": ({}, {"mask": [micro(k=5000)]}, 4),
    "no point": ({}, {"mask": [micro(method="fuzzy_microaggregation", constraints=["tax <= 1", "tax >= 2"])]}, 2),
    "a narrow window": ({}, {"mask": [{"method": "swapping", "columns": ["income"], "window": 0.0001}]}, 4),
    "beyond a deviation": ({"income": np.linspace(1, 2, ROWS) * 1e307}, {"mask": [NOISE]}, 4),
    "no shares": ({"tax": -np.arange(1.0, ROWS + 1)}, measured("tails", columns=["tax"]), 4),
    "small domains": ({}, measured("totals", by=["region"], fewest=5000), 4),
    "no common records": (
        {
            "income": pa.array([None if n % 2 else float(n) for n in range(ROWS)]),
            "tax": pa.array([float(n) if n % 2 else None for n in range(ROWS)]),
        },
        measured("correlations", NOISE | {"columns": ["wealth"]}, columns=["income", "tax"]),
        4,
    ),
    "dropped and measured": (
        {},
        measured("il1s")
        | {"columns": {**COLUMNS, "plain": COLUMNS["plain"][:-3], "drop": ["weight", "home", "wealth"]}},
        2,
    ),
    # what an earlier step changes, labels, and records that are dropped
    "gaps after noise": (NAN, {"mask": [OTHERS, micro(method="fuzzy_microaggregation", k=20)]}, 4),
    "constant after groups": (CONSTANT, {"mask": [micro(), {"method": "rotation", "columns": NUMBERS}]}, 4),
    "labels are no numbers": ({}, measured("il1s", AGES, columns=["age"]), 2),
    "infinite beside labels": (INFINITE, measured("distance_linkage", AGES, columns=["age", "income"]), 4),
    "infinite and not dropped": (INFINITE, measured("totals", AGES | {"suppress_records": 0.1}), 4),
    "small domains of labels": ({}, measured("totals", AGES, by=["age"]), 4),
    "infinite, the gate": (INFINITE, {"mask": [AGES], "columns": KNOWN}, 4),
    "unique in all blocks": ({"home": np.arange(ROWS)}, {"mask": [NOISE], "accept": {}, "block_rows": 100}, 3),
}


@pytest.mark.parametrize("case", CASES)
def test_a_plan_refuses_what_a_run_refuses(place, case):
    columns, job, code = CASES[case]
    place.lake(table(**columns), files=2)
    job = {"columns": COLUMNS, "block_rows": 1000} | job
    ran = place.run(**job)
    assert ran.code == code, ran.err
    planned = place.dpmask("plan", "job.yaml")
    assert planned.code == code, planned.err


@pytest.mark.parametrize("measure", ["totals", "tails", "hellinger", "correlations", "distance_linkage", "propensity"])
def test_what_a_run_takes_a_plan_takes(place, measure):
    place.lake(table(**NULL), files=2)
    job = {"columns": WEIGHTED, "block_rows": 100} | measured(measure, NOISE)
    assert place.dpmask("plan", place.job(**job)).code == 0


def test_noise_makes_no_weight_negative(place):
    """Weights are reflected at zero unless the job says otherwise; with much noise, a plan takes what a run does."""
    place.lake(table(), files=2)
    job = place.job(columns=WEIGHTED, **measured("moments", NOISE | {"scale": 3.0}), block_rows=1000)
    assert place.dpmask("plan", job).code == 0
    noise = read_job(str(place.folder / job)).methods[0]
    assert noise.bounds == {"weight": (0, None)}
    assert (noise.fit(table().to_pandas(), seed=1).mask(table().to_pandas())["weight"] >= 0).all()


def test_rows_that_a_filter_leaves_out_take_memory(place):
    place.lake(pa.concat_tables([table()] * 200), files=1)
    taken = []
    for where in (None, "age >= 80"):
        job = place.job(columns=COLUMNS, mask=[NOISE], where=where, block_rows=60000)
        taken.append(place.dpmask("plan", job))
    blocks, memory = zip(*(_numbers(one.out) for one in taken), strict=True)
    assert blocks[0] == blocks[1] == 1
    assert memory[1] > memory[0] / 6


def _numbers(text):
    """Blocks, and MB for each thread."""
    return int(text.split("(partitions): ")[1].split(",")[0]), int(text.split("up to ")[1].split(" MB")[0])
