"""What interrupts a thread as it sends: Ctrl-C, finalisers and signal handlers."""

from __future__ import annotations

import asyncio
import gc
import linecache
import sys
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from inspect import CO_GENERATOR
from types import FrameType, SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import fusewire as fw
from fusewire._recording.cutting import drafts
from fusewire._recording.cutting.segments import structure_of
from fusewire._recording.recorded_ops import adopt_without_handle
from fusewire._transport.large_values import LargeValues
from fusewire._transport.stream_transport import StreamTransport
from fusewire._transport.upload_queue import ByteBudget, UploadQueue
from fusewire_protos.credit import Amount
from fusewire_protos.frames import Segment
from tests.client.loops import STEPS, H
from tests.client.peer import Peer, connect
from tests.patience import HANGS_S

CHUNK = memoryview(bytes(10))


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
    adopt_without_handle(fw.Array, session.recorder(), x._spec)
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
