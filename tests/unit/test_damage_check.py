"""Staged pieces are checked before a resumed run takes them."""

import numpy as np
import pyarrow as pa
import pytest

from dpmask.lake.reading import join_pieces
from dpmask.lake.storage import Place
from dpmask.lake.writing import DamageCheck, write_pieces
from dpmask.release.folder import undamaged

ROWS = pa.table({"a": np.arange(1000.0), "b": np.arange(1000)})


def digest(*parts):
    check = DamageCheck()
    for part in parts:
        check.update(part)
    return check.hexdigest()


def test_the_same_bytes_in_any_parts():
    data = bytes(range(256)) * 40
    assert digest(data) == digest(data[:1001], memoryview(data)[1001:]) == digest(pa.py_buffer(data))
    assert digest(data) != digest(data[:-1])
    assert digest(data) != digest(data[::-1])


def test_pieces_are_there_as_they_were(tmp_path):
    place = Place(str(tmp_path / "block.arrow"))
    written = write_pieces(ROWS, [400, 600], place)
    assert undamaged(place, written.digest)
    assert join_pieces([place.full_url], 1).column("b").to_pylist() == list(range(400, 1000))


@pytest.mark.parametrize("damage", ["bit", "cut", "empty", "gone"])
def test_damage_is_found(tmp_path, damage):
    path = tmp_path / "block.arrow"
    written = write_pieces(ROWS, [400, 600], Place(str(path)))
    data = bytearray(path.read_bytes())
    data[5000] ^= 1
    path.write_bytes({"bit": data, "cut": data[:4000]}.get(damage, b""))
    if damage == "gone":
        path.unlink()
    assert not undamaged(Place(str(path)), written.digest)
