"""The Kubernetes files, checked without a cluster: by the operator's own schemas, and what it makes of them strictly by Kubernetes'."""

import inspect

import pytest
import yaml
from servers import CONFIG

dask_kubernetes = pytest.importorskip("dask_kubernetes", reason="pip install 'dpmask[kubernetes]'")
jsonschema = pytest.importorskip("jsonschema")
kubernetes_validate = pytest.importorskip("kubernetes_validate")


def manifest(name):
    return yaml.safe_load((CONFIG / "kubernetes" / f"{name}.yaml").read_text(encoding="utf-8"))


def strictly(resource):
    kubernetes_validate.validate(resource, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize(("name", "kind"), [("cluster", "daskcluster"), ("job", "daskjob")])
def test_the_operator_takes_it(name, kind):
    from pathlib import Path

    folder = Path(dask_kubernetes.__file__).parent / "operator/deployment/helm/dask-kubernetes-operator/crds"
    definition = yaml.safe_load((folder / f"{kind}.yaml").read_text(encoding="utf-8"))
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    jsonschema.Draft7Validator(schema).validate(manifest(name))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(schema).validate(manifest(name) | {"spec": {}})


def pods(name, spec):
    """What the operator makes of a cluster's specification."""
    from dask_kubernetes.operator.controller import controller

    worker, scheduler = spec["worker"]["spec"], spec["scheduler"]
    return {
        "worker": controller.build_worker_deployment_spec("group", "dpmask", name, "id", worker, {}, {}),
        "scheduler": controller.build_scheduler_deployment_spec(name, scheduler["spec"], {}, {}),
        "service": controller.build_scheduler_service_spec(name, scheduler["service"], {}, {}),
    }


def test_kubernetes_takes_what_the_operator_makes_of_it():
    from dask_kubernetes.operator.controller import controller

    job = manifest("job")["spec"]
    run = controller.build_job_pod_spec("run", "dpmask-run", "dpmask", job["job"]["spec"], {}, {})
    strictly(run)
    for made in (pods("dpmask", manifest("cluster")["spec"]), pods("dpmask-run", job["cluster"]["spec"])):
        for resource in made.values():
            strictly(resource)
        made["worker"]["spec"]["template"]["spec"]["containers"][0]["memory"] = "4Gi"
        with pytest.raises(kubernetes_validate.ValidationError):
            strictly(made["worker"])
    strictly(manifest("network"))


def test_who_gets_which_secret():
    """Workers get storage's, the run's pod the key too, the scheduler none; nobody may ask Kubernetes for more."""
    job = manifest("job")["spec"]
    parts = pods("dpmask-run", job["cluster"]["spec"])
    specs = {name: parts[name]["spec"]["template"]["spec"] for name in ("worker", "scheduler")} | {
        "job": job["job"]["spec"]
    }
    secrets = {
        name: {source["secretRef"]["name"] for source in spec["containers"][0].get("envFrom", [])}
        for name, spec in specs.items()
    }
    assert secrets == {"worker": {"dpmask-storage"}, "scheduler": set(), "job": {"dpmask-storage", "dpmask-key"}}
    for spec in specs.values():
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["containers"][0]["image"] == specs["worker"]["containers"][0]["image"]


def test_the_network_policy_knows_every_pod():
    """The operator gives the labels of a cluster or job to all their pods."""
    cronjob = yaml.safe_load(
        (CONFIG.parent / "jobs" / "pipelines" / "kubernetes" / "cronjob.yaml").read_text(encoding="utf-8")
    )
    pods = [manifest("cluster"), manifest("job"), cronjob["spec"]["jobTemplate"]["spec"]["template"]]
    policy = manifest("network")["spec"]
    for selector in (policy["podSelector"], policy["ingress"][0]["from"][0]["podSelector"]):
        assert all(selector["matchLabels"].items() <= pod["metadata"]["labels"].items() for pod in pods)


def test_one_cluster_in_both_manifests():
    own = manifest("cluster")["spec"]
    run = manifest("job")["spec"]["cluster"]["spec"]
    selector = run["scheduler"]["service"]["selector"]
    assert selector["dask.org/cluster-name"] == manifest("job")["metadata"]["name"]
    selector["dask.org/cluster-name"] = manifest("cluster")["metadata"]["name"]
    assert run == own


def test_the_cluster_class_takes_the_options():
    from dask_kubernetes.operator import KubeCluster

    said = yaml.safe_load((CONFIG / "kubernetes.yaml").read_text(encoding="utf-8"))
    known = set(inspect.signature(KubeCluster.__init__).parameters) - {"self", "kwargs"}
    assert set(said["options"]) <= known
    assert (CONFIG.parent / said["options"]["custom_cluster_spec"]).is_file()


def test_no_kubernetes(place, monkeypatch):
    """No credentials for any: a clear word, and nothing is started."""
    monkeypatch.setenv("KUBECONFIG", str(place.folder / "nowhere"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.chdir(CONFIG.parent)
    job = place.folder / place.job(source=str(place.lake()))
    ended = place.dpmask("plan", job, "--cluster", CONFIG / "kubernetes.yaml")
    assert ended.code == 2
    assert "KubeCluster does not start with these options: Unable to find valid credentials" in ended.err
