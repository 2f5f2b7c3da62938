"""What a server and its front ends tell each other. Pure.

The server writes commands to a front end's standard input: the first one tells how to begin, and the later ones what
has changed. A front end writes reports to its standard output: first that it listens or why it cannot, and then how
many calls it has refused.
"""

from __future__ import annotations

from typing import NamedTuple

from fusewire_server.config.config import Config
from fusewire_server.front_ends.placement import EngineAt
from fusewire_server.processes import messages
from fusewire_server.processes.messages import Fault

_SECTIONS = ("listen", "limits", "log")  # that front ends use; all of a section, because settings have to fit others


class Begin(NamedTuple):
    """Listen on `port`, and pass calls on to these engines."""

    config: Config
    port: int
    engines: tuple[EngineAt, ...]


class Reload(NamedTuple):
    """Take over these settings, and read tokens and certificates again."""

    config: Config


class Engines(NamedTuple):
    """These engines take calls now."""

    engines: tuple[EngineAt, ...]


class Drain(NamedTuple):
    """Tell health checks that no more sessions are opened."""


class Listening(NamedTuple):
    """The front end listens."""


class Refused(NamedTuple):
    """So many calls were refused since the last report of this kind."""

    calls: int


Command = Begin | Reload | Engines | Drain
Report = Listening | Fault | Refused
REPORTS: tuple[type[Report], ...] = (Listening, Fault, Refused)


def encode_command(command: Command) -> bytes:
    """Returns the line of a command."""
    return messages.encode(command, _SECTIONS)


def decode_command(line: bytes) -> Command:
    """Reads the line of a command."""
    command: Command = messages.decode(line, (Begin, Reload, Engines, Drain))
    return command


def encode_report(report: Report) -> bytes:
    """Returns the line of a report."""
    return messages.encode(report)


def decode_report(line: bytes) -> Report:
    """Reads the line of a report."""
    report: Report = messages.decode(line, REPORTS)
    return report
