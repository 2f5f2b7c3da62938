"""Executes the steps of the Dockerfile without a container engine, and serves from the result as the image would.

The instructions are taken from the Dockerfile as they are. Instead of the base image there is the root of this machine,
read-only: bubblewrap gives each step a root of its own with the folders that the step writes. The installation of
Debian's packages is not executed; the programs that it brings must be on this machine.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import psutil
import pytest

import fusewire as fw

pytestmark = pytest.mark.deploy

PROJECT = Path(__file__).parents[2]
BUBBLEWRAP = shutil.which("bwrap") or "bwrap"
INSTALLED = "/opt/fusewire"
CACHE = "/var/cache/fusewire"
SOURCE = "/source"
DEADLINE_S = 60.0


class Dockerfile:
    """The instructions of each stage."""

    def __init__(self) -> None:
        text = (PROJECT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
        text = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
        _, self.build, self.final = re.split(r"^FROM .*$", text, flags=re.MULTILINE)

    def commands(self, stage: str) -> list[str]:
        return re.findall(r"^RUN (.*)$", stage, re.MULTILINE)

    def copied(self, stage: str) -> list[str]:
        lines = re.findall(r"^COPY (?!--from)(.*) \S+$", stage, re.MULTILINE)
        return [name for line in lines for name in line.split()]

    def environment(self) -> dict[str, str]:
        (line,) = re.findall(r"^ENV (.*)$", self.final, re.MULTILINE)
        return dict(pair.split("=", 1) for pair in line.split())

    def array(self, instruction: str) -> list[str]:
        (text,) = re.findall(rf"{instruction} (\[.*\])", self.final, re.MULTILINE)
        words: list[str] = json.loads(text)
        return words


def root(*, writable: Mapping[str, Path]) -> list[str]:
    """Returns the command that runs another in a root whose folders are those of this machine, read-only.

    `writable` maps paths in this root to folders that may be written.
    """
    command = [BUBBLEWRAP, "--die-with-parent", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]  # noqa: S108
    hidden = {"dev", "proc", "tmp", "opt", "var"}
    folders = [each for each in Path("/").iterdir() if each.name not in hidden]
    folders += [each for each in Path("/opt").iterdir() if str(each) != INSTALLED]
    for each in folders:
        if each.is_symlink():
            command += ["--symlink", str(each.readlink()), str(each)]
        else:
            command += ["--ro-bind", str(each), str(each)]
    for path, folder in writable.items():
        command += ["--bind", str(folder), path]
    return command


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the stage `build` makes of the sources."""
    steps = Dockerfile()
    folder, source = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("source")
    for name in steps.copied(steps.build):
        copy = shutil.copytree if (PROJECT / name).is_dir() else shutil.copy
        copy(PROJECT / name, source / name)
    python = Path(sys.executable).resolve().parent
    environment = {**os.environ, "EXTRA": "server", "PATH": f"{python}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    for command in steps.commands(steps.build):
        within = root(writable={INSTALLED: folder, SOURCE: source})
        subprocess.run((*within, "--chdir", SOURCE, "/bin/sh", "-c", command), env=environment, check=True, timeout=600)
    return folder


@pytest.fixture
def server(installed: Path, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], list[str], dict[str, str]]]:
    """The image's process as the compose file starts it: no rights, a read-only root, a cache that may be written."""
    steps = Dockerfile()
    user = re.findall(r"^USER (\d+):(\d+)$", steps.final, re.MULTILINE)[0]
    cache = tmp_path / "cache"
    cache.mkdir()
    within = [*root(writable={CACHE: cache}), "--ro-bind", str(installed), INSTALLED]
    within += ["--unshare-user", "--uid", user[0], "--gid", user[1], "--cap-drop", "ALL"]
    environment = {**os.environ, **steps.environment(), "FUSEWIRE_DEVICE__BACKEND": "cpu"}
    environment["PATH"] = environment["PATH"].replace("$PATH", os.environ["PATH"])
    environment |= {"FUSEWIRE_LISTEN__INSECURE_ALLOW_REMOTE": "true", "FUSEWIRE_LISTEN__GRPC": "0.0.0.0:0"}
    environment["FUSEWIRE_LISTEN__HTTP"] = "0.0.0.0:0"
    environment.pop("PYTHONPATH", None)
    command = (*within, *steps.array("ENTRYPOINT"), *steps.array(r"^CMD"))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process, within, environment
        finally:
            process.kill()


def test_the_image_serves_is_healthy_and_ends_in_order(
    server: tuple[subprocess.Popen[str], list[str], dict[str, str]],
) -> None:
    process, within, environment = server
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    port, http = (told[name].rpartition(":")[2] for name in ("grpc", "http"))
    with fw.connect(f"127.0.0.1:{port}", timeout=DEADLINE_S) as session:
        x = session.array(np.array([1, 2, 3], np.float32))
        for _ in range(20):
            x = fw.tanh(x * 2.0)
        assert np.isfinite(x.numpy(timeout=DEADLINE_S)).all()
    check = Dockerfile().array("HEALTHCHECK .* CMD")
    environment["FUSEWIRE_LISTEN__HTTP"] = f"0.0.0.0:{http}"
    assert subprocess.run((*within, *check), env=environment, check=False, timeout=DEADLINE_S).returncode == 0
    (tini,) = [child for child in psutil.Process(process.pid).children(recursive=True) if child.name() == "tini"]
    tini.send_signal(signal.SIGTERM)
    assert process.wait(DEADLINE_S) == 0
    assert subprocess.run((*within, *check), env=environment, check=False, timeout=DEADLINE_S).returncode == 1
