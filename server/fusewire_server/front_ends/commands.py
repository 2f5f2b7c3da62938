"""What a server and its front ends tell each other, one line of JSON each. Pure.

The server writes commands to a front end's standard input: the first one tells how to begin, and the later ones what
has changed. A front end writes reports to its standard output: first that it listens or why it cannot, and then how
many calls it has refused.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from fusewire_server.config.config import SETTINGS, Config, load, plain_value_of

_SECTIONS = ("listen.", "limits.", "log.")  # that front ends use; all of a section, because settings have to fit others


class Begin(NamedTuple):
    """Listen on `port`, and pass calls on to the abstract socket `name`."""

    config: Config
    port: int
    name: str
    secret: bytes


class Reload(NamedTuple):
    """Take over these settings, and read tokens and certificates again."""

    config: Config


class Drain(NamedTuple):
    """Tell health checks that no more sessions are opened."""


class Listening(NamedTuple):
    """The front end listens."""


class Fault(NamedTuple):
    """The front end cannot listen, and ends."""

    text: str


class Refused(NamedTuple):
    """So many calls were refused since the last report of this kind."""

    calls: int


Command = Begin | Reload | Drain
Report = Listening | Fault | Refused
_REPORTS: dict[str, type[Report]] = {kind.__name__: kind for kind in (Listening, Fault, Refused)}


def encode_command(command: Command) -> bytes:
    """Returns the line of a command."""
    told: dict[str, object] = {}
    if isinstance(command, Begin | Reload):
        told["settings"] = _settings_of(command.config)
    if isinstance(command, Begin):
        told |= {"port": command.port, "name": command.name, "secret": command.secret.hex()}
    return _line(command, told)


def decode_command(line: bytes) -> Command:
    """Reads the line of a command."""
    kind, told = json.loads(line)
    if kind == Drain.__name__:
        return Drain()
    config = load(None, {}, told["settings"]).config
    if kind == Reload.__name__:
        return Reload(config)
    return Begin(config, told["port"], told["name"], bytes.fromhex(told["secret"]))


def encode_report(report: Report) -> bytes:
    """Returns the line of a report."""
    return _line(report, report._asdict())


def decode_report(line: bytes) -> Report:
    """Reads the line of a report."""
    kind, told = json.loads(line)
    return _REPORTS[kind](**told)


def _line(told: Command | Report, fields: dict[str, object]) -> bytes:
    return json.dumps([type(told).__name__, fields]).encode() + b"\n"


def _settings_of(config: Config) -> dict[str, object]:
    """Returns the settings that front ends use, without those that are not set."""
    names = [name for name in SETTINGS if name.startswith(_SECTIONS)]
    return {name: value for name in names if (value := plain_value_of(config, name)) is not None}
