"""An intake and its sessions, without an engine: what is ready or failed is said by the test."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from fusewire_protos.errors import BY_NAME
from fusewire_protos.program import Program
from fusewire_server.config.config import Limits
from fusewire_server.programs.failure import Failure
from fusewire_server.programs.program_table import ProgramTable, TableBounds
from fusewire_server.sessions.intake import Arrival, Intake, Item, Taken
from fusewire_server.sessions.rows import poison_from_inputs
from fusewire_server.sessions.session import Row, Session, ValueState
from fusewire_server.sessions.values import make_ready, release_if_dead
from tests.server import parts
from tests.server.parts import VECTOR_BYTES, addition, new, pair, scaling, session, upload

NEGATE, ADD, PAIR, SCALE = 1, 2, 3, 4
PROGRAMS: dict[int, Program] = {NEGATE: parts.chain(), ADD: addition(), PAIR: pair(), SCALE: scaling()}
FAULT = Failure(BY_NAME["upload_failed"], "stalled", 0, 0)


class World:
    """An intake and its sessions; what is ready or failed is said by the test."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.programs = ProgramTable(
            self.limits.program_limits(), 3, TableBounds(100, session_bytes=self.limits.held_program_bytes)
        )
        self.intake = Intake(self.limits, self.programs)

    def session(self, name: str = "a") -> Session:
        """A session that has numbered all programs and holds 10 and 11, ready."""
        one = session(name)
        self.take(one, *[new(number, program) for number, program in PROGRAMS.items()])
        self.take(one, upload(10), upload(11))
        one.complete(one.in_flight)
        return one

    def take(self, one: Session, *items: Item, tensors: Sequence[bytes] = (VECTOR_BYTES,)) -> Taken:
        """All of it, however many pieces that takes."""
        taken, following = Taken(), iter(items)
        left = self.intake.take(one, following, Arrival(tensors, 0), taken)
        while left is not None:
            left = self.intake.take(one, chain([left], following), Arrival(tensors, 0), taken)
        return taken

    def submit_next(self, one: Session) -> Taken:
        """What the engine does with the head of the queue, as far as tables go."""
        taken = Taken()
        row = one.queue.popleft()
        poison_from_inputs(row, taken.released)
        for value in row.inputs:
            value.readers -= 1
            release_if_dead(one, value, taken.released)
        for value in row.outputs:
            if value.state is not ValueState.FAILED:
                make_ready(value, taken.reads)
                release_if_dead(one, value, taken.released)
        one.complete(row.entry.amount)
        return taken


def bases(rows: Sequence[Row]) -> list[int]:
    return [row.base for row in rows]


def answers(one: Session) -> dict[int, tuple[str, str]]:
    """Failures owed, by fetch: case and text."""
    assert all(answer.failure is not None for answer in one.answers.unsent)
    failures = {answer.fetch: answer.failure for answer in one.answers.unsent if answer.failure}
    return {fetch: (failure.case.name, failure.text) for fetch, failure in failures.items()}


def failure(one: Session, handle: int) -> Failure:
    failure = one.values[handle].failure
    assert failure is not None
    return failure
