"""The page about deployment: its code blocks run as printed, or name what exists if they cannot run here."""

from __future__ import annotations

import os
import re
import shlex
import ssl
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

import fusewire as fw
from fusewire.testing import ServerProcess, serve_subprocess
from tests.deploy.compose_file import COMPOSE, PROFILES, SERVICES, filled_in
from tests.deploy.dockerfile import PROJECT
from tests.deploy.pages import NEEDS, blocks, commands, kinds_of_blocks
from tests.deploy.setting_up import COMMANDS, set_up

COMPOSE_COMMAND = ["docker", "compose", "-f", "deploy/compose.yaml", "--profile"]
DEADLINE_S = 60.0


def run(script: str, folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Runs a script in a folder that holds `deploy/`; returns what it prints."""
    link = folder / "deploy"
    if not link.exists():
        link.symlink_to(PROJECT / "deploy")
    path = f"{COMMANDS}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ("/bin/sh", "-eu", "-c", script),
        cwd=folder,
        env={**os.environ, **(environment or {}), "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def at(server: ServerProcess, script: str) -> str:
    """Returns a script of the page with the addresses of a server."""
    return script.replace("localhost:7423", server.grpc).replace("localhost:7424", server.http)


def test_every_block_says_what_it_needs() -> None:
    assert {f"sh {needs}" for needs in NEEDS} == set(kinds_of_blocks())


@pytest.mark.parametrize("script", blocks("server=open"))
def test_a_block_for_a_server_without_tokens_runs(script: str, tmp_path: Path) -> None:
    with serve_subprocess("cpu") as server:
        assert "[2. 2. 2.]" in run(at(server, script), tmp_path)


def test_the_blocks_for_a_server_with_tokens_run(tmp_path: Path) -> None:
    secrets = set_up(tmp_path)
    for path in (secrets.clients / "ca.pem", secrets.clients / "use.token", secrets.watchers / "inspect.token"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    client, metrics = blocks("server=guarded")
    with serve_subprocess("cpu", arguments=secrets.server_arguments) as server:
        assert "[2. 2. 2.]" in run(at(server, client), tmp_path)
        assert "fusewire_build_info" in run(at(server, metrics), tmp_path)


class OwnServer:
    """What the blocks make that start a server of their own and rotate its secrets."""

    def __init__(self, folder: Path) -> None:
        first, self._tokens, self._certificate = blocks("server=own")
        *setup, self._serve = first.splitlines()
        self._exports = "\n".join(line for line in setup if line.startswith("export "))
        self.folder = folder
        run("\n".join(setup), folder)

    @property
    def arguments(self) -> tuple[str, ...]:
        words = shlex.split(self._serve)
        assert words[:2] == ["fusewire", "serve"]
        return tuple(str(self.folder / word) if "/" in word else word for word in words[2:])

    def rotate_tokens(self) -> None:
        run(f"{self._exports}\n{self._tokens}", self.folder)

    def rotate_certificate(self) -> None:
        run(f"{self._exports}\n{self._certificate}", self.folder)

    def connect(self, server: ServerProcess, token: str) -> fw.Session:
        ca = self.folder / "fusewire" / "clients" / "ca.pem"
        port = server.grpc.rpartition(":")[2]
        return fw.connect(f"localhost:{port}", tls_ca=ca, token=token, timeout=DEADLINE_S)

    @property
    def token(self) -> str:
        return (self.folder / "fusewire" / "clients" / "use.token").read_text(encoding="utf-8")


def test_a_server_is_set_up_and_its_secrets_are_rotated_as_printed(tmp_path: Path) -> None:
    own = OwnServer(tmp_path)
    old = own.token
    with serve_subprocess("null", arguments=own.arguments) as server:
        with own.connect(server, old):
            pass
        own.rotate_tokens()
        wait_until_refused(own, server, old)
        host, _, port = server.grpc.rpartition(":")
        before = ssl.get_server_certificate((host, int(port)))
        own.rotate_certificate()
        with own.connect(server, own.token):
            pass
        assert ssl.get_server_certificate((host, int(port))) != before


def wait_until_refused(own: OwnServer, server: ServerProcess, token: str) -> None:
    """The server notices the change of the file by itself."""
    ends_at_s = time.monotonic() + DEADLINE_S
    while time.monotonic() < ends_at_s:
        try:
            own.connect(server, token).close()
        except fw.Unauthenticated:
            return
    raise AssertionError("a revoked token is still good")


def test_every_command_for_compose_names_a_profile_and_services_that_exist() -> None:
    lines = [words for words in commands("needs=container-engine") if words[:2] == COMPOSE_COMMAND[:2]]
    assert {words[5] for words in lines} == set(PROFILES)
    for words in lines:
        assert words[:5] == COMPOSE_COMMAND
        action, *rest = words[6:]
        assert action in {"up", "build", "run"}
        if action == "run":
            services = [word for word in rest if word in SERVICES]
            assert words[5] in SERVICES[services[0]]["profiles"]


def test_every_other_command_for_containers_names_volumes_images_and_files_that_exist() -> None:
    images = {filled_in(service["image"], {}) for service in SERVICES.values()}
    text = "\n".join(blocks("needs=container-engine"))
    read = re.findall(r"docker run --rm -v deploy_(\S+):/(\w+):ro --entrypoint cat (\S+) /(\w+)/(\S+)", text)
    assert len(read) == text.count("docker run")
    for volume, mounted, image, folder, _ in read:
        assert volume in COMPOSE["volumes"]
        assert image in images
        assert mounted == folder
    assert all((PROJECT / words[1]).exists() for words in commands("needs=container-engine") if words[0] == "cp")


def test_the_files_that_are_read_out_of_volumes_are_made(tmp_path: Path) -> None:
    secrets = set_up(tmp_path)
    text = "\n".join(blocks("needs=container-engine"))
    read = re.findall(r"-v deploy_(client|watcher)-secrets:\S+ .* /\w+/(\S+)", text)
    assert read
    for kind, name in read:
        assert (tmp_path / f"{kind}s" / name).is_file(), secrets


def test_the_files_that_systemd_needs_exist() -> None:
    (script,) = blocks("needs=systemd")
    assert len(script.splitlines()) <= 5
    named = re.findall(r"deploy/[\w./]+", script)
    assert named
    assert all((PROJECT / name).exists() for name in named)
