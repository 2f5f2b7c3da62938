"""A copy of deploy/ whose services run in the container engine of this machine, for a test and beside real ones.

The copy has images, volumes and ports of its own. Where this machine lacks something, the copy does without: a server
has the CPU instead of a GPU, limits are at most those that may be given, and the images of others are stand-ins.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.deploy.base_images import can_be_had, prometheus_image, python_image
from tests.deploy.compose_file import COMPOSE, PROFILES, filled_in
from tests.deploy.dockerfile import PROJECT
from tests.deploy.engine import Engine, limits_of_containers, output_of, running_engine
from tests.deploy.free_ports import free_ports
from tests.deploy.polling import until
from tests.shell_programs import shell_program

_NAME = "fusewire-check"
_PORTS = ("FUSEWIRE_PORT", "FUSEWIRE_HTTP_PORT", "PROMETHEUS_PORT", "GRAFANA_PORT")
_BUILT_WITHIN_S = 1200.0
_HEALTHY_WITHIN_S = 60.0


class Deployment(NamedTuple):
    """The copy lies in `folder`; `ports` are those on which this machine reaches it, by their variables."""

    engine: Engine
    folder: Path
    ports: dict[str, int]

    def run(self, script: str) -> str:
        """Runs a script of the page with the names, addresses and commands of this copy. Returns what it prints."""
        for printed, own in {
            "localhost:7423": f"localhost:{self.ports['FUSEWIRE_PORT']}",
            "localhost:7424": f"localhost:{self.ports['FUSEWIRE_HTTP_PORT']}",
            "-v deploy_": f"-v {_NAME}_",
            "fusewire:": f"{_NAME}:",
        }.items():
            script = script.replace(printed, own)
        return output_of(("/bin/sh", "-eu", "-c", script), self.engine.environment, _BUILT_WITHIN_S, self.folder)

    def compose(self, profile: str, *arguments: str) -> str:
        command = (*self.engine.compose, "-f", "deploy/compose.yaml", "--profile", profile, *arguments)
        return output_of(command, self.engine.environment, _BUILT_WITHIN_S, self.folder)

    def container(self, service: str) -> str:
        """Returns the id of the container of a service."""
        profile = COMPOSE["services"][service]["profiles"][0]
        return self.compose(profile, "ps", "-q", service).strip()

    def until_healthy(self, service: str) -> str:
        """Waits for the health check of a service. Returns the id of its container."""
        container = self.container(service)
        until(lambda: self.engine.is_healthy(container), f"{service} is healthy", _HEALTHY_WITHIN_S)
        return container

    def remove(self) -> None:
        """Removes containers, networks and volumes of all services. Images stay, for the next time."""
        for profile in PROFILES:
            self.compose(profile, "down", "--volumes", "--remove-orphans", "--timeout", "20")


@contextmanager
def deployed(folder: Path) -> Iterator[Deployment]:
    """Copies deploy/ to `folder` and finds an engine. Removes what has been started."""
    with running_engine(folder) as engine:
        ports = dict(zip(_PORTS, free_ports(len(_PORTS)), strict=True))
        shutil.copytree(PROJECT / "deploy", folder / "deploy", ignore=shutil.ignore_patterns(".env", "secrets"))
        (folder / "deploy" / "compose.yaml").write_text(yaml.safe_dump(_fitted(engine)), encoding="utf-8")
        own = Deployment(engine._replace(environment=_environment(engine, ports, folder)), folder, ports)
        try:
            own.remove()  # what an interrupted check has left
            yield own
        finally:
            own.remove()


def _environment(engine: Engine, ports: dict[str, int], folder: Path) -> dict[str, str]:
    """Returns the variables of the compose file, and a path on which `docker` is the engine of this machine."""
    programs = folder / "bin"
    programs.mkdir()
    compose = " ".join(engine.compose)
    shell_program(
        programs / "docker",
        f'PATH=${{PATH#*:}}\n[ "$1" != compose ] || {{ shift; exec {compose} "$@"; }}\nexec {engine.command} "$@"',
    )
    path = os.pathsep.join((str(programs), str(Path(sys.executable).parent), os.environ["PATH"]))
    given = {name: str(port) for name, port in ports.items()}
    return {**engine.environment, **given, "COMPOSE_PROJECT_NAME": _NAME, "PATH": path}


def _fitted(engine: Engine) -> dict[str, Any]:
    """Returns the compose file as it can run here."""
    services = {name: dict(each) for name, each in COMPOSE["services"].items()}
    base = python_image(engine, _default("cpu", "PYTHON_IMAGE"))
    prometheus = filled_in(services["prometheus"]["image"], {})
    services["prometheus"]["image"] = prometheus_image(engine, prometheus, base)
    if not can_be_had(engine, filled_in(services["grafana"]["image"], {})):
        del services["grafana"]
    for service in services.values():
        service["image"] = service["image"].replace("fusewire:", f"{_NAME}:")
        if "build" in service:
            arguments = {**service["build"]["args"], "PYTHON_IMAGE": base, "EXTRA": "server"}
            service["build"] = {**service["build"], "context": str(PROJECT), "args": arguments}
        service["ulimits"] = _given(service.get("ulimits", {}))
    gpu = services["gpu"]
    del gpu["deploy"]
    gpu["environment"] = {**services["cpu"]["environment"], **gpu["environment"], "FUSEWIRE_DEVICE__BACKEND": "cpu"}
    del gpu["environment"]["FUSEWIRE_LISTEN__INSECURE_ALLOW_REMOTE"]
    return {**COMPOSE, "services": services}


def _default(service: str, argument: str) -> str:
    return filled_in(COMPOSE["services"][service]["build"]["args"][argument], {})


def _given(asked: dict[str, int]) -> dict[str, int]:
    most = limits_of_containers()
    return {**most, **{name: min(value, most[name]) for name, value in asked.items()}}
