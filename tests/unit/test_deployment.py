"""The image, the compose file and the manifests, as far as they can be checked without an engine.

tests/pipelines/run goes further: it takes the image's steps in an environment of its own.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
EXTRAS = ("s3", "dashboard")
"""What the image has beside dpmask itself."""


def run(tool, *arguments):
    ended = subprocess.run([BIN / tool, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_image_is_linted():
    run("hadolint", "docker/Dockerfile")


def test_the_compose_file_follows_its_schema():
    run("check-jsonschema", "--builtin-schema", "vendor.compose-spec", "docker/compose.yaml")


def test_the_cron_job_follows_its_schema():
    run("kubernetes-validate", "--strict", "jobs/pipelines/cronjob.yaml")


def test_the_image_is_small_in_rights():
    text = (ROOT / "docker" / "Dockerfile").read_text()
    stages = text.split("FROM ")[1:]
    assert len(stages) == 2
    assert "USER 1000:1000" in stages[1]
    assert 'ENTRYPOINT ["tini", "-g", "--"]' in stages[1]
    installed = re.findall(r"pip install .*?(?=&&|\n\S)", text, re.DOTALL)
    assert ["--require-hashes" in line or "--no-deps dist/" in line for line in installed] == [True] * 3


def test_compose_has_two_workers_and_one_image():
    services = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())["services"]
    assert services["worker"]["deploy"]["replicas"] == 2
    assert len({services[name]["image"] for name in ("scheduler", "worker", "client")}) == 1
    assert "DPMASK_KEY" not in services["worker"]["environment"], "the job's secret is the client's alone"


def locked(name):
    lines = (ROOT / "docker" / name).read_text().replace("\\\n", " ").splitlines()
    return [Requirement(line.split(" --hash")[0]) for line in lines if line], lines


def test_locks_name_no_host_and_hash_everything():
    for name in ("requirements.lock", "build.lock"):
        found, lines = locked(name)
        assert all("--hash=sha256:" in line for line in lines), name
        assert not re.search(r"//|--index|--find-links", "\n".join(lines)), name
        assert all(str(one.specifier).startswith("==") for one in found), name


@pytest.mark.parametrize("name", ["requirements.lock", "build.lock"])
def test_locks_hold_what_the_project_asks_for(name):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = project["build-system"]["requires"]
    if name == "requirements.lock":
        extras = project["project"]["optional-dependencies"]
        wanted = project["project"]["dependencies"] + [one for extra in EXTRAS for one in extras[extra]]
    versions = {one.name: str(one.specifier)[2:] for one in locked(name)[0] if not one.marker or one.marker.evaluate()}
    for one in map(Requirement, wanted):
        assert one.name in versions, f"lock {one.name}: {one.name} is missing from {name}; see CONTRIBUTING.md"
        assert versions[one.name] in one.specifier, f"{name} has {one.name} {versions[one.name]}, not {one.specifier}"
