"""What a server and the engine process of a device tell each other. Pure.

The server writes commands to the engine's standard input, and the engine reports to its standard output: first that it
listens or why it cannot, then what it has to do, and what it was asked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fusewire_server.config.config import Config
from fusewire_server.front_ends.placement import Load
from fusewire_server.processes import messages


class Begin(NamedTuple):
    """Serve the device of this number."""

    config: Config
    device: int


class Reload(NamedTuple):
    """Take over these settings, and read tokens again."""

    config: Config


class Drain(NamedTuple):
    """Open no more sessions, and end each when its work is done, or after this time. The second one ends them now."""

    within_s: float


class Ask(NamedTuple):
    """Answer a question of inspection, or do what an operator orders."""

    number: int
    name: str
    arguments: dict[str, Any]


class Listening(NamedTuple):
    """The engine takes calls on the abstract socket `name`."""

    name: str
    secret: bytes
    backend: str
    detail: str


class Loaded(NamedTuple):
    """What the engine has to do has changed."""

    load: Load


class Answered(NamedTuple):
    """The answer to a question, pickled. Only its own server reads it."""

    number: int
    pickled: bytes


class Unanswered(NamedTuple):
    """A question has no answer now."""

    number: int
    text: str


class Drained(NamedTuple):
    """No session is left, and none will be opened."""


Command = Begin | Reload | Drain | Ask
Report = Listening | Loaded | Answered | Unanswered | Drained
REPORTS: tuple[type[Report], ...] = (Listening, Loaded, Answered, Unanswered, Drained)


def decode_command(line: bytes) -> Command:
    """Reads the line of a command."""
    command: Command = messages.decode(line, (Begin, Reload, Drain, Ask))
    return command
