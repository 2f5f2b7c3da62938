"""What is known of pieces that have come before."""

from __future__ import annotations

import numpy as np
import pytest

import fusewire as fw
from fusewire._recording.cutting import drafts
from fusewire._recording.cutting.segments import Structure, structure_of
from fusewire._recording.tape import Integers
from fusewire.testing import session_in_memory
from fusewire.testing.memory_server import LIMITS, MemoryServer
from fusewire_protos.v1 import fusewire_pb2 as wire
from tests.client.loops import H
from tests.client.peer import connect


@pytest.fixture
def structures(monkeypatch: pytest.MonkeyPatch) -> list[Structure]:
    """Those that were worked out."""
    seen: list[Structure] = []

    def work_out(flat: Integers, first: int, ops: int) -> Structure:
        seen.append(structure_of(flat, first, ops))
        return seen[-1]

    monkeypatch.setattr(drafts, "structure_of", work_out)
    return seen


def test_a_piece_that_comes_again_is_of_a_known_structure_whatever_has_come_between(
    structures: list[Structure],
) -> None:
    x = connect().session.array(H)
    for _ in range(3):
        (x + 1.0).numpy()
        (x * 2.0).numpy()
    assert len(structures) == 2


def test_no_more_structures_are_known_than_a_few(structures: list[Structure], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "_MOST_KNOWN", 2)
    x = connect().session.array(H)
    for record_one in (x.__add__, x.__mul__, x.__sub__, x.__add__, x.__add__):
        record_one(2.0).numpy()
    assert len(structures) == 4


def _server_of_short_frames() -> MemoryServer:
    """Returns a server that fails if a frame is longer than 32 KiB."""
    limits = wire.Limits()
    limits.CopyFrom(LIMITS)
    limits.message_bytes = 32 << 10
    return MemoryServer(limits=limits)


def test_a_loop_whose_scalars_change_goes_in_frames_of_the_servers_length() -> None:
    with session_in_memory(_server_of_short_frames()) as session:
        expected = 1.0
        array = session.array(np.float64(1.0))
        for step in range(6000):
            array = array * (1.0 - 1.0 / (step + 3)) + 0.1 * step
            expected = expected * (1.0 - 1.0 / (step + 3)) + 0.1 * step
        assert array.item() == expected


def test_a_loop_whose_inputs_change_goes_in_frames_of_the_servers_length() -> None:
    with session_in_memory(_server_of_short_frames()) as session:
        arrays = [session.array(np.float64(number)) for number in range(50)]
        drawn = np.random.default_rng(3).integers(50, size=(500, 16))
        total = session.array(np.float64(0.0))
        for row in drawn.tolist():
            total = total + fw.stack([arrays[number] for number in row]).sum()
        assert total.item() == float(drawn.sum())
