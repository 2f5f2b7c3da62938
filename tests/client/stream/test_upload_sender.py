"""UploadSender of a session: what is taken, which way it goes, and that it changes no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire._stream.session_state import SessionState
from fusewire.testing.memory_server import LIMITS
from fusewire_protos.credit import Amount
from fusewire_protos.frames import INLINE_BYTES, Free, Upload
from fusewire_protos.v1 import fusewire_pb2 as wire
from tests.client.peer import connect, entries


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


def test_an_upload_that_the_servers_frames_cannot_hold_travels_beside_them() -> None:
    limits = wire.Limits()
    limits.CopyFrom(LIMITS)
    limits.message_bytes = 4096
    peer = connect(limits=limits)
    for size_bytes in (2048, 2049):
        assert peer.session.array(np.zeros(size_bytes, np.uint8)).numpy().nbytes == size_bytes
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


def test_an_upload_that_an_interrupt_kept_from_being_declared_dies_silently(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = connect(credit=Amount(), is_manual=True, holds_completion=True)
    first = peer.session.array([1])

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SessionState, "wait_for_credit", interrupt)
    with pytest.raises(KeyboardInterrupt):
        peer.session.array([2])
    assert [recorder.deaths for recorder in peer.session._thread_recorders.all()] == [0]
    peer.transport.run_once()
    assert [upload.handle for upload in entries(peer, Upload)] == [first._handle]


@pytest.mark.parametrize("elements", [1, INLINE_BYTES])
def test_an_upload_dies_like_any_array(elements: int) -> None:
    peer = connect(is_manual=True)
    array = peer.session.array(np.zeros(elements))
    handle = array._handle
    del array
    peer.session._sender.send_frees()
    peer.transport.run_once()
    assert [free.handles for free in entries(peer, Free)] == [(handle,)]
