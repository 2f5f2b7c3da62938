"""Runs the setup script of deploy/, which makes certificates, tokens and a password."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.deploy.dockerfile import PROJECT

COMMANDS = Path(sys.executable).parent  # the folder of the command `fusewire`
SCRIPT = PROJECT / "deploy" / "setup" / "setup.sh"


class Secrets(NamedTuple):
    """The folders that the script fills: for the server, for clients, and for Prometheus and Grafana."""

    server: Path
    clients: Path
    watchers: Path

    @property
    def server_arguments(self) -> tuple[str, ...]:
        """The arguments of `fusewire serve` for a server with these certificates and tokens."""
        cert, key, tokens = (str(self.server / name) for name in ("server.pem", "server.key", "tokens"))
        return ("--tls-cert", cert, "--tls-key", key, "--token-file", tokens)


def set_up(folder: Path, names: str = "DNS:localhost,IP:127.0.0.1") -> Secrets:
    """Runs the script with three folders in `folder`, which it makes if they are missing."""
    secrets = Secrets(folder / "server", folder / "clients", folder / "watchers")
    for each in secrets:
        each.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "PATH": f"{COMMANDS}{os.pathsep}{os.environ['PATH']}",
        "SERVER_DIR": str(secrets.server),
        "CLIENTS_DIR": str(secrets.clients),
        "WATCHERS_DIR": str(secrets.watchers),
        "NAMES": names,
    }
    subprocess.run(str(SCRIPT), check=True, env=environment, capture_output=True, timeout=60)
    return secrets


def certificate_names(path: Path) -> set[tuple[str, str]]:
    """Returns the kind and the text of each name in a certificate."""
    certificate = ssl._ssl._test_decode_cert(str(path))  # type: ignore[attr-defined]
    return set(certificate["subjectAltName"])
