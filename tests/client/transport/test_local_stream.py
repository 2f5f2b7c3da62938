"""A local stream: which thread sends and receives, and what it leaves when it is interrupted, cut or cancelled."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import FrameType
from typing import Any

import grpc
import pytest
import uvloop

from fusewire._errors import ProtocolError
from fusewire._stream.receivers import BlockedReader
from fusewire._transport import local_stream
from fusewire._transport.local_stream import MOST_BUSY_POLL_US, drives_here
from fusewire_protos.local_calls.part_socket import MOST_SILENT_LOOKS, SILENT
from fusewire_protos.local_calls.parts import PartKind, Status, decode_opening, encode_status, head_of
from tests.client.transport.local_peers import MOST_BYTES, VALUE, Played, Waiter, playing
from tests.patience import HANGS_S

pytestmark = pytest.mark.skipif(not hasattr(os, "eventfd"), reason="there are no abstract sockets here")

LONG = 100_000
STATUS = encode_status(Status(grpc.StatusCode.NOT_FOUND.value[0], "gone"))


@pytest.fixture(
    params=[(asyncio.new_event_loop, 0), (uvloop.new_event_loop, 0), (uvloop.new_event_loop, MOST_BUSY_POLL_US)],
    ids=["asyncio", "uvloop", "uvloop and busy polling"],
)
def played(request: pytest.FixtureRequest) -> Iterator[Played]:
    with playing(*request.param) as opened:
        yield opened


def end_of(played: Played) -> tuple[grpc.StatusCode, str]:
    """How the stream has ended."""
    played.reading.exception(HANGS_S)
    return played.start(played.stream.code()).result(HANGS_S), played.start(played.stream.details()).result(HANGS_S)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - counts


# ---- who sends and who receives ----


def is_taken(played: Played) -> bool:
    """Whether a thread has the turn to receive."""
    return played.stream._turn.locked()


def test_a_stream_begins_with_its_opening(played: Played) -> None:
    played.start(played.stream.write(b"hello")).result(HANGS_S)
    opening = played.hear()
    assert opening.kind is PartKind.OPEN
    assert decode_opening(opening.raw).secret == b"secret"
    assert played.hear().raw == b"hello"


def test_a_thread_that_waits_sends_and_receives_by_itself(played: Played) -> None:
    played.peer.posted += [b"one", b"two"]
    with played.waiting(b"answer") as waiter:
        assert [played.hear().raw for _ in range(3)][1:] == [b"one", b"two"]
        played.say(b"news", b"answer", b"more news")
    assert waiter.outcome is True
    assert played.peer.came == [(waiter.ident, raw) for raw in (b"news", b"answer", b"more news")]


def test_one_wait_of_a_process_polls_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_stream._Polling, "wait", threading.Lock())
    with playing(asyncio.new_event_loop, MOST_BUSY_POLL_US) as first, playing(uvloop.new_event_loop, 1) as second:
        with first.waiting(b"one"):
            first.until(lambda: local_stream._Polling.wait is first.stream._turn)
            with second.waiting(b"two"):
                second.say(b"two")
            assert local_stream._Polling.wait is first.stream._turn
            first.say(b"one")
        with second.waiting(b"three"):
            second.until(lambda: local_stream._Polling.wait is second.stream._turn)
            second.say(b"three")


def test_what_nobody_waits_for_the_io_thread_receives(played: Played) -> None:
    played.say(b"news")
    played.until(lambda: played.peer.came)
    assert played.peer.came == [(played.thread.ident, b"news")]


def test_a_value_that_has_come_already_is_not_waited_for(played: Played) -> None:
    receiver = played.peer.receiver(b"answer")
    played.say(b"answer")
    played.until(lambda: played.peer.came)
    assert played.stream.drive(receiver, None)


def test_a_value_that_the_io_thread_brings_just_before_a_thread_receives_is_noticed(played: Played) -> None:
    """At the worst moment: when the thread has posted, and has not yet taken its turn."""

    def bring() -> None:
        played.say(b"answer")
        played.until(lambda: played.peer.came)

    played.peer.before_next_frame = bring
    assert played.wait(b"answer")


def test_a_value_that_the_io_thread_brings_while_a_thread_polls_is_noticed(played: Played) -> None:
    with played.waiting(b"answer") as waiter:
        played.in_loop(lambda: played.peer.on_frame(b"answer"))
        played.in_loop(played.stream._stop_receiver)
    assert waiter.outcome is True


def test_the_io_thread_takes_over_when_somebody_awaits_something_else(played: Played) -> None:
    with played.waiting(b"answer") as waiter:
        played.stream.listen()
        played.until(lambda: not played.stream._turn.locked())
        played.say(b"future", b"answer")
    assert waiter.outcome is True
    assert played.peer.came == [(played.thread.ident, b"future"), (played.thread.ident, b"answer")]


def test_a_thread_that_has_its_value_lets_the_io_thread_listen_for_the_others(played: Played) -> None:
    played.peer.receiver(b"of a future")
    with played.waiting(b"mine") as waiter:
        played.say(b"mine")
    assert waiter.outcome is True
    played.say(b"of a future")
    played.until(lambda: played.peer.came[1:] == [(played.thread.ident, b"of a future")])


def test_frames_that_nobody_awaits_are_received_at_a_tick(played: Played) -> None:
    with played.waiting(b"mine"):
        played.say(b"mine")
    played.until(lambda: not played.stream._is_registered)
    played.say(b"credit")
    played.in_loop(played.stream.on_tick)
    assert played.peer.came[1:] == [(played.thread.ident, b"credit")]


def test_the_io_thread_listens_once_no_thread_is_expected_to(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_stream, "_LEASE_S", 0.0)
    with played.waiting(b"mine"):
        played.say(b"mine")
    played.until(lambda: not played.stream._is_registered)
    played.in_loop(played.stream.on_tick)
    played.say(b"credit")
    played.until(lambda: len(played.peer.came) == 2)


def test_several_threads_wait_at_once_and_one_receives_for_all(played: Played) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(played.waiting(b"0"))
        others = [stack.enter_context(played.waiting(b"%d" % each, has_turn=False)) for each in range(1, 8)]
        for each in (3, 1, 2):
            played.say(b"%d" % each)
        for each in (1, 2, 3):
            others[each - 1].join(HANGS_S)
        assert {thread for thread, _ in played.peer.came} == {first.ident}
        played.say(b"0")
        first.join(HANGS_S)
        played.say(*[b"%d" % each for each in range(4, 8)])
    assert [each.outcome for each in (first, *others)] == [True] * 8


def test_many_threads_wait_again_and_again(played: Played) -> None:
    rounds, threads = 200, 6

    def read(number: int) -> bool:
        for turn in range(rounds):
            raw = b"%d %d" % (number, turn)
            played.peer.receiver(raw)
            played.peer.posted.append(raw)
            if not played.wait(raw):
                return False
        return True

    waiters = [Waiter(lambda number=number: read(number)) for number in range(threads)]  # type: ignore[misc]
    assert played.hear().kind is PartKind.OPEN if not played.start(played.stream.write(b"")).result(HANGS_S) else False
    assert played.hear().raw == b""
    for waiter in waiters:
        waiter.start()
    for _ in range(rounds * threads):
        played.say(played.hear().raw)
    for waiter in waiters:
        waiter.join(HANGS_S)
    assert [waiter.outcome for waiter in waiters] == [True] * threads
    assert sorted(raw for _, raw in played.peer.came) == sorted(
        b"%d %d" % (number, turn) for number in range(threads) for turn in range(rounds)
    )


# ---- timeouts ----


@pytest.mark.parametrize("timeout_s", [0.0, -1.0, 0.001, 0.05])
def test_a_wait_that_is_over_returns_false(played: Played, timeout_s: float) -> None:
    began_s = time.monotonic()
    assert not played.wait(b"never", ends_s=began_s + timeout_s)
    assert time.monotonic() - began_s >= timeout_s
    assert not played.stream._turn.locked()
    played.say(b"never")
    played.until(lambda: played.peer.came == [(played.thread.ident, b"never")])


@pytest.mark.parametrize("timeout_s", [1e5, 1e8, threading.TIMEOUT_MAX / 2])
def test_a_very_long_timeout_is_one(played: Played, timeout_s: float) -> None:
    waiter = Waiter(lambda: played.wait(b"answer", ends_s=time.monotonic() + timeout_s))
    waiter.start()
    played.until(lambda: played.stream._turn.locked() or waiter.outcome is not None)
    played.say(b"answer")
    waiter.join(HANGS_S)
    assert waiter.outcome is True


# ---- back-pressure ----


def test_a_thread_that_waits_sends_what_the_server_does_not_read_yet(played: Played) -> None:
    frames = [bytes([number]) * LONG for number in range(60)]
    played.peer.posted += frames
    with played.waiting(b"answer") as waiter:
        assert len(played.stream._unsent) > LONG
        played.hear()
        assert [played.hear().raw for _ in frames] == frames
        played.say(b"answer")
    assert waiter.outcome is True
    assert not played.stream._unsent


def test_the_io_thread_stops_sending_while_the_server_does_not_read(played: Played) -> None:
    frames = [b"%07d" % number * (LONG // 7) for number in range(300)]
    played.peer.posted += frames

    async def send_all() -> None:
        while await played.stream.send_next():
            pass

    sending = played.start(send_all())
    played.until(lambda: played.stream._unsent)
    for _ in range(100):
        played.in_loop(lambda: None)
    assert len(played.peer.posted) > 250
    assert len(played.stream._unsent) < 2 * LONG
    played.hear()
    assert [played.hear().raw for _ in frames] == frames
    sending.result(HANGS_S)


def test_who_sends_without_end_lets_the_event_loop_receive(played: Played) -> None:
    def post_another() -> None:
        if not played.peer.came:
            played.peer.posted.append(b"frame")
            if len(played.peer.posted) == 1:
                played.say(b"stop")

    played.peer.before_next_frame = post_another

    async def send_all() -> int:
        sent = 0
        while sent < 10_000 and await played.stream.send_next():
            sent += 1
        return sent

    assert played.start(send_all()).result(HANGS_S) < 10_000


# ---- the end of a stream ----


def close_server(played: Played) -> None:
    played.server.close()


ENDS: dict[str, tuple[Callable[[Played], None], grpc.StatusCode, str]] = {
    "closed": (close_server, grpc.StatusCode.UNAVAILABLE, ""),
    "status": (lambda played: played.say(STATUS, kind=PartKind.STATUS), grpc.StatusCode.NOT_FOUND, "gone"),
    "bad status": (
        lambda played: played.say(b"\xff", kind=PartKind.STATUS),
        grpc.StatusCode.UNAVAILABLE,
        "undecodable",
    ),
    "unknown kind": (lambda played: played.server.sendall(bytes(4) + b"\x63"), grpc.StatusCode.UNAVAILABLE, "kind 99"),
    "too long": (
        lambda played: played.server.sendall(head_of(PartKind.MESSAGE, MOST_BYTES + 1)),
        grpc.StatusCode.UNAVAILABLE,
        "oversized_frame",
    ),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("is_waited", [True, False])
def test_the_end_of_a_stream_is_told_whoever_receives_it(played: Played, end: str, *, is_waited: bool) -> None:
    act, code, details = ENDS[end]
    with ExitStack() as stack:
        if is_waited:
            stack.enter_context(played.waiting(b"never"))
        played.say(b"last frame")
        played.until(lambda: played.peer.came)
        act(played)
        code_and_details = end_of(played)
        played.peer.receiver(b"never").set_result(VALUE)  # as a session does that is lost or resumed
    assert code_and_details[0] is code
    assert details in code_and_details[1]
    assert played.peer.came[0][1] == b"last frame"
    assert not played.stream.is_interrupted


def test_a_stream_that_has_ended_asks_for_no_frames(played: Played) -> None:
    played.say(STATUS, kind=PartKind.STATUS)
    end_of(played)
    played.peer.posted.append(b"for the next stream")
    assert not played.stream.drive(BlockedReader(), time.monotonic() + 0.01)
    assert not played.start(played.stream.send_next()).result(HANGS_S)
    assert [*played.peer.posted] == [b"for the next stream"]


def test_a_stream_that_is_cancelled_lets_its_threads_go_and_closes_its_files(played: Played) -> None:
    with played.waiting(b"never"):
        played.in_loop(played.stream.cancel)
        played.until(lambda: played.stream._is_closed)
        played.peer.receiver(b"never").set_result(VALUE)
    assert end_of(played)[0] is grpc.StatusCode.CANCELLED
    assert played.stream._socket.fileno() == -1
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.eventfd_read(played.stream._nudge)


def test_a_cancelled_stream_is_safe_to_use(played: Played) -> None:
    """A thread may still have it in hand."""
    played.in_loop(played.stream.cancel)
    played.peer.posted.append(b"for the next stream")
    received = os.eventfd(0, os.EFD_NONBLOCK)  # probably with the number that the closed one had
    try:
        played.stream.listen()
        played.stream._stop_receiver()
        assert not played.stream.drive(BlockedReader(), None)
        played.in_loop(played.stream.on_tick)
        with pytest.raises(BlockingIOError):
            os.eventfd_read(received)
    finally:
        os.close(received)
    assert [*played.peer.posted] == [b"for the next stream"]


def test_a_cancelled_stream_brings_no_more_frames_even_if_a_thread_is_about_to(played: Played) -> None:
    has_begun, goes_on = threading.Event(), threading.Event()

    def stop_once(raw: bytes) -> None:
        if raw == b"slow":
            has_begun.set()
            assert goes_on.wait(HANGS_S)

    played.peer.before_frame = stop_once
    with played.waiting(b"never"):
        played.say(b"slow")
        assert has_begun.wait(HANGS_S)

        async def cancel() -> list[bytes]:
            played.stream.cancel()
            return [raw for _, raw in played.peer.came]

        cancelling = played.start(cancel())
        goes_on.set()
        assert cancelling.result(HANGS_S) == [b"slow"]  # it has waited for the thread
        played.peer.receiver(b"never").set_result(VALUE)


def test_a_silent_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_stream, "PING_EVERY_S", 0.01)
    with playing(asyncio.new_event_loop) as played, played.waiting(b"never"):
        assert end_of(played) == (grpc.StatusCode.UNAVAILABLE, SILENT)
        played.in_loop(played.stream.cancel)
        played.peer.receiver(b"never").set_result(VALUE)


def test_a_server_that_pings_is_not_silent_though_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_stream, "PING_EVERY_S", HANGS_S)  # the looks below are all that there are
    with playing(uvloop.new_event_loop) as played:
        for _ in range(2 * MOST_SILENT_LOOKS):
            played.say(b"", kind=PartKind.PING)
            played.until(lambda: played.stream._has_heard)
            played.in_loop(played.stream._look)
            assert not played.stream.is_over


def test_descriptors_come_back() -> None:
    gc.collect()
    with playing(uvloop.new_event_loop):
        pass
    before = descriptors()
    for _ in range(10):
        with playing(uvloop.new_event_loop) as played, played.waiting(b"x"):
            played.say(b"x")
    gc.collect()
    assert descriptors() <= before


# ---- what interrupts a thread ----


class Interrupted(Exception):
    """What a signal handler raises; one of the user's own errors, as of a timeout by SIGALRM."""


@pytest.mark.parametrize("error", [KeyboardInterrupt, Interrupted])
def test_who_is_interrupted_as_it_receives_breaks_the_stream(played: Played, error: type[BaseException]) -> None:
    def raise_it(_raw: bytes) -> None:
        raise error

    played.peer.before_frame = raise_it
    with played.waiting(b"answer") as waiter:
        played.say(b"answer")
    assert isinstance(waiter.outcome, error)
    assert not drives_here()
    played.in_loop(played.stream.on_tick)
    assert end_of(played)[0] is grpc.StatusCode.UNAVAILABLE
    assert played.stream.is_interrupted


@pytest.mark.parametrize("error", [TimeoutError, BlockingIOError, OSError])
@pytest.mark.parametrize("call", ["send", "recv"])
def test_an_error_of_a_signal_handler_is_not_taken_for_one_of_the_socket(
    played: Played, error: type[OSError], call: str
) -> None:
    """The handler raises just after the system has taken or given the bytes."""
    own = played.stream._socket

    class Interrupting:
        def __getattr__(self, name: str) -> Any:
            return getattr(own, name)

        def send(self, *arguments: Any) -> Any:
            return self._interrupted("send", arguments)

        def recv(self, *arguments: Any) -> Any:
            return self._interrupted("recv", arguments)

        def _interrupted(self, name: str, arguments: Any) -> Any:
            done = getattr(own, name)(*arguments)
            if name == call and threading.get_ident() != played.thread.ident:
                raise error
            return done

    played.peer.posted.append(b"question")
    played.stream._socket = Interrupting()  # type: ignore[assignment]
    try:
        with played.waiting(b"answer", has_turn=call == "recv") as waiter:
            played.until(lambda: call == "send" or not played.stream._is_registered)  # the I/O thread is not to receive
            played.say(b"answer")
    finally:
        played.stream._socket = own
    assert isinstance(waiter.outcome, error)
    played.in_loop(played.stream.on_tick)
    assert not played.start(played.stream.send_next()).result(HANGS_S)
    assert end_of(played)[0] is grpc.StatusCode.UNAVAILABLE
    assert played.stream.is_interrupted


@pytest.mark.parametrize("error", [KeyboardInterrupt, Interrupted])
def test_who_is_interrupted_as_it_sends_breaks_the_stream(played: Played, error: type[BaseException]) -> None:
    def raise_it() -> None:
        raise error

    played.peer.before_next_frame = raise_it
    with pytest.raises(error):
        played.wait(b"answer")
    assert not drives_here()
    played.peer.before_next_frame = lambda: None
    assert not played.start(played.stream.send_next()).result(HANGS_S)
    assert end_of(played)[0] is grpc.StatusCode.UNAVAILABLE
    assert played.stream.is_interrupted


def test_another_thread_notices_that_one_was_interrupted(played: Played) -> None:
    def raise_it() -> None:
        raise KeyboardInterrupt

    played.peer.before_next_frame = raise_it
    with pytest.raises(KeyboardInterrupt):
        played.wait(b"one")
    played.peer.before_next_frame = lambda: None
    assert not played.stream.drive(BlockedReader(), None)
    assert end_of(played)[0] is grpc.StatusCode.UNAVAILABLE


def test_a_broken_protocol_is_no_interruption(played: Played) -> None:
    def raise_it(_raw: bytes) -> None:
        raise ProtocolError("server frame 7 follows 5")

    played.peer.before_frame = raise_it
    with played.waiting(b"answer") as waiter:
        played.say(b"answer")
        assert isinstance(played.reading.exception(HANGS_S), ProtocolError)
        played.peer.receiver(b"answer").set_exception(ProtocolError("as a session does"))
    assert waiter.outcome is True
    assert not played.stream.is_interrupted


def test_any_error_in_the_io_thread_is_a_failure_of_the_client(played: Played) -> None:
    def raise_it(_raw: bytes) -> None:
        raise Interrupted

    played.peer.before_frame = raise_it
    played.say(b"news")
    assert isinstance(played.reading.exception(HANGS_S), Interrupted)


def test_a_thread_drives_only_while_it_sends_or_receives(played: Played) -> None:
    seen = []
    played.peer.before_frame = lambda _raw: seen.append(drives_here())
    played.peer.before_next_frame = lambda: seen.append(drives_here())
    with played.waiting(b"x"):
        played.say(b"x")
    assert seen == [True, True]
    assert not drives_here()


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals come in the main thread")
def test_a_signal_handler_may_wait_while_its_thread_does(played: Played) -> None:
    outcomes = []

    def handle(_number: int, _frame: FrameType | None) -> None:
        played.say(b"inner")
        outcomes.append(played.wait(b"inner"))
        played.say(b"outer")

    def kill() -> None:
        played.until(lambda: is_taken(played))
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handle)
    killing = threading.Thread(target=kill)
    try:
        killing.start()
        outcomes.append(played.wait(b"outer"))
    finally:
        killing.join(HANGS_S)
        signal.signal(signal.SIGUSR1, before)
    assert outcomes == [True, True]


def test_a_signal_handler_that_raises_leaves_the_turn_to_others(played: Played) -> None:
    def handle(_number: int, _frame: FrameType | None) -> None:
        raise Interrupted

    def kill() -> None:
        played.until(lambda: is_taken(played))
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handle)
    killing = threading.Thread(target=kill)
    try:
        killing.start()
        with pytest.raises(Interrupted):
            played.wait(b"outer")
    finally:
        killing.join(HANGS_S)
        signal.signal(signal.SIGUSR1, before)
    assert not played.stream._turn.locked()
    with played.waiting(b"another") as waiter:
        played.say(b"outer", b"another")
    assert waiter.outcome is True
    assert not played.stream.is_over
