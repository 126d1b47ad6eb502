"""The same bits whatever processors the environment speaks of; tests/other_processors.py compares all there is."""

import os
import subprocess
import sys

from other_processors import OTHERS, ROOT, machine_code, python, released


def test_machine_code_is_the_same_on_hosts_with_and_without_avx_512():
    """What runs follows from the target only, byte for byte, whichever processor compiles it."""
    names = ("histogram", "starts", "rotation")
    made = [machine_code(names, host) for host in OTHERS.values()]
    assert len(made[0]) == 3
    assert all(one == made[0] for one in made)


def test_a_ready_job_releases_the_same_bytes(tmp_path):
    lake = tmp_path / "lake"
    python("import sys; dpmask.cli.main(['generate', sys.argv[1], '--rows', '2e4'])", lake)
    own = released("household_income", lake, {})
    assert any(name.endswith(".parquet") for name in own)
    assert released("household_income", lake, OTHERS["without AVX2"]) == own


def test_the_environment_would_change_bits():
    """Of a process that is no command of ours: so these variables do stand for other processors."""
    code = "from dpmask.engine.cluster.same_workers import arithmetic; print(arithmetic())"
    own, other = ({**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_CORETYPE": one} for one in ("Haswell", "Nehalem"))
    found = [subprocess.check_output([sys.executable, "-c", code], env=one) for one in (own, other)]
    assert found[0] != found[1]
    assert python(code, OPENBLAS_CORETYPE="Nehalem").encode() == found[0]
