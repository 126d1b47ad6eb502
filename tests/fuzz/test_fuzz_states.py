"""Runs, kills, resumes, replacements and checks in any order: a manifest stands if and only if the release is whole.

Every command is a process of its own; one that dies is killed (SIGKILL), at a storage call or at any moment.
"""

import json
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest
import yaml
from apart import Apart, at_once, forked, killed_after, main_code
from conftest import people, write_lake
from fuzz_tools import COUNTS, bounded, counted, print_counts
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from open_gate import NO_LIMIT

from dpmask.lake.storage import Place

COLUMNS = ["age", "income"]
WRITES = ("bring_to", "write", "create", "replace", "remove")
"""What a run does to storage."""
LONGEST = 1.0
"""Seconds that a run takes, about."""
IN_A_RUN = (
    "dpmask.masking.noise",
    "dpmask.measures.risk.distance_linkage",
    "dpmask.measures.risk.noise_filter",
    "dpmask.measures.utility.consistency",
)
"""What a run imports on its way: half of its CPU, were it not there before."""


def killed_at(folder, left, after, *arguments):
    """The command line, killed before or after that change of the folder which comes after ``left`` others."""
    root, calls = Place(folder).path, [left]

    def dying(original):
        def method(place, *rest, **options):
            inside = any(isinstance(one, Place) and one.path.startswith(root) for one in (place, *rest))
            calls[0] -= inside
            if inside and calls[0] < 0:
                if after:
                    original(place, *rest, **options)
                os.kill(os.getpid(), signal.SIGKILL)
            return original(place, *rest, **options)

        return method

    for name in WRITES:
        setattr(Place, name, dying(getattr(Place, name)))
    return main_code(*arguments)


def joined_at_the_manifest(other, *arguments):
    """The command line; just before it puts its manifest another one does all its work."""
    originals, seen = {name: getattr(Place, name) for name in ("create", "replace")}, []

    def joining(name):
        def method(place, *rest, **options):
            if not seen and place.path.endswith("manifest.json"):
                seen.append(main_code(*other))
            return originals[name](place, *rest, **options)

        return method

    for name in originals:
        setattr(Place, name, joining(name))
    return main_code(*arguments)


class Releases(RuleBasedStateMachine):
    """A target, a private folder and two jobs that would publish there."""

    base: str | None = None
    apart: Apart

    @initialize()
    def start(self):
        self.folder = Path(tempfile.mkdtemp())
        write_lake(self.folder / "lake", people(60).select(COLUMNS), files=2)
        self.target = f"{self.base}/{self.folder.name}" if self.base else str(self.folder / "release")
        for number in range(2):
            step = {"method": "noise", "columns": COLUMNS, "scale": 0.1 + number}
            job = {
                "name": f"job {number}", "source": str(self.folder / "lake"), "target": self.target, "seed": 1, "block_rows": 20,
                "private": str(self.folder / "private"), "columns": {"sensitive": COLUMNS}, "mask": [step], "policy": NO_LIMIT,
            }  # fmt: skip
            (self.folder / f"{number}.yaml").write_text(yaml.safe_dump(job))

    def teardown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def arguments(self, job, *, overwrite=False, resume=False):
        options = ["--overwrite"] * overwrite + ["--resume"] * resume
        return ["run", str(self.folder / f"{job}.yaml"), "--trial", *options]

    def killed(self, ended):
        if ended.code == -signal.SIGKILL:
            COUNTS[f"runs that were killed, {self.where}"] += 1
        else:  # it had ended before
            counted("run", ended)

    @property
    def where(self):
        return "S3" if self.base else "local"

    @rule(job=st.integers(0, 1), overwrite=st.booleans(), resume=st.booleans())
    def run(self, job, overwrite, resume):
        ended = self.apart(forked, main_code, *self.arguments(job, overwrite=overwrite, resume=resume))
        code, text = counted("run", ended)
        assert code in {0, 2}, text[-500:]
        assert code == 0 or not overwrite, text[-500:]

    @rule(job=st.integers(0, 1), overwrite=st.booleans(), left=st.integers(0, 8), after=st.booleans())
    def kill_while_it_publishes(self, job, overwrite, left, after):
        arguments = self.arguments(job, overwrite=overwrite)
        self.killed(self.apart(forked, killed_at, self.target, left, after, *arguments))

    @rule(job=st.integers(0, 1), left=st.integers(0, 14), after=st.booleans())
    def kill_before_it_publishes(self, job, left, after):
        private, arguments = str(self.folder / "private"), self.arguments(job, overwrite=True)
        self.killed(self.apart(forked, killed_at, private, left, after, *arguments))

    @rule(job=st.integers(0, 1), overwrite=st.booleans(), resume=st.booleans(), share=st.floats(0, 1))
    def kill_at_any_moment(self, job, overwrite, resume, share):
        arguments = self.arguments(job, overwrite=overwrite, resume=resume)
        self.killed(self.apart(killed_after, share * LONGEST, main_code, *arguments))

    @rule(job=st.integers(0, 1))
    def second_run_at_the_manifest(self, job):
        """Just before a run puts its manifest the other one publishes, and replaces what it finds: one of them wins."""
        first, other = (self.arguments(one, overwrite=True) for one in (job, 1 - job))
        code, text = counted("run", self.apart(forked, joined_at_the_manifest, other, *first))
        assert code in {0, 2, 5}, text[-500:]

    @rule(jobs=st.sampled_from([(0, 0), (0, 1)]))
    def two_runs_at_once(self, jobs):
        """Two processes that replace what they find: one wins, or one after the other."""
        ended = self.apart(at_once, main_code, *(self.arguments(job, overwrite=True) for job in jobs))
        codes = [counted("run", one)[0] for one in ended]
        COUNTS[f"runs at once, {self.where}"] += 1
        assert 0 in codes, [one.text[-500:] for one in ended]
        assert set(codes) <= {0, 2, 5}, [one.text[-500:] for one in ended]

    @invariant()
    def a_manifest_stands_only_over_a_whole_release(self):
        if not hasattr(self, "target"):
            return
        manifest = Place(self.target) / "manifest.json"
        stands = manifest.exists()
        code, text = counted("verify", self.apart(forked, main_code, "verify", self.target))
        if not stands:
            assert code == 4
            return
        faults = [line for line in text.splitlines() if line.startswith("  ") and "a trial" not in line]
        leftovers = all(
            any(words in line for words in ("is not in the manifest", "more files", "or died here")) for line in faults
        )
        assert code == 0 or (faults and leftovers), text  # traces of a run that died, which the next one clears
        assert json.loads(manifest.read())["name"] in {"job 0", "job 1"}


@pytest.mark.parametrize(("function", "given", "words"), [(time.sleep, 600, "no end in 1 s"), (os._exit, 3, "died")])
def test_what_hangs_or_dies_fails_and_names_its_input(function, given, words):
    with pytest.raises(AssertionError, match=rf"{words}: {function.__name__} of \({given},\)"):
        Apart(patience=1.0)(function, given)


def machine(base, examples, steps):
    kind = type("Releases", (Releases,), {"base": base, "apart": Apart(*IN_A_RUN)})
    try:
        run_state_machine_as_test(
            kind, settings=settings(bounded(examples), stateful_step_count=steps, phases=[Phase.generate])
        )
    finally:
        kind.apart.end()


def test_a_local_target(capsys):
    machine(None, 6, 6)
    with capsys.disabled():
        print_counts()
    assert COUNTS["runs that were killed, local"] > 2


@pytest.mark.usefixtures("store")
def test_a_target_on_s3(s3, capsys):
    machine(s3, 4, 5)
    with capsys.disabled():
        print_counts()
    assert COUNTS["runs that were killed, S3"] > 0
