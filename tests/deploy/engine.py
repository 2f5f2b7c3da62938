"""The container engine of this machine: docker if its daemon answers, else podman, which speaks docker's API."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.deploy.polling import until

_PODMAN = shutil.which("podman") or "podman"
_ANSWERS_WITHIN_S = 60.0
# What a container gets may not exceed what this process has, and podman counts by another limit of processes.
_MOST_PROCESSES = 4096


class Engine(NamedTuple):
    """The commands of the engine and of compose, and the environment in which they find the engine."""

    command: str
    compose: tuple[str, ...]
    environment: Mapping[str, str]

    def run(self, *arguments: str, timeout_s: float = _ANSWERS_WITHIN_S) -> str:
        """Returns what a command of the engine prints. Raises AssertionError with its errors if it fails."""
        return output_of((self.command, *arguments), self.environment, timeout_s)

    def succeeds(self, *arguments: str, timeout_s: float = _ANSWERS_WITHIN_S) -> bool:
        return _succeeds((self.command, *arguments), self.environment, timeout_s)

    def is_healthy(self, container: str) -> bool:
        """Returns what the health check of a container says. Without systemd, podman runs it only by request."""
        if self.command == "podman":
            return self.succeeds("healthcheck", "run", container)
        return self.run("inspect", "--format", "{{.State.Health.Status}}", container).strip() == "healthy"


@contextmanager
def running_engine(folder: Path) -> Iterator[Engine]:
    """Finds docker, or starts podman's service with its socket and its settings in `folder`."""
    if _succeeds(("docker", "info"), os.environ):
        yield Engine("docker", _compose(), os.environ)
        return
    settings, address = folder / "containers.conf", f"unix://{folder / 'podman.sock'}"
    limits = [f"{name}={most}:{most}" for name, most in limits_of_containers().items()]
    settings.write_text(f"[containers]\ndefault_ulimits = {limits}\n", encoding="utf-8")
    environment = {**os.environ, "CONTAINERS_CONF": str(settings), "DOCKER_HOST": address}
    with subprocess.Popen((_PODMAN, "system", "service", "--time=0", address), env=environment) as service:
        try:
            engine = Engine("podman", _compose(), environment)
            until(lambda: engine.succeeds("--url", address, "info"), "podman's service answers", _ANSWERS_WITHIN_S)
            yield engine
        finally:
            service.terminate()


def limits_of_containers() -> dict[str, int]:
    """Returns the limits that any process here may give: without the capability SYS_RESOURCE, none above its own."""
    return {"nofile": resource.getrlimit(resource.RLIMIT_NOFILE)[1], "nproc": _MOST_PROCESSES}


def output_of(
    command: Sequence[str], environment: Mapping[str, str], timeout_s: float, folder: Path | None = None
) -> str:
    """Returns what a command prints. Raises AssertionError with its errors if it fails."""
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=timeout_s
    )
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


def _compose() -> tuple[str, ...]:
    return ("docker", "compose") if _succeeds(("docker", "compose", "version"), os.environ) else ("docker-compose",)


def _succeeds(command: Sequence[str], environment: Mapping[str, str], timeout_s: float = _ANSWERS_WITHIN_S) -> bool:
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run(command, env=environment, capture_output=True, check=False, timeout=timeout_s).returncode == 0
