"""The health check of a container: 0 if the server of this machine answers, else 1."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from fusewire.testing import serve_subprocess
from fusewire_protos.address import Address
from fusewire_server import commands
from fusewire_server.config.config import Listen
from fusewire_server.healthcheck import is_alive


class _Ailing(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(500)

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def ailing() -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), _Ailing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_server_that_answers_is_alive_and_one_that_has_ended_is_not() -> None:
    with serve_subprocess("null") as server:
        assert commands.main(["healthcheck", "--http", server.http]) == 0
    assert commands.main(["healthcheck", "--http", server.http]) == 1


def test_the_answer_as_json_says_whether_the_server_is_alive(
    ailing: HTTPServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert commands.main(["healthcheck", "--json", "--http", f"127.0.0.1:{ailing.server_port}"]) == 1
    assert json.loads(capsys.readouterr().out) == {"is_alive": False}


def test_what_did_not_answer_is_told(ailing: HTTPServer, capsys: pytest.CaptureFixture[str]) -> None:
    address = f"127.0.0.1:{ailing.server_port}"
    assert commands.main(["healthcheck", "--http", address]) == 1
    assert capsys.readouterr() == ("", f"fusewire: the server at {address} does not answer /livez\n")


def test_a_server_that_answers_with_an_error_is_not_alive(ailing: HTTPServer) -> None:
    assert not is_alive(Listen(http=Address("127.0.0.1", ailing.server_port)))


def test_a_server_on_all_addresses_is_asked_on_loopback_by_tls(
    certificate: tuple[Path, Path],
) -> None:
    cert, key = certificate
    with serve_subprocess(
        "null", arguments=("--tls-cert", str(cert), "--tls-key", str(key), "--insecure-allow-remote")
    ) as server:
        port = int(server.http.rpartition(":")[2])
        assert is_alive(Listen(http=Address("0.0.0.0", port), tls_cert=cert, tls_key=key))  # noqa: S104
