"""Job files, Parquet of every type in every role, CSV in any dialect: the command line ends with a code, never with a bug."""

import datetime
import decimal
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from conftest import JOB, people, write_lake
from fuzz_tools import COUNTS, bounded, command, print_counts
from hypothesis import given
from hypothesis import strategies as st
from open_gate import NO_LIMIT
from test_fuzz_texts import PLAIN, TEXT

ROWS = 60
STEPS = st.fixed_dictionaries(
    {"method": st.sampled_from(["noise", "microaggregation", "swapping", "rotation", "membership_transform", "refinement", "x"])},
    optional={
        "columns": st.one_of(st.lists(st.sampled_from(["age", "income", "name", "x"]), max_size=3), PLAIN),
        "scale": PLAIN, "k": PLAIN, "share": PLAIN, "function": st.sampled_from(["s", "z", "x"]), "requirements": PLAIN, "as": PLAIN,
    },
)  # fmt: skip
CHANGES = st.dictionaries(
    st.sampled_from([*JOB, "accept", "policy", "measure", "publish", "order", "key", "more"]), PLAIN, max_size=2
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jobs")
    write_lake(folder / "lake", people(ROWS).select(["age", "income", "name"]), files=1)
    return folder


@bounded(120)
@given(CHANGES, st.lists(STEPS, max_size=2))
def test_job_files(folder, changes, steps):
    roles = {"quasi": ["age"], "sensitive": ["income"], "plain": ["name"]}
    job = JOB | {"columns": roles, "mask": steps or JOB["mask"], "policy": NO_LIMIT} | changes
    for name in ("source", "target", "private"):
        if name not in changes:
            job[name] = str(folder / JOB[name].replace("lake", "lake"))
        elif isinstance(job[name], str):
            job[name] = str(folder / "lake") if name == "source" else str(folder / "elsewhere" / name)
    (folder / "job.yaml").write_text(yaml.safe_dump(job, allow_unicode=True), encoding="utf-8")
    command("plan", folder / "job.yaml", "--trial")


def of_every_type():
    """A column of each Arrow type that Parquet can keep."""
    whole = [n % 7 for n in range(ROWS)]
    texts = ["abcd"[n % 4] for n in range(ROWS)]
    days = [datetime.date(2020, 1, 1 + n % 20) for n in range(ROWS)]
    kinds = [
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.uint8(),
        pa.uint16(),
        pa.uint32(),
        pa.uint64(),
        pa.float32(),
        pa.float64(),
    ]
    found = {str(kind): pa.array(whole, kind) for kind in kinds}
    found["half"] = pa.array(map(float, whole), pa.float32()).cast(pa.float16())
    found |= {
        str(kind): pa.array(map(decimal.Decimal, whole), kind)
        for kind in (pa.decimal32(5, 2), pa.decimal64(10, 2), pa.decimal128(12, 2), pa.decimal256(40, 2))
    }
    found |= {str(kind): pa.array(texts).cast(kind) for kind in (pa.string(), pa.large_string(), pa.string_view())}
    binary = pa.array([text.encode() for text in texts])
    found |= {str(kind): binary.cast(kind) for kind in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1))}
    found |= {
        "bool": pa.array([n % 2 == 0 for n in range(ROWS)]),
        "null": pa.nulls(ROWS),
        "duration": pa.array(whole, pa.duration("s")),
    }
    found |= {
        str(kind): pa.array(days).cast(kind)
        for kind in (pa.date32(), pa.date64(), pa.timestamp("ns"), pa.timestamp("us", tz="UTC"))
    }
    found |= {"time32": pa.array([datetime.time(n % 20) for n in range(ROWS)], pa.time32("s"))}
    lists = [[n] for n in whole]
    found |= {
        "list": pa.array(lists),
        "large_list": pa.array(lists, pa.large_list(pa.int64())),
        "list_view": pa.array(lists, pa.list_view(pa.int64())),
    }
    found |= {
        "struct": pa.array([{"a": n} for n in whole]),
        "map": pa.array([[("k", n)] for n in whole], pa.map_(pa.string(), pa.int64())),
    }
    found |= {
        "codes": pa.array(texts).dictionary_encode(),
        "whole codes": pa.array(whole).dictionary_encode(),
        "byte codes": binary.dictionary_encode(),
    }
    stored = pa.array([uuid.UUID(int=n).bytes for n in range(ROWS)], pa.binary(16))
    found["uuid"] = pa.ExtensionArray.from_storage(pa.uuid(), stored)
    found["json"] = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}"] * ROWS))
    found["bool8"] = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([n % 2 for n in range(ROWS)], pa.int8()))
    return found


@pytest.mark.parametrize("role", ["plain", "quasi", "sensitive", "weight", "identifier", "masked"])
def test_every_type_in_every_role(tmp_path, role):
    """Refused by plan, or released and verified; a few are refused later, with a code of their own, never as a bug."""
    late = []
    for number, (kind, values) in enumerate(of_every_type().items()):
        lake = tmp_path / str(number)
        lake.mkdir()
        pq.write_table(pa.table({"x": pa.array([float(n % 9) for n in range(ROWS)]), "c": values}), lake / "p.parquet")
        columns = {"sensitive": ["x"]}
        columns[role if role != "masked" else "sensitive"] = (
            ["c"] if role not in {"sensitive", "masked"} else ["x", "c"]
        )
        job = {
            "name": "types", "source": str(lake), "target": str(tmp_path / f"t{number}"), "private": str(tmp_path / f"p{number}"), "seed": 1,
            "columns": columns, "policy": NO_LIMIT,
            "mask": [{"method": "noise", "columns": ["x", "c"] if role == "masked" else ["x"], "scale": 0.1}],
        }  # fmt: skip
        path = tmp_path / "job.yaml"
        path.write_text(yaml.safe_dump(job))
        planned, _ = command("plan", path, "--trial")
        if planned == 3:
            path.write_text(yaml.safe_dump(job | {"accept": {"c": "invented people, made for a test"}}))
            planned, _ = command("plan", path, "--trial")
        if planned:
            continue
        ran, text = command("run", path, "--trial")
        if ran:
            late.append((kind, ran, text[-300:]))
        else:
            assert command("verify", tmp_path / f"t{number}")[0] == 0, kind
    assert [one for one in late if one[1] not in {3, 4}] == []


CELLS = st.one_of(
    TEXT,
    st.sampled_from(['"', '""', '"a', "a\nb", "1", "1.5", "01", "NA", "", "é", "\x00", "1e400", "2020-01-01", "'"]),
)


@bounded(60)
@given(
    st.lists(st.lists(CELLS, min_size=1, max_size=4), min_size=1, max_size=6),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"]),
)
def test_csv_dialects(tmp_path_factory, rows, separator, end, encoding):
    folder = tmp_path_factory.getbasetemp() / "csv"
    folder.mkdir(exist_ok=True)
    text = end.join(separator.join(row) for row in rows) + end
    (folder / "t.csv").write_bytes(text.encode(encoding, errors="replace"))
    job = JOB | {
        "source": str(folder / "t.csv"),
        "target": str(folder / "t"),
        "private": str(folder / "p"),
        "columns": {"plain": rows[0]},
    }
    (folder / "job.yaml").write_text(yaml.safe_dump(job, allow_unicode=True), encoding="utf-8")
    command("plan", folder / "job.yaml", "--trial")


def test_how_many_were_tried(capsys):
    """The last of the file: what was tried, and what came of it."""
    with capsys.disabled():
        print_counts()
    assert sum(COUNTS.values()) > 100
