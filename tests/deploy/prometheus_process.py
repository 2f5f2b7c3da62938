"""Runs a Prometheus that scrapes one server, with the configuration of deploy/."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

from tests.deploy.expressions import DEPLOY

PROMETHEUS = shutil.which("prometheus") or "prometheus"
SCRAPE_INTERVAL = "1s"
_CONFIGURED = "scrape_interval: 5s"
_DEADLINE_S = 30.0
_STARTED = ("Listening on", "Server is ready to receive web requests")


class Prometheus:
    """A running Prometheus at an address of loopback."""

    def __init__(self, address: str) -> None:
        self._address = address

    def query(self, expression: str) -> list[float]:
        """Returns the values that an expression has now, one for each series."""
        query = urlencode({"query": expression})
        with urlopen(f"http://{self._address}/api/v1/query?{query}", timeout=_DEADLINE_S) as answer:
            document: dict[str, Any] = json.load(answer)
        return [float(series["value"][1]) for series in document["data"]["result"]]


@contextmanager
def scraping(http: str, secrets: Path, folder: Path) -> Iterator[Prometheus]:
    """Runs a Prometheus that scrapes the server at `http` each second, with what the setup made for watchers."""
    text = (DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8")
    changes = {_CONFIGURED: f"scrape_interval: {SCRAPE_INTERVAL}", "/etc/fusewire/watchers": str(secrets)}
    for before, after in {**changes, "gpu:7424": http}.items():
        assert before in text
        text = text.replace(before, after)
    (folder / "prometheus.yml").write_text(text, encoding="utf-8")
    shutil.copy(DEPLOY / "prometheus" / "alerts.yml", folder)
    command = [PROMETHEUS, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
    with subprocess.Popen([*command, "--web.listen-address=127.0.0.1:0"], stderr=subprocess.PIPE, text=True) as process:
        try:
            yield Prometheus(_address_of(process))
        finally:
            process.terminate()


def _address_of(process: subprocess.Popen[str]) -> str:
    """Reads the address from the log, until Prometheus is ready. Lets a thread read the rest of the log."""
    assert process.stderr is not None
    timer = threading.Timer(_DEADLINE_S, process.kill)
    timer.start()
    log = ""
    while not all(message in log for message in _STARTED):
        line = process.stderr.readline()
        assert line, f"Prometheus did not start: {log}"
        log += line
    timer.cancel()
    threading.Thread(target=process.stderr.read, daemon=True).start()
    (address,) = re.findall(r'msg="Listening on" address=(\S+)', log)
    return str(address)
