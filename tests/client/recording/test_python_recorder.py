"""The recorder in Python: what an interruption between two of its statements must not break."""

from __future__ import annotations

import signal
import sys

import numpy as np
import pytest

import fusewire as fw
from fusewire._recording.implementation import RECORDER
from fusewire._recording.python_recorder import Recorded
from fusewire._recording.tape import Tape
from tests.client.loops import H
from tests.client.peer import connect
from tests.patience import HANGS_S


def test_an_object_that_an_interrupt_left_half_made_dies_silently(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", heard.append)
    object.__new__(Recorded)
    assert heard == []


@pytest.mark.skipif(RECORDER != "Python", reason="nothing interrupts the compiled recorder as it trims a tape")
def test_what_a_handler_records_while_a_tape_is_trimmed_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    session = connect().session
    x = session.array(H)
    of_handler: list[fw.Array] = []
    original = Tape.without

    def without(self: Tape, records: int, *, unsent: int) -> Tape:
        trimmed = original(self, records, unsent=unsent)
        if not of_handler:
            signal.raise_signal(signal.SIGUSR1)
        return trimmed

    monkeypatch.setattr(Tape, "without", without)
    previous = signal.signal(signal.SIGUSR1, lambda *_: of_handler.append(x * 1000.0))
    try:
        y = x
        while not of_handler:
            y = x + 1
        z = y * 2
    finally:
        signal.signal(signal.SIGUSR1, previous)
    np.testing.assert_array_equal(of_handler[0].numpy(timeout=HANGS_S), H * 1000)
    np.testing.assert_array_equal(z.numpy(timeout=HANGS_S), (H + 1) * 2)
