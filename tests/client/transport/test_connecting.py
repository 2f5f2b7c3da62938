"""Where a client connects to, and what it is told if no server answers as it should."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

import fusewire as fw
from fusewire._connect import open_session
from fusewire._transport.stream_transport import StreamTransport, _address_of
from fusewire_protos.v1 import fusewire_pb2 as wire
from tests.client.transport.grpc_server import A, Server
from tests.patience import HANGS_S


def test_where_no_server_listens_connecting_says_so() -> None:
    with pytest.raises(fw.SessionLost, match="unavailable"):
        fw.connect("127.0.0.1:1", timeout=HANGS_S)


@contextmanager
def answering(*frames: bytes) -> Iterator[str]:
    """A server that answers every hello with these bytes, and then nothing."""
    listening = grpc.server(ThreadPoolExecutor(2))
    released = threading.Event()

    def session(_: Iterator[bytes], context: Any) -> Iterator[bytes]:
        yield from frames
        released.wait(HANGS_S)

    methods: dict[str, Any] = {"Session": grpc.stream_stream_rpc_method_handler(session)}
    listening.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("fusewire.v1.Fusewire", methods),))
    port = listening.add_insecure_port("127.0.0.1:0")
    listening.start()
    yield f"127.0.0.1:{port}"
    released.set()
    listening.stop(None).wait(HANGS_S)


def test_a_server_that_does_not_answer_is_given_up() -> None:
    with answering() as target, pytest.raises(fw.WaitTimeout, match="did not answer"):
        fw.connect(target, timeout=0.3)


def test_giving_up_to_connect_adds_nothing_to_the_time_given_and_leaves_no_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fusewire._session._PARTING_S", 10 * HANGS_S)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        transport = StreamTransport(f"127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(fw.WaitTimeout, match=r"within 0\.3 s"):
            open_session(transport, timeout=0.3)
        assert transport._has_ended.wait(HANGS_S)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (wire.ServerFrame(welcome=wire.Welcome(version=99)).SerializeToString(), "version 99"),
        (b"\xff\xff\xff garbage", "not a frame"),
    ],
)
def test_a_server_that_breaks_the_protocol_is_told_as_that(raw: bytes, reason: str) -> None:
    with answering(raw) as target, pytest.raises(fw.ProtocolError, match=reason):
        fw.connect(target, timeout=HANGS_S)


@pytest.mark.parametrize(
    "target",
    [7423, "localhost", "localhost:0", "localhost:99999", "http://localhost:7423", "foo bar", "::1:7423", "unix:"],
)
def test_a_target_that_is_none_is_refused_at_once(target: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(fw.ConfigurationError, match=f"target = {target!r}: expected HOST:PORT with a port from 1 to"):
        fw.connect(target, timeout=HANGS_S)
    monkeypatch.setenv("FUSEWIRE_TARGET", str(target))
    with pytest.raises(fw.ConfigurationError, match=r"FUSEWIRE_TARGET = .*: expected HOST:PORT"):
        fw.connect(timeout=HANGS_S)


@pytest.mark.parametrize("place", ["unix:socket", "[::1]:0"])
def test_a_server_may_be_at_a_socket_of_this_machine_or_an_ipv6_address(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # for the paths of sockets are short
    try:
        server = Server(place=place)
    except RuntimeError:
        pytest.skip("this machine has no such addresses")
    with closing(server), fw.connect(server.target, timeout=HANGS_S) as session:
        np.testing.assert_array_equal(session.array(A).numpy(timeout=HANGS_S), A)


def test_no_name_of_a_host_says_how_to_look_it_up() -> None:
    assert _address_of("ipv4:80") == "dns:///ipv4:80"


def test_connecting_waits_for_no_thread_that_connects_elsewhere(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_begun, released = threading.Event(), threading.Event()

    def connect_slowly() -> fw.Session:
        has_begun.set()
        released.wait(HANGS_S)
        raise fw.WaitTimeout("nobody answered")

    monkeypatch.setattr("fusewire._connect._connected_last", [])
    monkeypatch.setattr("fusewire._connect.connect", connect_slowly)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(fw.default_session)
        assert has_begun.wait(HANGS_S)
        with fw.connect(server.target, timeout=HANGS_S):
            assert not waiting.done()
        released.set()
        assert isinstance(waiting.exception(20), fw.WaitTimeout)


def test_arrays_of_the_default_session_need_none_named(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusewire._connect._connected_last", [])
    monkeypatch.setenv("FUSEWIRE_TARGET", server.target)
    with fw.default_session():
        np.testing.assert_array_equal((fw.ones(3) + fw.asarray([1, 2, 3])).numpy(timeout=HANGS_S), [2, 3, 4])


def test_the_environment_makes_sessions_debug(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for value, debugs in (("1", True), ("0", False)):
        monkeypatch.setenv("FUSEWIRE_DEBUG", value)
        with fw.connect(server.target, timeout=HANGS_S) as session:
            assert (session.index_checks is not None) is debugs


def test_without_a_target_the_error_says_where_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FUSEWIRE_TARGET", raising=False)
    with pytest.raises(fw.ConfigurationError, match="FUSEWIRE_TARGET"):
        fw.connect()
