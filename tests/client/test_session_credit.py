"""Credit of a session: who waits for it, who does not, and when what is recorded goes."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest

import fusewire as fw
from fusewire._recording.recorder import Recorder
from fusewire_protos.credit import Amount
from fusewire_protos.frames import Cancel, Free, Segment
from tests.client.loops import H, expected_loop, loop_of_calls, loop_on, operands
from tests.client.peer import Peer, connect, entries
from tests.patience import HANGS_S, until


def _blocked(peer: Peer) -> threading.Thread:
    """A thread that records far more than the credit."""

    def record() -> None:
        arrays = operands(peer.session)
        arrays[-1].numpy()
        peer.transport.complete()
        with suppress(fw.SessionClosed):
            loop_on(*arrays)

    thread = threading.Thread(target=record)
    thread.start()
    until(lambda: peer.session.stats.in_flight.ops > 0)
    recorded = -1
    while recorded != peer.session.stats.ops_recorded:
        recorded = peer.session.stats.ops_recorded
        thread.join(0.05)
    assert thread.is_alive()
    return thread


SHORT = Amount(ops=400, bytes=1 << 20, segments=2)


def test_a_recorder_out_of_credit_goes_on_when_credit_comes_back() -> None:
    peer = connect(credit=SHORT, holds_completion=True)
    thread = _blocked(peer)

    def complete() -> bool:
        peer.transport.complete()
        return not thread.is_alive()

    until(complete)
    cuts = peer.session.stats.cuts
    assert cuts["credit"] + cuts["idle"] > 0  # whichever thread was first to hear of it


def test_no_more_than_the_credit_is_ever_in_flight() -> None:
    peer = connect(credit=SHORT, holds_completion=True)
    thread = _blocked(peer)
    seen = []

    def step() -> bool:
        seen.append(peer.session.stats.in_flight)
        peer.transport.complete(min(1, seen[-1].segments))
        return not thread.is_alive()

    until(step)
    assert all(in_flight.segments == 1 or in_flight.fits(SHORT) for in_flight in seen)


def test_while_a_recorder_is_blocked_another_thread_fetches_and_frees() -> None:
    peer = connect(credit=SHORT, holds_completion=True)
    x = peer.session.array(H)
    peer.transport.complete()
    thread = _blocked(peer)
    np.testing.assert_array_equal(x.numpy(timeout=HANGS_S), H)
    del x
    until(lambda: bool(entries(peer, Free)))
    peer.session.close()
    thread.join(10)
    assert not thread.is_alive()


def test_closing_wakes_a_blocked_recorder() -> None:
    peer = connect(credit=SHORT, holds_completion=True)
    thread = _blocked(peer)
    peer.session.close()
    thread.join(10)
    assert not thread.is_alive()


def test_a_segment_larger_than_the_whole_credit_is_sent_with_nothing_in_flight() -> None:
    with connect(credit=Amount(ops=1, bytes=1, segments=1)).session as session:
        np.testing.assert_allclose(loop_of_calls(session).numpy(timeout=HANGS_S), expected_loop(), rtol=1e-4)


def test_a_fetch_that_finds_no_credit_in_time_says_so() -> None:
    peer = connect(credit=Amount(ops=1, bytes=1, segments=1), holds_completion=True)
    x = peer.session.array(H)
    with pytest.raises(fw.WaitTimeout):
        (x + 1).numpy(timeout=0.05)
    peer.session.close()


def test_a_wait_for_room_that_was_given_up_is_no_ones_concern_when_credit_returns() -> None:
    peer = connect(credit=SHORT, holds_completion=True)
    future = (peer.session.array(H) + 1).future()
    for _ in range(2):
        with pytest.raises(TimeoutError):
            asyncio.run(asyncio.wait_for(peer.session.ready(), 0.01))
    future.result(HANGS_S)
    peer.transport.complete()
    assert peer.session.stats.in_flight == Amount()
    np.testing.assert_array_equal((peer.session.array(H) + 1).numpy(timeout=HANGS_S), H + 1)
    peer.session.close()


def test_closing_after_a_wait_for_room_was_given_up_closes_the_transport() -> None:
    peer = connect(credit=SHORT, holds_completion=True, is_manual=True)
    future = (peer.session.array(H) + 1).future()
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(peer.session.ready(), 0.01))
    peer.session.close()
    assert peer.transport._is_closed
    del future


def test_a_callback_that_records_more_than_the_credit_waits_for_none_of_it() -> None:
    peer = connect(credit=SHORT, holds_completion=True)
    given = operands(peer.session)
    given[-1].numpy()
    peer.transport.complete()
    results: list[fw.Array] = []
    call_back(peer, given[0], lambda: results.append(loop_on(*given)))
    peer.server.holds_completion = False
    peer.transport.complete()
    np.testing.assert_allclose(results[0].numpy(timeout=HANGS_S), expected_loop(), rtol=1e-4)


def test_a_callback_that_needs_credit_at_once_is_told_that_it_cannot_wait() -> None:
    peer = connect(credit=Amount(ops=1, bytes=1 << 20, segments=1), holds_completion=True)
    x = peer.session.array(H)
    peer.transport.complete()
    (x + 1).future().result(HANGS_S)
    unsent = x * 2
    refused: list[fw.RequestError] = []

    def use() -> None:
        try:
            unsent + 1
        except fw.RequestError as error:
            refused.append(error)

    call_back(peer, x, use)
    assert "callback" in str(refused[0])


def call_back(peer: Peer, x: fw.Array, work: Callable[[], object]) -> None:
    """Does `work` in the I/O thread, as `x` comes."""
    done = threading.Event()

    def on_value(_: object) -> None:
        work()
        done.set()

    with peer.transport._exchanging:  # else it may have come before the callback is added, and this thread does it
        x.future().add_done_callback(on_value)
    assert done.wait(HANGS_S)


def test_a_callback_far_beyond_the_credit_looks_seldom_at_all_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = connect(credit=SHORT, holds_completion=True)
    given = operands(peer.session)
    given[-1].numpy()
    peer.transport.complete()
    looks: list[int] = []
    flush_settled = peer.session.flush_settled

    def look(recorder: Recorder) -> bool:
        looks.append(recorder.next_number)
        return flush_settled(recorder)

    monkeypatch.setattr(peer.session, "flush_settled", look)
    call_back(peer, given[0], lambda: loop_on(*given))
    assert len(looks) < 20


# ---- cancelling ----


def with_unsent_work() -> tuple[Peer, fw.Array]:
    """A session whose whole credit is in flight, and the result of an op for which there is none."""
    peer = connect(credit=Amount(ops=1, bytes=1 << 20, segments=1), is_manual=True, holds_completion=True)
    x = peer.session.array(H)
    peer.transport.run_once()
    peer.transport.complete()
    (x + 1).future()
    peer.transport.run_once()
    return peer, x * 3


def test_cancelling_gives_up_what_had_no_credit_once_it_has() -> None:
    peer, unsent = with_unsent_work()

    def has_given_up() -> bool:
        peer.transport.run_once()
        return bool(entries(peer, Cancel))

    with ThreadPoolExecutor(1) as pool:
        cancelling = pool.submit(peer.session.cancel)
        until(has_given_up)
        assert peer.session.recorder().is_unsent(unsent._handle)
        peer.transport.complete()
        cancelling.result(HANGS_S)
    peer.transport.run_once()
    kinds = [type(entry) for entry in peer.server.entries if isinstance(entry, Segment | Cancel)]
    assert kinds == [Segment, Cancel, Segment, Cancel]


def test_cancelling_in_the_io_thread_waits_for_no_credit(monkeypatch: pytest.MonkeyPatch) -> None:
    peer, unsent = with_unsent_work()
    monkeypatch.setattr(peer.transport, "is_own_thread", lambda: True)
    peer.session.cancel()
    peer.transport.run_once()
    assert isinstance(peer.server.entries[-1], Cancel)
    assert peer.session.recorder().is_unsent(unsent._handle)


# ---- triggers ----


def test_ops_that_wait_too_long_are_sent_for_their_age() -> None:
    peer = connect()
    x = peer.session.array(H)
    y = x + 1
    until(lambda: bool(peer.server.segments))
    assert peer.session.stats.cuts["age"] == 1
    del y


def test_a_value_that_was_sent_is_read_without_cutting_what_is_recorded() -> None:
    peer = connect(is_manual=True)
    x = peer.session.array(H)
    future = (x + 1).future()
    y = x * 3
    again = x.future()
    peer.transport.run_once()
    np.testing.assert_array_equal(again.result(0), H)
    np.testing.assert_array_equal(future.result(0), H + 1)
    assert peer.session.stats.segments == 1
    del y


def test_a_wait_goes_on_after_a_wait_of_a_signal_handler_in_its_thread() -> None:
    peer = connect(credit=Amount(ops=1, bytes=1 << 20, segments=1), holds_completion=True)
    x = peer.session.array(H)
    (x + 0.0).numpy()
    waits, main = peer.session._state.credit_waiters, threading.get_ident()

    def interrupt(*_: object) -> None:
        with pytest.raises(fw.WaitTimeout):
            (x + 2.0).numpy(timeout=0.0)
        threading.Thread(target=lambda: until(complete)).start()

    def complete() -> bool:
        peer.transport.complete()
        return not waits

    def signal_the_wait() -> None:
        until(lambda: waits)
        signal.pthread_kill(main, signal.SIGUSR1)  # sent to another thread it would not end the wait

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with ThreadPoolExecutor(1) as pool:
            signalled = pool.submit(signal_the_wait)
            np.testing.assert_array_equal((x + 1.0).numpy(timeout=HANGS_S), H + 1)
            signalled.result(HANGS_S)
    finally:
        signal.signal(signal.SIGUSR1, before)
