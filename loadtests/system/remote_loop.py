"""Runs a loop on Fusewire as a user would. The methods are named as the commands of the peers."""

from __future__ import annotations

from typing import Any

import fusewire as fw
from loadtests.measuring.timing import elapsed_ns
from loadtests.system.context import FUSEWIRE, upload
from loadtests.workloads.loops import Floats, Loop


def as_fori_loop(loop: Loop, operands: Any, steps: int) -> Any:
    """Records one step of a loop, and runs it so often. Returns the last state. `operands` are those of the loop."""

    def body(_: fw.Array, state: Any) -> Any:
        return loop.run(type(operands)(state, *operands[1:]), range(1), FUSEWIRE)

    return fw.fori_loop(steps, body, operands[0])


class RemoteLoop:
    """A loop on arrays of a session. The constructor returns once the server has all operands."""

    def __init__(self, session: fw.Session, loop: Loop) -> None:
        self._loop = loop
        self.operands = upload(session, loop.operands)
        for operand in self.operands:
            operand.numpy()

    def result(self, steps: int) -> Floats:
        """Returns the state after `steps` steps."""
        state: Floats = self._run(steps).numpy()
        return state

    def run_ns(self, steps: int) -> int:
        """Returns the time of `steps` steps, until this process has the part of the state that the loop reads."""
        return elapsed_ns(lambda: self._loop.read(self._run(steps)).numpy())

    def _run(self, steps: int) -> fw.Array:
        state: fw.Array = self._loop.run(self.operands, range(steps), FUSEWIRE)
        return state
