"""One target for all machines, and a cache in which nothing stale or foreign is ever found."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dpmask
from dpmask.errors import ProcessorError
from dpmask.kernels import target
from dpmask.kernels.kernel_cache import delete_unused, stamp

PACKAGE = Path(dpmask.__file__).parent
NEEDED = dict.fromkeys(("avx2", "fma", "bmi", "bmi2", "f16c", "lzcnt", "movbe"), True)
TARGET = "from numba.core.registry import cpu_target; print(cpu_target.target_context.codegen().magic_tuple()[1:])"


def python(code, **environment):
    """A process with some variables set, or unset (None)."""
    mixed = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), **environment}
    mixed = {name: value for name, value in mixed.items() if value is not None}
    command = [sys.executable, "-c", code]
    options = {"cwd": mixed["PYTHONPATH"], "capture_output": True, "text": True, "timeout": 300}
    return subprocess.run(command, check=False, env=mixed, **options)


@pytest.mark.parametrize("host", [None, "skylake-avx512", "znver4"])
@pytest.mark.parametrize("first", ["", "import numba; "])
def test_the_target_is_the_same_whatever_the_machine(host, first):
    ended = python(f"{first}import dpmask.kernels.compile; {TARGET}", NUMBA_CPU_NAME=host, NUMBA_CPU_FEATURES=None)
    assert ended.stdout.strip() == str((target.TARGET, "")), ended.stderr


@pytest.mark.parametrize("features", [None, ""])
def test_a_process_that_compiled_for_another_target_is_refused(features):
    code = "import numba; numba.njit(lambda: 1)(); import dpmask.kernels.compile"
    ended = python(code, NUMBA_CPU_NAME="sandybridge", NUMBA_CPU_FEATURES=features)
    assert "ProcessorError: numba compiled something in this process before dpmask" in ended.stderr
    assert not python(code, NUMBA_CPU_NAME=target.TARGET, NUMBA_CPU_FEATURES="").stderr


def test_a_machine_without_avx2_is_refused(monkeypatch):
    monkeypatch.setattr(target, "TARGET", "x86-64-v3")
    target.require_processor(NEEDED)
    with pytest.raises(ProcessorError, match=r"needs an x86-64 processor with AVX2.*lacks avx2, lzcnt"):
        target.require_processor(NEEDED | {"avx2": False, "lzcnt": False})
    monkeypatch.setattr(target, "TARGET", "generic")
    target.require_processor({})


PART = """
from dpmask.kernels.compile import compiled

@compiled(part=True)
def part(x: float) -> float:
    return x + {added}
"""
KERNEL = """
from dpmask.kernels.compile import compiled
from dpmask.kernels.{part} import part

@compiled()
def kernel(x: float) -> float:
    return part(x)
"""


@pytest.fixture
def package(tmp_path):
    """A copy of the package with a kernel whose part is in another file."""
    shutil.copytree(PACKAGE, tmp_path / "dpmask", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "dpmask/kernels/a_part.py").write_text(PART.format(added=1))
    (tmp_path / "dpmask/kernels/a_kernel.py").write_text(KERNEL.format(part="a_part"))
    return tmp_path


CALL = "from dpmask.kernels.a_kernel import kernel; print(kernel(1.0), sum(kernel.stats.cache_hits.values()))"


def test_a_part_that_changed_is_compiled_again(package):
    def called():
        ended = python(CALL, PYTHONPATH=str(package))
        assert not ended.stderr
        value, found = ended.stdout.split()
        return value, found == "1"

    assert called() == ("2.0", False)
    assert called() == ("2.0", True), "found on disk"
    (package / "dpmask/kernels/a_part.py").write_text(PART.format(added=5))
    assert called() == ("6.0", False), "the kernel's own file did not change"
    for file in package.rglob("a_kernel.kernel-*"):
        file.write_bytes(b"broken")
    assert called() == ("6.0", False)
    assert called() == ("6.0", True), "what was broken is written anew"


def test_the_stamp_is_of_sources_versions_and_target(package, monkeypatch):
    sources = package / "dpmask/kernels"
    stamps = [stamp.__wrapped__(sources)]
    assert stamps[0] == stamp.__wrapped__(sources)
    (sources / "fuzzy/tiles.py").open("a").write("# another byte\n")
    stamps.append(stamp.__wrapped__(sources))
    for name, value in (("numba.__version__", "0"), ("llvmlite.__version__", "0"), ("numba.config.CPU_NAME", "znver4")):
        monkeypatch.setattr(name, value)
        stamps.append(stamp.__wrapped__(sources))
    assert len(set(stamps)) == 5


def test_types_have_files_of_their_own(package):
    code = "from dpmask.kernels.a_kernel import kernel; print(kernel(1.0), kernel(1))"
    assert python(code, PYTHONPATH=str(package)).stdout.split() == ["2.0", "2"]
    assert len(list(package.rglob("a_kernel.kernel-*"))) == 2
    assert python(code, PYTHONPATH=str(package)).stdout.split() == ["2.0", "2"]


WHERE = "from dpmask.kernels.kernel_cache import writable_folder; print(writable_folder())"


def test_the_cache_goes_to_the_first_folder_that_can_be_written(package, tmp_path):
    def where(**environment):
        environment = {"NUMBA_CACHE_DIR": None, "XDG_CACHE_HOME": None, "TMPDIR": str(tmp_path / "tmp"), **environment}
        ended = python(WHERE, PYTHONPATH=str(package), PYTHONDONTWRITEBYTECODE="1", **environment)
        assert not ended.stderr
        return Path(ended.stdout.strip()).parent

    (tmp_path / "tmp").mkdir()
    beside, home = package / "dpmask/kernels/__pycache__", tmp_path / "home"
    assert where(HOME=str(home), NUMBA_CACHE_DIR=str(tmp_path / "named")) == tmp_path / "named"
    assert where(HOME=str(home)) == beside
    shutil.rmtree(beside)
    beside.write_text("a file: nothing can be written below it, not even by root")
    assert where(HOME=str(home)) == home / ".cache/dpmask"
    assert where(HOME=str(home), XDG_CACHE_HOME=str(tmp_path / "xdg")) == tmp_path / "xdg/dpmask"
    private = tmp_path / f"tmp/dpmask-{os.getuid()}"
    assert where(HOME=None) == private
    assert where(HOME=str(beside)) == private
    assert private.stat().st_mode & 0o077 == 0
    private.chmod(0o777)
    assert where(HOME=None) == Path(), "a folder that others can write to is not used, and nothing is kept"


def test_kernels_that_came_with_the_package_are_used_and_left_alone(package):
    """As those of a wheel for one platform, which were compiled where the package was elsewhere."""

    def called(number):
        code = f"from dpmask.kernels.a_kernel import kernel; print(kernel({number}), *kernel.stats.cache_hits.values())"
        ended = python(code, PYTHONPATH=str(package), NUMBA_CACHE_DIR=None)
        assert not ended.stderr
        return ended.stdout.split()

    def kept(folder):
        return sorted(file.name for file in folder.glob("kernels-*/*"))

    beside, shipped = package / "dpmask/kernels/__pycache__", package / "dpmask/kernels/compiled"
    assert called("1.0") == ["2.0"]
    shipped.mkdir()
    [folder] = beside.glob("kernels-*")
    folder.rename(shipped / folder.name)
    [came] = kept(shipped)
    assert str(package).encode() not in (shipped / folder.name / came).read_bytes()
    assert called("1.0") == ["2.0", "1"]
    assert called("1") == ["2"], "other types are compiled"
    assert len(kept(beside)) == 1, "and kept beside the package"
    assert kept(shipped) == [came]
    (package / "dpmask/kernels/a_part.py").write_text(PART.format(added=5))
    assert called("1.0") == ["6.0"], "what came is of another source"


def test_the_stamp_does_not_depend_on_what_is_imported_first():
    code = "from dpmask.kernels.kernel_cache import stamp; print(stamp())"
    stamps = {python(first + code, NUMBA_CPU_NAME=None).stdout for first in ("", "import dpmask.kernels.compile; ")}
    assert stamps == {f"{stamp()}\n"}


def test_kernels_that_nobody_used_for_a_month_are_deleted(tmp_path):
    def folder(name, days):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kernel").write_bytes(b"code")
        os.utime(tmp_path / name, (time.time() - days * 86400,) * 2)

    folder(f"kernels-{stamp()}", 400)
    folder("kernels-" + "1" * 20, 31)
    folder("kernels-" + "2" * 20, 29)
    folder("kernels-by-hand", 400)
    folder("elsewhere", 400)
    (tmp_path / ("kernels-" + "3" * 20)).symlink_to(tmp_path / "elsewhere")
    os.utime(tmp_path / ("kernels-" + "3" * 20), (0, 0), follow_symlinks=False)
    delete_unused(tmp_path)
    kept = {f"kernels-{stamp()}", "kernels-" + "2" * 20, "kernels-by-hand", "elsewhere", "kernels-" + "3" * 20}
    assert {one.name for one in tmp_path.iterdir()} == kept
    assert (tmp_path / "elsewhere" / "kernel").exists()


def test_a_kernel_that_is_found_is_noted_as_used(package):
    assert python(CALL, PYTHONPATH=str(package)).stdout.split()[0] == "2.0"
    [folder] = package.rglob("kernels-*")
    os.utime(folder, (0, 0))
    assert python(CALL, PYTHONPATH=str(package)).stdout.split()[1] == "1"
    assert time.time() - folder.stat().st_mtime < 3600
