"""The secrets of the pods for Kubernetes: made by the setup, mounted as folders, and used again when they change."""

from __future__ import annotations

import base64
import re
import shutil
import socket
import ssl
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire.testing import serve_subprocess
from tests.deploy.kubernetes_objects import (
    FOLDER,
    MONITORING,
    WAYS,
    all_of,
    container_of,
    mounts_of,
    needs_kubectl,
    only,
    rendered,
    settings_of,
)
from tests.deploy.setting_up import set_up

pytestmark = needs_kubectl
DEADLINE_S = 20.0


def secret_files(folder: Path) -> dict[str, dict[str, str]]:
    """What each secret holds by key. `folder` holds the folders of the setup."""
    shutil.copy(FOLDER / "secrets" / "kustomization.yaml", folder)
    return {
        each["metadata"]["name"]: {key: base64.b64decode(text).decode() for key, text in each["data"].items()}
        for each in rendered(folder)
    }


def test_no_secret_is_in_the_repository() -> None:
    assert not any(all_of(rendered(FOLDER / way), "Secret") for way in WAYS)
    ignored = (FOLDER / "secrets" / ".gitignore").read_text(encoding="utf-8").split()
    sources = re.findall(r"=(\w+)/", (FOLDER / "secrets" / "kustomization.yaml").read_text(encoding="utf-8"))
    assert {f"/{source}/" for source in sources} <= set(ignored)


@pytest.mark.parametrize("way", WAYS)
def test_secrets_are_mounted_as_folders(way: str) -> None:
    assert not any("subPath" in mount for mount in container_of(rendered(FOLDER / way))["volumeMounts"])


def test_prometheus_finds_the_service_port_and_secret_that_there_are(tmp_path: Path) -> None:
    objects = rendered(FOLDER / "base")
    monitor = only(objects, "ServiceMonitor")
    assert monitor["apiVersion"] == MONITORING
    selector = monitor["spec"]["selector"]["matchLabels"]
    (service,) = (each for each in all_of(objects, "Service") if selector.items() <= each["metadata"]["labels"].items())
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert endpoint["scheme"] == "https"
    set_up(tmp_path)
    secrets = secret_files(tmp_path)
    for reference in (endpoint["authorization"]["credentials"], endpoint["tlsConfig"]["ca"]["secret"]):
        assert secrets[reference["name"]][reference["key"]]


@pytest.mark.parametrize("way", WAYS)
def test_the_setup_makes_the_files_that_the_settings_name(way: str, tmp_path: Path) -> None:
    objects = rendered(FOLDER / way)
    set_up(tmp_path)
    secrets = secret_files(tmp_path)
    settings = settings_of(objects)
    assert mounts_of(objects)
    for path, name in mounts_of(objects).items():
        used = {Path(text).name for text in settings.values() if text.startswith(f"{path}/")}
        assert used == secrets[name].keys()


class Mounted:
    """Secrets as files, as Kubernetes lays them in a pod: a link leads to the newest files of each secret."""

    def __init__(self, root: Path, mounts: dict[str, str]) -> None:
        self._root = root
        self._mounts = mounts
        self._version = 0

    def place(self, path: str) -> Path:
        return self._root / path.lstrip("/")

    def write(self, secrets: dict[str, dict[str, str]]) -> None:
        """Writes a new version of each secret, and turns the links to them."""
        self._version += 1
        for path, name in self._mounts.items():
            folder = self.place(path)
            version = folder / f"..{self._version}"
            version.mkdir(parents=True)
            for key, text in secrets[name].items():
                (version / key).write_text(text, encoding="utf-8")
                (version / key).chmod(0o440)
                if not (folder / key).is_symlink():
                    (folder / key).symlink_to(Path("..data") / key)
            (folder / "..new").symlink_to(version.name)
            (folder / "..new").replace(folder / "..data")

    def settings(self, settings: dict[str, str]) -> dict[str, str]:
        """Returns the settings with the paths of this machine."""
        return {
            name: str(self.place(text)) if text.startswith(tuple(self._mounts)) else text
            for name, text in settings.items()
        }


def certificate_at(target: str) -> bytes:
    host, _, port = target.rpartition(":")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection((host, int(port)), DEADLINE_S) as plain,
        context.wrap_socket(plain) as connection,
    ):
        return connection.getpeercert(binary_form=True) or b""


def asked(probe: Any, target: str) -> int:
    """Asks as a probe does: over TLS, without a look at the certificate."""
    host, _, port = target.rpartition(":")
    unchecked = ssl._create_unverified_context()  # noqa: S323
    connection = HTTPSConnection(host, int(port), timeout=DEADLINE_S, context=unchecked)
    try:
        connection.request("GET", probe["httpGet"]["path"])
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_server_runs_with_these_settings_and_secrets_and_uses_changed_ones(tmp_path: Path) -> None:
    objects = rendered(FOLDER / "overlays" / "cpu")
    mounted = Mounted(tmp_path / "pod", mounts_of(objects))
    server, clients, watchers = set_up(tmp_path, names="IP:127.0.0.1,DNS:fusewire")
    mounted.write(secret_files(tmp_path))
    token, ca = (clients / "use.token").read_text(encoding="utf-8"), clients / "ca.pem"
    with serve_subprocess("null", environment=mounted.settings(settings_of(objects))) as process:
        container = container_of(objects)
        for kind in ("startup", "liveness", "readiness"):
            assert asked(container[f"{kind}Probe"], process.http) == 200
        with fw.connect(process.grpc, tls_ca=ca, token=token, timeout=DEADLINE_S) as session:
            assert session.array([1.0, 2.0]).numpy(timeout=DEADLINE_S).shape == np.shape([1.0, 2.0])
        before = certificate_at(process.grpc)
        (server / "server.pem").unlink()
        for token_file in (clients / "use.token", watchers / "inspect.token", server / "admin.token"):
            token_file.unlink()
        set_up(tmp_path, names="IP:127.0.0.1,DNS:fusewire")
        mounted.write(secret_files(tmp_path))
        assert certificate_at(process.grpc) != before
        new_token = (clients / "use.token").read_text(encoding="utf-8")
        with fw.connect(process.grpc, tls_ca=ca, token=new_token, timeout=DEADLINE_S) as session:
            assert session.array([1.0, 2.0]).numpy(timeout=DEADLINE_S).shape == np.shape([1.0, 2.0])
