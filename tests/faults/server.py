"""A server for attacks: it needs tokens, and may have a planted fault. What an inspector sees of it."""

from __future__ import annotations

import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil

from fusewire.testing import ServerProcess, serve_subprocess
from tests.faults.busy_machine import idle_s
from tests.patience import HANGS_S

DEADLINE_S = 30.0
PLANNED_WITHIN_S = 60.0  # of idle processors; the pauses between attempts at a plan grow to 30 s
_LOOK_S = 0.02
_PLANTED = Path(__file__).parent / "planted"


@contextmanager
def serving(
    token_file: Path, planted: str = "", environment: Mapping[str, str] | None = None, *, more: tuple[str, ...] = ()
) -> Iterator[ServerProcess]:
    """Runs a server with a token file on the CPU. `planted` names a fault of the folder `planted`.

    `more` are arguments of the command.
    """
    path = f"{_PLANTED}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    planting = {"PLANTED_FAULT": planted, "PYTHONPATH": path} if planted else {}
    whole = {**planting, **(environment or {})}
    arguments = ("--token-file", str(token_file), *more)
    with serve_subprocess("cpu", environment=whole, arguments=arguments) as server:
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

    def wait_for_plans(self, work: Callable[[], None], least_rows: int) -> float:
        """Does some work again and again until all programs run by plans of which it runs so many rows.

        Returns the seconds that this took. Plans may be late only while others use the processors: what is bounded is
        the time in which processors had nothing to do.
        """
        ends_at_s = idle_s() + PLANNED_WITHIN_S
        took_s = until(lambda: self._runs_by_plans(work, least_rows) or idle_s() > ends_at_s, HANGS_S)
        assert self._runs_by_plans(work, least_rows)
        return took_s

    def _runs_by_plans(self, work: Callable[[], None], least_rows: int) -> bool:
        before = {each["digest"]: each["rows"] for each in self._programs()}
        work()
        used = [each for each in self._programs() if each["rows"] - before.get(each["digest"], 0) >= least_rows]
        return bool(used) and all(each["tier"] >= 1 for each in used)

    def _programs(self) -> list[dict[str, Any]]:
        page = self.ask("/v1/programs?limit=1000")
        programs: list[dict[str, Any]] = page["programs"]
        while page["next"] is not None:
            page = self.ask(f"/v1/programs?limit=1000&after={quote(page['next'], safe='')}")
            programs += page["programs"]
        return programs

    def kernels_compiled(self) -> int:
        count: int = self.ask("/v1/stats")["totals"]["compilation"]["kernels_compiled"]
        return count

    def held(self) -> tuple[int, int]:
        """Returns the number of sessions, and the bytes of the device that values take."""
        stats = self.ask("/v1/stats")
        return len(self.ask("/v1/sessions")["sessions"]), stats["memory"]["live_bytes"]

    def sessions(self, tenant: str) -> list[str]:
        """Returns the state of each session of a tenant."""
        return [one["state"] for one in self.ask("/v1/sessions")["sessions"] if one["tenant"] == tenant]


def pause(seconds: float) -> None:
    """Lets others work for a drawn time, so that a fault meets them anywhere."""
    threading.Event().wait(seconds)


def until(condition: Callable[[], bool], within_s: float = DEADLINE_S) -> float:
    """Waits until the condition holds, and returns the seconds that this took. Fails after `within_s`."""
    began_s = time.monotonic()
    while not condition():
        assert time.monotonic() - began_s < within_s
        time.sleep(_LOOK_S)
    return time.monotonic() - began_s


def children_of(process: psutil.Process) -> list[psutil.Process]:
    """Returns the processes that a process has started; none if it has ended meanwhile."""
    with suppress(psutil.NoSuchProcess):
        children: list[psutil.Process] = process.children()
        return children
    return []


def until_gone(processes: Iterable[psutil.Process], within_s: float) -> float:
    """Waits until processes have ended, whether or not somebody has asked for their status. Returns the seconds."""
    left = list(processes)
    return until(lambda: not any(map(_runs, left)), within_s)


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
