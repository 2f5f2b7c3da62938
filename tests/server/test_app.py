"""A server process: what it says as it starts."""

from __future__ import annotations

import json

import pytest

from fusewire_protos.address import Address, read_address
from fusewire_server.app import _Process
from fusewire_server.config import Config, Listen
from fusewire_server.garbage import Garbage


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_addresses_that_a_server_announces_can_be_read(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    config = Config(listen=Listen(grpc=Address(host, 0), http=Address(host, 0)))
    with Garbage() as garbage:
        _Process(config, garbage)._announce("null", "", 7423, 7424)
    line = json.loads(capsys.readouterr().out)
    assert [read_address(line[name]) for name in ("grpc", "http")] == [(host, 7423), (host, 7424)]
