"""Sessions whose connection breaks and is made again: nothing is lost, nothing is done twice, and waiting goes on."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusewire as fw
from fusewire._connect import open_session
from fusewire.testing.memory_server import MemoryServer
from fusewire.testing.memory_transport import MemoryTransport
from fusewire_protos.credit import Amount
from fusewire_protos.errors import BY_NAME
from fusewire_protos.frames import INLINE_BYTES, Fetch, Segment, Upload
from fusewire_protos.v1 import fusewire_pb2 as wire
from tests.client.loops import H, inline_loop_that_prints
from tests.client.peer import Peer, connect, entries
from tests.drawn_loops import Drawn, Way, data, drawn_loops, run
from tests.effort import of_a_hundred
from tests.patience import HANGS_S


def connect_over(breaks: Callable[[], bool], credit: Amount | None = None) -> Peer:
    """A session over a connection that breaks."""
    server = MemoryServer() if credit is None else MemoryServer(credit=credit)
    transport = MemoryTransport(server, breaks=breaks)
    return Peer(open_session(transport, timeout=HANGS_S), transport, server)


def breaking_at(number: int) -> tuple[Callable[[], bool], Callable[[], bool]]:
    """Breaks the connection before one frame arrives. The second function tells whether there was such a frame."""
    numbers, broken = count(-2), list[int]()  # the hello and the first welcome arrive

    def breaks() -> bool:
        if next(numbers) != number:
            return False
        broken.append(number)
        return True

    return breaks, lambda: bool(broken)


def work(session: fw.Session) -> list[bytes]:
    """Uploads, records, reads, waits, frees, and uploads and reads what is large."""
    large = np.arange(INLINE_BYTES, dtype=np.float32)
    x, y = session.array(H), session.array(large)
    looped = inline_loop_that_prints(session)
    future, product = (x * 2).future(), y * 3
    del x
    small = [looped.numpy(timeout=HANGS_S), future.result(HANGS_S), (session.array(H) + H).numpy(timeout=HANGS_S)]
    return [each.tobytes() for each in (*small, product.numpy(timeout=HANGS_S))]


def left_on(peer: Peer) -> set[int]:
    """The handles that the server holds once the client has told of all that it does not hold."""
    (peer.session.array(H) * 1).numpy(timeout=HANGS_S)
    peer.session._sender.send_frees()
    peer.session.array(H).numpy(timeout=HANGS_S)
    return {*peer.server.values}


def test_a_connection_that_breaks_before_any_frame_arrives_changes_no_value() -> None:
    peer = connect()
    wanted, segments = work(peer.session), len(entries(peer, Segment))
    assert len(left_on(peer)) <= 1
    for number in count():
        breaks, has_broken = breaking_at(number)
        peer = connect_over(breaks)
        assert work(peer.session) == wanted, f"before frame {number}"
        assert len(left_on(peer)) <= 1
        for kind in (Fetch, Upload, Segment):
            sent = entries(peer, kind)
            assert len({*sent}) == len(sent), "nothing is applied twice"
        peer.session.close()
        if not has_broken():
            break
    assert number > 10
    assert segments


@of_a_hundred(30)
@given(drawn_loops(most_iterations=60), st.integers(0, 2**32), st.sampled_from([0.1, 0.5]))
def test_a_loop_gives_its_values_over_a_connection_that_breaks_at_random(loop: Drawn, seed: int, share: float) -> None:
    drawn = random.Random(seed)
    is_welcome: list[None] = []
    peer = connect_over(
        lambda: bool(is_welcome) and drawn.random() < share, Amount(ops=3000, bytes=1 << 20, segments=8)
    )
    is_welcome.append(None)
    rows, *first = data(np.int64)
    sent_rows, *sent_first = map(peer.session.array, (rows, *first))
    wanted = run(loop, Way(np), rows, first)
    found = run(loop, Way(fw, peer.session.array, read=_read), sent_rows, sent_first)
    for array, value in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(_read(array), value)
    del array, found, sent_rows, sent_first
    assert len(left_on(peer)) <= 1
    peer.session.close()


def _read(array: fw.Array) -> Any:
    return array.numpy(timeout=HANGS_S)


def test_a_read_waits_while_there_is_no_connection_and_goes_on() -> None:
    peer = connect(is_manual=True)
    x = peer.session.array(H) + 1
    peer.transport.cut()
    assert "resuming" in repr(peer.session)
    with pytest.raises(fw.WaitTimeout, match="the work goes on"):
        x.numpy(timeout=0.01)
    value = x.future()
    peer.transport.run_once()
    assert not value.done()
    peer.transport.reconnect()
    peer.transport.run_once()
    np.testing.assert_array_equal(value.result(0), H + 1)
    assert "open" in repr(peer.session)


def test_credit_that_came_back_while_there_was_no_connection_is_told_to_the_next() -> None:
    peer = connect(is_manual=True, holds_completion=True)
    x = peer.session.array(H)
    peer.transport.run_once()
    peer.transport.cut()
    peer.transport.complete()
    assert peer.session.stats.in_flight.bytes == H.nbytes
    peer.transport.reconnect()
    assert peer.session.stats.in_flight == Amount()
    del x


def test_the_frames_that_are_kept_are_those_that_the_server_has_not_acknowledged() -> None:
    peer = connect(is_manual=True)
    x = peer.session.array(H)
    peer.transport.run_once()
    assert peer.session.stats.unacknowledged_frames == 0
    del x


def test_the_log_says_that_a_session_is_resumed_and_for_how_long_it_is_tried(caplog: pytest.LogCaptureFixture) -> None:
    peer = connect(is_manual=True)
    with caplog.at_level("INFO", "fusewire"):
        peer.transport.cut()
        peer.transport.reconnect()
    assert [record.message for record in caplog.records] == [
        "lost the connection, resuming for up to 30 s: the connection in memory was cut",
        "the session is resumed",
    ]


def test_a_session_that_is_not_to_be_resumed_ends_with_its_connection() -> None:
    transport = MemoryTransport(MemoryServer(), is_manual=True)
    session = open_session(transport, timeout=HANGS_S, reconnect_s=0)
    with pytest.raises(fw.SessionLost, match="was cut"):
        transport.cut()
    session.close()


def test_a_session_that_was_closed_while_it_had_no_connection_is_not_resumed() -> None:
    peer = connect(is_manual=True)
    peer.transport.cut()
    peer.session.close()
    with pytest.raises(fw.SessionLost):
        peer.transport.cut()


def test_a_session_whose_server_shuts_down_is_not_resumed(caplog: pytest.LogCaptureFixture) -> None:
    peer = connect(is_manual=True)
    with caplog.at_level("ERROR", "fusewire"):
        peer.session.on_frame(wire.ServerFrame(draining_ms=1000).SerializeToString())
    with pytest.raises(fw.SessionLost):
        peer.transport.cut()


def test_an_error_says_how_long_it_was_tried_and_what_is_gone() -> None:
    peer = connect(is_manual=True)
    peer.transport.cut()
    peer.session.on_lost(fw.SessionLost("no route to host"))
    with pytest.raises(fw.SessionLost, match=r"^no route to host; it was tried to resume for 30 s; all values of the"):
        peer.session.array(H)


def test_another_server_has_none_of_the_values() -> None:
    peer = connect(is_manual=True)
    peer.transport.cut()
    goodbye = wire.Goodbye(code=BY_NAME["session_lost"].code, text="this server holds no such session")
    peer.session.on_frame(wire.ServerFrame(goodbye=goodbye).SerializeToString())
    with pytest.raises(fw.SessionLost, match="no such session; all values of the session are gone: connect again"):
        peer.session.array(H)


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_a_time_that_is_no_time_is_refused(seconds: float) -> None:
    with pytest.raises(fw.ConfigurationError, match="reconnect_s"):
        fw.connect("localhost:1", reconnect_s=seconds)
