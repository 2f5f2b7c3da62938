"""What a server and its front ends tell each other: every line is read as what was written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fusewire_protos.address import Address
from fusewire_server.config.config import Config, Limits, Listen, Log
from fusewire_server.front_ends.commands import (
    Begin,
    Command,
    Drain,
    Engines,
    Listening,
    Refused,
    Reload,
    Report,
    decode_command,
    decode_report,
    encode_command,
    encode_report,
)
from fusewire_server.front_ends.placement import EngineAt, Load
from fusewire_server.processes.messages import Fault

ENGINES = (EngineAt(0, "name", bytes(range(256))), EngineAt(3, "other", b"", Load(5, 6, 7, ("aa", "bb"))))
CHANGED = Config(
    listen=Listen(
        grpc=Address("::1", 7000),
        tls_cert=Path("/etc/cert.pem"),
        tls_key=Path("/etc/key.pem"),
        token_file=Path("/etc/not UTF-8: \udcff"),
        adaptive_windows=True,
        front_ends=3,
        insecure_allow_remote=True,
    ),
    limits=Limits(message_bytes=100 << 10, chunk_bytes=90 << 10, program_bytes=80 << 10),
    log=Log(level="error", style="console", audit=False),
)


@pytest.mark.parametrize("config", [Config(), CHANGED], ids=["default", "changed"])
@pytest.mark.parametrize("kind", [Begin, Reload])
def test_settings_arrive_as_they_were(config: Config, kind: type[Begin | Reload]) -> None:
    command: Command = Reload(config) if kind is Reload else Begin(config, 7001, ENGINES)
    assert decode_command(encode_command(command)) == command


def test_settings_that_front_ends_do_not_use_are_not_told() -> None:
    begin = Begin(replace(CHANGED, planner=replace(CHANGED.planner, deadline_s=7.0)), 1, ())
    assert decode_command(encode_command(begin)) == begin._replace(config=CHANGED)
    assert b"deadline_s" not in encode_command(begin)


def test_changed_engines_arrive() -> None:
    assert decode_command(encode_command(Engines(ENGINES))) == Engines(ENGINES)


def test_a_drain_arrives() -> None:
    assert decode_command(encode_command(Drain())) == Drain()


@pytest.mark.parametrize("report", [Listening(), Fault('a "text"\nof two lines: ü'), Refused(1 << 40)])
def test_a_report_arrives_as_it_was(report: Report) -> None:
    assert decode_report(encode_report(report)) == report


def test_whatever_is_told_is_one_line() -> None:
    name = "of\ntwo lines"
    for line in (encode_command(Begin(CHANGED, 1, (EngineAt(0, name, b"\n"),))), encode_report(Fault(name))):
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
