"""A recorder's tape: what is sent is dropped from it, unless an op that is being recorded still holds it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import fusewire as fw
from fusewire._recording.cutting import drafts
from fusewire._recording.cutting.cutter import HISTORY_OPS, LARGEST_LOOP_OPS
from fusewire._recording.cutting.rolling import roll
from fusewire._recording.recorder import _TRIMMED_AT_RECORDS
from fusewire_protos.credit import Amount
from tests.client.loops import H
from tests.client.peer import connect

OPS = 3 * _TRIMMED_AT_RECORDS
UNBOUNDED = Amount(1 << 40, 1 << 40, 1 << 40)


def train(x: fw.Array) -> None:
    for _ in range(OPS):
        x = x + 1.0


def record(x: fw.Array) -> None:
    """Called as one of ours."""
    train(x)


@pytest.mark.parametrize("program", [train, record])
def test_a_tape_stays_short_whatever_the_users_functions_are_called(program: Any) -> None:
    session = connect(credit=UNBOUNDED, is_manual=True).session
    program(session.array(H))
    assert session.recorder().records_kept < _TRIMMED_AT_RECORDS + LARGEST_LOOP_OPS


@pytest.mark.parametrize(
    "step", [lambda x, b: x * b, lambda x, b: b - x, lambda x, _: fw.sum(x, axis=0, keepdims=True)]
)
def test_a_tape_stays_short_if_every_op_takes_an_array_of_another_thread(step: Any) -> None:
    session = connect(credit=UNBOUNDED, is_manual=True).session
    b = session.array(H)

    def run() -> None:
        x = b
        for _ in range(OPS):
            x = step(b, b)
        lengths.append(x._recorder.records_kept)

    lengths: list[int] = []
    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    assert lengths[0] < _TRIMMED_AT_RECORDS + LARGEST_LOOP_OPS


def test_a_tape_keeps_the_history_before_the_unsent_ops_however_many_wait_for_a_busy_device() -> None:
    session = connect(credit=UNBOUNDED, is_manual=True).session
    x, recorder = session.array(H), session.recorder()
    for _ in range(4):  # segments in flight, so that the next ones are as long as they may be
        x = x + 2.0
        x.future()
    most_unsent = 0
    for _ in range(OPS):
        x = x + 1.0
        unsent = recorder.next_number - recorder.sent
        assert recorder.records_kept - unsent >= min(HISTORY_OPS, recorder.sent - recorder.first)
        most_unsent = max(most_unsent, unsent)
    assert most_unsent > LARGEST_LOOP_OPS


def test_a_tape_is_whole_while_an_op_is_recorded_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    session = connect(credit=UNBOUNDED, is_manual=True).session
    x = session.array(H)
    lengths: list[int] = []

    def interrupted(*arguments: Any) -> Any:
        monkeypatch.setattr(drafts, "roll", roll)
        train(x)
        lengths.append(session.recorder().records_kept)
        return roll(*arguments)

    monkeypatch.setattr(drafts, "roll", interrupted)
    while not lengths:
        x * 2
    assert lengths[0] > OPS
