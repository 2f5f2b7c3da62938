"""A server process as tests see it: what its inspection tells, and its gate in front of the device."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import fusewire as fw
from fusewire.testing import serve_subprocess
from fusewire_kernels.compile.binary_cache import CACHE_VARIABLE
from tests.patience import HANGS_S, Patience, until

_ASK_EVERY_S = 0.02


class Refused(Exception):
    """Inspection answered with another status than OK."""

    def __init__(self, status: HTTPStatus, body: str) -> None:
        super().__init__(f"{status} {body}")
        self.status = status


class Service:
    """`target` is what a client connects to."""

    def __init__(self, target: str, http: str) -> None:
        self.target = target
        self._http = http

    def connect(self, *, local: bool = True) -> fw.Session:
        return fw.connect(self.target, local=local)

    def stats(self) -> dict[str, Any]:
        return self._ask("GET", "/v1/stats")

    def stats_and_age_ms(self) -> tuple[dict[str, Any], float]:
        """The statistics, and how old they are by what the answer says."""
        headers, stats = self._ask_for_all("GET", "/v1/stats")
        return stats, float(headers["snapshot-age-ms"])

    def totals(self) -> dict[str, Any]:
        """What the server has done since it started."""
        totals: dict[str, Any] = self.stats()["totals"]
        return totals

    def sessions(self) -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = self._ask("GET", "/v1/sessions")["sessions"]
        return answer

    def program(self, digest: str) -> dict[str, Any]:
        """A program and its plan."""
        return self._ask("GET", f"/v1/programs/{digest}")

    def programs(self) -> dict[str, dict[str, Any]]:
        """What is told of each program, by digest."""
        return {each["digest"]: each for each in self._ask("GET", "/v1/programs")["programs"]}

    def slow_segments(self, session: str) -> list[dict[str, Any]]:
        """What the slow log tells of a session, the newest first."""
        return [each for each in self._ask("GET", "/v1/slowlog")["entries"] if each["session"] == session]

    def wait_until_queued_for(self, least_s: float) -> None:
        """Returns once a segment has waited that long for the device."""
        self.wait_until(lambda: self._ask("GET", "/v1/queue")["oldest_row_s"] >= least_s, f"a wait of {least_s} s")

    @contextmanager
    def held(self) -> Iterator[None]:
        """While inside, the device takes no new submission."""
        try:
            self._ask("POST", "/v1/device/hold")
            yield
        finally:
            self._ask("POST", "/v1/device/release")

    def wait_until(self, is_so: Callable[[], bool], what: str) -> None:
        """Returns once it is so; what is told is published a few times a second. Fails when patience is exhausted."""
        until(is_so, what, _ASK_EVERY_S)

    def wait_until_told(self) -> None:
        """Returns once all that is told is newer than the call: it tells of a gate shut, then opened, since."""
        with self.held():
            self.wait_until(lambda: self.stats()["is_held"], "news of a gate shut")
        self.wait_until(lambda: not self.stats()["is_held"], "news of a gate opened")

    def wait_until_in_flight(self, ops: int) -> None:
        """Returns once all sessions together have so many ops at the server."""
        self.wait_until(lambda: sum(each["in_flight_ops"] for each in self.sessions()) == ops, f"{ops} ops in flight")

    def wait_until_planned(self) -> None:
        """Returns once every program but fragments, and what sessions that are gone left behind, has its fused plan."""
        self.wait_until_told()
        self.wait_until(lambda: all(map(_is_planned, self.programs().values())), "a plan for every program")

    def wait_until_empty(self) -> None:
        """Returns once nothing is left of any session."""
        self.wait_until_told()
        self.wait_until(lambda: self.stats()["sessions"] == 0, "the end of all sessions")
        self.wait_until(lambda: self.stats()["memory"]["live_bytes"] == 0, "the return of all memory")

    def _ask(self, method: str, path: str) -> dict[str, Any]:
        _, answer = self._ask_for_all(method, path)
        return answer

    def _ask_for_all(self, method: str, path: str) -> tuple[Message, dict[str, Any]]:
        """Headers and body of the answer.

        Asks again while the server is too busy to answer: tests share their machine with others.
        """
        patience = Patience()
        pause = threading.Event()
        while True:
            status, headers, body = self._answer(method, path)
            if status != HTTPStatus.SERVICE_UNAVAILABLE or patience.is_exhausted():
                break
            pause.wait(_ASK_EVERY_S)
        if status != HTTPStatus.OK:
            raise Refused(HTTPStatus(status), body.decode())
        answer: dict[str, Any] = json.loads(body)
        return headers, answer

    def _answer(self, method: str, path: str) -> tuple[int, Message, bytes]:
        connection = HTTPConnection(self._http, timeout=HANGS_S)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()


@contextmanager
def serving(backend: str, *, cache: Path, environment: Mapping[str, str] | None = None) -> Iterator[Service]:
    """A fresh server on free ports of the loopback, which compiles into the folder `cache`."""
    with serve_subprocess(backend, environment={**(environment or {}), CACHE_VARIABLE: str(cache)}) as server:
        yield Service(server.grpc, server.http)


def _is_planned(program: dict[str, Any]) -> bool:
    return bool(program["is_fragment"] or program["state"] == "unplanned" or program["tier"] > 0)
