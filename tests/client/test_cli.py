"""The `fusewire` command: what it prints, its exit status, and that help costs little."""

import argparse
import json
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest

from fusewire import cli
from fusewire._transport.token import TOKEN_VARIABLE

# Prints which of the modules named in argv[1] the help of the command adds to an import of fusewire.
IMPORTED_FOR_HELP = """
import contextlib, io, json, sys
import fusewire
before = set(sys.modules)
from fusewire import cli
from fusewire._transport.token import TOKEN_VARIABLE
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    cli.main(["--help"])
print(json.dumps(sorted(set(json.loads(sys.argv[1])) & (set(sys.modules) - before))))
"""
SLOW_MODULES = [
    "grpc",
    "asyncio",
    "fastapi",
    "starlette",
    "pydantic",
    "uvicorn",
    "uvloop",
    "cupy",
    "rich",
    "matplotlib",
]
SLOW_MODULES += ["ml_dtypes", "fusewire_server.app", "fusewire_kernels", "fusewire.examples.digits"]

STATS: dict[str, Any] = {
    "version": "0.1.0",
    "instance": "00112233445566778899aabbccddeeff",
    "started_at": "2030-01-01T00:00:00+00:00",
    "is_ready": True,
    "is_draining": False,
    "is_held": False,
    "sessions": 1,
    "programs": 2,
    "backend": {"name": "cpu", "device": "2 cores", "detail": ""},
    "totals": {
        "ops": 6000,
        "segments": 30,
        "launches": 60,
        "submissions": 20,
        "received_bytes": 2048,
        "sent_bytes": 5,
        "failures": {"bad_shape": 1},
    },
    "memory": {"live_bytes": 3 << 20, "peak_bytes": 2 << 30},
}
SESSION: dict[str, Any] = {
    "session": "0123456789ab",
    "tenant": "lab",
    "state": "open",
    "ops": 6000,
    "in_flight_ops": 200,
    "live_bytes": 4096,
    "unread_bytes": 0,
    "idle_s": 0.25,
}
TOKEN = "id.secret"  # noqa: S105 - of a server that lives for one test


class Inspected:
    """A server of fixed answers, (status, JSON text) by path; it asks for TOKEN if `is_guarded`."""

    def __init__(self) -> None:
        self.answers = {
            "/v1/stats": (200, json.dumps(STATS)),
            "/v1/sessions": (200, json.dumps({"sessions": [SESSION]})),
        }
        self.is_guarded = False
        self.http = HTTPServer(("127.0.0.1", 0), self._handler())
        self.address = f"127.0.0.1:{self.http.server_port}"

    def answer(self, path: str, authorization: str | None) -> tuple[int, str]:
        if self.is_guarded and authorization != f"Bearer {TOKEN}":
            return 401, json.dumps({"type": "urn:fusewire:problem:unauthenticated", "detail": "no token came"})
        return self.answers[path]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        inspected = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, text = inspected.answer(self.path, self.headers["authorization"])
                self.send_response(status)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                """Silence on standard error, which the tests read."""

        return Handler


@pytest.fixture
def inspected(monkeypatch: pytest.MonkeyPatch) -> Iterator[Inspected]:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    server = Inspected()
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.http.shutdown()
    thread.join(10)
    server.http.server_close()


def add(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """Makes `value` the only entry point of the command."""
    added = EntryPoints([EntryPoint("added", value, cli.ENTRY_POINT_GROUP)])
    monkeypatch.setattr(cli, "entry_points", added.select)


def register_greeting(commands: "cli.Commands") -> None:
    """An entry point of the tests."""
    commands.add_parser("greet").set_defaults(run=_greet)


def _greet(_parsed: argparse.Namespace) -> int:
    print("hello")  # noqa: T201 - a command talks
    return 1


def test_help_and_version_import_nothing_slow() -> None:
    command = [sys.executable, "-c", IMPORTED_FOR_HELP, json.dumps(SLOW_MODULES)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert json.loads(finished.stdout) == []


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "fusewire", "--version"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert finished.stdout.startswith("fusewire ")


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["status", "--nonsense"], ["sessions"]])
def test_a_wrong_command_line_is_status_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(arguments)


def test_other_packages_add_commands_through_entry_points(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add(monkeypatch, f"{__name__}:register_greeting")
    assert cli.main(["greet"]) == 1
    assert capsys.readouterr().out == "hello\n"


def test_an_addition_that_cannot_be_imported_leaves_the_other_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], inspected: Inspected
) -> None:
    add(monkeypatch, "absent_package.commands:register")
    assert cli.main(["status", "--http", inspected.address]) == 0
    assert "the commands of absent_package.commands:register are not available" in capsys.readouterr().err


def demo_module(run: Callable[[argparse.Namespace], int]) -> argparse.Namespace:
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--clients", type=int, default=8)

    return argparse.Namespace(add_arguments=add_arguments, run=run)


def test_the_demo_brings_its_own_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, cli._DEMO_MODULE, demo_module(lambda parsed: parsed.clients % 2))
    assert cli.main(["demo", "--clients", "3"]) == 1


def test_a_missing_extra_is_told_with_what_to_type(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_parsed: argparse.Namespace) -> int:
        raise ModuleNotFoundError("No module named 'matplotlib.pyplot'", name="matplotlib.pyplot")

    monkeypatch.setitem(sys.modules, cli._DEMO_MODULE, demo_module(run))
    assert cli.main(["demo"]) == 1
    assert capsys.readouterr().err == "fusewire: matplotlib is missing: pip install 'fusewire[demo]'\n"


def test_a_missing_module_of_no_extra_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_parsed: argparse.Namespace) -> int:
        raise ModuleNotFoundError("No module named 'fusewire.absent'", name="fusewire.absent")

    monkeypatch.setitem(sys.modules, cli._DEMO_MODULE, demo_module(run))
    with pytest.raises(ModuleNotFoundError):
        cli.main(["demo"])


def test_an_interrupt_is_status_1_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_parsed: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, cli._DEMO_MODULE, demo_module(run))
    assert cli.main(["demo"]) == 1


def test_status_tells_people_what_the_server_does(inspected: Inspected, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["status", "--http", inspected.address]) == 0
    told = capsys.readouterr().out
    assert "6,000 in 30 segments" in told
    assert "60 in 20 submissions, 100.0 ops a launch" in told
    assert "3.0 MiB live, 2.0 GiB peak" in told
    assert "2.0 KiB in, 5 bytes out" in told
    assert "bad_shape 1" in told


@pytest.mark.parametrize(
    ("change", "word"),
    [({}, "ready"), ({"is_ready": False}, "unready"), ({"is_held": True}, "held"), ({"is_draining": True}, "draining")],
)
def test_status_tells_the_state_in_a_word(
    inspected: Inspected, capsys: pytest.CaptureFixture[str], change: dict[str, bool], word: str
) -> None:
    inspected.answers["/v1/stats"] = (200, json.dumps(STATS | change))
    assert cli.main(["status", "--http", inspected.address]) == 0
    assert f"state      {word}" in capsys.readouterr().out


def test_a_server_that_has_run_nothing_has_a_status(inspected: Inspected, capsys: pytest.CaptureFixture[str]) -> None:
    totals = STATS["totals"] | {"ops": 0, "launches": 0, "failures": {}}
    inspected.answers["/v1/stats"] = (200, json.dumps(STATS | {"totals": totals}))
    assert cli.main(["status", "--http", inspected.address]) == 0
    assert "no op has run yet" in capsys.readouterr().out


def test_status_as_json_is_what_the_server_answered(inspected: Inspected, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["status", "--http", inspected.address, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == STATS


def test_sessions_are_listed_one_a_line(inspected: Inspected, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sessions", "ls", "--http", inspected.address]) == 0
    heading, line = capsys.readouterr().out.splitlines()
    assert heading.split()[:2] == ["session", "tenant"]
    assert line.split() == ["0123456789ab", "lab", "open", "6,000", "200", "4.0", "KiB", "0", "bytes", "0.2"]
    assert len(line) == len(heading)


def test_sessions_as_json_are_a_list(inspected: Inspected, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sessions", "ls", "--http", inspected.address, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [SESSION]


def test_a_token_is_taken_from_the_environment(inspected: Inspected, monkeypatch: pytest.MonkeyPatch) -> None:
    inspected.is_guarded = True
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    assert cli.main(["status", "--http", inspected.address]) == 0


def test_a_refusal_says_which_variable_to_set(inspected: Inspected, capsys: pytest.CaptureFixture[str]) -> None:
    inspected.is_guarded = True
    assert cli.main(["status", "--http", inspected.address]) == 1
    assert "no token came; set FUSEWIRE_TOKEN" in capsys.readouterr().err


@pytest.mark.parametrize("answer", [(500, "broken"), (503, json.dumps({"detail": "later"})), (200, "no JSON")])
def test_an_answer_that_helps_nobody_is_one_line_and_status_1(
    inspected: Inspected, capsys: pytest.CaptureFixture[str], answer: tuple[int, str]
) -> None:
    inspected.answers["/v1/stats"] = answer
    assert cli.main(["status", "--http", inspected.address]) == 1
    told = capsys.readouterr().err
    assert told.startswith("fusewire: ")
    assert told.count("\n") == 1


@pytest.mark.parametrize("command", [["status"], ["sessions", "ls"]])
@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.parametrize(
    "told", [{}, [], 1, None, {"sessions": 1}, {"sessions": [{}]}, {"sessions": ["a"]}, STATS | {"memory": 1}]
)
def test_json_of_another_service_is_one_line_and_status_1(
    inspected: Inspected, capsys: pytest.CaptureFixture[str], command: list[str], form: list[str], told: Any
) -> None:
    inspected.answers |= dict.fromkeys(inspected.answers, (200, json.dumps(told)))
    assert cli.main([*command, *form, "--http", inspected.address]) == 1
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err == f"fusewire: the server at {inspected.address} is not the inspection of a Fusewire server\n"


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere.invalid:1"])
def test_a_server_that_is_not_there_is_status_1(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["status", "--http", address]) == 1
    assert f"no answer from http://{address}/v1/stats" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "127.0.0.1:port", "[::1", "127.0.0.1:1 ", "ü:1", "a:0", ""])
def test_an_address_that_is_none_is_a_usage_error(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["status", "--http", address]) == 2
    expected = "expected HOST:PORT with a port from 1 to 65535, and an IPv6 host in brackets"
    assert capsys.readouterr().err == f"fusewire: inspection at {address!r}: {expected}\n"


def test_certificates_that_are_none_are_a_usage_error(tmp_path: Path) -> None:
    broken = tmp_path / "ca.pem"
    broken.write_text("no certificate")
    with pytest.raises(ssl.SSLError):
        ssl.create_default_context(cafile=str(broken))
    assert cli.main(["status", "--tls-ca", str(broken)]) == 2
