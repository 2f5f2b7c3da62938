"""The image and its setup: what hadolint says, who runs in it, and that the setup makes a server that can be used."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import fusewire as fw
from fusewire.testing import serve_subprocess
from fusewire_kernels.compile.binary_cache import CACHE_VARIABLE
from fusewire_server.config.config import ENVIRONMENT_PREFIX, load
from tests.deploy.dockerfile import PROJECT, read_stages
from tests.deploy.setting_up import COMMANDS, Secrets, certificate_names, set_up

DOCKERFILE = PROJECT / "deploy" / "Dockerfile"
STAGES = read_stages()
HADOLINT = shutil.which("hadolint", path=f"{COMMANDS}{os.pathsep}{os.environ['PATH']}") or ""


@pytest.mark.skipif(not HADOLINT, reason="needs hadolint")
def test_hadolint_finds_nothing_to_say() -> None:
    done = subprocess.run((HADOLINT, str(DOCKERFILE)), capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("stage", ["server", "load"])
def test_an_image_runs_as_a_user_without_rights(stage: str) -> None:
    assert STAGES[stage].user == ("10001", "10001")


def test_every_variable_of_the_image_is_known() -> None:
    """Loading refuses names of settings that do not exist."""
    given = {name for name in STAGES["server"].environment if name.startswith(ENVIRONMENT_PREFIX)}
    loaded = load(None, STAGES["server"].environment, {})
    settings = {origin.removeprefix("environment ") for origin in loaded.origins.values()} & given
    assert settings | {CACHE_VARIABLE} == given


def test_a_build_without_a_target_makes_the_server() -> None:
    assert list(STAGES)[-1] == "server"
    assert STAGES["server"].words("HEALTHCHECK") == ["fusewire", "healthcheck"]


def test_the_image_copies_what_the_package_is_made_of() -> None:
    build = {"pyproject.toml", "hatch_build.py", "build_recorder.py", "build_server.py", "README.md", "LICENSE"}
    assert set(STAGES["build"].copied) == build | {"protos", "kernels", "server", "client"}


def test_a_build_is_given_what_the_image_copies_and_nothing_that_was_compiled_here() -> None:
    """Modules of this machine would count as compiled in the image, whose Python and processor may differ."""
    ignored = (PROJECT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    given = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    assert given == {name for stage in STAGES.values() for name in stage.copied}
    assert {"*", "**/*.so", "kernels/fusewire_kernels/packs"} <= {*ignored}


def test_a_server_that_was_set_up_serves_a_client_that_trusts_it(tmp_path: Path) -> None:
    secrets = set_up(tmp_path)
    token = (secrets.clients / "use.token").read_text(encoding="utf-8")
    with (
        serve_subprocess("null", arguments=secrets.server_arguments) as process,
        fw.connect(process.grpc, tls_ca=secrets.clients / "ca.pem", token=token, timeout=20) as session,
    ):
        assert session.array([1.0, 2.0]).numpy(timeout=20).shape == np.shape([1.0, 2.0])


def contents(secrets: Secrets) -> dict[Path, bytes]:
    return {path: path.read_bytes() for folder in secrets for path in folder.iterdir()}


def test_the_setup_makes_nothing_twice_and_a_new_certificate_by_request(tmp_path: Path) -> None:
    secrets = set_up(tmp_path)
    before = contents(secrets)
    set_up(tmp_path)
    assert contents(secrets) == before
    (secrets.server / "server.pem").unlink()
    set_up(tmp_path, names="DNS:gpu.example")
    assert (secrets.clients / "ca.pem").read_bytes() == before[secrets.clients / "ca.pem"]
    assert certificate_names(secrets.server / "server.pem") == {("DNS", "gpu.example")}


def test_clients_and_watchers_get_no_more_than_they_need(tmp_path: Path) -> None:
    _, clients, watchers = set_up(tmp_path)
    assert {path.name for path in clients.iterdir()} == {"ca.pem", "use.token"}
    assert {path.name for path in watchers.iterdir()} == {"ca.pem", "inspect.token", "grafana.password"}
    assert len((watchers / "grafana.password").read_text(encoding="utf-8").strip()) == 32


def test_only_their_owner_may_read_secrets(tmp_path: Path) -> None:
    for folder in set_up(tmp_path):
        for path in folder.iterdir():
            assert path.stat().st_mode & 0o077 == 0, path
