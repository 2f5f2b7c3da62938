"""A fetch in slices: how it ends if the host has no memory for a piece."""

from __future__ import annotations

import pytest

from fusewire_kernels.devices.base import Block, Staged
from fusewire_kernels.devices.null import NullDevice
from fusewire_kernels.devices.part_readback import PartReadback
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_server.device.orders import Missing, Read
from fusewire_server.device.sliced_read import SlicedRead
from fusewire_server.scheduling.time_shares import Progress
from fusewire_server.sessions.session import PendingFetch, Value, ValueState
from tests.server.parts import session

SOON_NS = 1 << 62


class _DeviceWithRoomForOnePiece(NullDevice):
    """A device that copies nothing by itself, and finds memory on the host for one piece."""

    def __init__(self) -> None:
        super().__init__(completes_by_itself=False)
        self.pieces = 0

    def read_part(self, block: Block, staged: Staged, part: slice) -> PartReadback:
        self.pieces += 1
        if self.pieces > 1:
            raise MemoryError
        return super().read_part(block, staged, part)


def test_a_read_without_room_for_a_piece_ends_when_the_piece_before_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusewire_server.device.large_read.PIECE_BYTES", 7)
    device = _DeviceWithRoomForOnePiece()
    value = Value(1, Spec(dtypes.uint8, (20,)), ValueState.READY)
    value.block = device.allocate(20)
    device.write(value.block, memoryview(bytes(20)))
    read = SlicedRead(device, Read(PendingFetch(session(), 1, value)))
    assert read.go_on(SOON_NS) is Progress.WAITS
    while read.go_on(SOON_NS) is Progress.WAITS:
        assert device.complete_next()
    outcome = read.outcome()
    assert isinstance(outcome, Missing)
    assert outcome.refusal == "the host has no memory for a value of 20 bytes"
