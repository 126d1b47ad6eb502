"""Some records of a table are the same however it is cut into blocks, and masked as they are in the whole."""

import pyarrow as pa
import pytest
from conftest import people, write_lake

import dpmask
from dpmask.table.sample_rows import sample_rows
from dpmask.table.table import as_table

COLUMNS = ["id", "age", "income"]


def read(table):
    blocks = [(block.first, table.reader(COLUMNS)(block.content, block)) for block in table.blocks]
    return [first for first, _ in blocks], pa.concat_tables(rows for _, rows in blocks)


@pytest.mark.parametrize("block_rows", [10**6, 700, 120, 50])
@pytest.mark.parametrize("row_group_size", [10**6, 333, 40])
def test_the_same_records_for_any_blocks(tmp_path, block_rows, row_group_size):
    table = people(5000)
    lake = dpmask.read_lake(
        str(write_lake(tmp_path / "lake", table, row_group_size=row_group_size)), block_rows=block_rows
    )
    _, rows = read(sample_rows(lake))
    expected = [start + n for start in range(500, 5000, 1000) for n in range(400)]
    assert rows["id"].to_pylist() == expected
    fitted = dpmask.NoiseAddition(columns=["age", "income"], scale=0.1).fit(lake, seed=1)
    _, masked = read(sample_rows(lake.masked_by(fitted)))
    _, whole = read(lake.masked_by(fitted))
    assert masked.to_pydict() == whole.take(expected).to_pydict()


@pytest.mark.parametrize("rows", [1, 7, 2000])
def test_few_records_are_all_there_once(rows):
    frame = people(rows).select(COLUMNS).to_pandas()
    assert read(sample_rows(as_table(frame, "test")))[1]["id"].to_pylist() == list(range(rows))


def test_of_a_frame():
    frame = people(2500).select(COLUMNS).to_pandas()
    _, rows = read(sample_rows(as_table(frame, "test")))
    assert rows["id"].to_pylist() == [start + n for start in range(100, 2500, 500) for n in range(400)]
