"""The services of the compose file: closed by default, bounded, checked, and set by settings that exist."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from fusewire_server.config.config import ENVIRONMENT_PREFIX, SETTINGS, Limits, load

DEPLOY = Path(__file__).parents[2] / "deploy"
TEXT = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(TEXT)["services"]
SERVERS = ["cpu", "gpu"]
ONE_SHOT = {"setup"}
LOOPBACK = "127.0.0.1:"
DOCKER_COMPOSE = shutil.which("docker-compose") or ""


def seconds(text: str) -> float:
    assert text.endswith("s")
    return float(text.removesuffix("s"))


def settings_of(service: str) -> dict[str, str]:
    return {
        name: text for name, text in SERVICES[service]["environment"].items() if name.startswith(ENVIRONMENT_PREFIX)
    }


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_has_no_more_rights_than_it_needs(service: str) -> None:
    told = SERVICES[service]
    assert told["read_only"] is True
    assert told["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in told["security_opt"]
    assert "privileged" not in told


@pytest.mark.parametrize("service", sorted(SERVICES.keys() - ONE_SHOT))
def test_a_service_that_lasts_is_checked_and_bounded(service: str) -> None:
    told = SERVICES[service]
    assert told["healthcheck"]["test"][0] == "CMD"
    assert told["mem_limit"]
    assert told["restart"] == "unless-stopped"


@pytest.mark.parametrize("service", SERVICES)
def test_no_image_is_the_latest(service: str) -> None:
    image = re.sub(r"\$\{\w+:-(.*)\}", r"\1", SERVICES[service]["image"])
    assert ":" in image
    assert not image.endswith(":latest")


@pytest.mark.parametrize("service", SERVERS)
def test_a_server_has_time_to_drain(service: str) -> None:
    drain_s = float(settings_of(service).get("FUSEWIRE_LIMITS__DRAIN_S", Limits().drain_s))
    assert seconds(SERVICES[service]["stop_grace_period"]) > drain_s + 2


@pytest.mark.parametrize("service", SERVERS)
def test_every_setting_exists_and_is_valid(service: str) -> None:
    loaded = load(None, settings_of(service), {})
    named = {name for name, origin in loaded.origins.items() if origin.startswith("environment")}
    assert len(named) == len(settings_of(service))
    assert named <= SETTINGS.keys()


def test_a_server_without_tokens_is_published_on_loopback_only() -> None:
    for service in SERVERS:
        if "FUSEWIRE_LISTEN__TOKEN_FILE" not in settings_of(service):
            assert all(port.startswith(LOOPBACK) for port in SERVICES[service]["ports"])


def test_inspection_and_its_readers_are_published_on_loopback_only() -> None:
    for service, told in SERVICES.items():
        for port in told.get("ports", []):
            assert port.startswith(LOOPBACK) or port.endswith(":7423"), (service, port)


def test_the_example_of_variables_names_each_with_its_default() -> None:
    used = dict(re.findall(r"\$\{(\w+):-([^}]*)\}", TEXT))
    example = (DEPLOY / ".env.example").read_text(encoding="utf-8")
    assert dict(re.findall(r"^(\w+)=(.*)$", example, re.MULTILINE)) == used
    assert len(re.findall(r"^# .*\n\w+=", example, re.MULTILINE)) == len(used)


@pytest.mark.skipif(not DOCKER_COMPOSE, reason="needs docker-compose")
@pytest.mark.parametrize("profile", ["cpu", "gpu", "obs"])
def test_docker_compose_understands_it(profile: str, tmp_path: Path) -> None:
    command = (DOCKER_COMPOSE, "--env-file", str(DEPLOY / ".env.example"), "-f", str(DEPLOY / "compose.yaml"))
    done = subprocess.run(
        (*command, "--profile", profile, "config"),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
