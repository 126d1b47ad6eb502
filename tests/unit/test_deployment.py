"""The image, the compose file and the manifests, as far as they can be checked without an engine.

tests/pipelines/run goes further: it takes the image's steps in an environment of its own.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from datetime import datetime
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
    run("kubernetes-validate", "--strict", "jobs/pipelines/kubernetes/cronjob.yaml")


BASES = ("cluster_config/kubernetes", "jobs/pipelines/kubernetes")


@pytest.mark.parametrize("folder", BASES)
def test_a_base_has_its_resources(folder):
    base = yaml.safe_load((ROOT / folder / "kustomization.yaml").read_text())
    assert all((ROOT / folder / name).is_file() for name in base["resources"])
    assert (base["apiVersion"], base["kind"]) == ("kustomize.config.k8s.io/v1beta1", "Kustomization")


@pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl")
def test_kustomize_builds_the_bases_and_the_overlay_of_the_guide(tmp_path):
    """As dpmask init leaves them, with the folder of the guide's page beside them."""
    from dpmask.guide import page
    from dpmask.job.shipped import copy_shipped

    list(copy_shipped(str(tmp_path)))
    (tmp_path / "office").mkdir()
    overlay = re.search(r"```yaml\n# office/kustomization.yaml\n(.+?)```", page("pipelines"), re.DOTALL)[1]
    (tmp_path / "office/kustomization.yaml").write_text(overlay)
    (tmp_path / "office/job.yaml").write_text("name: people\n")
    built = {}
    for folder in (*BASES, "office"):
        ended = subprocess.run(["kubectl", "kustomize", tmp_path / folder], capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        built[folder] = {one["kind"]: one for one in yaml.safe_load_all(ended.stdout)}
        for kind in built[folder].keys() & {"CronJob", "NetworkPolicy", "ConfigMap"}:
            (tmp_path / "one.yaml").write_text(yaml.safe_dump(built[folder][kind]))
            run("kubernetes-validate", "--strict", tmp_path / "one.yaml")
    assert set(built["cluster_config/kubernetes"]) == {"DaskCluster", "NetworkPolicy"}
    job = built["office"]["CronJob"]
    assert job["metadata"]["namespace"] == built["office"]["ConfigMap"]["metadata"]["namespace"] == "statistics"
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == "registry.example.org/dpmask:0.1.0"
    assert pod["volumes"][0]["configMap"]["name"] == built["office"]["ConfigMap"]["metadata"]["name"] != "dpmask-job"


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


MODELS = [
    *("V1EnvFromSource", "V1SecretEnvSource", "V1ResourceRequirements", "V1Volume"),
    *("V1ConfigMapVolumeSource", "V1EmptyDirVolumeSource", "V1VolumeMount"),
]


def test_the_pod_of_airflow_knows_its_month_and_which_ends_are_final(monkeypatch):
    """With stand-ins for Airflow and its provider: what the operator is given, and what it makes of exit codes."""
    from types import ModuleType, SimpleNamespace

    import jinja2

    class Operator:
        def __init__(self, **given):
            vars(self).update(given)
            made.append(self)

        def cleanup(self, pod, remote_pod, xcom_result=None, context=None):
            raise RuntimeError("Pod returned a failure.")

    class Final(Exception):
        pass

    made = []
    stand_ins = {
        "airflow.providers.cncf.kubernetes.operators.pod": {"KubernetesPodOperator": Operator},
        "airflow.sdk": {"dag": lambda **_: lambda function: function},
        "airflow.sdk.exceptions": {"AirflowFailException": Final},
        "kubernetes.client": {"models": SimpleNamespace(**dict.fromkeys(MODELS, dict))},
    }
    for name, content in stand_ins.items():
        for at in range(1, name.count(".") + 2):
            part = ".".join(name.split(".")[:at])
            monkeypatch.setitem(sys.modules, part, sys.modules.get(part) or ModuleType(part))
        vars(sys.modules[name]).update(content)
    script = ROOT / "jobs/pipelines/airflow_kubernetes_dag.py"
    exec(compile(script.read_text(), script, "exec"), {"__name__": "dag"})
    (task,) = made
    assert task.arguments[:2] == ["jobs/pipelines/run.sh", "/job/job.yaml"]
    assert (ROOT / task.arguments[0]).is_file()
    for dates, month in (((datetime(2026, 11, 1), None), "2026-11"), ((None, datetime(2026, 12, 1)), "2026-12")):
        run_of = SimpleNamespace(logical_date=dates[0], run_after=dates[1])
        assert jinja2.Template(task.env_vars["MONTH"]).render(dag_run=run_of) == month

    def pod(code):
        ended = SimpleNamespace(state=SimpleNamespace(terminated=SimpleNamespace(exit_code=code)))
        return SimpleNamespace(status=SimpleNamespace(container_statuses=[ended]))

    for code in (1, 2, 3, 4, 5):
        with pytest.raises(Final):
            task.cleanup(None, pod(code))
    for lost in (pod(137), SimpleNamespace(status=None), None):
        with pytest.raises(RuntimeError):
            task.cleanup(None, lost)
