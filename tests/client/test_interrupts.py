"""What interrupts a thread as it sends: Ctrl-C, finalisers and signal handlers."""

from __future__ import annotations

import asyncio
import gc
import linecache
import random
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from inspect import CO_GENERATOR
from types import FrameType, SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import fusewire as fw
from fusewire._recording.cutting import drafts
from fusewire._recording.cutting.segments import structure_of
from fusewire._recording.recorded_ops import recorded_without_handle
from fusewire._stream.receivers import BlockedReader
from fusewire._transport.large_values import LargeValues
from fusewire._transport.local_stream import LocalStream
from fusewire._transport.stream_transport import StreamTransport
from fusewire._transport.upload_queue import ByteBudget, UploadQueue
from fusewire.testing import ServerProcess, serve_subprocess
from fusewire_protos.credit import Amount
from fusewire_protos.frames import Segment
from tests.client.loops import STEPS, H
from tests.client.peer import Peer, connect
from tests.patience import HANGS_S, Patience

CHUNK = memoryview(bytes(10))
INTERRUPTS = 200
LATEST_S = 2e-3  # after which a thread is interrupted; a read takes less
THREADS = 3


class _Interruption:
    """Raises KeyboardInterrupt before the given line, counted, of a function and whatever it calls."""

    def __init__(self, function: str, at: int) -> None:
        self._function = function
        self._left = at
        self.has_come = False

    def __call__(self, frame: FrameType, event: str, _argument: object) -> _Interruption | None:
        if event == "call":
            is_within = frame.f_code.co_name == self._function or (frame.f_back and frame.f_back.f_trace is self)
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


@contextmanager
def _interrupting(function: str, at: int) -> Iterator[_Interruption]:
    interruption = _Interruption(function, at)
    gc.disable()  # what is raised in a finaliser goes nowhere, and garbage of other tests may have some
    sys.settrace(interruption)
    try:
        yield interruption
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
        gc.enable()


def interrupted_flush(at: int) -> bool:
    """A flush that is interrupted at one place harms nothing after it; says whether there was such a place."""
    peer = connect(is_manual=True)
    x = peer.session.array(H)
    y = x + 1
    z = y * 2
    with _interrupting("_send_draft", at) as interruption:
        z.future()
    futures = [each.future() for each in (y, z, x - 1)]
    peer.transport.run_once()
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


def interrupted_upload(at: int) -> bool:
    """An upload interrupted at one place ends, and its room is another's; says whether there was such a place."""
    transport = StreamTransport("unix:nobody")
    transport._byte_budget = ByteBudget(CHUNK.nbytes)

    async def drain(upload: UploadQueue, _session: bytes, _handle: int) -> None:
        await upload.drain()

    async def end() -> None:
        await asyncio.wait_for(asyncio.gather(*transport._tasks), 10)

    async def carrying(act: Coroutine[Any, Any, None]) -> None:
        await act

    transport._connected.set_result(cast(LargeValues, SimpleNamespace(upload=drain, carrying=carrying)))
    with _interrupting("upload", at) as interruption:
        transport.upload(b"session", 1, [CHUNK])
    asyncio.run_coroutine_threadsafe(end(), transport._loop).result(HANGS_S)
    another = threading.Thread(target=transport.upload, args=(b"session", 2, [CHUNK]))
    another.start()
    another.join(10)
    has_waited = another.is_alive()
    transport._byte_budget.end()
    assert not has_waited
    return interruption.has_come


def test_an_interrupt_leaves_no_upload_under_way_and_no_room_taken() -> None:
    places = 0
    while interrupted_upload(places):
        places += 1
    assert places > 20


def test_an_array_that_has_no_handle_yet_dies_silently(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", heard.append)
    session = connect().session
    x = session.array(H)
    recorded_without_handle(fw.Array, session.recorder(), x._spec)
    assert heard == []
    assert session.recorder().deaths == 0


def test_a_finaliser_that_interrupts_a_flush_may_record_and_is_refused_a_read(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = connect()
    x = peer.session.array(H)
    original, refused = structure_of, []

    def interrupted(*arguments: Any) -> Any:
        monkeypatch.setattr(drafts, "structure_of", original)
        total = x
        for _ in range(STEPS):
            total = total + 1
        try:
            float(total.sum())
        except fw.RequestError as error:
            refused.append(str(error))
        return original(*arguments)

    monkeypatch.setattr(drafts, "structure_of", interrupted)
    np.testing.assert_array_equal((x * 3).numpy(timeout=HANGS_S), H * 3)
    assert "interrupts Fusewire itself" in refused[0]


class _RecordsAsItDies:
    """In a cycle, so that only the collector ends it, which may run wherever something is allocated."""

    def __init__(self, array: fw.Array, results: list[fw.Array]) -> None:
        self.array = array
        self.results = results
        self.itself = self

    def __del__(self) -> None:
        self.results.append(self.array * 1000.0)


@pytest.mark.parametrize("threshold", range(3, 30))
def test_an_op_that_the_collector_records_within_another_has_a_handle_of_its_own(threshold: int) -> None:
    peer = connect(is_manual=True)  # no other thread's allocations make the collector run
    x = peer.session.array(H)
    of_finalisers: list[fw.Array] = []
    results: list[fw.Array] = []
    thresholds = gc.get_threshold()
    gc.collect()
    gc.set_threshold(threshold)
    try:
        for step in range(40):
            _RecordsAsItDies(x, of_finalisers)
            results += [x + float(step), -x]
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    handles = [result._handle for result in (*results, *of_finalisers)]
    assert len(set(handles)) == len(handles)
    futures = [result.future() for result in (*results, *of_finalisers)]
    peer.transport.run_once()
    expected = [value for step in range(40) for value in (H + step, -H)]
    for future, value in zip(futures, expected + [H * 1000] * len(of_finalisers), strict=True):
        np.testing.assert_array_equal(future.result(0), value)


# ---- waits by local calls, at a real server ----


class Interrupted(Exception):
    """What a signal handler raises; one of the user's own errors."""


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with serve_subprocess("cpu") as started:
        yield started


@pytest.fixture
def session(server: ServerProcess) -> Iterator[fw.Session]:
    """A session whose waits are by local calls."""
    with fw.connect(server.grpc) as connected:
        transport = connected._state.transport
        assert isinstance(transport, StreamTransport)
        patience = Patience()
        while transport._local_stream is None:
            assert not patience.is_exhausted()
            connected.array(H).numpy(timeout=HANGS_S)
        yield connected


def read_all(session: fw.Session, x: fw.Array, number: int) -> None:
    """Reads one value, which must be right."""
    found = (x + float(number)).numpy(timeout=HANGS_S)
    np.testing.assert_array_equal(found, np.arange(4.0) + number)


def interrupted_wait(session: fw.Session, x: fw.Array, at: int) -> bool:
    """After a wait that is interrupted at one place values are right; says whether there was such a place."""
    y = x + float(at)
    with _interrupting("wait", at) as interruption:
        y.numpy(timeout=HANGS_S)
    np.testing.assert_array_equal(y.numpy(timeout=HANGS_S), np.arange(4.0) + at)
    read_all(session, x, at + 1)
    return interruption.has_come


def test_an_interrupt_at_any_place_of_a_wait_loses_nothing(session: fw.Session) -> None:
    x, places = session.array(np.arange(4.0)), 0
    while interrupted_wait(session, x, places):
        places += 1
    assert places > 40


def test_after_an_interrupted_wait_the_io_thread_does_at_once_what_was_left_undone() -> None:
    class Stream:
        def drive(self, *_: object) -> bool:
            raise KeyboardInterrupt

    transport = StreamTransport("unix:nobody")
    transport._local_stream = cast(LocalStream, Stream())
    transport._is_tick_wanted = False
    with pytest.raises(KeyboardInterrupt):
        transport.wait(BlockedReader(), HANGS_S)
    assert transport._is_tick_wanted


@contextmanager
def _signalled(error: type[BaseException], seed: int) -> Iterator[Callable[[Callable[[], object]], bool]]:
    """Gives a function that does something again and again until a signal handler raises in it, at some moment.

    The function says whether the handler did raise.
    """
    moments, armed, has_raised = random.Random(seed), [False], [False]
    main = threading.main_thread().ident
    assert main is not None

    def handle(_number: int, _frame: FrameType | None) -> None:
        if armed[0]:
            armed[0] = False
            has_raised[0] = True
            raise error

    def interrupted(act: Callable[[], object]) -> bool:
        has_begun, delay_s = threading.Event(), moments.uniform(0.0, LATEST_S)

        def kill() -> None:
            has_begun.wait(HANGS_S)
            threading.Event().wait(delay_s)
            signal.pthread_kill(main, signal.SIGUSR1)

        killing = threading.Thread(target=kill)
        killing.start()
        has_raised[0] = False
        with suppress(error):
            armed[0] = True
            has_begun.set()
            while armed[0]:
                act()
        armed[0] = False
        killing.join(HANGS_S)
        return has_raised[0]

    callbacks = gc.callbacks[:]
    gc.callbacks.clear()  # what a handler raises in one of another test's goes nowhere
    before = signal.signal(signal.SIGUSR1, handle)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGUSR1, before)
        gc.callbacks[:] = callbacks


is_in_main_thread = threading.current_thread() is threading.main_thread()


@pytest.mark.skipif(not is_in_main_thread, reason="signals come in the main thread")
@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError, BlockingIOError, Interrupted])
def test_a_session_goes_on_after_each_of_many_interrupts(session: fw.Session, error: type[BaseException]) -> None:
    x = session.array(np.arange(4.0))
    with _signalled(error, 1) as interrupted:
        raised = 0
        for number in range(INTERRUPTS):
            raised += interrupted(lambda number=number: read_all(session, x, number))  # type: ignore[misc]
            read_all(session, x, number)
    assert raised > INTERRUPTS // 2


@pytest.mark.skipif(not is_in_main_thread, reason="signals come in the main thread")
def test_the_other_threads_of_an_interrupted_session_get_their_values(session: fw.Session) -> None:
    x, stop = session.array(np.arange(4.0)), threading.Event()
    failures: list[BaseException] = []

    def read_on() -> None:
        number = 0
        try:
            while not stop.is_set():
                read_all(session, x, number)
                number += 1
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            failures.append(error)

    threads = [threading.Thread(target=read_on) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    with _signalled(KeyboardInterrupt, 2) as interrupted:
        for number in range(INTERRUPTS):
            interrupted(lambda number=number: read_all(session, x, number))  # type: ignore[misc]
    stop.set()
    for thread in threads:
        thread.join(HANGS_S)
    assert not any(thread.is_alive() for thread in threads)
    assert failures == []


@pytest.mark.skipif(not is_in_main_thread, reason="signals come in the main thread")
def test_an_interrupted_large_upload_ends_and_the_next_ones_come_whole(session: fw.Session) -> None:
    large = np.arange(5_000_000, dtype=np.float32)  # more than is copied
    with _signalled(KeyboardInterrupt, 3) as interrupted:
        for _ in range(20):
            interrupted(lambda: session.array(large))
            assert float(session.array(large)[-1].numpy(timeout=HANGS_S)) == large[-1]
