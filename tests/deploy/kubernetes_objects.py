"""The objects for Kubernetes as Kustomize renders them, and their parts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
_PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
_KUBECTL = shutil.which("kubectl", path=_PATH) or ""
WAYS = ["base", "overlays/cpu", "overlays/autoscaled"]
MONITORING = "monitoring.coreos.com/v1"  # the API of Prometheus's operator, whose schemas no package holds

Object = dict[str, Any]
needs_kubectl = pytest.mark.skipif(not _KUBECTL, reason="needs kubectl")


def rendered(folder: Path) -> list[Object]:
    """The objects of a folder. Kustomize must not warn."""
    done = subprocess.run((_KUBECTL, "kustomize", folder), capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return list(yaml.safe_load_all(done.stdout))


def all_of(objects: list[Object], kind: str) -> list[Object]:
    return [each for each in objects if each["kind"] == kind]


def only(objects: list[Object], kind: str) -> Any:
    (one,) = all_of(objects, kind)
    return one


def pod_of(objects: list[Object]) -> Any:
    return only(objects, "Deployment")["spec"]["template"]["spec"]


def container_of(objects: list[Object]) -> Any:
    (container,) = pod_of(objects)["containers"]
    return container


def settings_of(objects: list[Object]) -> dict[str, str]:
    settings: dict[str, str] = settings_map(objects)["data"]
    return settings


def settings_map(objects: list[Object]) -> Object:
    (found,) = [
        each for each in all_of(objects, "ConfigMap") if each["metadata"]["name"].startswith("fusewire-settings")
    ]
    return found


def mounts_of(objects: list[Object]) -> dict[str, str]:
    """The name of the secret at each path."""
    volumes = {volume["name"]: volume for volume in pod_of(objects)["volumes"]}
    return {
        mount["mountPath"]: volumes[mount["name"]]["secret"]["secretName"]
        for mount in container_of(objects)["volumeMounts"]
        if "secret" in volumes[mount["name"]]
    }
