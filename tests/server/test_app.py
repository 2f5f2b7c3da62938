"""A server process: what it says as it starts and as it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from typing import NamedTuple

import pytest

import fusewire as fw
from fusewire.testing import serve_subprocess
from fusewire_cli.main import main as fusewire
from fusewire_protos.address import Address, read_address
from fusewire_server.app import _Process
from fusewire_server.config.config import Config, Listen
from fusewire_server.host.garbage_collector import GarbageCollector


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_addresses_that_a_server_announces_can_be_read(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    config = Config(listen=Listen(grpc=Address(host, 0), http=Address(host, 0)))
    with GarbageCollector() as garbage:
        _Process(config, {}, garbage)._announce("null", "", 7423, 7424)
    line = json.loads(capsys.readouterr().out)
    assert [read_address(line[name]) for name in ("grpc", "http")] == [(host, 7423), (host, 7424)]


def test_a_server_that_is_told_to_end_tells_an_idle_client_before_it_does() -> None:
    with serve_subprocess("null") as server, fw.connect(server.grpc, timeout=20) as session:
        x = session.array([1.0, 2.0])
        x.numpy(timeout=20)
        os.kill(server.pid, signal.SIGTERM)
        with session._state.lock:
            assert session._state.changed.wait_for(lambda: not session.is_open, 20)
        with pytest.raises(fw.SessionClosed, match=r"^the server is shutting down$"):
            x.numpy(timeout=20)


class Busy(NamedTuple):
    process: subprocess.Popen[str]
    http: str
    session: fw.Session


@pytest.fixture
def busy() -> Iterator[Busy]:
    """A server that never finishes the work of its one session, and that drains for a second at most if not hurried."""
    command = [sys.executable, "-m", "fusewire_server", "serve", "--backend", "null"]
    command += ["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    environment = {**os.environ, "FUSEWIRE_LIMITS__DRAIN_S": "1.5"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            urllib.request.urlopen(f"http://{told['http']}/v1/device/hold", data=b"", timeout=20).close()
            with fw.connect(told["grpc"], timeout=20) as session:
                (session.array([1.0, 2.0]) + 1).future()
                yield Busy(process, told["http"], session)
        finally:
            process.kill()


def test_a_server_ends_soon_after_its_drain_time_whatever_its_clients_do(busy: Busy) -> None:
    began_s = time.monotonic()
    busy.process.send_signal(signal.SIGTERM)
    assert busy.process.wait(20) == 0
    assert 1.5 <= time.monotonic() - began_s < 1.5 + 2.0
    assert busy.session.is_draining


def test_the_second_signal_ends_a_server_at_once(busy: Busy) -> None:
    busy.process.send_signal(signal.SIGTERM)
    wait_until_told(busy.session)
    began_s = time.monotonic()
    busy.process.send_signal(signal.SIGTERM)
    assert busy.process.wait(20) == 0
    assert time.monotonic() - began_s < 1.5


def test_the_command_drains_a_server(busy: Busy, capsys: pytest.CaptureFixture[str]) -> None:
    assert fusewire(["drain", "--http", busy.http]) == 0
    assert capsys.readouterr().out == f"{busy.http} drains\n"
    wait_until_told(busy.session)
    assert fusewire(["drain", "--http", busy.http]) == 0
    assert busy.process.wait(20) == 0


def wait_until_told(session: fw.Session) -> None:
    with session._state.lock:
        assert session._state.changed.wait_for(lambda: session.is_draining, 20)
