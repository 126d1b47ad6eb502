"""Keys bound to the content of a table: the same for any blocks, another for any other content."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import SECRET, people, write_lake

from dpmask import NoiseAddition, read_lake
from dpmask.engine.collection import itself
from dpmask.engine.draws import make_key
from dpmask.engine.tasks import Position
from dpmask.table.content import block_digests, bound_key, content_digests
from dpmask.table.table import as_table
from dpmask.testing.tables import in_partitions

KEY = make_key("test", seed=1).subkey("content")


def digest(frame, columns=None, key=KEY):
    return content_digests(as_table(frame, "test"), columns or list(frame.columns), key)[-1]


def test_the_digest_is_that_of_plain_cbc_mac():
    """Two records of one number and one text, worked out block by block."""
    from hashlib import blake2b

    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    frame = pd.DataFrame({"number": [3, -1], "text": ["a", "bc"]})
    total = 0
    for position, (number, text) in enumerate(zip(frame["number"], frame["text"], strict=True)):
        encipher = Cipher(algorithms.AES(KEY.secret), modes.CBC(bytes(16))).encryptor()
        blocks = [position.to_bytes(8, "little") + bytes(8), int(number).to_bytes(8, "little", signed=True) + bytes(8)]
        blocks.append(blake2b(text.encode(), digest_size=16).digest())
        total += int.from_bytes(encipher.update(b"".join(blocks))[-16:], "little")
    assert digest(frame) == total % 2**128


def test_blocks_files_and_types_do_not_matter(tmp_path):
    table = people(300)
    columns = ["age", "children", "income", "rate", "money", "name", "region", "member", "born", "seen"]
    lakes = [
        read_lake(str(write_lake(tmp_path / str(files), table, files, row_group_size=size)), block_rows=rows)
        for files, size, rows in ((1, 300, 1000), (4, 33, 50), (7, 20, 7))
    ]
    assert len({content_digests(lake, columns, KEY) for lake in lakes}) == 1
    frame = table.to_pandas()[["age", "children", "income"]]  # children are floats here
    assert digest(frame) == content_digests(lakes[0], list(frame.columns), KEY)[-1]
    assert digest(in_partitions(frame, 3)) == digest(frame)


CHANGES = {
    "the last digit of one value": lambda f: f.assign(
        income=f["income"].where(f.index != 7, np.nextafter(f["income"][7], 9e9))
    ),
    "a value that goes missing": lambda f: f.assign(income=f["income"].where(f.index != 7)),
    "a text": lambda f: f.assign(region=f["region"].where(f.index != 7, "west")),
    "a text that goes missing": lambda f: f.assign(region=f["region"].where(f.index != 7)),
    "two records exchanged": lambda f: f.iloc[[1, 0, *range(2, len(f))]],
    "two cells of a column exchanged": lambda f: f.assign(age=f["age"].iloc[[1, 0, *range(2, len(f))]].to_numpy()),
    "two columns exchanged": lambda f: f.assign(age=f["hours"], hours=f["age"]),
    "one record less": lambda f: f.iloc[:-1],
    "one record twice": lambda f: pd.concat([f, f.iloc[-1:]], ignore_index=True),
}


@pytest.mark.parametrize("change", CHANGES)
def test_any_change_gives_other_draws(change):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": np.arange(20.0, 70.0),
            "hours": rng.integers(71, 99, 50).astype(float),
            "income": rng.lognormal(9, 1, 50),
            "region": np.array(["north", "south"])[rng.integers(0, 2, 50)],
        }
    )
    changed = CHANGES[change](frame)
    assert digest(changed) != digest(frame)
    keys = {bound_key(KEY, as_table(one, "test"), list(frame.columns)) for one in (frame, changed, frame.copy())}
    assert len(keys) == 2
    assert all(key.bound for key in keys)


def test_zero_is_zero_and_missing_is_missing():
    one = pa.table({"x": pa.array([0.0, None, 2.0])})
    other = pd.DataFrame({"x": [-0.0, np.nan, 2]})
    assert digest(one.to_pandas()) == digest(other)


def test_the_digest_is_keyed():
    frame = pd.DataFrame({"x": [1.0, 2.0]})
    assert digest(frame) != digest(frame, key=KEY.subkey("other"))


def test_one_corrected_value_gives_all_records_other_noise():
    """The same key, method and rows: from Python, too, a value that is corrected leaves no noise in common."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"income": rng.lognormal(9, 1, 1000), "age": rng.integers(0, 100, 1000)})
    corrected = frame.assign(income=frame["income"].where(frame.index != 500, frame["income"][500] + 1))
    method = NoiseAddition(columns=["income", "age"], scale=0.5)
    noise = [method.fit(one, key=SECRET).mask(one)["income"] - one["income"] for one in (frame, corrected, frame)]
    assert noise[0].equals(noise[2])
    # 1000 pairs: five standard errors of a correlation of 0
    assert abs(np.corrcoef(noise[0], noise[1])[0, 1]) < 5 / np.sqrt(1000)


def test_tiles_of_a_block_make_no_difference():
    values = np.random.default_rng(0).normal(size=1000)
    values[::7], values[::11] = np.rint(values[::7]), np.nan
    frame = pd.DataFrame({"a": values, "b": values + 0.5})
    (rows,) = as_table(frame, "test").select(["a", "b"]).map(itself, "rows")
    found = [block_digests(KEY, ("a", "b"), rows, Position(0, 5), tile=tile) for tile in (64, 999, 1000, 1 << 14)]
    assert found == [found[0]] * 4
