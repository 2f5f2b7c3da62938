"""Bare gRPC as a peer: it echoes and carries all bytes, with the settings that Fusewire has."""

from __future__ import annotations

import os

import pytest

from fusewire._transport import stream_transport as _stream_transport
from fusewire_protos import grpc_environment
from fusewire_server.config.config import Config
from fusewire_server.transport.grpc_server import channel_options
from loadtests.measuring.errors import WrongResult
from loadtests.measuring.workers import Worker
from loadtests.peers import bare_client, bare_server
from loadtests.peers.bare_pair import bare_pair
from loadtests.peers.grpc_options import CLIENT_OPTIONS, SERVER_OPTIONS


def test_its_client_has_the_options_of_a_client() -> None:
    assert set(CLIENT_OPTIONS) == set(_stream_transport._CLEAR_CHANNEL_OPTIONS)


def test_its_server_has_the_options_of_a_server() -> None:
    assert set(SERVER_OPTIONS) == set(channel_options(Config().listen, Config().limits.message_bytes))


def test_its_processes_inherit_all_variables_that_fusewire_sets() -> None:
    assert grpc_environment.lacking(os.environ) == {}


@pytest.mark.slow
def test_it_echoes_and_carries_all_bytes() -> None:
    with bare_pair(3_000_000, 1 << 20) as client:
        assert all(time_ns > 0 for time_ns in client.ask("echo", 3))
        assert client.ask("upload") > 0
        assert client.ask("download") > 0


@pytest.mark.slow
def test_an_error_of_a_worker_is_raised_where_it_was_asked_for() -> None:
    with (
        Worker(bare_server.serve, 1000, 256) as server,
        Worker(bare_client.serve, server.answer(), 2000, 256) as client,
        pytest.raises(WrongResult, match="bare gRPC returned 1000 bytes instead of 2000"),
    ):
        client.ask("download")
