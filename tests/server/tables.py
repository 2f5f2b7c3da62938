"""An intake and its sessions, without an engine: what is ready or failed is said by the test."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from fusewire_protos.errors import BY_NAME
from fusewire_protos.programs.program import Program
from fusewire_server.config.config import Limits
from fusewire_server.programs.failure import Failure
from fusewire_server.programs.program_table import ProgramTable, TableBounds
from fusewire_server.sessions.effects import Effects
from fusewire_server.sessions.entries.frame import Arrival, Item
from fusewire_server.sessions.intake import Intake
from fusewire_server.sessions.rows import fail_from_inputs
from fusewire_server.sessions.session import Row, Session, ValueState
from fusewire_server.sessions.values import make_ready, release_if_dead
from tests.server import parts
from tests.server.parts import VECTOR_BYTES, addition, new, pair, scaling, session, upload

NEGATE, ADD, PAIR, SCALE = 1, 2, 3, 4
PROGRAMS: dict[int, Program] = {NEGATE: parts.chain(), ADD: addition(), PAIR: pair(), SCALE: scaling()}
FAULT = Failure(BY_NAME["upload_failed"], "stalled", 0, 0)

EFFECTS = ("declared", "failures", "reads", "refused_uploads", "released", "to_plan", "writes")


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

    def take(self, one: Session, *items: Item, tensors: Sequence[bytes] = (VECTOR_BYTES,)) -> Effects:
        """All of it, however many pieces that takes. Raises the CaseError that ends the session."""
        effects, following = Effects(), iter(items)
        left: list[Item] = []
        while True:
            applied = self.intake.take(one, chain(left, following), Arrival(tensors, 0))
            for name in EFFECTS:
                getattr(effects, name).extend(getattr(applied.effects, name))
            if applied.error is not None:
                raise applied.error
            if applied.left is None:
                return effects
            left = [applied.left]

    def submit_next(self, one: Session) -> Effects:
        """What the engine does with the head of the queue, as far as tables go."""
        effects = Effects()
        row = one.queue.popleft()
        fail_from_inputs(row, effects.released)
        for value in row.inputs:
            value.readers -= 1
            release_if_dead(one, value, effects.released)
        for value in row.outputs:
            if value.state is not ValueState.FAILED:
                make_ready(value, effects.reads)
                release_if_dead(one, value, effects.released)
        one.complete(row.entry.amount)
        return effects


def bases(rows: Sequence[Row]) -> list[int]:
    return [row.base for row in rows]


def answers(one: Session) -> dict[int, tuple[str, str]]:
    """Failures owed, by fetch: case and text."""
    assert all(answer.failure is not None for answer in one.answers.unsent)
    failures = {answer.fetch: answer.failure for answer in one.answers.unsent if answer.failure}
    return {fetch: (failure.case.name, failure.text) for fetch, failure in failures.items()}


def failure(one: Session, handle: int) -> Failure:
    value = one.values.get(handle)
    failure = one.failed.failure_of(handle) if value is None else value.failure
    assert failure is not None
    return failure
