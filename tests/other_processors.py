"""The same bits whatever processors the environment speaks of: of kernels, compiled there or not, and of ready jobs.

python tests/other_processors.py

compares all kernels and all ready jobs, which takes some minutes; tests/integration/test_other_processors.py a part.
"""

import hashlib
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
JOBS = sorted(path.parent.name for path in ROOT.glob("jobs/*/job.yaml"))
OTHERS = {
    "with AVX-512": {"NUMBA_CPU_NAME": "skylake-avx512", "NUMBA_CPU_FEATURES": "+avx512f,+avx512vl,+avx512dq"},
    "of another make": {"NUMBA_CPU_NAME": "znver4", "OPENBLAS_CORETYPE": "Nehalem", "ARROW_USER_SIMD_LEVEL": "NONE"},
    "without AVX2": {
        "NUMBA_CPU_NAME": "sandybridge",
        "OPENBLAS_CORETYPE": "Sandybridge",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3",
    },
}
"""What a process is started with. Where a processor lacks AVX-512 itself, its absence in numpy and BLAS stands for it."""


def python(code, *arguments, first="", **environment):
    """What a process prints, which may import others first."""
    places = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/unit")]
    own = {"PYTHONPATH": os.pathsep.join(places), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", f"{first}\nimport dpmask.cli\n{code}", *map(str, arguments)]
    ended = subprocess.run(command, check=False, env=os.environ | own | environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def digest(content):
    return hashlib.sha256(content).hexdigest()[:16]


def machine_code(names, host):
    """The machine code of some kernels' tasks, or of all, compiled in a process that begins with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        code = (
            "import sys; from dpmask.kernels.warm_up import all_tasks\n"
            "for task in all_tasks():\n    if task.name in sys.argv[1:] or not sys.argv[1:]: task.run()"
        )
        python(code, *names, NUMBA_CACHE_DIR=cache, **host)
        return {file.name: digest(_code(file)) for file in Path(cache).glob("kernels-*/*")}


def _code(file):
    [code] = [
        one[2][0] for one in pickle.loads(file.read_bytes()) if isinstance(one, tuple) and one[1:2] == ("object",)
    ]
    return code


def computed(cases, numbers):
    """What kernels make of their numbers."""
    return {name: digest(numbers(kernel(*given))) for name, (kernel, *given) in cases.items()}


_COMPUTED = """
from other_processors import computed
from test_same_bits import CASES, numbers
for pair in computed(CASES, numbers).items(): print(*pair, sep="\\t")
"""


def computed_on(host):
    """The same for all cases of tests/unit/test_same_bits.py, in a process of its own."""
    return dict(line.split("\t") for line in python(_COMPUTED, **host).splitlines())


def released(job, lake, host):
    """The files of a ready job's trial."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "lake").symlink_to(lake)
        (place / "units").symlink_to(lake.with_name("units"))
        (place / "jobs").symlink_to(ROOT / "jobs")
        code = f"import os; os.chdir({folder!r}); dpmask.cli.main(['run', '--trial', 'jobs/{job}/job.yaml'])"
        python(code, **host)
        found = [file for file in place.rglob("out/**/release/**/*") if file.is_file()]
        return {str(file.relative_to(place)): digest(file.read_bytes()) for file in found}


def main():
    with tempfile.TemporaryDirectory() as folder:
        lake = Path(folder) / "lake"
        for some, kind, rows in ((lake, "census", "2e4"), (lake.with_name("units"), "tax_units", "1e5")):
            python("import sys; dpmask.cli.main(['generate', *sys.argv[1:]])", some, "--kind", kind, "--rows", rows)
        checks = {"machine code": lambda host: machine_code((), host), "kernels": computed_on}
        checks |= {job: lambda host, job=job: released(job, lake, host) for job in JOBS}
        for name, check in checks.items():
            own = check({})
            for host, environment in OTHERS.items():
                found = check(environment)
                other = sorted(one for one in own.keys() | found.keys() if own.get(one) != found.get(one))
                print(
                    f"{name}: {len(own)} on a machine {host} {'the same' if not other else f'OTHERS: {other}'}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
