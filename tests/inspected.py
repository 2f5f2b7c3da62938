"""A server of fixed answers, which stands for the HTTP inspection of a Fusewire server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

STATS: dict[str, Any] = {
    "version": "0.1.0",
    "instance": "00112233445566778899aabbccddeeff",
    "started_at": "2030-01-01T00:00:00+00:00",
    "is_ready": True,
    "is_draining": False,
    "is_held": False,
    "sessions": 1,
    "programs": 2,
    "backend": {"name": "cpu", "device": "2 cores", "detail": ""},
    "totals": {
        "ops": 6000,
        "segments": 30,
        "rows": 40,
        "launches": 60,
        "submissions": 20,
        "received_bytes": 2048,
        "sent_bytes": 5,
        "failures": {"bad_shape": 1},
        "sessions": {"opened": 3, "resumed": 2, "ended": {}},
    },
    "memory": {"live_bytes": 3 << 20, "peak_bytes": 2 << 30},
}
SESSION: dict[str, Any] = {
    "session": "0123456789ab",
    "tenant": "lab",
    "client": "fusewire-python 0.1.0",
    "state": "open",
    "ops": 6000,
    "device_ns": 1_000_000_000,
    "loop_ns": 40_000_000,
    "in_flight_ops": 200,
    "live_bytes": 4096,
    "unread_bytes": 0,
    "idle_s": 0.25,
}
KERNEL_WAITS: dict[str, Any] = {
    "kernels": 5,
    "sessions": 3,
    "oldest_s": 90.0,
    "oldest": [
        {"op": "max", "waiting_sessions": 2, "sessions": ["0123456789ab"], "waited_s": 90.0, "refusal": "no space"},
        {"op": "exp", "waiting_sessions": 1, "sessions": ["0123456789ab"], "waited_s": 0.25, "refusal": ""},
    ],
}
TOKEN = "id.secret"  # noqa: S105 - of a server that lives for one test


class Inspected:
    """Answers by path, without its query: a status and a text. Asks for TOKEN if `is_guarded`.

    `requests` holds method and path of each request, and `headers` is sent with each answer.
    """

    def __init__(self) -> None:
        self.answers = {
            "/v1/stats": (200, json.dumps(STATS)),
            "/v1/sessions": (200, json.dumps({"sessions": [SESSION]})),
        }
        self.headers: dict[str, str] = {}
        self.is_guarded = False
        self.requests: list[tuple[str, str]] = []
        self.http = HTTPServer(("127.0.0.1", 0), self._handler())
        self.address = f"127.0.0.1:{self.http.server_port}"

    def answer(self, path: str, authorization: str | None) -> tuple[int, str]:
        if self.is_guarded and authorization != f"Bearer {TOKEN}":
            return 401, json.dumps({"type": "urn:fusewire:problem:unauthenticated", "detail": "no token came"})
        return self.answers[path.partition("?")[0]]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        inspected = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                inspected.requests.append((self.command, self.path))
                status, text = inspected.answer(self.path, self.headers["authorization"])
                self.send_response(status)
                for name, value in inspected.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text.encode())

            def do_POST(self) -> None:
                self.do_GET()

            def do_PUT(self) -> None:
                self.do_GET()

            def do_DELETE(self) -> None:
                self.do_GET()

            def log_message(self, *_: object) -> None:
                """Silence on standard error, which the tests read."""

        return Handler


@contextmanager
def inspected_server() -> Iterator[Inspected]:
    """Runs a server of fixed answers, which may be changed while it runs."""
    server = Inspected()
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        thread.join(10)
        server.http.server_close()
