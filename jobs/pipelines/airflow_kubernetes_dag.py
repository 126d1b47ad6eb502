"""A release every month by Airflow 3 in a pod of its own: put this file into the DAGs folder.

It needs apache-airflow-providers-cncf-kubernetes. The pod runs run.sh of the image of docker/, which tries again what
is worth it, from where it stopped; Airflow replaces a pod that was lost, and none that ended. The job file comes from a
ConfigMap, kubectl create configmap dpmask-job --from-file=job.yaml; all its folders are on object storage. ${MONTH} in
it is the month of the run's logical date: each month is a release of its own.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator
from airflow.sdk import dag
from airflow.sdk.exceptions import AirflowFailException
from kubernetes.client import models as k8s

MONTH = "{{ (dag_run.logical_date or dag_run.run_after).strftime('%Y-%m') }}"


class Release(KubernetesPodOperator):
    """A pod whose exit code says whether another can help."""

    def cleanup(self, pod: Any, remote_pod: Any, *given: Any, **named: Any) -> None:
        ended = getattr(getattr(remote_pod, "status", None), "container_statuses", None) or []
        codes = [one.state.terminated.exit_code for one in ended if one.state.terminated]
        try:
            super().cleanup(pod, remote_pod, *given, **named)
        except Exception:
            if any(code in {1, 2, 3, 4, 5} for code in codes):  # 5 was tried again by run.sh
                raise AirflowFailException(f"dpmask ended with {max(codes)}") from None
            raise


@dag(schedule="30 2 1 * *", start_date=datetime(2026, 1, 1, tzinfo=UTC), catchup=False, max_active_runs=1)
def dpmask_release_in_a_pod() -> None:
    Release(
        task_id="release",
        namespace="dpmask",
        image="dpmask:0.1.0",  # the image of docker/, from your registry
        arguments=["jobs/pipelines/run.sh", "/job/job.yaml", "--log-format", "json"],
        env_vars={"MONTH": MONTH},
        env_from=[
            k8s.V1EnvFromSource(secret_ref=k8s.V1SecretEnvSource(name=name, optional=True))
            for name in ("dpmask-storage", "dpmask-key")  # AWS_ACCESS_KEY_ID and so on; DPMASK_KEY
        ],
        labels={"app": "dpmask"},  # cluster_config/kubernetes/network.yaml lets it in
        automount_service_account_token=False,
        security_context={"runAsNonRoot": True, "runAsUser": 1000, "fsGroup": 1000},
        container_resources=k8s.V1ResourceRequirements(
            requests={"cpu": "2", "memory": "4Gi"}, limits={"memory": "4Gi"}
        ),
        volumes=[
            k8s.V1Volume(name="job", config_map=k8s.V1ConfigMapVolumeSource(name="dpmask-job")),
            k8s.V1Volume(name="scratch", empty_dir=k8s.V1EmptyDirVolumeSource(size_limit="10Gi")),
        ],
        volume_mounts=[
            k8s.V1VolumeMount(name="job", mount_path="/job", read_only=True),
            k8s.V1VolumeMount(name="scratch", mount_path="/scratch"),
        ],
        retries=3,
        retry_delay=timedelta(minutes=10),
        on_finish_action="delete_succeeded_pod",
    )


made = dpmask_release_in_a_pod()
