"""Reads the compose file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from fusewire_server.config.config import ENVIRONMENT_PREFIX
from tests.deploy.dockerfile import PROJECT

COMPOSE_FILE = PROJECT / "deploy" / "compose.yaml"
TEXT = COMPOSE_FILE.read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PROFILES = sorted({profile for service in SERVICES.values() for profile in service["profiles"]})


def settings_of(service: str) -> dict[str, str]:
    """Returns the environment variables of a service that are settings of the server, by the defaults of the file."""
    environment = SERVICES[service].get("environment", {})
    return {name: filled_in(text, {}) for name, text in environment.items() if name.startswith(ENVIRONMENT_PREFIX)}


def filled_in(text: str, variables: Mapping[str, str]) -> str:
    """Returns the text with each `${NAME:-default}` replaced by its variable, or by its default."""
    return re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: variables.get(found[1], found[2]), text)
