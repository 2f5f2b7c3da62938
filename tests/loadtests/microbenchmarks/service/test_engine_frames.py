"""Frames in memory through the engine: every segment is completed, and a session of a faulty engine is noticed."""

from __future__ import annotations

import pytest

from fusewire_kernels.devices.null import NullDevice
from fusewire_protos.errors import OutOfMemory
from loadtests.measuring.errors import WrongResult
from loadtests.microbenchmarks.service import engine_frames
from loadtests.microbenchmarks.service.engine_frames import Bench


@pytest.fixture(autouse=True)
def _few_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_frames, "_SEGMENTS", 60)
    monkeypatch.setattr(engine_frames, "_WARMING_SEGMENTS", 20)


@pytest.mark.parametrize(("sessions", "programs"), [(1, 1), (20, 1), (20, 20)])
def test_all_segments_are_completed(sessions: int, programs: int) -> None:
    assert Bench(sessions, programs).segments_per_s() > 0


def test_segments_that_fail_are_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(*_: object) -> None:
        raise OutOfMemory("planted")

    monkeypatch.setattr(NullDevice, "launch", launch)
    with pytest.raises(WrongResult, match="out_of_memory"):
        Bench(1).segments_per_s()
