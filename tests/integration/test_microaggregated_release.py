"""A job that microaggregates: what its release claims, what verify counts again, what a policy can refuse."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from servers import kill_a_worker

from dpmask.engine.progress import Watcher
from dpmask.job.run import run_job
from dpmask.release.manifest import data_path, identity_of, sealed

COLUMNS = ["net", "tax", "gross"]


def incomes(rows=600, seed=0):
    """Integers and decimals, three columns with a sum of each."""
    rng = np.random.default_rng(seed)
    gross = rng.lognormal(10, 0.8, rows).round()
    tax = (0.3 * gross * rng.random(rows)).round()
    return pa.table(
        {
            "id": np.arange(rows),
            "net": pa.array((gross - tax).astype("int64")),
            "tax": pa.array(tax.astype("int32")),
            "gross": pa.array(gross.astype("int64")),
            "paid": pa.array([f"{x / 100:.2f}" for x in gross]).cast(pa.decimal128(12, 2)),
            "rent": pa.array([f"{x / 200:.2f}" for x in gross]).cast(pa.decimal128(12, 2)),
            "all": pa.array([f"{x / 100 + x / 200:.2f}" for x in gross]).cast(pa.decimal128(14, 2)),
            "place": pa.array([["here", "there"][n % 2] for n in range(rows)]),
        }
    )


FUZZY = {
    "method": "fuzzy_microaggregation",
    "groups": [COLUMNS, ["paid", "rent", "all"]],
    "k": 5,
    "minimum_size": 5,
    "cell_size": 60,
    "constraints": ["net + tax = gross", "paid + rent = all", "net >= 0"],
}
JOB = {
    "columns": {
        "identifier": ["id"],
        "quasi": [],
        "sensitive": [*COLUMNS, "paid", "rent", "all"],
        "plain": ["place"],
    },
    "mask": [FUZZY],
    "policy": ["fuzzy_microaggregation.smallest >= 5", "fuzzy_microaggregation.below_k <= 0"],
    "block_rows": 100,
}


@pytest.fixture(scope="module")
def masked(once):
    once.lake(incomes())
    return once.run_once(**JOB)


@pytest.fixture
def released(place, masked):
    return place.copy_of(masked)


def test_every_released_record_holds_to_what_was_promised(released):
    manifest, table = released.released()
    frame = table.to_pandas()
    assert (frame.net + frame.tax == frame.gross).all()
    assert (frame.paid + frame.rent == frame["all"]).all(), "exactly, in decimals"
    for group in FUZZY["groups"]:
        assert frame.groupby(group).size().min() >= 5
    assert manifest["claims"] == [
        {"columns": COLUMNS, "smallest_group": 5, "constraints": ["net + tax = gross", "net >= 0"]},
        {"columns": ["paid", "rent", "all"], "smallest_group": 5, "constraints": ["paid + rent = all"]},
    ]
    assert "figures" not in json.dumps(manifest), "sizes of realised groups are the data holder's"
    assert released.dpmask("verify", "release").code == 0


def forged(place, table):
    """The release with other rows, and a manifest that fits its files."""
    root = place.folder / "release"
    manifest = json.loads((root / "manifest.json").read_text())
    for entry in manifest["files"]:
        (root / entry["path"]).unlink()
    path = root / "new.parquet"
    pq.write_table(table.replace_schema_metadata(None), path, store_schema=False)
    import hashlib

    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    old, manifest["release"] = manifest["release"], identity_of(manifest["run"], [digest])
    if old != manifest["release"]:
        (root / "report" / old).rename(root / "report" / manifest["release"])
    for entry in manifest["documents"]:
        named, entry["path"] = entry["path"], entry["path"].replace(old, manifest["release"])
        if (root / named).exists():  # beside the folder of the report
            (root / named).rename(root / entry["path"])
    name = data_path(manifest["release"], "part-00000.parquet")
    (root / name).parent.mkdir(parents=True)
    size = path.stat().st_size
    path.rename(root / name)
    manifest["files"] = [
        {
            "path": name,
            "rows": table.num_rows,
            "bytes": size,
            "sha256": digest,
            "nulls": dict.fromkeys(table.schema.names, 0),
        }
    ]
    manifest["schema"] = [
        column | {"type": str(table.schema.field(column["name"]).type)} for column in manifest["schema"]
    ]
    for name in ("sha256", "signature"):
        manifest.pop(name)
    (root / "manifest.json").write_bytes(sealed(manifest, None))


def test_verify_counts_groups_and_constraints_from_the_files(released):
    _, table = released.released()
    forged(released, table)
    assert released.dpmask("verify", "release").code == 0, "the same rows"
    net, gross = (table[name].to_numpy().copy() for name in ("net", "gross"))
    net[7] += 1
    gross[7] += 1
    alone = table.set_column(0, "net", pa.array(net)).set_column(2, "gross", pa.array(gross))
    forged(released, alone)
    ended = released.dpmask("verify", "release")
    assert ended.code == 4
    assert "claims that at least 5 records share each row of net, tax, gross, which is not so" in ended.err
    net[net == net[8]] += 2
    forged(released, table.set_column(0, "net", pa.array(net)))
    ended = released.dpmask("verify", "release")
    assert ended.code == 4
    assert "claims that every record satisfies 'net + tax = gross', which" in ended.err


def test_a_policy_on_group_sizes_refuses(place):
    place.lake(incomes())
    free = {name: value for name, value in FUZZY.items() if name != "minimum_size"}
    ended = place.run(**JOB | {"mask": [free]})
    assert ended.code == 3
    assert "fuzzy_microaggregation.smallest >= 5: it is 1" in ended.err
    assert not (place.folder / "release").exists()
    named = place.run(**JOB | {"mask": [free | {"as": "incomes"}], "policy": ["incomes.on_records <= 0.000001"]})
    assert named.code == 3


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"policy": ["fuzzy_microaggregation.size >= 5"]}, "fuzzy_microaggregation has no 'size'"),
        ({"policy": ["fuzzy.smallest >= 5"]}, "which the job does not measure. Known: consistency, fuzzy_"),
        ({"mask": [FUZZY | {"as": "il1s"}], "measure": [{"measure": "il1s", "columns": ["net"]}]}, "'il1s' names"),
        ({"mask": [FUZZY | {"k": 1}]}, "k must be an integer >= 2"),
        ({"mask": [FUZZY | {"constraints": ["net + place = gross"]}]}, "there is no column 'place'"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(place, changes, text):
    place.lake(incomes(200))
    ended = place.run(**JOB | changes)
    assert ended.code == 2
    assert text in ended.err
    assert "job.yaml: line" in ended.err or "constraint" in ended.err


def test_a_later_step_takes_the_claim_back(place):
    place.lake(incomes())
    noise = {"method": "noise", "columns": ["net"], "scale": 0.1}
    ended = place.run(**JOB | {"mask": [FUZZY, noise], "policy": []})
    assert ended.code == 0, ended.err
    manifest, _ = place.released()
    assert [claim["columns"] for claim in manifest["claims"]] == [["paid", "rent", "all"]]


def test_the_same_bytes_on_a_cluster_and_with_other_blocks_the_same_rows(released, cluster):
    ended = released.run("--scheduler", cluster.scheduler_address, **JOB | {"target": "again", "private": "p2"})
    assert ended.code == 0, ended.err
    assert released.bytes("again") == released.bytes()
    for blocks, target in ((100, "one"), (77, "two")):
        ended = released.run(**JOB | {"target": target, "private": "p3", "order": "input", "block_rows": blocks})
        assert ended.code == 0, ended.err
    assert released.released("one")[1].equals(released.released("two")[1])


def test_the_report_shows_sizes_and_plan_their_cost(released):
    planned = released.dpmask("plan", released.job(**JOB | {"target": "t2"}), "--json").json
    # content, three of the fit, mask, consistency, five of the gate, two of records, shuffle, verify
    assert planned["passes"] == 15
    (report,) = (released.folder / "private").glob("*/report.html")
    page = report.read_text(encoding="utf-8")
    assert "Groups of paid, rent, all" in page
    assert "How many groups have how many records" in page


@pytest.mark.machine
def test_after_a_worker_was_killed(released):
    from distributed import LocalCluster

    job, killed = released.job(**JOB | {"target": "again", "private": "p2"}), []
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:

        class Killer(Watcher):
            def passes(self, label, done, total):
                if "cells: fit" in label and done < total and not killed:
                    killed.append(label)
                    kill_a_worker(cluster)

        outcome = run_job(job, scheduler=cluster.scheduler_address, trial=True, watcher=Killer())
    assert outcome.status == "released", outcome
    assert killed
    assert released.bytes("again") == released.bytes()
