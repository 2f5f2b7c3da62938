"""Sessions over gRPC: how ops and values travel, and what ends a session."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import grpc
import numpy as np
import pytest

import fusewire as fw
from fusewire._stream import resumption
from fusewire._transport.interface import Attempt, ConnectionCut
from fusewire._transport.large_values import _reason_of
from fusewire_protos.errors import BY_NAME
from fusewire_protos.frames import Abandon, Fetch, Upload
from fusewire_protos.upload_call import SESSION_HEADER
from fusewire_protos.v1 import fusewire_pb2 as wire
from tests.client.transport.grpc_server import LARGE, A, Server
from tests.patience import HANGS_S


def test_ops_are_sent_and_values_read(server: Server) -> None:
    with fw.connect(server.target) as session:
        x = session.array(A)
        np.testing.assert_allclose((x * 2 + 1).numpy(timeout=HANGS_S), A * 2 + 1)
    assert server.memory.entries


def test_large_arrays_travel_beside_the_stream_both_ways(server: Server) -> None:
    with fw.connect(server.target) as session:
        x = session.array(LARGE)
        np.testing.assert_array_equal(session.array(A).numpy(timeout=HANGS_S), A)
        np.testing.assert_array_equal(x.numpy(timeout=HANGS_S), LARGE)
    assert server.metadata[1][SESSION_HEADER] == (b"s" * 16).hex()


def test_a_large_array_may_change_as_soon_as_its_upload_returns(server: Server) -> None:
    source = LARGE.copy()
    with fw.connect(server.target) as session:
        x = session.array(source)
        source[:] = 0
        np.testing.assert_array_equal(x.numpy(timeout=HANGS_S), LARGE)


def test_a_large_value_may_be_written_to(server: Server) -> None:
    with fw.connect(server.target) as session:
        value = session.array(LARGE).numpy(timeout=HANGS_S)
    value += 1
    np.testing.assert_array_equal(value, LARGE + 1)


@pytest.mark.parametrize(
    "alter", [lambda value: value[:-1], lambda value: value + b"x", lambda value: value * 2, lambda value: b""]
)
def test_a_value_that_is_not_as_long_as_declared_is_an_error(server: Server, alter: Callable[[bytes], bytes]) -> None:
    server.alter = alter
    with fw.connect(server.target) as session:
        with pytest.raises(fw.SessionLost, match="while the value travelled"):
            session.array(LARGE).numpy(timeout=HANGS_S)
        np.testing.assert_array_equal(session.array(A).numpy(timeout=HANGS_S), A)


def test_a_value_that_there_is_no_room_for_here_is_an_error_and_the_server_drops_it(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise MemoryError("no room for a value")

    with fw.connect(server.target) as session:
        x = session.array(LARGE)
        monkeypatch.setattr("fusewire._transport.large_values.np", SimpleNamespace(empty=fail, uint8=np.uint8))
        with pytest.raises(MemoryError, match="no room for a value"):
            x.numpy(timeout=HANGS_S)
        monkeypatch.undo()
        np.testing.assert_array_equal(x.numpy(timeout=HANGS_S), LARGE)
    assert [type(entry) for entry in server.memory.entries][:4] == [Upload, Fetch, Abandon, Fetch]


@pytest.mark.parametrize(
    "arrange",
    [
        lambda chunks: [*chunks[:3], chunks[4], chunks[3], *chunks[5:]],
        lambda chunks: chunks[::-1],
        lambda chunks: [*chunks[:3], chunks[2], *chunks[4:]],
        lambda chunks: chunks[1:],
        lambda chunks: [*chunks[:3], *chunks[4:]],
        lambda chunks: [*chunks, chunks[-1]],
    ],
    ids=["exchanged", "backwards", "again for another", "the first left out", "one left out", "the last again"],
)
def test_a_value_whose_chunks_are_out_of_order_is_an_error(
    server: Server, arrange: Callable[[list[bytes]], list[bytes]]
) -> None:
    server.arrange = arrange
    with fw.connect(server.target) as session:
        with pytest.raises(fw.SessionLost, match="while the value travelled"):
            session.array(LARGE).numpy(timeout=HANGS_S)
        np.testing.assert_array_equal(session.array(A).numpy(timeout=HANGS_S), A)


def test_a_download_that_a_limit_forbids_names_the_limit(server: Server) -> None:
    server.refusal = (grpc.StatusCode.RESOURCE_EXHAUSTED, "too_many_calls: 512 calls of this session are running")
    with fw.connect(server.target) as session:
        x = session.array(LARGE)
        with pytest.raises(fw.QuotaExceeded, match=r"^512 calls of this session are running$"):
            x.numpy(timeout=HANGS_S)
        server.refusal = None
        np.testing.assert_array_equal(x.numpy(timeout=HANGS_S), LARGE)


@pytest.mark.parametrize("details", ["unknown_handle: fetch 1 has no answer to download", "Socket closed", ""])
def test_a_download_that_ends_for_any_other_reason_is_a_broken_connection(server: Server, details: str) -> None:
    server.refusal = (grpc.StatusCode.NOT_FOUND, details)
    with (
        fw.connect(server.target) as session,
        pytest.raises(fw.SessionLost, match="the connection broke while the value travelled"),
    ):
        session.array(LARGE).numpy(timeout=HANGS_S)


def test_whose_download_ends_with_its_session_is_told_why_that_ended(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    goodbye = wire.Goodbye(code=BY_NAME["draining"].code, text="the server is shutting down")

    def farewell_follows(error: grpc.aio.AioRpcError) -> fw.FusewireError:
        server._owe([wire.ServerFrame(goodbye=goodbye).SerializeToString()])
        return _reason_of(error)

    monkeypatch.setattr("fusewire._transport.large_values._reason_of", farewell_follows)
    server.refusal = (grpc.StatusCode.NOT_FOUND, "session_lost: the session has ended")
    with (
        fw.connect(server.target) as session,
        pytest.raises(fw.SessionClosed, match="the server is shutting down"),
    ):
        session.array(LARGE).numpy(timeout=HANGS_S)


def test_a_typed_farewell_is_what_the_user_is_told(server: Server) -> None:
    with fw.connect(server.target) as session:
        code = BY_NAME["frame_gap"].code
        server.farewells.append(wire.ServerFrame(goodbye=wire.Goodbye(code=code, text="frame 9 follows 2")))
        with pytest.raises(fw.ProtocolError, match="frame 9 follows 2"):
            session.array(A).numpy(timeout=HANGS_S)


def test_a_server_that_ends_the_stream_has_lost_a_session_that_is_not_to_be_resumed(server: Server) -> None:
    with fw.connect(server.target, reconnect_s=0) as session:
        x = session.array(A)
        x.numpy(timeout=HANGS_S)
        server.farewells.append(wire.ServerFrame())
        with pytest.raises(fw.SessionLost, match="ended the session"):
            (x + 1).numpy(timeout=HANGS_S)


def test_a_session_whose_stream_ends_without_a_word_is_resumed(server: Server) -> None:
    with fw.connect(server.target) as session:
        x = session.array(A)
        x.numpy(timeout=HANGS_S)
        server.farewells.append(wire.ServerFrame())
        value = (x + 1).future()
        np.testing.assert_array_equal(value.result(HANGS_S), A + 1)


def test_who_closes_a_session_without_a_connection_says_goodbye_over_another(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resumption, "_FIRST_DELAY_S", HANGS_S)
    monkeypatch.setattr(resumption, "_LONGEST_DELAY_S", HANGS_S)
    session = fw.connect(server.target)
    x = session.array(A)
    x.numpy(timeout=HANGS_S)
    is_cut = threading.Event()

    def note(reason: ConnectionCut) -> Attempt | None:
        attempt = fw.Session.on_cut(session, reason)
        is_cut.set()
        return attempt

    monkeypatch.setattr(session, "on_cut", note)
    server.farewells.append(wire.ServerFrame())
    future = (x + 1).future()
    assert is_cut.wait(HANGS_S)
    session.close()
    assert server.has_parted.wait(HANGS_S)
    with pytest.raises(fw.SessionClosed):
        future.result(HANGS_S)


def test_each_connection_takes_the_token_that_there_is_then(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSEWIRE_TOKEN", "old")
    with fw.connect(server.target) as session:
        x = session.array(A)
        x.numpy(timeout=HANGS_S)
        monkeypatch.setenv("FUSEWIRE_TOKEN", "new")
        server.farewells.append(wire.ServerFrame())
        (x + 1).numpy(timeout=HANGS_S)
    assert [call["authorization"] for call in server.metadata] == ["Bearer old", "Bearer new"]


def test_a_failure_in_the_io_thread_ends_the_session_and_is_its_reason(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> float:
        raise MemoryError("no room for a program")

    with fw.connect(server.target) as session:
        x = session.array(A)
        future = (x + 1).future()
        future.result(HANGS_S)
        monkeypatch.setattr(session, "on_tick", fail)
        session._state.transport.want_tick()
        with pytest.raises(fw.SessionLost, match="no room for a program"):
            wait_for_end(session)


def test_a_tick_that_is_due_in_less_than_the_clock_counts_is_not_asked_for_over_and_over(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks: list[int] = []
    looks: list[None] = []
    has_ticked = threading.Event()

    def on_tick() -> float:
        ticks.append(len(looks))
        if len(ticks) == 20:
            has_ticked.set()
        return 0.0004

    def next_frame() -> None:
        looks.append(None)

    with fw.connect(server.target) as session:
        monkeypatch.setattr(session, "next_frame", next_frame)
        monkeypatch.setattr(session, "on_tick", on_tick)
        session._state.transport.want_tick()
        assert has_ticked.wait(HANGS_S)
    assert ticks[19] - ticks[0] <= 3 * 19


def wait_for_end(session: fw.Session) -> None:
    """Raises why it ended."""
    with session._state.lock:
        assert session._state.changed.wait_for(lambda: not session.is_open, 20)
    session.check_open()


@pytest.mark.parametrize("look", [1, 2, 3])
def test_whoever_posts_as_the_io_thread_falls_asleep_is_heard(
    server: Server, monkeypatch: pytest.MonkeyPatch, look: int
) -> None:
    monkeypatch.setattr("fusewire._stream.session_timer._IDLE_TICK_S", 60)
    with fw.connect(server.target) as session:
        x = session.array(A)
        x.numpy(timeout=HANGS_S)
        next_frame, futures, looks = session.next_frame, [], [look]

        def next_frame_and_a_post() -> bytes | None:
            raw = next_frame()
            if raw is None:
                looks[0] -= 1
            if raw is None and looks[0] == 0:
                poster = threading.Thread(target=lambda: futures.append(x.future()))
                poster.start()
                poster.join(10)
                posted.set()
            return raw

        posted = threading.Event()
        monkeypatch.setattr(session, "next_frame", next_frame_and_a_post)
        while not posted.wait(0.001):
            session._state.transport.wake()
        np.testing.assert_array_equal(futures[0].result(HANGS_S), A)


def test_an_upload_that_nobody_takes_waits_until_the_session_ends(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fusewire._transport.stream_transport._QUEUED_BYTES", 1 << 16)
    taken = threading.Event()
    monkeypatch.setattr(server, "take_upload", lambda: taken.wait(HANGS_S))
    session = fw.connect(server.target)
    with ThreadPoolExecutor(1) as pool:
        upload = pool.submit(session.array, np.zeros(2 << 20))
        with pytest.raises(TimeoutError):
            upload.result(1)
        session.close()
        with pytest.raises(fw.SessionClosed):
            upload.result(HANGS_S)
    taken.set()
