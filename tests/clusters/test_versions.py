"""Workers with other libraries are found at the start and named."""

import pytest
from servers import dask_cluster

ABSENT = """
from importlib import metadata

pytestmark = pytest.mark.machine
found = metadata.version
def version(name):
    if name == "dpmask":
        raise metadata.PackageNotFoundError(name)
    return found(name)
metadata.version = version
"""
OTHER = {
    "another version": (
        "scipy-0.0.1.dist-info/METADATA",
        "Metadata-Version: 2.1\nName: scipy\nVersion: 0.0.1\n",
        "has scipy 0.0.1, this process has",
    ),
    "none at all": ("sitecustomize.py", ABSENT, "has no dpmask, this process has"),
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("case", OTHER)
def test_a_worker_with_other_libraries(place, tmp_path, case):
    """A real worker that finds another installation of a package before the one it has."""
    name, content, told = OTHER[case]
    file = tmp_path / "shim" / name
    file.parent.mkdir(parents=True)
    file.write_text(content)
    place.lake()
    with dask_cluster(tmp_path, "--host", "127.0.0.1", worker_env={"PYTHONPATH": str(tmp_path / "shim")}) as address:
        ended = place.run("--scheduler", address)
    assert ended.code == 5
    assert "The worker at tcp://127.0.0.1:" in ended.err
    assert told in ended.err
    assert "Install the same on both." in ended.err
    assert not (place.folder / "release").exists()


@pytest.mark.timeout(120)
def test_a_worker_that_computes_other_bits(place, tmp_path):
    """BLAS for another processor, as on a machine with AVX-512 that nobody told otherwise."""
    place.lake()
    with dask_cluster(tmp_path, "--host", "127.0.0.1", worker_env={"OPENBLAS_CORETYPE": "Nehalem"}) as address:
        ended = place.run("--scheduler", address)
    assert ended.code == 5
    assert "computes other last bits than this process" in ended.err
    assert not (place.folder / "release").exists()
