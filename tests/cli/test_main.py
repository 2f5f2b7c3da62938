"""The `fusewire` command: what it prints, its exit status, and that help costs little."""

import argparse
import importlib
import json
import os
import resource
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fusewire._connect import TLS_CA_VARIABLE
from fusewire._transport.token import TOKEN_VARIABLE
from fusewire_cli.commands import COMMANDS, SERVER_COMMANDS, SERVER_MODULE
from fusewire_cli.main import TRACEBACK_VARIABLE, command_line, main
from fusewire_protos.errors import ServerFault
from tests.inspected import SESSION, STATS, TOKEN, Inspected

# Prints the statuses of the help of the commands in argv[2] where no module of argv[1] can be imported.
HELP_WITHOUT = """
import contextlib, io, json, sys
sys.modules |= dict.fromkeys(json.loads(sys.argv[1]))
from fusewire_cli.main import TRACEBACK_VARIABLE, main
with contextlib.redirect_stdout(io.StringIO()) as printed:
    statuses = [main([*command, "--help"]) for command in json.loads(sys.argv[2])]
print(json.dumps([statuses, printed.getvalue().count("show this help message")]))
"""
EXTRAS = ["fastapi", "starlette", "pydantic", "uvicorn", "prometheus_client", "structlog", "ml_dtypes", "grpc_health"]
EXTRAS += ["grpc_reflection", "uvloop", "cupy", "rich", "matplotlib"]
SLOW = ["grpc", "google", "msgpack", "numpy", "asyncio", "fusewire", "fusewire_kernels", "fusewire_server.app"]
EVERY_COMMAND = [(), *(command.words for command in COMMANDS), *((command.name,) for command in SERVER_COMMANDS)]
EVERY_COMMAND += [("sessions",), ("programs",), ("token", "mint"), ("config", "check")]


def buffered(*command: str, stdout: int) -> subprocess.Popen[str]:
    """Starts a Python whose output goes through a buffer, as it does for users."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.Popen(
        [sys.executable, *command], env=environment, stdout=stdout, stderr=subprocess.PIPE, text=True
    )


def test_help_needs_no_extra_and_imports_nothing_slow() -> None:
    asked = [sys.executable, "-c", HELP_WITHOUT, json.dumps(EXTRAS + SLOW), json.dumps(EVERY_COMMAND)]
    finished = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    assert finished.stderr == ""
    assert json.loads(finished.stdout) == [[0] * len(EVERY_COMMAND), len(EVERY_COMMAND)]


@pytest.mark.parametrize("command", EVERY_COMMAND, ids=" ".join)
def test_help_takes_less_than_300_ms(command: tuple[str, ...]) -> None:
    def processor_s() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    def once() -> float:
        began_s = processor_s()
        asked = [sys.executable, "-m", "fusewire_cli", *command, "--help"]
        subprocess.run(asked, capture_output=True, timeout=30, check=True)
        return processor_s() - began_s

    assert any(once() < 0.3 for _ in range(10))  # of a processor, so that other processes do not count


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "fusewire", "--version"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert finished.stdout.startswith("fusewire ")


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["status", "--nonsense"], ["sessions"]])
def test_a_wrong_command_line_is_status_2(arguments: list[str]) -> None:
    assert main(arguments) == 2


def _of_demo(run: Callable[[argparse.Namespace], int]) -> argparse.Namespace:
    """A module whose `run` stands for that of the demo."""
    return argparse.Namespace(run=run)


def _raising(error: BaseException) -> Callable[[argparse.Namespace], int]:
    def run(_parsed: argparse.Namespace) -> int:
        raise error

    return run


_MODULE = "fusewire.examples.digits"


def test_a_command_returns_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, _MODULE, _of_demo(lambda parsed: parsed.clients % 2))
    assert main(["demo", "--clients", "3"]) == 1


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("matplotlib.pyplot", "matplotlib is missing: pip install 'fusewire[demo]'"),
        ("psutil", "psutil is missing: pip install 'fusewire[load]'"),
    ],
)
def test_a_missing_extra_is_told_with_what_to_type(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], module: str, text: str
) -> None:
    missing = ModuleNotFoundError(f"No module named {module!r}", name=module)
    monkeypatch.setitem(sys.modules, _MODULE, _of_demo(_raising(missing)))
    assert main(["demo"]) == 1
    assert capsys.readouterr().err == f"fusewire: {text}\n"


def test_a_server_command_without_the_server_is_told_with_what_to_type(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "fusewire_server.commands", None)
    monkeypatch.setattr(
        "importlib.import_module", lambda name: _fail(ModuleNotFoundError("No module named 'yaml'", name="yaml"))
    )
    assert main(["serve"]) == 1
    assert capsys.readouterr().err == "fusewire: yaml is missing: pip install 'fusewire[server]'\n"


def _fail(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    "defect",
    [
        ModuleNotFoundError("No module named 'fusewire.absent'", name="fusewire.absent"),
        RecursionError("too deep\x1b"),
        UnicodeEncodeError("utf-8", "\udcff", 0, 1, "surrogates not allowed"),
        AssertionError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_defect_is_one_line_and_its_traceback_is_shown_on_demand(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], defect: Exception
) -> None:
    monkeypatch.delenv(TRACEBACK_VARIABLE, raising=False)
    monkeypatch.setitem(sys.modules, _MODULE, _of_demo(_raising(defect)))
    assert main(["demo"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"fusewire: {type(defect).__name__}")
    assert line.endswith("; this is a defect of Fusewire: FUSEWIRE_TRACEBACK=1 shows where")
    monkeypatch.setenv(TRACEBACK_VARIABLE, "1")
    with pytest.raises(type(defect)):
        main(["demo"])


@pytest.mark.parametrize(
    "arguments",
    [["token", "mint", "--token-file", "tokens", "--tenant", "\udcff"], ["config", "check", "--config", "nested.toml"]],
    ids=["bytes that are no text", "deeply nested settings"],
)
def test_input_that_could_break_a_reader_is_refused_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("nested.toml").write_text("limits = " + "[" * 5000, encoding="utf-8")
    assert main(arguments) in {1, 2}
    (line,) = capsys.readouterr().err.splitlines()
    assert "defect" not in line


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_what_goes_wrong_is_status_1_without_a_traceback(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    monkeypatch.setitem(sys.modules, _MODULE, _of_demo(_raising(error)))
    assert main(["demo"]) == 1


@pytest.mark.parametrize("command", [["--help"], ["--version"], ["config", "show"]], ids=" ".join)
def test_a_reader_that_goes_away_ends_the_command_quietly(command: list[str]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = buffered("-m", "fusewire_cli", *command, stdout=write_end)
    os.close(write_end)
    assert process.communicate(timeout=30)[1] == ""
    assert process.returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_output_that_cannot_be_written_is_told() -> None:
    with Path("/dev/full").open("w") as full:
        process = buffered("-m", "fusewire_cli", "config", "show", stdout=full.fileno())
        assert process.communicate(timeout=30)[1] == "fusewire: [Errno 28] No space left on device\n"
    assert process.returncode == 1


def test_characters_that_the_terminal_lacks_are_escaped() -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "fusewire_cli", "doctor", "127.0.0.1:1"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=30, env=environment, check=False)
    assert (finished.returncode, finished.stderr) == (1, "")
    assert "\\u2192 does the server run" in finished.stdout


def test_an_error_message_does_not_command_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, _MODULE, _of_demo(_raising(ServerFault("no \x1b[2J\nsession"))))
    assert main(["demo"]) == 1
    assert capsys.readouterr().err == "fusewire: no \\x1b[2J\\nsession\n"


@pytest.mark.parametrize("command", [["sessions", "show"], ["sessions", "kill"], ["programs", "show"]], ids=" ".join)
def test_a_name_that_is_no_text_is_refused_in_a_line(
    inspected: Inspected, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    inspected.answers = {"/v1/sessions/%FF": (404, '{"detail": "no such session"}')}
    inspected.answers["/v1/programs"] = (200, '{"programs": []}')
    assert main([*command, "\udcff", "--http", inspected.address]) in {1, 2}
    assert capsys.readouterr().err.count("\n") == 1


def _without_json(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The commands of a parser that do not take --json. A parser that only groups commands is none."""
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for each in (each for group in groups for each in group.choices.values()):
        yield from _without_json(each)
    if not groups and "--json" not in parser._option_string_actions:
        yield parser.prog


def test_every_command_takes_json() -> None:
    assert list(_without_json(command_line(is_of_server=True))) == []


@pytest.mark.parametrize("command", EVERY_COMMAND, ids=" ".join)
def test_every_command_has_help(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"usage: {' '.join(('fusewire', *command))}")


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])
    printed = capsys.readouterr().out
    for name in {command.words[0] for command in COMMANDS} | {command.name for command in SERVER_COMMANDS}:
        assert f"\n    {name}" in printed


def test_the_function_of_every_command_is_there() -> None:
    for command in COMMANDS:
        module, _, name = command.runs.partition(":")
        assert callable(getattr(importlib.import_module(module), name)), command.words


def test_every_server_command_is_one_of_the_servers() -> None:
    parser = argparse.ArgumentParser()
    names = parser.add_subparsers()
    importlib.import_module(SERVER_MODULE).register(names)
    assert list(names.choices) == [command.name for command in SERVER_COMMANDS]


def test_status_tells_people_what_the_server_does(inspected: Inspected, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--http", inspected.address]) == 0
    printed = capsys.readouterr().out
    assert "6,000 in 30 segments" in printed
    assert "60 in 20 submissions, 100.0 ops a launch" in printed
    assert "3.0 MiB live, 2.0 GiB peak" in printed
    assert "2.0 KiB in, 5 bytes out" in printed
    assert "bad_shape 1" in printed
    assert "1; 2 resumed after a lost connection" in printed


@pytest.mark.parametrize(
    ("change", "word"),
    [({}, "ready"), ({"is_ready": False}, "unready"), ({"is_held": True}, "held"), ({"is_draining": True}, "draining")],
)
def test_status_tells_the_state_in_a_word(
    inspected: Inspected, capsys: pytest.CaptureFixture[str], change: dict[str, bool], word: str
) -> None:
    inspected.answers["/v1/stats"] = (200, json.dumps(STATS | change))
    assert main(["status", "--http", inspected.address]) == 0
    assert f"state     {word}" in capsys.readouterr().out


def test_a_server_that_has_run_nothing_has_a_status(inspected: Inspected, capsys: pytest.CaptureFixture[str]) -> None:
    totals = STATS["totals"] | {"ops": 0, "launches": 0, "failures": {}}
    inspected.answers["/v1/stats"] = (200, json.dumps(STATS | {"totals": totals}))
    assert main(["status", "--http", inspected.address]) == 0
    assert "no op has run yet" in capsys.readouterr().out


def test_status_as_json_is_what_the_server_answered(inspected: Inspected, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--http", inspected.address, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == STATS


def test_sessions_are_listed_one_a_line(inspected: Inspected, capsys: pytest.CaptureFixture[str]) -> None:
    session = SESSION | {"name": "ppo-worker-7", "wait_reason": "held"}
    inspected.answers["/v1/sessions"] = (200, json.dumps({"sessions": [session]}))
    assert main(["sessions", "ls", "--http", inspected.address]) == 0
    heading, line = capsys.readouterr().out.splitlines()
    assert heading.split()[:3] == ["session", "name", "tenant"]
    figures = ["open", "6,000", "200", "4.0", "KiB", "0", "bytes", "250.0", "ms", "held"]
    assert line.split() == ["0123456789ab", "ppo-worker-7", "lab", *figures]
    assert len(line) == len(heading)


def test_sessions_as_json_are_a_list(inspected: Inspected, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "ls", "--http", inspected.address, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [SESSION]


def test_a_token_is_taken_from_the_environment(inspected: Inspected, monkeypatch: pytest.MonkeyPatch) -> None:
    inspected.is_guarded = True
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    assert main(["status", "--http", inspected.address]) == 0


def test_a_refusal_says_which_variable_to_set(inspected: Inspected, capsys: pytest.CaptureFixture[str]) -> None:
    inspected.is_guarded = True
    assert main(["status", "--http", inspected.address]) == 1
    assert "no token came; set FUSEWIRE_TOKEN" in capsys.readouterr().err


@pytest.mark.parametrize("answer", [(500, "broken"), (503, json.dumps({"detail": "later"})), (200, "no JSON")])
def test_an_answer_that_helps_nobody_is_one_line_and_status_1(
    inspected: Inspected, capsys: pytest.CaptureFixture[str], answer: tuple[int, str]
) -> None:
    inspected.answers["/v1/stats"] = answer
    assert main(["status", "--http", inspected.address]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("fusewire: ")
    assert printed.count("\n") == 1


@pytest.mark.parametrize("command", [["status"], ["sessions", "ls"]])
@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.parametrize(
    "document", [{}, [], 1, None, {"sessions": 1}, {"sessions": [{}]}, {"sessions": ["a"]}, STATS | {"memory": 1}]
)
def test_json_of_another_service_is_one_line_and_status_1(
    inspected: Inspected, capsys: pytest.CaptureFixture[str], command: list[str], form: list[str], document: Any
) -> None:
    inspected.answers |= dict.fromkeys(inspected.answers, (200, json.dumps(document)))
    assert main([*command, *form, "--http", inspected.address]) == 1
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err == f"fusewire: the server at {inspected.address} is not the inspection of a Fusewire server\n"


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere.invalid:1"])
def test_a_server_that_is_not_there_is_status_1(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--http", address]) == 1
    assert f"no answer from http://{address}/v1/stats" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "127.0.0.1:port", "[::1", "127.0.0.1:1 ", "ü:1", "a:0", ""])
def test_an_address_that_is_none_is_a_usage_error(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--http", address]) == 2
    expected = "expected HOST:PORT with a port from 1 to 65535, and an IPv6 host in brackets"
    assert capsys.readouterr().err == f"fusewire: inspection at {address!r}: {expected}\n"


def test_certificates_that_are_none_are_a_usage_error(tmp_path: Path) -> None:
    broken = tmp_path / "ca.pem"
    broken.write_text("no certificate")
    with pytest.raises(ssl.SSLError):
        ssl.create_default_context(cafile=str(broken))
    assert main(["status", "--tls-ca", str(broken)]) == 2


def test_the_certificates_to_trust_may_be_named_by_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(TLS_CA_VARIABLE, "absent.pem")
    assert main(["status"]) == 2
    assert "--tls-ca absent.pem: " in capsys.readouterr().err
