"""The image and its setup: what hadolint says, who runs in it, and that the setup makes a server that can be used."""

from __future__ import annotations

import os
import re
import shutil
import ssl
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fusewire as fw
from fusewire.testing import serve_subprocess

DEPLOY = Path(__file__).parents[2] / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
COMMANDS = Path(sys.executable).parent  # the folder of the command `fusewire` and of hadolint
HADOLINT = shutil.which("hadolint", path=f"{COMMANDS}{os.pathsep}{os.environ['PATH']}") or ""


@pytest.mark.skipif(not HADOLINT, reason="needs hadolint")
def test_hadolint_finds_nothing_to_say() -> None:
    done = subprocess.run(
        (HADOLINT, str(DEPLOY / "Dockerfile")), capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_server_runs_as_a_user_without_rights() -> None:
    last_stage = DOCKERFILE.rpartition("\nFROM ")[2]
    assert re.search(r"^USER 10001:10001$", last_stage, re.MULTILINE)
    assert "HEALTHCHECK" in last_stage


def test_the_image_copies_what_the_package_is_made_of() -> None:
    for source in ("pyproject.toml", "README.md", "LICENSE", "protos", "kernels", "server", "client"):
        assert re.search(rf"^COPY .*\b{re.escape(source)}\b", DOCKERFILE, re.MULTILINE), source


def set_up(folder: Path, names: str = "DNS:localhost,IP:127.0.0.1") -> tuple[Path, Path]:
    server, clients = folder / "server", folder / "clients"
    for each in (server, clients):
        each.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "PATH": f"{COMMANDS}{os.pathsep}{os.environ['PATH']}",
        "SERVER_DIR": str(server),
        "CLIENTS_DIR": str(clients),
        "NAMES": names,
    }
    script = DEPLOY / "setup" / "setup.sh"
    subprocess.run(("/bin/sh", str(script)), check=True, env=environment, capture_output=True, timeout=60)
    return server, clients


def test_a_server_that_was_set_up_serves_a_client_that_trusts_it(tmp_path: Path) -> None:
    server, clients = set_up(tmp_path)
    arguments = ("--tls-cert", str(server / "server.pem"), "--tls-key", str(server / "server.key"))
    token = (clients / "use.token").read_text(encoding="utf-8")
    with (
        serve_subprocess("null", arguments=(*arguments, "--token-file", str(server / "tokens"))) as process,
        fw.connect(process.grpc, tls_ca=clients / "ca.pem", token=token, timeout=20) as session,
    ):
        assert session.array([1.0, 2.0]).numpy(timeout=20).shape == np.shape([1.0, 2.0])


def test_the_setup_makes_nothing_twice_and_a_new_certificate_by_request(tmp_path: Path) -> None:
    server, clients = set_up(tmp_path)
    before = {path: path.read_bytes() for path in (*server.iterdir(), *clients.iterdir())}
    set_up(tmp_path)
    assert {path: path.read_bytes() for path in (*server.iterdir(), *clients.iterdir())} == before
    (server / "server.pem").unlink()
    set_up(tmp_path, names="DNS:gpu.example")
    assert (clients / "ca.pem").read_bytes() == before[clients / "ca.pem"]
    told = ssl._ssl._test_decode_cert(str(server / "server.pem"))  # type: ignore[attr-defined]
    assert told["subjectAltName"] == (("DNS", "gpu.example"),)


def test_only_their_owner_may_read_secrets(tmp_path: Path) -> None:
    for folder in set_up(tmp_path):
        for path in folder.iterdir():
            assert path.stat().st_mode & 0o077 == 0, path
