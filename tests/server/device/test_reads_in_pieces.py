"""Large values that the device thread reads in pieces, with orders of others in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from fusewire_kernels.devices.base import Block
from fusewire_kernels.devices.null import NullDevice, NullPlan, NullReadback
from fusewire_server.device.orders import Brought, Missing, Ran, Read, Release, Wrote
from fusewire_server.sessions.session import PendingFetch, Session, SessionState, Value, ValueState
from tests.server.device_world import DEADLINE_S, FAST, World, end_slices_at_once, write
from tests.server.parts import SIZE_BYTES, VECTOR, session


class PiecesDevice(NullDevice):
    """Notes which pieces are read, each of which takes it 1 ns; `before_piece` is called before each."""

    def __init__(self) -> None:
        super().__init__()
        self.first_bytes: list[int] = []
        self.before_piece: Callable[[], None] = lambda: None
        self.pieces_before_launch: list[int] = []  # how many had been read at each launch

    def read(self, block: Block, size_bytes: int, first_byte: int = 0) -> NullReadback:
        self.before_piece()
        self.first_bytes.append(first_byte)
        self.clock_ns += 1
        return super().read(block, size_bytes, first_byte)

    def launch_iteration(self, loaded: NullPlan, slots: npt.NDArray[np.int64]) -> None:
        self.pieces_before_launch.append(len(self.first_bytes))
        super().launch_iteration(loaded, slots)


@dataclass
class PiecesWorld(World):
    device: PiecesDevice

    def brought_beside(self, number: int) -> Brought:
        """The read value. Another thread reports the run, so it may do so before or after."""
        reports = [self.next_report(), self.next_report()]
        (brought,) = [report for report in reports if isinstance(report, Brought)]
        assert [report.number for report in reports if isinstance(report, Ran)] == [number]
        return brought


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[PiecesWorld]:
    """Not started; what is larger than 8 bytes is read in pieces of 7, each in a turn of its own."""
    here = PiecesWorld(PiecesDevice())
    monkeypatch.setattr("fusewire_server.device.orders.LARGE_BYTES", 8)
    monkeypatch.setattr("fusewire_server.device.large_read.PIECE_BYTES", 7)
    end_slices_at_once(monkeypatch)
    yield here
    here.device.completes_by_itself = True
    while here.device.complete_next():
        pass
    here.thread.stop(DEADLINE_S)


def pending_fetch_of(world: World, one: Session) -> PendingFetch:
    """Orders a read of a value of 16 bytes, 0 to 15."""
    value = world.value()
    assert value.block is not None
    value.block.owner[:] = range(SIZE_BYTES)
    pending = PendingFetch(one, 1, value)
    world.thread.order(Read(pending))
    return pending


def test_others_overtake_a_read_of_a_large_value_between_its_pieces(pieces: PiecesWorld) -> None:
    pending = pending_fetch_of(pieces, session("a"))
    pieces.run(FAST, session("b"))
    pieces.thread.start()
    report = pieces.brought_beside(FAST)
    assert pieces.device.pieces_before_launch[0] < 3
    assert (report.pending, bytes(report.data)) == (pending, bytes(range(SIZE_BYTES)))
    assert report.device_ns == 3
    assert pieces.device.first_bytes == [0, 7, 14]


def test_a_large_value_is_not_given_back_before_it_is_read(pieces: PiecesWorld) -> None:
    one = session("a")
    pending = pending_fetch_of(pieces, one)
    pieces.thread.order(Release(frozenset([one]), (pending.value,)))
    pieces.run(FAST, session("b"))
    was_there: list[bool] = []
    pieces.device.before_piece = lambda: was_there.append(pending.value.block is not None)
    pieces.thread.start()
    pieces.brought_beside(FAST)
    pieces.thread.stop(DEADLINE_S)
    assert was_there == [True] * 3
    assert pending.value.block is None


def test_at_most_two_pieces_are_on_their_way_and_nobody_waits_for_them(pieces: PiecesWorld) -> None:
    device = pieces.device
    device.completes_by_itself = False
    pending_fetch_of(pieces, session("a"))
    pieces.thread.start()
    for count in range(1, 4):
        for _ in range(2):  # between which the read has had a turn
            pieces.thread.order(write(0, session("b")))
            assert isinstance(pieces.next_report(), Wrote)
        assert device.first_bytes == [0, 7, 14][: count + 1]
        assert device.complete_next()


@pytest.mark.parametrize("why", ["abandoned", "ended"])
def test_a_large_value_that_nobody_wants_any_more_is_not_read_to_its_end(pieces: PiecesWorld, why: str) -> None:
    pending = pending_fetch_of(pieces, session("a"))

    def leave() -> None:
        pending.is_abandoned = why == "abandoned"
        pending.session.state = SessionState.CLOSED if why == "ended" else SessionState.OPEN

    pieces.device.before_piece = leave
    pieces.thread.start()
    report = pieces.next_report()
    assert isinstance(report, Missing)
    assert report.device_ns == 2
    assert pieces.device.first_bytes == [0, 7]


def test_a_large_value_that_is_not_there_is_missing(pieces: PiecesWorld) -> None:
    pending = PendingFetch(session("a"), 1, Value(1, VECTOR, ValueState.READY))
    pieces.thread.order(Read(pending))
    pieces.thread.start()
    assert isinstance(pieces.next_report(), Missing)
