"""Steps that come again: they send what they would send if each was cut and drafted anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import fusewire as fw
from fusewire._recording.cutting.known_step import KnownStep
from fusewire._recording.recorder import Recorder
from tests.client.peer import Peer, connect
from tests.patience import HANGS_S

SENSES = np.arange(4, dtype=np.float32)


class Step(NamedTuple):
    """A step of a program. `kind` tells its ops; `keeps` whether it holds a result that nobody reads."""

    kind: int
    scalar: float
    keeps: bool
    forgets: bool


STEPS = st.lists(
    st.builds(Step, st.sampled_from([0, 0, 0, 1, 2]), st.sampled_from([1.0, 0.5]), st.booleans(), st.booleans()),
    max_size=30,
)


class Program:
    """Runs steps on a server in memory, without a thread of its own."""

    def __init__(self) -> None:
        self.peer: Peer = connect(is_manual=True)
        self.weights = self.peer.session.array(SENSES)
        self.state = self.peer.session.array(SENSES)
        self.kept: list[fw.Array] = []
        self.read: list[bytes] = []

    def run(self, steps: list[Step]) -> None:
        for step in steps:
            self._run(step)

    def _run(self, step: Step) -> None:
        if step.forgets and self.kept:
            self.kept.pop(0)
        scores = self._scores(step)
        if step.kind < 2:
            self.state = scores
        self.read.append(self._value(scores))

    def _scores(self, step: Step) -> fw.Array:
        hidden = fw.tanh(self.peer.session.array(SENSES) * self.weights)
        if step.kind:
            hidden = hidden + self.state[step.kind : step.kind + 1]
        if step.keeps:
            self.kept.append(hidden)
        return hidden * step.scalar - self.state

    def _value(self, array: fw.Array) -> bytes:
        future = array.future()
        self.peer.transport.run_once()
        return future.result(HANGS_S).tobytes()


@contextmanager
def no_step_is_known() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KnownStep, "of", lambda *_: None)
        yield


@contextmanager
def counted(found: list[Any]) -> Iterator[None]:
    """Notes the drafts of known steps."""
    draft = Recorder._draft_known_step

    def noted(recorder: Recorder, *arguments: Any) -> Any:
        drafted = draft(recorder, *arguments)
        if drafted is not None:
            found.append(drafted)
        return drafted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recorder, "_draft_known_step", noted)
        yield


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_known_steps_send_what_unknown_ones_would(steps: list[Step]) -> None:
    anew, known = Program(), Program()
    with no_step_is_known():
        anew.run(steps)
    known.run(steps)
    assert known.read == anew.read
    assert known.peer.server.entries == anew.peer.server.entries


def test_a_step_that_comes_again_is_known() -> None:
    found: list[Any] = []
    program = Program()
    program.run([Step(0, 1.0, keeps=False, forgets=False)] * 30)
    with counted(found):
        program.run([Step(0, 0.5, keeps=False, forgets=False)] * 10)
    assert len(found) == 10


@pytest.mark.parametrize(
    "other",
    [Step(1, 1.0, keeps=False, forgets=False), Step(0, 1.0, keeps=True, forgets=False)],
    ids=["other ops", "another live result"],
)
def test_a_step_with_something_else_is_not_known(other: Step) -> None:
    found: list[Any] = []
    program = Program()
    program.run([Step(0, 1.0, keeps=False, forgets=False)] * 30)
    with counted(found):
        program.run([other])
    assert not found


def test_an_upload_that_dies_and_a_result_that_died_before_are_told_apart() -> None:
    found: list[Any] = []
    program = Program()
    program.run([Step(2, 1.0, keeps=False, forgets=False)] * 30)
    with counted(found):
        program.run([Step(2, 1.0, keeps=False, forgets=False)])
    (draft,) = found
    assert len(draft.liveness.dying) == 1
    assert len(draft.liveness.freed) == 1
