"""Executes the steps of the Dockerfile without a container engine, and runs the results as the compose file would.

The instructions are taken from the Dockerfile as they are. Instead of the base image there is the root of this machine,
read-only: bubblewrap gives each step a root of its own with the folders that the step writes. Calls of apt-get are not
executed; the programs that they install must be on this machine.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pytest

import fusewire as fw
from tests.deploy.compose_file import SERVICES, filled_in, settings_of
from tests.deploy.dockerfile import PROJECT, Stage, read_stages
from tests.deploy.read_only_root import within_root, without_rights
from tests.deploy.setting_up import SCRIPT

pytestmark = pytest.mark.deploy

INSTALLED = "/opt/fusewire"
CACHE = "/var/cache/fusewire"
SOURCE = "/source"
RESULTS = "/results"
SECRETS = {"server-secrets": "server", "client-secrets": "clients", "watcher-secrets": "watchers"}
DEADLINE_S = 60.0
STAGES = read_stages()
IMAGE_COMMAND = (*STAGES["server"].words("ENTRYPOINT"), *STAGES["server"].words("CMD"))
UNIT = PROJECT / "deploy" / "systemd" / "fusewire.service"


def environment_of(stage: Stage, given: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a process in the image of this stage."""
    environment = {**os.environ, **stage.environment, **given}
    environment["PATH"] = environment["PATH"].replace("$PATH", os.environ["PATH"])
    environment.pop("PYTHONPATH", None)
    return environment


def execute(stage: Stage, source: Path, writable: Mapping[str, Path]) -> None:
    """Copies what the stage copies to `source`, and executes its commands without their calls of apt-get."""
    for name in stage.copied:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (PROJECT / name).is_dir() else shutil.copy
        copy(PROJECT / name, source / name)
    python = Path(sys.executable).resolve().parent
    environment = {**os.environ, "EXTRA": "server", "PATH": f"{python}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    for command in map(without_apt_get, stage.commands):
        within = within_root(writable={SOURCE: source, **writable}, folder=SOURCE)
        subprocess.run((*within, "/bin/sh", "-c", command), env=environment, check=True, timeout=600)


def without_apt_get(command: str) -> str:
    """Returns the rest of a command that begins with calls of apt-get."""
    rest = re.sub(r"^(apt-get [^&]* && )+", "", command)
    assert "apt-get" not in rest
    return rest


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("source")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, source: Path) -> Path:
    """What the stage `build` makes of the sources."""
    folder = tmp_path_factory.mktemp("installed")
    execute(STAGES["build"], source, {INSTALLED: folder})
    return folder


@pytest.fixture
def installed_load(installed: Path, source: Path, tmp_path: Path) -> Path:
    """What the stage `load` makes of that."""
    folder, results = tmp_path / "installed", tmp_path / "made-by-the-stage"
    shutil.copytree(installed, folder, symlinks=True)
    results.mkdir()
    execute(STAGES["load"], source, {INSTALLED: folder, RESULTS: results})
    return folder


def test_the_image_has_a_user_and_folders_that_only_this_user_may_enter(tmp_path: Path) -> None:
    source, system, caches = (tmp_path / name for name in ("source", "etc", "caches"))
    shutil.copytree("/etc", system, symlinks=True)
    caches.mkdir()
    execute(STAGES["server"], source, {"/etc": system, "/var/cache": caches})
    user = int(STAGES["server"].user[0])
    assert f"fusewire:x:{user}:" in (system / "passwd").read_text(encoding="utf-8")
    made = [caches / "fusewire", *(system / "fusewire" / each for each in ("server", "clients", "watchers"))]
    assert {(each.stat().st_uid, each.stat().st_mode & 0o777) for each in made} == {(user, 0o700)}


@contextmanager
def serving(
    within: Sequence[str], settings: Mapping[str, str], command: Sequence[str] = IMAGE_COMMAND
) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Runs a server, by default as the image does. Yields its process and its addresses."""
    given = {**settings, "FUSEWIRE_DEVICE__BACKEND": "cpu", "FUSEWIRE_LISTEN__GRPC": "0.0.0.0:0"}
    environment = environment_of(STAGES["server"], {**given, "FUSEWIRE_LISTEN__HTTP": "0.0.0.0:0"})
    # In a namespace of processes of its own, as in a container, all end with the first one.
    within = (*within, "--unshare-pid", "--as-pid-1")
    with subprocess.Popen((*within, *command), stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            yield process, {name: f"localhost:{told[name].rpartition(':')[2]}" for name in ("grpc", "http")}
        finally:
            process.kill()


def test_the_image_serves_is_healthy_and_ends_in_order(installed: Path, tmp_path: Path) -> None:
    stage, settings = STAGES["server"], settings_of("cpu")
    within = within_root(writable={CACHE: tmp_path}, readable={INSTALLED: installed}) + without_rights(stage)
    with serving(within, settings) as (process, addresses):
        with fw.connect(addresses["grpc"], timeout=DEADLINE_S) as session:
            x = session.array(np.array([1, 2, 3], np.float32))
            for _ in range(20):
                x = fw.tanh(x * 2.0)
            assert np.isfinite(x.numpy(timeout=DEADLINE_S)).all()
        port = addresses["http"].rpartition(":")[2]
        environment = environment_of(stage, {**settings, "FUSEWIRE_LISTEN__HTTP": f"0.0.0.0:{port}"})
        check = (*within, *stage.words("HEALTHCHECK"))
        assert subprocess.run(check, env=environment, check=False, timeout=DEADLINE_S).returncode == 0
        (tini,) = [child for child in psutil.Process(process.pid).children(recursive=True) if child.name() == "tini"]
        tini.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
        assert subprocess.run(check, env=environment, check=False, timeout=DEADLINE_S).returncode == 1


def volumes_of(service: str, folder: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """Returns the folders with secrets that a service may write, and those that it may read."""
    writable: dict[str, Path] = {}
    readable: dict[str, Path] = {}
    for volume in SERVICES[service]["volumes"]:
        name, path, *mode = volume.split(":")
        if name in SECRETS:
            (readable if mode == ["ro"] else writable)[path] = folder / SECRETS[name]
    return writable, readable


def run_setup(installed: Path, folder: Path) -> None:
    writable, _ = volumes_of("setup", folder)
    for each in writable.values():
        each.mkdir()
    names = filled_in(SERVICES["setup"]["environment"]["NAMES"], {})
    within = within_root(writable=writable, readable={INSTALLED: installed, "/setup.sh": SCRIPT})
    environment = environment_of(STAGES["server"], {"NAMES": names})
    command = (*within, *without_rights(STAGES["server"]), "/setup.sh")
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=DEADLINE_S)


def test_the_load_test_of_the_image_measures_a_server_with_tls_and_tokens(
    installed: Path, installed_load: Path, source: Path, tmp_path: Path
) -> None:
    """The chain of the profile `load`: setup, server, load test. The server has the CPU instead of a GPU."""
    run_setup(installed, tmp_path)
    results, cache = tmp_path / "results", tmp_path / "cache"
    for each in (results, cache):
        each.mkdir()
    _, secrets = volumes_of("gpu", tmp_path)
    within_server = within_root(writable={CACHE: cache}, readable={INSTALLED: installed, **secrets})
    stage = STAGES["load"]
    _, secrets = volumes_of("load", tmp_path)
    readable = {INSTALLED: installed_load, SOURCE: source, **secrets}
    within_load = within_root(writable={RESULTS: results}, readable=readable, folder=SOURCE) + without_rights(stage)
    with serving(within_server + without_rights(STAGES["server"]), settings_of("gpu")) as (_, addresses):
        words = [filled_in(word, {"LOAD_SESSIONS": "2"}) for word in SERVICES["load"]["command"]]
        words = [word.replace("gpu:7423", addresses["grpc"]).replace("gpu:7424", addresses["http"]) for word in words]
        command = (*within_load, *stage.words("ENTRYPOINT"), *words, "--seconds=1.5")
        subprocess.run(command, env=environment_of(stage, {}), check=True, timeout=2 * DEADLINE_S)
    told = json.loads((results / "rnn.json").read_text(encoding="utf-8"))
    assert (told["sessions"], told["errors"], told["problems"]) == (2, 0, [])
    assert told["rows_per_launch"] >= 1  # so inspection has answered
    assert (results / "rnn.html").stat().st_size > 0


def test_the_command_of_the_systemd_unit_serves_with_the_settings_beside_it(installed: Path, tmp_path: Path) -> None:
    """The server has the CPU instead of a GPU, and free ports."""
    run_setup(installed, tmp_path)
    cache = tmp_path / "cache"
    cache.mkdir()
    _, secrets = volumes_of("gpu", tmp_path)
    readable = {INSTALLED: installed, "/etc/fusewire/fusewire.toml": UNIT.with_name("fusewire.toml"), **secrets}
    within = within_root(writable={CACHE: cache}, readable=readable) + without_rights(STAGES["server"])
    (command,) = re.findall(r"^ExecStart=(.*)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)
    token = (tmp_path / "clients" / "use.token").read_text(encoding="utf-8")
    with (
        serving(within, {}, command.split()) as (_, addresses),
        fw.connect(addresses["grpc"], tls_ca=tmp_path / "clients" / "ca.pem", token=token, timeout=20) as session,
    ):
        assert (session.array([1.0]) + 1).numpy(timeout=DEADLINE_S) == [2.0]
