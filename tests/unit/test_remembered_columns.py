"""A block whose columns stay in memory: read once in a process, never sent to another one."""

import pickle

import pyarrow as pa

from dpmask.lake.reading import RememberedColumns
from dpmask.table.keyed_sample import StoredRows

ROWS = pa.table({"age": [1, 2, None], "town": pa.array(["x", "y", "x"]).dictionary_encode(), "net": [0.5, 1.5, 2.5]})


class CountedBlock(StoredRows):
    """The rows, and what was asked of them."""

    asked = ()

    def read(self, columns):
        CountedBlock.asked += (tuple(columns),)
        return super().read(columns)


def test_each_column_is_read_once_and_is_what_was_stored():
    CountedBlock.asked = ()
    block = RememberedColumns(CountedBlock(ROWS))
    for columns in (["net"], ["town", "net"], ["net", "age"], ["age", "town"]):
        assert block.read(columns).equals(ROWS.select(columns))
    assert CountedBlock.asked == (("net",), ("town",), ("age",))
    assert block.read([]).num_rows == 3


def test_another_process_reads_by_itself():
    block = RememberedColumns(CountedBlock(ROWS))
    block.read(["age"])
    CountedBlock.asked = ()
    other = pickle.loads(pickle.dumps(block))
    assert other.read(["age"]).equals(ROWS.select(["age"]))
    assert CountedBlock.asked == (("age",),)
