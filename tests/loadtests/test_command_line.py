"""The command of the load tests: its arguments, its exit status, and the files that it writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from fusewire.testing import serve_subprocess
from loadtests.command_line import _address, _server_fields, main
from loadtests.load.target.server import Access, ServerUnderLoad
from loadtests.scenarios.catalogue import find_scenarios
from loadtests.system.service import Service
from tests.inspected import inspected_server
from tests.loadtests.reports.documents import document

_ROOT = Path(__file__).parents[2]


def test_list_says_what_every_scenario_does_and_shows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    for scenario in find_scenarios().values():
        assert scenario.what in printed
        assert scenario.shows in printed


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nothing"],
        ["rl", "--sessions", "0"],
        ["rl", "--rate", "-1"],
        ["rl", "--seconds", "inf"],
        ["rl", "--bound", "speed=1"],
        ["rl", "--bound", "p99_s=nan"],
        ["rl", "--seed", "-1"],
        ["rl", "--target", "localhost:1", "--http", "localhost:abc"],
        ["rl", "--target", "localhost:1", "--http", "localhost:65536"],
        ["rl", "--target", "localhost:1", "--http", "localhost"],
        ["rl", "--target", "localhost:1", "--http", "gpu..example:1"],
        ["rl", "--target", "localhost:1", "--tls-ca", "/nowhere/at/all"],
        ["rl", "--target", "localhost:1", "--tls-ca", __file__],
        ["rl", "--json", f"{__file__}/a.json"],
        ["rl", "--html", f"{__file__}/a.html"],
        ["bench", "--json", f"{__file__}/a.json"],
        ["rl", "--token-file", "/nowhere/at/all"],
        ["aggressor", "--peer", "numpy"],
        ["compare", "/nowhere/at/all", "/nowhere/at/all"],
    ],
)
def test_a_wrong_argument_has_the_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "error:" in capsys.readouterr().err


@pytest.mark.parametrize("argument", ["--seconds", "--rate"])
def test_sessions_that_vanish_have_no_rate_and_no_time(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["churn", argument, "5"])
    assert ended.value.code == 2
    assert f"argument {argument}: each session vanishes after one step" in capsys.readouterr().err


@pytest.mark.parametrize("argument", ["--http", "--token-file", "--http-token-file", "--tls-ca"])
@pytest.mark.parametrize("command", [["rl"], ["replay", "a.fwr"]], ids=" ".join)
def test_what_is_said_about_a_given_server_needs_its_target(
    command: list[str], argument: str, certificate: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    value = "localhost:7424" if argument == "--http" else str(certificate[0])  # any text may be a token
    with pytest.raises(SystemExit) as ended:
        main([*command, argument, value])
    assert ended.value.code == 2
    assert f"{argument} says how to reach a given server: name that server with --target" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["gpu.example:7424", "127.0.0.1:1", "[::1]:65535"])
def test_an_address_of_inspection_is_taken(address: str) -> None:
    assert _address(address) == address


def test_the_result_names_the_servers_device() -> None:
    with inspected_server() as inspected:
        server = ServerUnderLoad(Access("nowhere"), Service("nowhere", inspected.address), None)
        assert _server_fields(server)["device"] == "2 cores"


def test_two_results_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path, latency_ms in zip(paths, (10, 20), strict=True):
        path.write_text(json.dumps(document([latency_ms])), encoding="utf-8")
    assert main(["compare", *map(str, paths)]) == 1
    assert "0.500" in capsys.readouterr().out
    assert main(["compare", *map(str, reversed(paths))]) == 0


@pytest.mark.parametrize("change", [{"schema": "another"}, {"version": 99}])
def test_a_result_of_another_version_is_refused(
    change: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other.json"
    path.write_text(json.dumps({**document(), **change}), encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["compare", str(path), str(path)])
    assert "this version reads" in capsys.readouterr().err


@pytest.mark.slow
def test_a_load_test_writes_its_result_and_its_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result, page = tmp_path / "result.json", tmp_path / "report.html"
    arguments = ["rl", "--sessions", "2", "--processes", "1", "--seconds", "0.9", "--bound", "p99_s=1e-9"]
    assert main([*arguments, "--json", str(result), "--html", str(page)]) == 1
    assert json.loads(result.read_text(encoding="utf-8"))["problems"][0].startswith("p99_s is ")
    assert "<svg" in page.read_text(encoding="utf-8")
    assert "more than its bound" in capsys.readouterr().out


@pytest.mark.slow
def test_a_target_that_nobody_serves_is_one_clear_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["rl", "--sessions", "2", "--processes", "2", "--target", "127.0.0.1:1"]) == 1
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("no result: SessionLost: 127.0.0.1:1")


@pytest.mark.slow
def test_a_wrong_token_is_one_clear_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tokens, token = tmp_path / "tokens", tmp_path / "token"
    command = [sys.executable, "-m", "fusewire_server", "token", "mint", "--tenant", "a", "--token-file", str(tokens)]
    subprocess.run(command, check=True, capture_output=True)
    token.write_text("not.a-token", encoding="utf-8")
    with serve_subprocess("cpu", arguments=("--token-file", str(tokens))) as server:
        capfd.readouterr()
        arguments = ["rl", "--sessions", "1", "--target", server.grpc, "--token-file", str(token)]
        assert main(arguments) == 1
    assert "no result: Unauthenticated" in capfd.readouterr().err


@pytest.mark.faults
def test_an_interrupt_ends_all_processes() -> None:
    command = [sys.executable, "-m", "loadtests", "rl", "--seconds", "60"]
    # A shell lets its background jobs ignore interrupts, which their children inherit.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(command, cwd=_ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True)
    finally:
        signal.signal(signal.SIGINT, before)
    children = _wait_for_children(psutil.Process(process.pid))
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert errors.splitlines()[-1] == "no result: interrupted"
    assert not psutil.wait_procs(children, timeout=20)[1]


def _wait_for_children(process: psutil.Process) -> list[psutil.Process]:
    """The server and the client processes, once all have been started."""
    ends_at_s = time.monotonic() + 60
    while time.monotonic() < ends_at_s:
        children = process.children(recursive=True)
        if sum("spawn_main" in _command_line_of(child) for child in children) >= 4:
            return children
        time.sleep(0.05)
    raise TimeoutError("the load test did not start its processes")


def _command_line_of(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it has ended
        return ""
