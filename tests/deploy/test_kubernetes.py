"""The objects for Kubernetes, as Kustomize renders them: valid, closed, bounded, and with settings that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from textwrap import indent

import pytest
import yaml

from fusewire_server.config.config import ENVIRONMENT_PREFIX, SETTINGS, load
from tests.deploy.expressions import DASHBOARD
from tests.deploy.known_metrics import known_metrics
from tests.deploy.kubernetes_objects import (
    FOLDER,
    MONITORING,
    WAYS,
    Object,
    all_of,
    container_of,
    needs_kubectl,
    only,
    pod_of,
    rendered,
    settings_map,
    settings_of,
)
from tests.golden_files import check_text

PROJECT = Path(__file__).parents[2]
DOCKERFILE = (PROJECT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
README = (PROJECT / "deploy" / "README.md").read_text(encoding="utf-8")
RULE_HEAD = """# The alerts of deploy/prometheus/alerts.yml, for Prometheus as its operator runs it. A test writes this.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: fusewire
  labels:
    app.kubernetes.io/name: fusewire
spec:
"""
API_VERSION = "1.37"

pytestmark = needs_kubectl


@pytest.fixture(scope="module", params=WAYS)
def objects(request: pytest.FixtureRequest) -> list[Object]:
    return rendered(FOLDER / request.param)


# ---- what the objects are ----


def test_the_api_accepts_every_object(objects: list[Object]) -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    checked = [each for each in objects if each["apiVersion"] != MONITORING]
    assert len(checked) >= 6
    for each in checked:
        kubernetes_validate.validate(each, API_VERSION, strict=True)


def test_the_way_without_gpus_differs_in_nothing_else() -> None:
    base, cpu = (rendered(FOLDER / way) for way in ("base", "overlays/cpu"))
    assert [each for each in base if each["apiVersion"] != MONITORING] != []
    del container_of(base)["resources"]["limits"]["nvidia.com/gpu"]
    for name in ("runtimeClassName", "nodeSelector", "tolerations"):
        del pod_of(base)[name]
    for objects in (base, cpu):
        container_of(objects)["image"] = container_of(objects)["envFrom"][0]["configMapRef"]["name"] = ""
    unlike = {"ConfigMap", "PrometheusRule", "ServiceMonitor"}
    assert [each for each in base if each["kind"] not in unlike] == [
        each for each in cpu if each["kind"] != "ConfigMap"
    ]


def test_one_gpu_serves_each_replica() -> None:
    assert container_of(rendered(FOLDER / "base"))["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_a_server_runs_on_nodes_with_gpus_which_others_may_not_use() -> None:
    pod = pod_of(rendered(FOLDER / "base"))
    assert pod["runtimeClassName"] == "nvidia"
    assert pod["nodeSelector"] == {"nvidia.com/gpu.present": "true"}
    assert pod["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]


def test_more_servers_come_by_the_age_of_the_queue_and_none_is_taken_from_its_sessions() -> None:
    objects = rendered(FOLDER / "overlays" / "autoscaled")
    deployment, autoscaler = only(objects, "Deployment"), only(objects, "HorizontalPodAutoscaler")["spec"]
    target = {key: deployment[key] for key in ("apiVersion", "kind")} | {"name": deployment["metadata"]["name"]}
    assert autoscaler["scaleTargetRef"] == target
    assert "replicas" not in deployment["spec"]  # it would undo what the autoscaler has chosen
    (metric,) = autoscaler["metrics"]
    assert metric["pods"]["metric"]["name"] == "fusewire_queue_oldest_seconds"
    assert metric["pods"]["metric"]["name"] in known_metrics()
    assert autoscaler["behavior"]["scaleDown"] == {"selectPolicy": "Disabled"}


def test_a_server_that_scales_differs_in_nothing_else() -> None:
    base, scaled = (rendered(FOLDER / way) for way in ("base", "overlays/autoscaled"))
    del only(base, "Deployment")["spec"]["replicas"]
    assert base == [each for each in scaled if each["kind"] != "HorizontalPodAutoscaler"]


def test_every_object_is_in_one_namespace_that_keeps_pods_restricted(objects: list[Object]) -> None:
    namespace = only(objects, "Namespace")["metadata"]
    assert namespace["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert {each["metadata"]["namespace"] for each in objects if each["kind"] != "Namespace"} == {namespace["name"]}


def test_what_selects_pods_selects_the_servers(objects: list[Object]) -> None:
    deployment = only(objects, "Deployment")["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    selectors = [
        deployment["selector"]["matchLabels"],
        *(each["spec"]["selector"] for each in all_of(objects, "Service")),
    ]
    selectors.append(only(objects, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"])
    selectors.append(only(objects, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"])
    assert all(selector.items() <= labels.items() for selector in selectors)
    assert all(selectors)


def test_every_port_that_is_named_is_one_of_the_container(objects: list[Object]) -> None:
    container = container_of(objects)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"sessions": 7423, "inspection": 7424}
    used = [port["targetPort"] for service in all_of(objects, "Service") for port in service["spec"]["ports"]]
    used += [container[f"{kind}Probe"]["httpGet"]["port"] for kind in ("startup", "liveness", "readiness")]
    used += [port["port"] for rule in only(objects, "NetworkPolicy")["spec"]["ingress"] for port in rule["ports"]]
    assert set(used) == ports.keys()


# ---- how closed they are ----


def test_a_pod_has_no_more_rights_than_it_needs(objects: list[Object]) -> None:
    pod, container = pod_of(objects), container_of(objects)
    (user, group) = re.findall(r"^USER (\d+):(\d+)$", DOCKERFILE, re.MULTILINE)[0]
    rights = pod["securityContext"]
    assert rights["runAsNonRoot"] is True
    assert (rights["runAsUser"], rights["runAsGroup"], rights["fsGroup"]) == (int(user), int(group), int(group))
    assert rights["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()


def test_a_pod_writes_to_bounded_folders_only(objects: list[Object]) -> None:
    pod, container = pod_of(objects), container_of(objects)
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for mount in container["volumeMounts"]:
        volume = volumes[mount["name"]]
        assert mount.get("readOnly") or volume["emptyDir"]["sizeLimit"], mount
    written = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    server_stage = DOCKERFILE.rpartition("\nFROM ")[2]
    assert written == {*re.findall(r"^VOLUME (\S+)$", server_stage, re.MULTILINE), "/tmp"}  # noqa: S108


def test_a_pod_is_bounded(objects: list[Object]) -> None:
    resources = container_of(objects)["resources"]
    assert {"cpu", "memory"} <= resources["requests"].keys()
    assert "memory" in resources["limits"]


def test_inspection_is_reached_from_one_namespace_and_a_server_reaches_nothing(objects: list[Object]) -> None:
    policy = only(objects, "NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert not policy.get("egress")
    (inspection,) = (rule for rule in policy["ingress"] if {"port": "inspection"} in rule["ports"])
    assert inspection["ports"] == [{"port": "inspection"}]
    assert inspection["from"]


def test_no_image_is_the_latest(objects: list[Object]) -> None:
    name, _, tag = container_of(objects)["image"].rpartition(":")
    assert name == "fusewire"
    assert tag in {"cuda13", "cpu"}


# ---- how they begin and end ----


def test_the_probes_ask_what_each_is_for_over_tls(objects: list[Object]) -> None:
    container = container_of(objects)
    asked = {kind: container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}
    assert {kind: each["path"] for kind, each in asked.items()} == {
        "startup": "/livez",
        "liveness": "/livez",
        "readiness": "/readyz",
    }
    assert {each["scheme"] for each in asked.values()} == {"HTTPS"}


def test_a_server_has_time_to_drain(objects: list[Object]) -> None:
    pause_s = container_of(objects)["lifecycle"]["preStop"]["sleep"]["seconds"]
    drain_s = float(settings_of(objects)["FUSEWIRE_LIMITS__DRAIN_S"])
    assert pod_of(objects)["terminationGracePeriodSeconds"] > pause_s + drain_s + 2


def test_an_upgrade_needs_no_more_gpus_than_there_are(objects: list[Object]) -> None:
    assert only(objects, "Deployment")["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == 0


def test_a_changed_setting_replaces_the_pods(objects: list[Object]) -> None:
    name = settings_map(objects)["metadata"]["name"]
    assert name != "fusewire-settings"
    assert container_of(objects)["envFrom"] == [{"configMapRef": {"name": name}}]


def test_every_setting_exists_and_is_valid(objects: list[Object]) -> None:
    settings = settings_of(objects)
    assert all(name.startswith(ENVIRONMENT_PREFIX) for name in settings)
    loaded = load(None, settings, {})
    named = {name for name, origin in loaded.origins.items() if origin.startswith("environment")}
    assert len(named) == len(settings)
    assert named <= SETTINGS.keys()


# ---- what the documents say of them ----


def test_the_commands_of_the_document_name_what_there_is() -> None:
    (section,) = re.findall(r"^## Kubernetes\n(.*?)^## ", README, re.MULTILINE | re.DOTALL)
    (block,) = re.findall(r"```sh[^\n]*\n(.*?)```", section, re.DOTALL)
    assert len(block.splitlines()) == 5
    for path in re.findall(r"kubectl apply -[kf] (\S+)", block):
        assert (FOLDER / path).exists()
    assert {"secrets", "base"} <= set(re.findall(r"kubectl apply -k (\S+)", section))


# ---- what it tells ----


def test_the_alerts_are_those_of_prometheus() -> None:
    """`FUSEWIRE_WRITE_GOLDEN=1` writes the rule anew from deploy/prometheus/alerts.yml."""
    alerts = (FOLDER.parent / "prometheus" / "alerts.yml").read_text(encoding="utf-8")
    check_text(str(FOLDER / "base" / "prometheus-rule.yaml"), RULE_HEAD + indent(alerts, "  "))
    assert only(rendered(FOLDER / "base"), "PrometheusRule")["spec"] == yaml.safe_load(alerts)


def test_the_dashboard_is_that_of_grafana(objects: list[Object]) -> None:
    (dashboard,) = [each for each in all_of(objects, "ConfigMap") if each["metadata"]["name"] == "fusewire-dashboard"]
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(dashboard["data"]["fusewire.json"]) == DASHBOARD
