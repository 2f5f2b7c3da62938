"""A Fusewire server in a process of its own, and its inspection over HTTP."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import quote

from fusewire.testing import serve_subprocess
from loadtests.measuring.errors import LoadFailed, NotWarm

CACHE_VARIABLE = "FUSEWIRE_CACHE_DIR"
_HTTP_DEADLINE_S = 10.0
_MOST_REPEATS = 9  # of a request while the server is busy, which it says after a second
_PLANNING_DEADLINE_S = 30.0
_PLANNING_LOOK_S = 0.02
_WARM_SHARE = 0.95
_BEING_PLANNED = frozenset({"planning", "loading"})


class Count(NamedTuple):
    """Running totals of a server."""

    ops: int
    rows: int
    submissions: int
    device_thread_ns: int
    device_ns: int  # in which the device ran submissions

    def since(self, earlier: Count) -> Count:
        return Count(*(now - then for now, then in zip(self, earlier, strict=True)))


class Program(NamedTuple):
    """The server's record of a program."""

    digest: str
    ops: int
    is_fragment: bool
    tier: int
    state: str
    hits: int
    planning_ns: int
    compiling_ns: int
    rows: int
    submissions: int


class Service:
    """A running server. `target` is the address for clients, `http` that of the inspection."""

    def __init__(self, target: str, http: str, *, token: str | None = None, tls_ca: Path | None = None) -> None:
        self.target = target
        self.http = http
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._tls = None if tls_ca is None else ssl.create_default_context(cafile=tls_ca)

    def stats(self) -> dict[str, Any]:
        """Returns the server's statistics, not older than the call."""
        return self._ask("GET", "/v1/stats")

    def sessions(self) -> list[dict[str, Any]]:
        """Returns all sessions, not older than the call."""
        return list(self._ask_all("/v1/sessions", "sessions"))

    def metrics(self) -> bytes:
        """Returns the metrics as Prometheus reads them, not older than the call."""
        return self._read("GET", "/metrics")

    def count(self) -> Count:
        stats = self.stats()
        totals = stats["totals"]
        phases = stats["phases"]
        thread_ns, device_ns = phases["device_thread"]["total_ns"], phases["device"]["total_ns"]
        return Count(totals["ops"], totals["rows"], totals["submissions"], thread_ns, device_ns)

    def programs(self) -> dict[str, Program]:
        """Returns all programs by digest, not older than the call."""
        return {each["digest"]: _program(each) for each in self._ask_all("/v1/programs", "programs")}

    def is_planning(self) -> bool:
        """Returns whether any program is being planned or its plan is being loaded, not older than the call."""
        return any(program.state in _BEING_PLANNED for program in self.programs().values())

    def wait_until_planned(self, deadline_s: float = _PLANNING_DEADLINE_S) -> None:
        """Waits until no program is being planned. Raises TimeoutError if a program still is at the deadline."""
        ends_at_s = time.monotonic() + deadline_s
        while self.is_planning():
            if time.monotonic() > ends_at_s:
                raise TimeoutError(f"programs were still being planned after {deadline_s:.0f} s")
            time.sleep(_PLANNING_LOOK_S)  # reads without a pause would slow the planning

    def wait_for_plans_beside(self, known: Container[str], deadline_s: float = _PLANNING_DEADLINE_S) -> bool:
        """Waits until every program that is not `known` runs by its plan. Fragments may run op by op.

        Returns False if there is no such program, or one of them gets no plan. Raises TimeoutError at the deadline.
        """
        ends_at_s = time.monotonic() + deadline_s
        while time.monotonic() < ends_at_s:
            new = [program for digest, program in self.programs().items() if digest not in known]
            bodies = [program for program in new if not program.is_fragment]
            if not any(program.state in _BEING_PLANNED for program in bodies):
                return bool(bodies) and all(program.tier > 0 for program in bodies)
            time.sleep(_PLANNING_LOOK_S)
        raise TimeoutError(f"programs were still being planned after {deadline_s:.0f} s")

    def arena_bytes(self, digest: str) -> int:
        """Returns the size of the arena of a program's plan, or 0 while the program has no plan."""
        compiled = self._ask("GET", f"/v1/programs/{digest}")["compiled"]
        return int(compiled["arena_bytes"]) if compiled else 0

    def in_flight_ops(self) -> tuple[int, ...]:
        """Returns the number of ops in flight of each session, not older than the call."""
        return tuple(session["in_flight_ops"] for session in self.sessions())

    @contextmanager
    def held(self) -> Iterator[None]:
        """Holds the device, so that it accepts no new submission within the `with` block."""
        self._ask("POST", "/v1/device/hold")
        try:
            yield
        finally:
            self._ask("POST", "/v1/device/release")

    def warm_up(self, act: Callable[[], object], deadline_s: float = _PLANNING_DEADLINE_S) -> None:
        """Repeats `act` until 95 % of its ops run in fused plans. Raises NotWarm if fewer do so at the deadline."""
        ends_at_s = time.monotonic() + deadline_s
        planned_share, before = 0.0, self.programs()
        while planned_share < _WARM_SHARE:
            if time.monotonic() > ends_at_s:
                raise NotWarm(f"after {deadline_s:.0f} s only {planned_share:.0%} of the ops ran in fused plans")
            act()
            after = self.programs()
            planned_share, before = _planned_share(before, after), after

    def _ask_all(self, path: str, entries: str) -> Iterator[dict[str, Any]]:
        """Yields the entries of a list that comes in pages. `entries` is their name in the answer."""
        after = ""
        while True:
            page = self._ask("GET", path + after)
            yield from page[entries]
            if page["next"] is None:
                return
            after = f"?after={quote(page['next'], safe='')}"

    def _ask(self, method: str, path: str) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._read(method, path))
        return answer

    def _read(self, method: str, path: str) -> bytes:
        """Returns the body of the answer. Asks a busy server ten times at most. Raises LoadFailed."""
        status, body = self._answer(method, path)
        for _ in range(_MOST_REPEATS):
            if status != HTTPStatus.SERVICE_UNAVAILABLE:
                break
            status, body = self._answer(method, path)
        if status != HTTPStatus.OK:
            raise LoadFailed(f"{method} {path} at {self.http}: {status} {body.decode(errors='replace')}")
        return body

    def _answer(self, method: str, path: str) -> tuple[int, bytes]:
        connection = self._connection()
        try:
            connection.request(method, path, headers=self._headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException) as reason:
            raise LoadFailed(f"no answer from the inspection at {self.http}: {reason}") from None
        finally:
            connection.close()

    def _connection(self) -> HTTPConnection:
        if self._tls is None:
            return HTTPConnection(self.http, timeout=_HTTP_DEADLINE_S)
        return HTTPSConnection(self.http, timeout=_HTTP_DEADLINE_S, context=self._tls)


@contextmanager
def serving(backend: str) -> Iterator[Service]:
    """Yields a fresh server with default settings on free loopback ports, with an empty cache of kernels."""
    with TemporaryDirectory() as folder, serve_subprocess(backend, environment={CACHE_VARIABLE: folder}) as server:
        yield Service(server.grpc, server.http)


def _planned_share(before: Mapping[str, Program], after: Mapping[str, Program]) -> float:
    """Returns the planned share of the ops sent between two readings: those whose programs now have plans."""
    ops, planned_ops = 0, 0
    for digest, program in after.items():
        known_hits = before[digest].hits if digest in before else 0
        sent_ops = program.ops * (program.hits - known_hits)
        ops += sent_ops
        planned_ops += sent_ops if program.tier > 0 else 0
    return planned_ops / ops if ops else 0.0


def _program(fields: Mapping[str, Any]) -> Program:
    return Program(**{name: fields[name] for name in Program._fields})
