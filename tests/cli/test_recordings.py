"""`fusewire record` and `fusewire replay`: which files they write, what they sum up, and their exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import fusewire as fw
from fusewire_cli.main import main
from fusewire_cli.recordings import summary

REPLAYED = fw.Replayed(
    segments=2, ops=10, duration_s=1.5, answered=((0, 1_000_000), (0, 3_000_000)), compared=2, differences=()
)
# Opens two sessions' files as `connect` does, and then ends as argv[1] says.
PROGRAM = """
import os, signal, sys
from fusewire._connect import _recording_of_environment
print([_recording_of_environment()[1] for _ in range(2)])
if sys.argv[1] == "signal":
    signal.raise_signal(signal.SIGTERM)
sys.exit(int(sys.argv[1]))
"""


def record(path: Path, *command: str) -> int:
    return main(["record", *command[:-1], str(path), "--", sys.executable, "-c", PROGRAM, command[-1]])


def test_each_session_gets_a_file_and_the_program_its_status(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert record(tmp_path / "r", "3") == 3
    written = capfd.readouterr()
    assert written.out == "[False, False]\n"
    assert written.err == f"fusewire: recorded {tmp_path / 'r'}, {tmp_path / 'r.2'}\n"
    assert sorted(tmp_path.iterdir()) == [tmp_path / "r", tmp_path / "r.2"]


def test_a_program_that_is_interrupted_ends_its_recording_first(tmp_path: Path) -> None:
    program = (
        "import signal, sys\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n"
        "print('ready', flush=True)\n"
        "signal.sigwait([signal.SIGINT])\n"
        "sys.exit(5)\n"
    )
    command = [sys.executable, "-m", "fusewire_cli", "record", str(tmp_path / "r"), "--", sys.executable, "-c", program]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does at Ctrl-C
        assert process.communicate(timeout=30)[1] == "fusewire: recorded nothing: no session was opened\n"
        assert process.returncode == 5


def test_ctrl_c_as_the_program_ends_does_not_lose_its_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waitpid = os.waitpid

    def interrupted(pid: int, options: int) -> tuple[int, int]:
        status = waitpid(pid, options)
        signal.raise_signal(signal.SIGINT)
        return status

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(os, "waitpid", interrupted)
    assert record(tmp_path / "r", "3") == 3
    assert signal.getsignal(signal.SIGINT) == before


def test_a_program_that_is_to_ignore_ctrl_c_still_ignores_it(tmp_path: Path) -> None:
    program = "import signal, sys; sys.exit(3 if signal.getsignal(signal.SIGINT) == signal.SIG_IGN else 4)"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert main(["record", str(tmp_path / "r"), "--", sys.executable, "-c", program]) == 3
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_files_are_told_as_json_beside_what_the_program_prints(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert record(tmp_path / "r", "--json", "3") == 3
    written = capfd.readouterr()
    assert written.out == "[False, False]\n"
    assert json.loads(written.err) == {"files": [str(tmp_path / "r"), str(tmp_path / "r.2")], "status": 3}


def test_values_are_kept_if_asked_for(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert record(tmp_path / "r", "--values", "0") == 0
    assert capfd.readouterr().out == "[True, True]\n"


def test_a_program_that_a_signal_ends_has_the_status_of_shells(tmp_path: Path) -> None:
    assert record(tmp_path / "r", "signal") == 128 + signal.SIGTERM


def test_files_that_are_there_are_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r").write_text("dear")
    assert record(tmp_path / "r", "0") == 2
    assert "exists already" in capsys.readouterr().err
    assert (tmp_path / "r").read_text() == "dear"


def test_files_of_an_earlier_run_are_not_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.2").write_text("dear")
    assert record(tmp_path / "r", "0") == 0
    assert capfd.readouterr().err == f"fusewire: recorded {tmp_path / 'r'}, {tmp_path / 'r.3'}\n"


def test_processes_that_record_at_the_same_time_share_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSEWIRE_RECORD", str(tmp_path / "r"))
    processes = [subprocess.Popen([sys.executable, "-c", PROGRAM, "0"], stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait(30) for process in processes] == [0, 0]
    assert {path.name for path in tmp_path.iterdir()} == {"r", "r.2", "r.3", "r.4"}


def test_a_program_without_a_session_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", str(tmp_path / "r"), "--", sys.executable, "-c", ""]) == 0
    assert "recorded nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ([], "which program?"),
        (["--", "/absent"], "cannot run /absent"),
        (["--json", "--", sys.executable], "options of `fusewire record` go before FILE"),
    ],
)
def test_a_program_that_is_none_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str], text: str
) -> None:
    assert main(["record", str(tmp_path / "r"), *command]) == 2
    assert text in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_a_configuration_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSEWIRE_RECORD", str(tmp_path / "absent" / "r"))
    with pytest.raises(fw.ConfigurationError, match="FUSEWIRE_RECORD"):
        fw.connect("127.0.0.1:1")


def test_sums_and_quantiles_are_over_all_sessions() -> None:
    fields = summary([REPLAYED, REPLAYED._replace(duration_s=2.0, answered=((5, 10_000_005),))])
    assert (fields["sessions"], fields["segments"], fields["ops"], fields["duration_s"]) == (2, 4, 20, 2.0)
    assert (fields["fetches"], fields["p50_s"], fields["p99_s"], fields["compared"]) == (3, 0.003, 0.01, 4)


def test_without_an_answer_there_is_no_latency() -> None:
    fields = summary([REPLAYED._replace(answered=())])
    assert (fields["fetches"], fields["p50_s"], fields["p99_s"]) == (0, None, None)


def test_all_differences_are_counted_and_the_first_are_told() -> None:
    fields = summary([REPLAYED._replace(differences=tuple(f"fetch {number}" for number in range(50)))])
    assert fields["differing"] == 50
    assert fields["differences"] == [f"fetch {number}" for number in range(20)]


@pytest.mark.parametrize(("differences", "status"), [((), 0), (("fetch 1 was a value and is a failure",), 1)])
def test_a_difference_is_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], differences: tuple[str, ...], status: int
) -> None:
    asked: list[dict[str, Any]] = []

    def replay(path: Path, target: str, **options: Any) -> fw.Replayed:
        asked.append({"path": path, "target": target} | options)
        return REPLAYED._replace(differences=differences)

    monkeypatch.setattr(fw, "replay", replay)
    assert main(["replay", "r", "gpu:1", "--sessions", "2", "--speed", "inf", "--seed", "7"]) == status
    assert sorted(each["seed"] for each in asked) == [7, 8]
    assert asked[0] | {"seed": 7} == {
        "path": Path("r"),
        "target": "gpu:1",
        "tls_ca": None,
        "speed": float("inf"),
        "seed": 7,
    }
    printed = capsys.readouterr().out
    assert f"4 values, {2 * len(differences)} differ" in printed
    assert printed.count("is a failure") == 2 * len(differences)


@pytest.mark.parametrize(("named", "asked"), [("gpu:1", "gpu:1"), ("", "127.0.0.1:7423")])
def test_a_replay_without_a_target_asks_the_server_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, named: str, asked: str
) -> None:
    def replay(_path: Path, target: str, **_options: Any) -> fw.Replayed:
        assert target == asked
        return REPLAYED

    monkeypatch.setattr(fw, "replay", replay)
    monkeypatch.setenv("FUSEWIRE_TARGET", named)
    assert main(["replay", "r"]) == 0


def test_the_error_of_a_session_is_the_error_of_the_replay(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started = threading.Barrier(2, timeout=30)

    def replay(_path: Path, _target: str, *, seed: int, **_options: Any) -> fw.Replayed:
        started.wait()
        if seed == 1:
            raise fw.SessionLost("the connection broke")
        return REPLAYED

    monkeypatch.setattr(fw, "replay", replay)
    assert main(["replay", "r", "--sessions", "2"]) == 1
    assert capsys.readouterr().err == "fusewire: the connection broke\n"


def test_a_recording_that_is_not_there_is_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(tmp_path / "absent"), "--json"]) == 2
    assert "No such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "option", [["--sessions", "0"], ["--sessions", "1001"], ["--seed", "-1"], ["--speed", "0"], ["--speed", "nan"]]
)
def test_a_wrong_number_is_a_usage_error(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "r", *option]) == 2
    assert f"argument {option[0]}: expected" in capsys.readouterr().err


def test_a_summary_is_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(fw, "replay", lambda *_, **__: REPLAYED)
    assert main(["replay", "r", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == summary([REPLAYED])
