"""A server for attacks: it needs tokens, and may have a planted fault. What an inspector sees of it."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fusewire.testing import ServerProcess, serve_subprocess

DEADLINE_S = 30.0
_LOOK_S = 0.02
_PLANTED = Path(__file__).parent / "planted"


@contextmanager
def serving(
    token_file: Path, planted: str = "", environment: Mapping[str, str] | None = None
) -> Iterator[ServerProcess]:
    """Runs a server with a token file on the CPU. `planted` names a fault of the folder `planted`."""
    path = f"{_PLANTED}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    planting = {"PLANTED_FAULT": planted, "PYTHONPATH": path} if planted else {}
    whole = {**planting, **(environment or {})}
    with serve_subprocess("cpu", environment=whole, arguments=("--token-file", str(token_file))) as server:
        yield server


@dataclass(frozen=True)
class Inspector:
    """Asks a server about itself. The token has the scope `inspect`."""

    server: ServerProcess
    token: str

    def ask(self, path: str) -> Any:
        """Returns the JSON of an answer, whatever its status, unless the server is too busy: then it is asked again."""
        ends_at_s = time.monotonic() + DEADLINE_S
        while True:
            status, answer = self._ask(path)
            if status != HTTPStatus.SERVICE_UNAVAILABLE or time.monotonic() > ends_at_s:
                return answer
            time.sleep(_LOOK_S)

    def _ask(self, path: str) -> tuple[int, Any]:
        request = urllib.request.Request(
            f"http://{self.server.http}{path}", headers={"Authorization": f"Bearer {self.token}"}
        )
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:  # noqa: S310 - our own server
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as answer:
            return answer.code, json.load(answer)

    def sessions(self, tenant: str) -> list[str]:
        """Returns the state of each session of a tenant."""
        return [one["state"] for one in self.ask("/v1/sessions")["sessions"] if one["tenant"] == tenant]


def until(condition: Callable[[], bool], within_s: float = DEADLINE_S) -> float:
    """Waits until the condition holds, and returns the seconds that this took. Fails after `within_s`."""
    began_s = time.monotonic()
    while not condition():
        assert time.monotonic() - began_s < within_s
        time.sleep(_LOOK_S)
    return time.monotonic() - began_s
