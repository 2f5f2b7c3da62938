"""Sessions on a server in memory: what is sent, what is live, who waits, how it ends."""

from __future__ import annotations

import asyncio
import linecache
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from inspect import CO_GENERATOR
from types import FrameType
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire import _recorder
from fusewire._credit import Amount
from fusewire._segments import structure_of
from fusewire_protos.frames import INLINE_BYTES, Abandon, Cancel, Entry, Fetch, Free, Segment, Upload
from fusewire_protos.program import Program
from tests.client.peer import Peer, connect

H = np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 8)
W = np.linspace(-0.5, 0.5, 64, dtype=np.float32).reshape(8, 8)
STEPS = 300


def cell(h: Any, w: Any, b: Any, r: Any) -> Any:
    """One step of a small recurrent loop: a product and five pointwise ops."""
    z = h @ w
    z = z + b
    z = z * 0.5
    z = -z
    z = fw.tanh(z)
    return z + r


def operands(session: fw.Session) -> tuple[fw.Array, ...]:
    return session.array(H), session.array(W), session.array(H + 1), session.array(H * 2)


def loop_of_calls(session: fw.Session) -> fw.Array:
    return loop_on(*operands(session))


def loop_on(h: fw.Array, w: fw.Array, b: fw.Array, r: fw.Array) -> fw.Array:
    for _ in range(STEPS):
        h = cell(h, w, b, r)
    return h


def inline_loop(session: fw.Session) -> fw.Array:
    h, w, b, r = operands(session)
    for _ in range(STEPS):
        z = h @ w
        z = z + b
        z = z * 0.5
        z = -z
        z = fw.tanh(z)
        h = z + r
    return h


def inline_loop_that_prints(session: fw.Session) -> fw.Array:
    h, w, b, r = operands(session)
    for _ in range(STEPS):
        z = h @ w
        z = z + b
        repr(z), z.shape, z.dtype, len(z)
        z = z * 0.5
        z = -z
        z = fw.tanh(z)
        h = z + r
    return h


def expected_loop() -> Any:
    h = H
    for _ in range(STEPS):
        h = np.tanh(-((h @ W + (H + 1)) * np.float32(0.5))) + H * 2
    return h


def whole_bodies(peer: Peer) -> dict[Program, int]:
    """The programs that are no fragments, and how often each was used."""
    numbers = {new.number for new in peer.server.new_programs if not new.is_fragment}
    used = [segment.program for segment in peer.server.segments if segment.program in numbers]
    return {peer.server.programs[number]: used.count(number) for number in numbers}


def entries(peer: Peer, kind: type[Entry]) -> list[Any]:
    return [entry for entry in peer.server.entries if isinstance(entry, kind)]


# ---- programs and liveness ----


@pytest.mark.parametrize("loop", [loop_of_calls, inline_loop, inline_loop_that_prints])
def test_a_loop_computes_what_numpy_does(loop: Callable[[fw.Session], fw.Array]) -> None:
    with connect().session as session:
        np.testing.assert_allclose(loop(session).numpy(), expected_loop(), rtol=1e-4)


def test_inline_or_in_a_function_a_loop_is_the_same_programs_with_one_live_result() -> None:
    sent = []
    for loop in (loop_of_calls, inline_loop, inline_loop_that_prints):
        peer = connect(is_manual=True)
        last = loop(peer.session)
        peer.transport.step()
        steady = {program for program in whole_bodies(peer) if len(program.ops) > 6}
        assert steady
        assert {len(program.live) for program in steady} == {1}
        assert all(program.ops[0].op.name == "matmul" for program in steady)
        sent.append({program.ops for program in steady})
        del last
    assert sent[0] == sent[1] == sent[2]


def test_an_epoch_of_bodies_an_odd_tail_and_an_evaluation_settles_on_few_programs() -> None:
    peer = connect()
    h, w, b, r = operands(peer.session)
    odd = peer.session.array(np.ones((3, 8), np.float32))
    counts = []
    for _ in range(8):
        for _ in range(44):
            h = cell(h, w, b, r)
        tail = cell(odd, w, b, r[:1])
        float((tail.sum() + h.sum()) * 2)
        counts.append(len(peer.session.stats.programs))
    assert counts[-1] <= 10
    assert len(peer.session.stats.fragment_programs) <= 6


@pytest.mark.parametrize("interval", [3, 10, 37])
def test_keeping_a_result_now_and_then_at_most_doubles_the_programs(interval: int) -> None:
    peer = connect(is_manual=True)
    h, w, b, r = operands(peer.session)
    kept = []
    for step in range(4 * STEPS):
        h = cell(h, w, b, r)
        if step % interval == 0:
            kept.append(h)
    peer.transport.step()
    bodies = whole_bodies(peer)
    lengths = [len(program.ops) for program in bodies]
    assert max(lengths.count(length) for length in lengths) <= 2
    assert len(peer.server.values) <= len(kept) + 5 + 6  # as well as the operands, and what is not told to be dead yet


def test_a_name_that_follows_one_body_behind_keeps_nothing_of_the_others() -> None:
    peer = connect(is_manual=True)
    x, step = peer.session.array(H), peer.session.array(H * 0.01)
    before = x
    for _ in range(400):
        before, x = x, x + step - before * 0.5
    peer.transport.step()
    assert {len(program.live) for program in whole_bodies(peer)} == {2}


def test_large_results_kept_now_and_then_are_not_stored_for_every_body() -> None:
    peer = connect(is_manual=True)
    x = peer.session.array(np.zeros(1 << 16, np.float32))
    kept = []
    for step in range(400):
        x = x * 0.5 + 1
        if step % 50 == 0:
            kept.append(x)
    peer.transport.step()
    assert max(len(program.live) for program in whole_bodies(peer)) <= 1 + len(kept)


@pytest.mark.parametrize("interval", [1, 10, 50])
def test_a_loop_read_in_the_midst_of_its_products_settles_on_few_programs(interval: int) -> None:
    peer = connect(is_manual=True)
    h, w, b, r = operands(peer.session)
    settled = 0
    for step in range(8 * interval + 80):
        h = fw.tanh((h * r) @ w + b)
        if step % interval == interval - 1:
            future = h.future()
            peer.transport.step()
            future.result(0)
        if step == 4 * interval + 60:
            settled = len(peer.server.segments)
    used = {segment.program for segment in peer.server.segments[settled:]}
    assert len(used) <= 3
    assert not used & {new.number for new in peer.server.new_programs if new.is_fragment}


def test_clients_with_other_prologues_share_their_programs() -> None:
    shared = []
    for prologue in (0, 1, 37):
        peer = connect(is_manual=True)
        x = peer.session.array(H)
        kept = [x * 2 + 1 for _ in range(prologue)]
        loop_of_calls(peer.session)
        peer.transport.step()
        shared.append(set(peer.session.stats.programs))
        del kept
    assert shared[0] & shared[1] & shared[2]


def test_a_moving_window_and_a_changing_factor_make_no_new_program() -> None:
    peer = connect(is_manual=True)
    data = peer.session.array(np.arange(4000, dtype=np.float32).reshape(400, 10))
    total = peer.session.array(np.zeros(10, np.float32))
    for step in range(300):
        total = total + data[step : step + 5].sum(axis=0) * (1.0 / (step + 1))
    peer.transport.step()
    bodies = whole_bodies(peer)
    assert bodies
    assert len(bodies) == len({len(program.ops) for program in bodies})


def test_a_value_dropped_before_it_was_sent_never_becomes_a_buffer() -> None:
    peer = connect()
    x = peer.session.array(H)
    y = (x + 1) * 2
    y.numpy()
    (segment,) = peer.server.segments
    assert peer.server.program_of(segment).live == (1,)


def test_a_value_dropped_later_is_freed_and_one_taken_last_dies_with_its_op() -> None:
    peer = connect()
    x = peer.session.array(H)
    y = x + 1
    y.numpy()
    z = y * 2
    handle = y._handle
    del y
    z.numpy()
    assert peer.server.segments[-1].inputs == (handle,)
    assert peer.server.segments[-1].dying == (0,)
    assert handle not in peer.server.values


def test_when_all_is_dropped_the_server_holds_nothing() -> None:
    peer = connect(is_manual=True)
    last = inline_loop(peer.session)
    del last
    for _ in range(100):
        peer.transport.step()
    assert peer.server.values == {}


def test_a_value_of_another_threads_op_lives_until_that_op_is_sent() -> None:
    peer = connect()
    x = peer.session.array(H)
    y = x + 1
    recorded, dropped = threading.Event(), threading.Event()
    results: list[Any] = []

    def use() -> None:
        z = given.pop() * 2
        recorded.set()
        dropped.wait(10)
        results.append(z.numpy())

    given = [y]
    thread = threading.Thread(target=use)
    thread.start()
    recorded.wait(10)
    del y
    (x + 2).numpy()
    dropped.set()
    thread.join(10)
    np.testing.assert_allclose(results[0], (H + 1) * 2)


def test_assigning_to_a_part_frees_the_old_value() -> None:
    peer = connect()
    x = peer.session.array(H)
    old = x._handle
    x[0, 0] = 5
    x.numpy()
    assert old not in peer.server.values


# ---- uploads ----


def test_changing_the_source_after_an_upload_changes_nothing() -> None:
    with connect().session as session:
        for elements in (10, INLINE_BYTES):
            source = np.ones(elements, np.float32)
            array = session.array(source)
            source[:] = 7
            assert float(array.sum()) == elements


def test_small_uploads_travel_in_the_frame_and_large_ones_beside_it() -> None:
    peer = connect()
    small, large = np.zeros(INLINE_BYTES, np.uint8), np.zeros(INLINE_BYTES + 1, np.uint8)
    assert peer.session.array(small).numpy().nbytes == INLINE_BYTES
    assert peer.session.array(large).numpy().nbytes == INLINE_BYTES + 1
    assert [upload.tensor for upload in entries(peer, Upload)] == [0, None]


@pytest.mark.parametrize(
    "source",
    [
        [[1, 2], [3, 4]],
        3.5,
        np.arange(6).reshape(2, 3).T,
        np.arange(4, dtype=">i4"),
        np.zeros((0, 3)),
        memoryview(b"bytes"),
        np.bool_(True),
    ],
)
def test_anything_with_numbers_is_uploaded(source: Any) -> None:
    with connect().session as session:
        np.testing.assert_array_equal(session.array(source).numpy(), np.asarray(source))


def test_an_array_over_the_limit_is_refused_before_it_is_sent() -> None:
    peer = connect()
    with pytest.raises(fw.QuotaExceeded, match=r"limits\.array_bytes"):
        peer.session.array(np.broadcast_to(np.float64(1), (1 << 20, 1 << 10)))
    assert entries(peer, Upload) == []


# ---- credit ----


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
    wait_until(lambda: peer.session.stats.in_flight.ops > 0)
    recorded = -1
    while recorded != peer.session.stats.ops_recorded:
        recorded = peer.session.stats.ops_recorded
        thread.join(0.05)
    assert thread.is_alive()
    return thread


def wait_until(condition: Callable[[], bool]) -> None:
    """For at most ten seconds."""
    deadline_s = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline_s, "it never came to pass"
        threading.Event().wait(0.001)


SHORT = Amount(ops=400, bytes=1 << 20, segments=2)


def test_a_recorder_out_of_credit_goes_on_when_credit_comes_back() -> None:
    peer = connect(credit=SHORT, holds_completion=True)
    thread = _blocked(peer)

    def complete() -> bool:
        peer.transport.complete()
        return not thread.is_alive()

    wait_until(complete)
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

    wait_until(step)
    assert all(in_flight.segments == 1 or in_flight.fits(SHORT) for in_flight in seen)


def test_while_a_recorder_is_blocked_another_thread_fetches_and_frees() -> None:
    peer = connect(credit=SHORT, holds_completion=True)
    x = peer.session.array(H)
    peer.transport.complete()
    thread = _blocked(peer)
    np.testing.assert_array_equal(x.numpy(timeout=10), H)
    del x
    wait_until(lambda: bool(entries(peer, Free)))
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
        np.testing.assert_allclose(loop_of_calls(session).numpy(timeout=20), expected_loop(), rtol=1e-4)


def test_a_fetch_that_finds_no_credit_in_time_says_so() -> None:
    peer = connect(credit=Amount(ops=1, bytes=1, segments=1), holds_completion=True)
    x = peer.session.array(H)
    with pytest.raises(fw.WaitTimeout):
        (x + 1).numpy(timeout=0.05)
    peer.session.close()


# ---- triggers ----


def test_ops_that_wait_too_long_are_sent_for_their_age() -> None:
    peer = connect()
    x = peer.session.array(H)
    y = x + 1
    wait_until(lambda: bool(peer.server.segments))
    assert peer.session.stats.cuts["age"] == 1
    del y


def test_a_value_that_was_sent_is_read_without_cutting_what_is_recorded() -> None:
    peer = connect(is_manual=True)
    x = peer.session.array(H)
    future = (x + 1).future()
    y = x * 3
    again = x.future()
    peer.transport.step()
    np.testing.assert_array_equal(again.result(0), H)
    np.testing.assert_array_equal(future.result(0), H + 1)
    assert peer.session.stats.segments == 1
    del y


# ---- waiting, cancelling, ending ----


def test_a_timeout_ends_the_wait_and_not_the_work() -> None:
    peer = connect(is_manual=True)
    y = peer.session.array(H) + 1
    with pytest.raises(fw.WaitTimeout, match="the work goes on"):
        y.numpy(timeout=0.01)
    future = y.future()
    peer.transport.step()
    np.testing.assert_array_equal(future.result(0), H + 1)
    assert len(entries(peer, Abandon)) == 1


def test_a_cancelled_future_is_abandoned_once() -> None:
    peer = connect(is_manual=True)
    future = peer.session.array(H).future()
    assert future.cancel()
    assert future.cancelled()
    peer.transport.step()
    assert [entry.fetch for entry in entries(peer, Abandon)] == [entry.fetch for entry in entries(peer, Fetch)]


def test_an_answered_future_cannot_be_cancelled() -> None:
    with connect().session as session:
        future = session.array(H).future()
        future.result(10)
        assert not future.cancel()


def test_cancelling_the_session_sends_what_was_recorded_before_it() -> None:
    peer = connect(is_manual=True)
    y = peer.session.array(H) + 1
    peer.session.cancel()
    peer.transport.step()
    kinds = [type(entry) for entry in peer.server.entries]
    assert kinds == [Upload, Segment, Cancel]
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


def test_a_wait_for_room_that_was_given_up_is_no_ones_concern_when_credit_returns() -> None:
    peer = connect(credit=SHORT, holds_completion=True)
    future = (peer.session.array(H) + 1).future()
    for _ in range(2):
        with pytest.raises(TimeoutError):
            asyncio.run(asyncio.wait_for(peer.session.ready(), 0.01))
    future.result(10)
    peer.transport.complete()
    assert peer.session.stats.in_flight == Amount()
    np.testing.assert_array_equal((peer.session.array(H) + 1).numpy(timeout=10), H + 1)
    peer.session.close()


def test_closing_after_a_wait_for_room_was_given_up_closes_the_transport() -> None:
    peer = connect(credit=SHORT, holds_completion=True, is_manual=True)
    future = (peer.session.array(H) + 1).future()
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(peer.session.ready(), 0.01))
    peer.session.close()
    assert peer.transport._is_closed
    del future


def test_a_session_reads_no_array_of_another() -> None:
    own, other = connect(is_manual=True).session, connect(is_manual=True).session
    x = other.array(H)
    for read in (own.fetch, lambda array: own.read(array, 1)):
        with pytest.raises(fw.ArgumentError, match="another session"):
            read(x)


# ---- what interrupts ----


class _Interruption:
    """Raises KeyboardInterrupt before the given line, counted, of whatever a flush does under its locks."""

    def __init__(self, at: int) -> None:
        self._left = at
        self.has_come = False

    def __call__(self, frame: FrameType, event: str, _argument: object) -> _Interruption | None:
        if event == "call":
            is_within = frame.f_code.co_name == "_send" or (frame.f_back and frame.f_back.f_trace is self)
            is_generator = frame.f_code.co_flags & CO_GENERATOR  # what is raised in one that is closed goes nowhere
            return self if is_within and not is_generator else None
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if line.lstrip().startswith("with "):
            return self  # traced on its way out too, where no handler runs
        self._left -= 1
        if self._left < 0 and not self.has_come:
            self.has_come = True
            raise KeyboardInterrupt
        return self


def interrupted_flush(at: int) -> bool:
    """A flush that is interrupted at one place harms nothing after it; says whether there was such a place."""
    peer = connect(is_manual=True)
    x = peer.session.array(H)
    y = x + 1
    z = y * 2
    interruption = _Interruption(at)
    sys.settrace(interruption)
    try:
        z.future()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    futures = [each.future() for each in (y, z, x - 1)]
    peer.transport.step()
    for future, value in zip(futures, (H + 1, (H + 1) * 2, H - 1), strict=True):
        np.testing.assert_array_equal(future.result(0), value)
    made = [segment.base + op for segment in peer.server.segments for op in range(ops_of(peer, segment))]
    assert len(made) == len(set(made)), "no handle is made twice"
    assert peer.session.stats.in_flight == Amount()
    return interruption.has_come


def ops_of(peer: Peer, segment: Segment) -> int:
    return len(peer.server.program_of(segment).ops)


def test_an_interrupt_splits_no_flush() -> None:
    places = 0
    while interrupted_flush(places):
        places += 1
    assert places > 40


def test_an_array_that_an_interrupt_left_half_made_dies_silently(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", heard.append)
    object.__new__(fw.Array)
    assert heard == []


def test_a_finaliser_that_interrupts_a_flush_may_record_and_is_refused_a_read(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = connect()
    x = peer.session.array(H)
    original, refused = structure_of, []

    def interrupted(*arguments: Any) -> Any:
        monkeypatch.setattr(_recorder, "structure_of", original)
        total = x
        for _ in range(STEPS):
            total = total + 1
        try:
            float(total.sum())
        except fw.RequestError as error:
            refused.append(str(error))
        return original(*arguments)

    monkeypatch.setattr(_recorder, "structure_of", interrupted)
    np.testing.assert_array_equal((x * 3).numpy(timeout=10), H * 3)
    assert "interrupts Fusewire itself" in refused[0]


# ---- errors from the server ----


def test_a_failed_op_is_told_with_the_line_that_recorded_its_segment() -> None:
    peer = connect()
    x = peer.session.array(H)
    y = x + 1
    peer.server.failing[y._handle] = "out_of_memory"
    with pytest.raises(MemoryError, match=r"recorded at .*test_session\.py:\d+"):
        y.numpy()


def test_with_debug_every_ops_own_line_is_told() -> None:
    peer = connect(debug=True)
    x = peer.session.array(H)
    y = x + 1
    peer.server.failing[y._handle] = "out_of_memory"
    z = y * 2
    line = users_line() - 1
    with pytest.raises(fw.OutOfMemory, match=rf"recorded at .*test_session\.py:{line}"):
        z.numpy()


def users_line() -> int:
    """The line of the caller."""
    return sys._getframe(1).f_lineno


def test_debugging_changes_no_program() -> None:
    programs = []
    for debug in (False, True):
        peer = connect(is_manual=True, debug=debug)
        loop_of_calls(peer.session)
        peer.transport.step()
        programs.append({program.ops for program in whole_bodies(peer)})
    assert programs[0] == programs[1]


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
    peer.transport.step()
    np.testing.assert_array_equal(future.result(0), H + 1)
