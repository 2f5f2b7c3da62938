"""What processes of a server tell each other arrives as it was, one line each."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fusewire_server.config.config import Config, Device, Limits, Listen, Log
from fusewire_server.processes.messages import Fault, decode, encode


class Inner(NamedTuple):
    """A part of a message."""

    name: str
    raw: bytes


class Message(NamedTuple):
    """A message of all kinds of fields."""

    config: Config
    parts: tuple[Inner, ...]
    first: Inner
    seconds: float
    plain: dict[str, Any]


CHANGED = Config(
    listen=Listen(token_file=Path("/etc/not UTF-8: \udcff"), front_ends=3),
    device=Device(devices="1,0", backend="cpu"),
    limits=Limits(credit_ops=7),
    log=Log(level="error"),
)


@pytest.mark.parametrize("config", [Config(), CHANGED], ids=["default", "changed"])
def test_a_message_arrives_as_it_was(config: Config) -> None:
    inner = Inner('of "two"\nlines: ü', bytes(range(256)))
    message = Message(config, (inner, Inner("", b"")), inner, 0.25, {"after": -1, "session": "ab"})
    line = encode(message)
    assert decode(line, (Fault, Message)) == message
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1


def test_only_the_sections_that_are_named_are_told() -> None:
    message = Message(CHANGED, (), Inner("", b""), 1.0, {})
    line = encode(message, ("listen", "log"))
    assert b"credit_ops" not in line
    assert decode(line, (Message,)).config == Config(listen=CHANGED.listen, log=CHANGED.log)


@pytest.mark.parametrize("line", [b"", b"no JSON\n", b'["Other", []]\n', b'["Fault", []]\n'])
def test_a_line_of_no_known_message_is_refused(line: bytes) -> None:
    with pytest.raises((KeyError, ValueError)):
        decode(line, (Fault,))
