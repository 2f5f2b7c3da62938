"""A session on a server in memory: waiting, cancelling, failing and ending."""

from __future__ import annotations

import copy
import math
import os
import pickle
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from queue import SimpleQueue
from time import monotonic_ns
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire._connect import open_session
from fusewire._recording.cutting.cutter import CutScope
from fusewire._recording.cutting.drafts import Draft
from fusewire._recording.places import NOT_KNOWN
from fusewire._recording.recorder import Recorder
from fusewire._session import close_all
from fusewire._transport.interface import Peer
from fusewire.testing.memory_server import MemoryServer
from fusewire.testing.memory_transport import MemoryTransport
from fusewire_protos.credit import Amount
from fusewire_protos.frames import Abandon, Cancel, Fetch, Segment, Upload, decode_entries
from fusewire_protos.v1 import fusewire_pb2 as wire
from tests.client.loops import H
from tests.client.peer import Peer as MemoryPeer
from tests.client.peer import connect, entries
from tests.patience import HANGS_S

# ---- waiting, cancelling, ending ----


def test_a_timeout_ends_the_wait_and_not_the_work() -> None:
    peer = connect(is_manual=True)
    y = peer.session.array(H) + 1
    with pytest.raises(fw.WaitTimeout, match="the work goes on"):
        y.numpy(timeout=0.01)
    future = y.future()
    peer.transport.run_once()
    np.testing.assert_array_equal(future.result(0), H + 1)
    assert len(entries(peer, Abandon)) == 1


def test_a_session_tells_the_id_that_inspection_shows() -> None:
    session = connect().session
    assert session.id in repr(session)
    assert session.id == session._state.stream.session_id.hex()[:12]


def test_a_deep_copy_of_an_object_stays_in_its_session() -> None:
    session = connect().session
    copied_session, weights = copy.deepcopy((session, session.array(H)))
    assert copied_session is session
    np.testing.assert_array_equal(weights.numpy(timeout=HANGS_S), H)


@pytest.mark.parametrize("of", [copy.copy, pickle.dumps])
def test_a_session_is_not_copied_or_pickled(of: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="a session is a connection of this process"):
        of(connect().session)


def test_a_small_upload_ops_and_the_fetch_of_their_result_are_sent_in_one_frame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    peer, frames = connect(is_manual=True), list[list[type]]()

    def send() -> None:
        while (raw := peer.session.next_frame()) is not None:
            frames.append([type(entry) for entry in decode_entries(wire.ClientFrame.FromString(raw).bindings)])
            peer.transport._exchange(lambda raw=raw: peer.server.receive(raw))  # type: ignore[misc]  # bound at once

    first = peer.session.array(H)  # asks for a tick, as nothing waited before
    send()
    monkeypatch.setattr(peer.transport, "wake", send)
    monkeypatch.setattr(peer.transport, "want_tick", send)
    second = peer.session.array(H)
    np.testing.assert_array_equal((first + second).numpy(), H + H)
    assert frames[1:] == [[Upload, Segment, Fetch]]


def test_the_first_upload_after_a_rest_asks_for_a_tick_and_later_ones_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    peer, asked = connect(is_manual=True), list[None]()
    monkeypatch.setattr(peer.transport, "want_tick", lambda: asked.append(None))
    first, second = peer.session.array(H), peer.session.array(H)
    assert len(asked) == 1
    peer.transport.run_once()
    assert len(entries(peer, Upload)) == 2
    del first, second


def test_connecting_may_take_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    transport, opened = MemoryTransport(MemoryServer()), SimpleQueue[Peer]()
    begin = transport.open
    monkeypatch.setattr(transport, "open", opened.put)
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(open_session, transport, timeout=math.inf)
        with pytest.raises(TimeoutError):
            opening.result(0.1)
        begin(opened.get(timeout=HANGS_S))
        opening.result(HANGS_S).close()


def test_a_value_may_take_for_ever() -> None:
    peer = connect(credit=Amount(), holds_completion=True)
    x = peer.session.array(H)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit((x + 1).numpy, timeout=math.inf)  # for credit, and then for the value
        with pytest.raises(TimeoutError):
            waiting.result(0.1)
        for _ in range(1000):  # whatever has reached the server by then
            peer.transport.complete()
            if wait([waiting], timeout=0.01).done:
                break
        np.testing.assert_array_equal(waiting.result(0), H + 1)


@pytest.mark.parametrize("timeout", [math.nan, "a", (1,)])
def test_a_timeout_that_is_no_time_is_refused(timeout: Any) -> None:
    with connect().session as session, pytest.raises(fw.ArgumentError, match="a timeout is a number of seconds"):
        session.array(H).numpy(timeout=timeout)
    with pytest.raises(fw.ArgumentError, match="a timeout is a number of seconds"):
        open_session(MemoryTransport(MemoryServer()), timeout=timeout)


def test_a_timeout_may_be_a_number_of_numpys() -> None:
    timeout: Any = np.float32(5)
    with connect().session as session:
        np.testing.assert_array_equal(session.array(H).numpy(timeout=timeout), H)


def test_connecting_that_is_interrupted_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> bool:
        raise KeyboardInterrupt

    transport = MemoryTransport(MemoryServer())
    monkeypatch.setattr(threading.Condition, "wait_for", interrupt)
    with pytest.raises(KeyboardInterrupt):
        open_session(transport)
    assert transport._is_closed


def test_a_cancelled_future_is_abandoned_once() -> None:
    peer = connect(is_manual=True)
    future = peer.session.array(H).future()
    assert future.cancel()
    assert future.cancelled()
    peer.transport.run_once()
    assert [entry.fetch for entry in entries(peer, Abandon)] == [entry.fetch for entry in entries(peer, Fetch)]


def test_a_cancelled_future_is_done_for_whoever_waits_for_several() -> None:
    peer = connect(is_manual=True)
    x = peer.session.array(H)
    before, after = x.future(), x.future()
    before.cancel()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wait, [before, after], timeout=HANGS_S)
        after.cancel()
        assert waiting.result(HANGS_S).done == {before, after}


def test_a_future_may_be_cancelled_again() -> None:
    future = connect(is_manual=True).session.array(H).future()
    assert (future.cancel(), future.cancel()) == (True, True)


def test_an_answered_future_cannot_be_cancelled() -> None:
    with connect().session as session:
        future = session.array(H).future()
        future.result(HANGS_S)
        assert not future.cancel()


def test_an_answered_future_is_freed_with_its_value_as_soon_as_nobody_holds_it() -> None:
    peer = connect(is_manual=True)
    future = peer.session.array(H).future()
    peer.transport.run_once()
    np.testing.assert_array_equal(future.result(HANGS_S), H)
    freed = weakref.ref(future)
    del future
    assert freed() is None


def test_cancelling_the_session_sends_what_was_recorded_before_it() -> None:
    peer = connect(is_manual=True)
    y = peer.session.array(H) + 1
    peer.session.cancel()
    peer.transport.run_once()
    kinds = [type(entry) for entry in peer.server.entries]
    assert kinds == [Upload, Segment, Cancel]
    del y


def test_cancelling_the_session_leaves_a_body_that_another_thread_is_recording() -> None:
    peer = connect(is_manual=True)
    x = peer.session.array(H)
    is_recorded, may_end = threading.Event(), threading.Event()

    def body(_: fw.Array, carry: fw.Array) -> fw.Array:
        carry = carry + 1
        is_recorded.set()
        may_end.wait(HANGS_S)
        return carry

    with ThreadPoolExecutor(1) as pool:
        looping = pool.submit(fw.fori_loop, 3, body, x)
        is_recorded.wait(HANGS_S)
        y = x * 2
        try:
            peer.session.cancel()
        finally:
            may_end.set()
        looping.result(HANGS_S)
    peer.transport.run_once()
    assert [type(entry) for entry in peer.server.entries][:4] == [Upload, Segment, Cancel, Segment]
    assert [segment.repetition.iterations for segment in peer.server.segments] == [1, 3]
    del y


def test_a_closed_session_refuses_ops_and_reads() -> None:
    session = connect().session
    x = session.array(H)
    session.close()
    session.close()
    for use in (lambda: x + 1, x.numpy, lambda: session.array(H), x.future, session.cancel):
        with pytest.raises(fw.SessionClosed, match="closed"):
            use()


def test_closing_fails_the_futures_that_nobody_answered() -> None:
    peer = connect(is_manual=True)
    future = peer.session.array(H).future()
    peer.session.close()
    with pytest.raises(fw.SessionClosed):
        future.result(0)


def test_a_lost_connection_fails_what_waits_and_what_comes() -> None:
    peer = connect(is_manual=True)
    x = peer.session.array(H)
    future = x.future()
    peer.session.on_lost(fw.SessionLost("the line is cut"))
    with pytest.raises(fw.SessionLost, match="the line is cut"):
        future.result(0)
    with pytest.raises(fw.SessionLost, match="the line is cut"):
        x + 1


def test_a_session_reads_no_array_of_another() -> None:
    own, other = connect(is_manual=True).session, connect(is_manual=True).session
    x = other.array(H)
    for read in (own.fetch, lambda array: own.read(array, 1)):
        with pytest.raises(fw.ArgumentError, match="another session"):
            read(x)


def test_closing_as_the_io_thread_sends_what_is_recorded_ends_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = connect(is_manual=True)
    x = peer.session.array(H)
    _unsent = [x + 1 for _ in range(1000)]
    draft = Recorder.draft

    def draft_and_close(self: Recorder, scope: CutScope) -> Draft | None:
        peer.session.close()
        return draft(self, scope)

    monkeypatch.setattr(Recorder, "draft", draft_and_close)
    peer.transport.run_once()
    peer.session._sender.flush_idle()
    assert not peer.session.is_open
    assert peer.server.segments == []


def test_at_exit_sessions_part_together_within_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    peers = [connect(is_manual=True) for _ in range(3)]
    monkeypatch.setattr("fusewire._session._sessions", [peer.session for peer in peers])
    now_s = 0.0
    waits_s = []

    def wait_in_vain(timeout_s: float) -> None:
        nonlocal now_s
        assert all(peer.transport._is_closed for peer in peers)
        waits_s.append(timeout_s)
        now_s += timeout_s

    monkeypatch.setattr("fusewire._session.time", SimpleNamespace(monotonic=lambda: now_s, monotonic_ns=monotonic_ns))
    for peer in peers:
        monkeypatch.setattr(peer.transport, "wait_closed", wait_in_vain)
    close_all()
    assert waits_s == [1.0, 0.0, 0.0]


# ---- errors from the server ----


def error_of(peer: MemoryPeer, failing: fw.Array, read: fw.Array) -> BaseException:
    """The error of reading an array when the segment that begins with the op of another one fails."""
    peer.server.failing[failing._handle] = "out_of_memory"
    future = read.future()
    peer.transport.run_once()
    error = future.exception(0)
    assert error is not None
    return error


def test_a_failed_op_is_told_with_its_own_line() -> None:
    peer = connect(is_manual=True)  # else the op may have run before it is to fail
    x = peer.session.array(H)
    y = x + 1
    z = y * 2
    line = users_line() - 1
    error = error_of(peer, y, z)
    assert isinstance(error, MemoryError)
    assert str(error) == f"it failed (recorded at {__file__}:{line})"


def test_an_op_of_a_recorded_function_is_told_with_its_line_in_the_function_at_each_call() -> None:
    peer, lines = connect(is_manual=True), []

    @fw.function
    def twice(x: fw.Array) -> fw.Array:
        y = x + 1
        z = y * 2
        lines.append(users_line() - 1)
        return z

    x = peer.session.array(H)
    for _ in range(3):
        z = twice(x)
        peer.server.failing[z._handle - 1] = "out_of_memory"
        future = z.future()
        peer.transport.run_once()
        assert str(future.exception(0)) == f"it failed (recorded at {__file__}:{lines[0]})"


def test_the_line_of_an_op_that_lies_too_far_back_is_not_known() -> None:
    peer = connect(is_manual=True)
    x = peer.session.array(H)
    y = x + 1
    y._recorder.put_places(y._handle, [NOT_KNOWN])
    assert str(error_of(peer, y, y)) == "it failed (the line that recorded it is not known any more)"


@pytest.mark.parametrize("function", [fw.sum, fw.tanh, fw.ravel, fw.Array.mean], ids=lambda function: function.__name__)
def test_an_op_that_a_function_records_is_told_with_the_users_line(function: Callable[[fw.Array], fw.Array]) -> None:
    peer = connect(is_manual=True)
    y = function(peer.session.array(H))
    line = users_line() - 1
    peer.server.failing[y._handle] = "out_of_memory"
    future = y.future()
    peer.transport.run_once()
    with pytest.raises(fw.OutOfMemory, match=rf"recorded at .*test_session\.py:{line}"):
        future.result(0)


def users_line() -> int:
    """The line of the caller."""
    return sys._getframe(1).f_lineno


# ---- forks ----


def test_in_a_forked_child_sessions_are_dead_and_finalisers_silent() -> None:
    peer = connect(is_manual=True)
    x = peer.session.array(H)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            x + 1
        except fw.SessionClosed as error:
            os.write(writing, str(error).encode())
        finally:
            del x
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    assert b"forked" in os.read(reading, 1000)
    os.close(reading)
    future = (x + 1).future()
    peer.transport.run_once()
    np.testing.assert_array_equal(future.result(0), H + 1)
