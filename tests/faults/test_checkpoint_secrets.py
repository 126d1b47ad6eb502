"""What a checkpoint shows to who lacks the key, and what it lets in: no value of a record, no key, no code."""

import os
import zlib

import pytest
from conftest import SECRET, people
from fault_tools import cli
from resume_tools import CELLS, FUZZY, MASKS, MEASURES, header, stopped

from dpmask.engine import journal as checkpoint
from dpmask.job.checkpoint import _SEGMENT, _Seal
from dpmask.kernels.order.float_order import order_keys


@pytest.fixture
def sealed(monkeypatch):
    """What is put into checkpoints, before it is encrypted."""
    bodies, closed = [], _Seal.closed

    def noted(self, name, body):
        bodies.append(zlib.decompress(body) if _SEGMENT.fullmatch(name) else body)
        return closed(self, name, body)

    monkeypatch.setattr(_Seal, "closed", noted)
    return bodies


def test_no_value_of_a_record_in_a_checkpoint(place, sealed, monkeypatch):
    """Passes that sample or order records bring values of them to the driver; who lacks the key finds none."""
    monkeypatch.setenv("DPMASK_TEST_KEY", SECRET)
    table = people(999)
    place.lake(table)
    stopped(place, seed=None, key="env:DPMASK_TEST_KEY", mask=[*MASKS["transforms"][1:2], *CELLS], measure=MEASURES[:8])
    incomes = table["income"].to_numpy()
    forms = [form for one in (incomes, order_keys(incomes)) for form in one.view("V8").tolist()]
    forms += [str(income).encode() for income in incomes]
    inside = b"".join(sealed)
    assert sum(form in inside for form in forms) > len(incomes) // 2, "they are there for who has the key"
    files = [path.read_bytes() for path in place.folder.glob("private/*/checkpoint/**/*") if path.is_file()]
    assert len(files) > 2
    for data in files:
        assert not [form for form in forms if form in data]
        for start in range(min(64, len(data))):  # nor is it merely packed
            with pytest.raises(zlib.error):
                zlib.decompress(data[start:])


def test_a_checkpoint_is_for_its_owner_only(place):
    """Whatever the umask: its files, and what is staged and paired so far."""
    place.lake(people(999))
    mask = os.umask(0o000)
    try:
        stopped(place, measure=MEASURES[:1])
    finally:
        os.umask(mask)
    for folder in ("checkpoint", "pairing"):
        files = [path for path in place.folder.glob(f"private/*/{folder}/**/*") if path.is_file()]
        assert files, folder
        assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert place.folder.joinpath("private").stat().st_mode & 0o777 == 0o700


def test_no_key_in_a_checkpoint(place, sealed, monkeypatch):
    """Neither the secret nor what is made of it."""
    from dpmask.engine.draws import Subkey, make_key

    secrets, subkey = [make_key("x", key=SECRET).secret, SECRET.encode()], Subkey.subkey

    def noted(self, purpose):
        made = subkey(self, purpose)
        secrets.append(made.secret)
        return made

    monkeypatch.setattr(Subkey, "subkey", noted)
    monkeypatch.setenv("DPMASK_TEST_KEY", SECRET)
    place.lake()
    stopped(place, seed=None, key="env:DPMASK_TEST_KEY", mask=[FUZZY, *CELLS])
    found = b"".join(sealed) + header(place).read_bytes()
    assert b"part-00001.parquet" in found
    assert len(secrets) > 5
    for secret in secrets:
        assert secret not in found
        assert secret.hex().encode() not in found


def test_a_forged_entry_runs_nothing(tmp_path):
    """A checkpoint made with a known seed may be anything: only records and arrays are let in."""
    import os
    import pickle

    class Forged:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    for forged in (Forged(), [cli], {"a": len}, checkpoint.through_journal):
        with pytest.raises(pickle.UnpicklingError, match="has no place in a journal"):
            checkpoint.loads(pickle.dumps(forged))
    assert not (tmp_path / "made").exists()
