"""The services of the compose file: closed by default, bounded, checked, and set by settings that exist."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from fusewire_server.config.config import SETTINGS, Limits, load
from fusewire_server.config.settings import GIB
from loadtests.scenarios.catalogue import find_scenarios
from tests.deploy.compose_file import COMPOSE_FILE, PROFILES, SERVICES, TEXT, filled_in, settings_of
from tests.deploy.setting_up import COMMANDS, certificate_names, set_up

SERVERS = ["cpu", "gpu"]
ONE_SHOT = {"setup", "load"}
LOOPBACK = "127.0.0.1:"
DOCKERFILE = COMPOSE_FILE.with_name("Dockerfile")
PROMETHEUS = COMPOSE_FILE.parent / "prometheus" / "prometheus.yml"
EXAMPLE = COMPOSE_FILE.with_name(".env.example")
DOCKER_COMPOSE = shutil.which("docker-compose") or ""
CHECK_JSONSCHEMA = shutil.which("check-jsonschema", path=f"{COMMANDS}{os.pathsep}{os.environ['PATH']}") or ""


def seconds(text: str) -> float:
    assert text.endswith("s")
    return float(text.removesuffix("s"))


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_has_no_more_rights_than_it_needs(service: str) -> None:
    settings = SERVICES[service]
    assert settings["read_only"] is True
    assert settings["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in settings["security_opt"]
    assert "privileged" not in settings


@pytest.mark.parametrize("service", ["prometheus", "grafana"])
def test_an_image_of_others_runs_as_a_user_without_rights(service: str) -> None:
    user, _, group = SERVICES[service]["user"].partition(":")
    assert int(user) > 0
    assert int(group) > 0


@pytest.mark.parametrize("service", sorted(SERVICES.keys() - ONE_SHOT))
def test_a_service_that_lasts_is_checked_and_bounded(service: str) -> None:
    settings = SERVICES[service]
    assert settings["healthcheck"]["test"][0] == "CMD"
    assert settings["mem_limit"]
    assert settings["restart"] == "unless-stopped"


@pytest.mark.parametrize("service", SERVICES)
def test_no_image_is_the_latest(service: str) -> None:
    image = filled_in(SERVICES[service]["image"], {})
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


def test_the_values_of_a_server_without_a_gpu_need_less_memory_than_its_container_has() -> None:
    limit = filled_in(SERVICES["cpu"]["mem_limit"], {})
    assert limit.endswith("g")
    memory_bytes = load(None, settings_of("cpu"), {}).config.device.memory_bytes
    assert memory_bytes is not None
    assert memory_bytes < int(limit.removesuffix("g")) * GIB


def test_a_server_without_tokens_is_published_on_loopback_only() -> None:
    for service in SERVERS:
        if "FUSEWIRE_LISTEN__TOKEN_FILE" not in settings_of(service):
            assert all(port.startswith(LOOPBACK) for port in SERVICES[service]["ports"])


def test_inspection_and_its_readers_are_published_on_loopback_only() -> None:
    for service, each in SERVICES.items():
        for port in each.get("ports", []):
            assert port.startswith(LOOPBACK) or port.endswith(":7423"), (service, port)


def test_the_example_of_variables_names_each_with_its_default() -> None:
    used = dict(re.findall(r"\$\{(\w+):-([^}]*)\}", TEXT))
    example = EXAMPLE.read_text(encoding="utf-8")
    assert dict(re.findall(r"^(\w+)=(.*)$", example, re.MULTILINE)) == used
    assert len(re.findall(r"^# .*\n\w+=", example, re.MULTILINE)) == len(used)


def test_a_service_that_ends_is_not_started_again() -> None:
    assert all("restart" not in SERVICES[service] for service in ONE_SHOT)


def test_no_service_sees_more_secrets_than_it_needs() -> None:
    secrets = {
        service: {name for name in ("server", "client", "watcher") if f"{name}-secrets:" in str(each["volumes"])}
        for service, each in SERVICES.items()
    }
    assert secrets == {
        "cpu": set(),
        "setup": {"server", "client", "watcher"},
        "gpu": {"server"},
        "prometheus": {"watcher"},
        "grafana": {"watcher"},
        "load": {"client", "watcher"},
    }
    for service, each in SERVICES.items():
        if service != "setup":
            assert all(volume.endswith(":ro") for volume in each["volumes"] if "-secrets:" in volume)


def test_grafana_has_no_default_password() -> None:
    path = SERVICES["grafana"]["environment"]["GF_SECURITY_ADMIN_PASSWORD__FILE"]
    assert path.startswith("/etc/fusewire/watchers/")


def test_the_certificate_names_the_server_as_its_neighbours_do_whatever_other_names_it_gets(tmp_path: Path) -> None:
    scraped = yaml.safe_load(PROMETHEUS.read_text(encoding="utf-8"))["scrape_configs"][0]["static_configs"][0][
        "targets"
    ]
    loaded = [word.partition("=")[2] for word in SERVICES["load"]["command"] if re.match(r"--(target|http)=", word)]
    neighbours = {("DNS", address.partition(":")[0]) for address in [*scraped, *loaded]}
    assert len(scraped) + len(loaded) == 3
    names = filled_in(SERVICES["setup"]["environment"]["NAMES"], {"FUSEWIRE_NAMES": "DNS:gpu.example"})
    of_certificate = certificate_names(set_up(tmp_path, names).server / "server.pem")
    assert of_certificate == neighbours | {("DNS", "gpu.example")}


def test_every_image_of_ours_is_built_on_the_base_that_is_asked_for() -> None:
    pinned = "docker.io/library/python@sha256:" + 64 * "0"
    built = [each["build"]["args"] for each in SERVICES.values() if "build" in each]
    assert {filled_in(arguments["PYTHON_IMAGE"], {"PYTHON_IMAGE": pinned}) for arguments in built} == {pinned}
    assert f"ARG PYTHON_IMAGE={filled_in(built[0]['PYTHON_IMAGE'], {})}\n" in DOCKERFILE.read_text(encoding="utf-8")


def test_the_load_test_uses_the_server_of_its_profile() -> None:
    words = [filled_in(word, {}) for word in SERVICES["load"]["command"]]
    assert words[0] in find_scenarios()
    assert {"--target=gpu:7423", "--http=gpu:7424"} <= set(words)
    assert "load" in SERVICES["gpu"]["profiles"]


@pytest.mark.skipif(not DOCKER_COMPOSE, reason="needs docker-compose")
@pytest.mark.parametrize("profile", PROFILES)
def test_docker_compose_understands_it(profile: str, tmp_path: Path) -> None:
    command = (DOCKER_COMPOSE, "--env-file", str(EXAMPLE), "-f", str(COMPOSE_FILE), "--profile", profile, "config")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not CHECK_JSONSCHEMA, reason="needs check-jsonschema")
def test_it_has_the_schema_of_compose_files(tmp_path: Path) -> None:
    """The schema of the Compose Specification, which check-jsonschema ships."""
    command = (CHECK_JSONSCHEMA, "--builtin-schema", "vendor.compose-spec")
    wrong = tmp_path / "compose.yaml"
    wrong.write_text(TEXT.replace("mem_limit:", "memory_limit:", 1), encoding="utf-8")
    for path, expected in ((COMPOSE_FILE, 0), (wrong, 1)):
        done = subprocess.run((*command, str(path)), capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == expected, done.stdout + done.stderr
