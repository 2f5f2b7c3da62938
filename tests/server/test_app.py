"""A server process: what it says as it starts and as it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

import fusewire as fw
from fusewire.testing import serve_subprocess
from fusewire_cli.main import main as fusewire
from fusewire_protos.address import Address, read_address
from fusewire_server.app import _Process
from fusewire_server.config.config import Config, Listen, Loaded
from fusewire_server.host.garbage_collector import GarbageCollector
from tests.patience import HANGS_S

_SERVE = (sys.executable, "-m", "fusewire_server", "serve", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_addresses_that_a_server_announces_can_be_read(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    config = Config(listen=Listen(grpc=Address(host, 0), http=Address(host, 0)))
    loaded = Loaded(config, {})
    with GarbageCollector() as garbage:
        _Process(loaded, lambda: loaded, garbage)._announce("null", "", 7423, 7424)
    line = json.loads(capsys.readouterr().out)
    assert [read_address(line[name]) for name in ("grpc", "http")] == [(host, 7423), (host, 7424)]


BREAKS = """
import sys
from fusewire_server import app, commands
async def break_down(self):
    raise RuntimeError("a defect")
app._Process.serve = break_down
sys.exit(commands.main(["serve", "--backend", "null"]))
"""


def test_a_server_that_breaks_down_logs_where() -> None:
    environment = {**os.environ, "FUSEWIRE_LOG__STYLE": "json"}
    ended = subprocess.run(
        [sys.executable, "-c", BREAKS], capture_output=True, text=True, timeout=HANGS_S, env=environment, check=False
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    (record,) = map(json.loads, ended.stderr.splitlines())
    assert record["level"] == "critical"
    assert "RuntimeError: a defect" in json.dumps(record)
    assert "in break_down" in json.dumps(record)


def test_a_server_that_is_told_to_end_tells_an_idle_client_before_it_does() -> None:
    with serve_subprocess("null") as server, fw.connect(server.grpc, timeout=HANGS_S) as session:
        x = session.array([1.0, 2.0])
        x.numpy(timeout=HANGS_S)
        os.kill(server.pid, signal.SIGTERM)
        with session._state.lock:
            assert session._state.changed.wait_for(lambda: not session.is_open, 20)
        with pytest.raises(fw.SessionClosed, match=r"^the server is shutting down$"):
            x.numpy(timeout=HANGS_S)


@pytest.mark.parametrize("options", [(), ("--devices", "0,1", "--front-ends", "1")])
def test_a_server_ends_in_order_where_warnings_are_errors(options: tuple[str, ...]) -> None:
    serve = (*_SERVE, "--backend", "cpu", *options)
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline()  # it listens
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=HANGS_S)
    assert (process.returncode, b"ResourceWarning" in errors) == (0, False)


class Busy(NamedTuple):
    process: subprocess.Popen[str]
    http: str
    session: fw.Session


@contextmanager
def busy_server(drain_s: float) -> Iterator[Busy]:
    """A server that never finishes the work of its one session, and that drains for so long if not hurried."""
    command = (*_SERVE, "--backend", "null")
    environment = {**os.environ, "FUSEWIRE_LIMITS__DRAIN_S": str(drain_s)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            printed = json.loads(process.stdout.readline())
            urllib.request.urlopen(f"http://{printed['http']}/v1/device/hold", data=b"", timeout=HANGS_S).close()
            with fw.connect(printed["grpc"], timeout=HANGS_S) as session:
                (session.array([1.0, 2.0]) + 1).future()
                wait_for_work(printed["http"])
                yield Busy(process, printed["http"], session)
        finally:
            process.kill()


def wait_for_work(http: str) -> None:
    """Until the server has work to finish: a session without any ends as soon as the server drains."""
    ends_at_s = time.monotonic() + HANGS_S
    in_flight_ops = 0
    while not in_flight_ops:
        assert time.monotonic() < ends_at_s
        with urllib.request.urlopen(f"http://{http}/v1/sessions", timeout=HANGS_S) as answer:
            in_flight_ops = sum(each["in_flight_ops"] for each in json.load(answer)["sessions"])


def test_a_server_ends_after_its_drain_time_whatever_its_clients_do() -> None:
    with busy_server(1.5) as busy:
        began_s = time.monotonic()
        busy.process.send_signal(signal.SIGTERM)
        assert busy.process.wait(HANGS_S) == 0  # how soon, `make test-faults` says
        assert time.monotonic() - began_s >= 1.5
        assert busy.session.is_draining


def test_the_second_signal_ends_a_server_at_once() -> None:
    with busy_server(600) as busy:
        busy.process.send_signal(signal.SIGTERM)
        wait_until_told(busy.session)
        busy.process.send_signal(signal.SIGTERM)
        assert busy.process.wait(HANGS_S) == 0


def test_the_command_drains_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    with busy_server(600) as busy:
        assert fusewire(["drain", "--http", busy.http]) == 0
        assert capsys.readouterr().out == f"{busy.http} drains\n"
        wait_until_told(busy.session)
        assert fusewire(["drain", "--http", busy.http]) == 0
        assert busy.process.wait(HANGS_S) == 0


def wait_until_told(session: fw.Session) -> None:
    with session._state.lock:
        assert session._state.changed.wait_for(lambda: session.is_draining, 20)


class Reloading(NamedTuple):
    """A server with a file of settings."""

    process: subprocess.Popen[str]
    http: str
    file: Path

    def reload(self, text: str) -> str:
        """Writes the file, and lets the server load it. Returns the first record about settings."""
        self.file.write_text(text, encoding="utf-8")
        self.process.send_signal(signal.SIGHUP)
        return self.next_record()

    def next_record(self) -> str:
        return next(record for record in self.records() if "settings" in record)

    def records(self) -> Iterator[str]:
        """The records to come. They end when the process is killed, which `reloading_server` does after a time."""
        assert self.process.stderr is not None
        return (str(json.loads(line)["event"]) for line in self.process.stderr)

    def setting(self, name: str) -> dict[str, object]:
        with urllib.request.urlopen(f"http://{self.http}/v1/config", timeout=HANGS_S) as answer:
            setting: dict[str, object] = json.load(answer)["settings"][name]
        return setting


@contextmanager
def reloading_server(folder: Path, text: str) -> Iterator[Reloading]:
    file = folder / "fusewire.toml"
    file.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "fusewire_server", "serve", "--backend", "null", "--config", str(file)]
    command += ["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    pipe = subprocess.PIPE
    environment = {**os.environ, "FUSEWIRE_LOG__STYLE": "json"}
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        bound = threading.Timer(HANGS_S, process.kill)  # a wait for a line ends with the process
        bound.start()
        try:
            assert process.stdout is not None
            yield Reloading(process, json.loads(process.stdout.readline())["http"], file)
        finally:
            bound.cancel()
            process.kill()


@pytest.fixture
def reloading(tmp_path: Path) -> Iterator[Reloading]:
    with reloading_server(tmp_path, "") as server:
        yield server


def test_sighup_reads_tokens_and_certificates_again_also_if_settings_are_wrong(
    tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    tokens, (cert, key) = tmp_path / "tokens", certificate
    tokens.touch()
    text = f'[listen]\ntoken_file = "{tokens}"\ntls_cert = "{cert}"\ntls_key = "{key}"\n'
    with reloading_server(tmp_path, text) as server:
        server.file.write_text("[nonsense]\n", encoding="utf-8")
        tokens.write_text("garbled", encoding="utf-8")
        key.write_text("garbled", encoding="utf-8")
        server.process.send_signal(signal.SIGHUP)
        expected = {"the settings stay as they are", "new callers are refused", "the certificate cannot be used"}
        for record in server.records():  # in any order: the server looks at the token file by itself, too
            expected -= {words for words in expected if words in record}
            if not expected:
                break
        assert not expected


def test_sighup_takes_over_settings_and_names_those_that_need_a_restart(reloading: Reloading) -> None:
    text = "[limits]\nsessions = 3\nhandles = 9\n"
    assert reloading.reload(text) == "the settings were loaded again; changed: limits.sessions"
    assert reloading.next_record() == "these changed settings need a restart: limits.handles"
    assert reloading.setting("limits.sessions") == {"value": 3, "origin": f"file {reloading.file}"}
    assert reloading.setting("limits.handles") == {"value": 1 << 20, "origin": "default"}


def test_wrong_settings_are_told_and_change_nothing(reloading: Reloading) -> None:
    reloading.reload("[limits]\nsessions = 3\n")
    record = reloading.reload("[limits]\nsessions = 2\ntenant_sessions = 0\n")
    assert record.startswith("the settings stay as they are, because they cannot be loaded: limits.tenant_sessions = 0")
    assert reloading.setting("limits.sessions")["value"] == 3


def test_the_level_of_the_log_may_change_in_service(reloading: Reloading) -> None:
    text = '[log]\nlevel = "error"\n'
    reloading.file.write_text(text, encoding="utf-8")
    reloading.process.send_signal(signal.SIGHUP)
    ends_at_s = time.monotonic() + HANGS_S
    while reloading.setting("log.level")["value"] != "error":
        assert time.monotonic() < ends_at_s
    record = reloading.reload(text + "[limits]\nsessions = 0\n")
    assert record.startswith("the settings stay as they are")
