"""A loop on Fusewire, used as a user would, and asked for the same things as its peers."""

from __future__ import annotations

import fusewire as fw
from loadtests.measuring.timing import elapsed_ns
from loadtests.system.context import FUSEWIRE, upload
from loadtests.workloads.loops import Floats, Loop


class RemoteLoop:
    """A loop over arrays of a session, which the server holds when this has been made."""

    def __init__(self, session: fw.Session, loop: Loop) -> None:
        self._loop = loop
        self.operands = upload(session, loop.operands)
        for operand in self.operands:
            operand.numpy()

    def result(self, steps: int) -> Floats:
        """The state after so many steps."""
        state: Floats = self._run(steps).numpy()
        return state

    def run_ns(self, steps: int) -> int:
        """How long so many steps take, until what the loop reads is here."""
        return elapsed_ns(lambda: self._loop.read(self._run(steps)).numpy())

    def _run(self, steps: int) -> fw.Array:
        state: fw.Array = self._loop.run(self.operands, range(steps), FUSEWIRE)
        return state
