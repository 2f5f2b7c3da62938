"""A server process: what it says as it starts and as it ends."""

from __future__ import annotations

import json
import os
import signal

import pytest

import fusewire as fw
from fusewire.testing import serve_subprocess
from fusewire_protos.address import Address, read_address
from fusewire_server.app import _Process
from fusewire_server.config.config import Config, Listen
from fusewire_server.host.garbage_collector import GarbageCollector


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_addresses_that_a_server_announces_can_be_read(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    config = Config(listen=Listen(grpc=Address(host, 0), http=Address(host, 0)))
    with GarbageCollector() as garbage:
        _Process(config, garbage)._announce("null", "", 7423, 7424)
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
