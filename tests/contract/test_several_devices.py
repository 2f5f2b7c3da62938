"""A server of two devices behind one address, as its clients and its operator see it, also when an engine is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import fusewire as fw
from fusewire import _connect
from fusewire.testing import ServerProcess, serve_subprocess
from fusewire_cli.main import main
from fusewire_server.access.tokens import Scope, mint
from tests.engine_processes import engine_of, engines_of
from tests.faults.mixed_load import Connect, Seen, do_round, mixed_load
from tests.front_end_processes import front_ends_of, runs
from tests.patience import HANGS_S, Patience, until

pytestmark = pytest.mark.faults  # engines are killed
TWO = ("--devices", "0,1", "--front-ends", "2")
SEED = 5


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with serve_subprocess("cpu", arguments=TWO) as started:
        yield started


def answer_of(http: str, path: str) -> Any:
    """What inspection tells. A busy server is asked again."""
    patience = Patience()
    while True:
        try:
            with urllib.request.urlopen(f"http://{http}{path}", timeout=HANGS_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            if refused.code != HTTPStatus.SERVICE_UNAVAILABLE or patience.is_exhausted():
                raise


def ordered(http: str, path: str, method: str = "POST") -> None:
    request = urllib.request.Request(f"http://{http}{path}", data=b"", method=method)
    urllib.request.urlopen(request, timeout=HANGS_S).close()  # noqa: S310 - likewise


def devices(http: str) -> dict[str, int]:
    """The device of each session."""
    return {each["session"]: each["device"] for each in answer_of(http, "/v1/sessions")["sessions"]}


def until_all_work(seen: Seen) -> None:
    before = dict(seen.rounds_of)
    until(lambda: seen.failures or all(seen.rounds_of[each] > before[each] for each in before))


# ---- what clients see ----


def test_values_are_those_of_numpy_on_both_devices(server: ServerProcess) -> None:
    with mixed_load(*[Connect(server.grpc, "", local=local) for local in (False, True) * 3], seed=SEED) as seen:
        until_all_work(seen)
        assert len({*devices(server.http).values()}) == 2
    assert seen.failures == []


@pytest.mark.parametrize("local", [False, True])
def test_a_client_may_ask_for_a_device(server: ServerProcess, *, local: bool) -> None:
    with ExitStack() as stack:
        asked = {
            stack.enter_context(fw.connect(server.grpc, device=device, local=local)): device for device in (1, 0, 1)
        }
        for session in asked:
            assert float(session.array([2.0]).sum()) == 2.0
        found = devices(server.http)
        assert {session: found[session.id] for session in asked} == asked


@pytest.mark.parametrize("local", [False, True])
def test_sessions_spread_over_idle_devices(*, local: bool) -> None:
    with serve_subprocess("null", arguments=TWO) as server, ExitStack() as stack:
        for _ in range(12):
            stack.enter_context(fw.connect(server.grpc, local=local))
        assert min(Counter(devices(server.http).values()).values()) >= 3


def test_a_device_that_is_not_there_is_refused_with_those_that_are(server: ServerProcess) -> None:
    with pytest.raises(fw.ConfigurationError, match=r"^device 7 is not there; the server's devices are 0,1$"):
        fw.connect(server.grpc, device=7)
    for wrong in (-1, 64, 1.5):
        with pytest.raises(fw.ConfigurationError, match=r"^device = .*: expected a number from 0 to 63$"):
            fw.connect(server.grpc, device=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("device", [0, 1])
@pytest.mark.parametrize("local", [False, True])
def test_large_values_come_whole(server: ServerProcess, device: int, *, local: bool) -> None:
    source = np.random.default_rng(SEED).integers(0, 1 << 30, size=2 << 20, dtype=np.int32)
    with fw.connect(server.grpc, device=device, local=local) as session:
        futures = [(session.array(source[start:]) + start).future() for start in (0, 1, 12345)]
        for start, future in zip((0, 1, 12345), futures, strict=True):
            assert future.result(HANGS_S).tobytes() == (source[start:] + np.int32(start)).tobytes()


def test_local_calls_go_to_the_engine_of_the_session(server: ServerProcess) -> None:
    with ExitStack() as stack:
        sessions = [stack.enter_context(fw.connect(server.grpc, device=device)) for device in (0, 1)]
        offers = [session._local_offer for session in sessions]
        assert offers[0] is not None
        assert offers[1] is not None
        assert offers[0].name != offers[1].name
        for session in sessions:
            do_round(session, np.random.default_rng(SEED))
        peers = {each["session"]: each["peer"] for each in answer_of(server.http, "/v1/sessions")["sessions"]}
        until(lambda: all(each["peer"] == "unix:" for each in answer_of(server.http, "/v1/sessions")["sessions"]))
        assert {session.id for session in sessions} <= peers.keys()


def test_sessions_are_resumed_by_whichever_front_end(server: ServerProcess) -> None:
    with mixed_load(*[Connect(server.grpc, "", local=False)] * 4, seed=SEED) as seen:
        for _ in range(3):
            for each in front_ends_of(server.pid)[:1]:
                each.kill()
            until_all_work(seen)
    assert seen.failures == []
    assert seen.losses == []


def test_the_commands_and_the_operator_reach_both_engines(
    server: ServerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as stack:
        sessions = [stack.enter_context(fw.connect(server.grpc, device=device, local=False)) for device in (0, 1)]
        arrays = [session.array([3.0, 4.0]) for session in sessions]
        assert [(array + 1).numpy(timeout=HANGS_S).tolist() for array in arrays] == [[4.0, 5.0]] * 2
        assert main(["doctor", server.grpc, "--http", server.http, "--json"]) == 0
        assert {finding["state"] for finding in json.loads(capsys.readouterr().out)} == {"ok"}
        assert main(["status", "--http", server.http]) == 0
        assert main(["top", "--http", server.http, "--once", "--every", "0.05"]) == 0
        shown = capsys.readouterr().out
        assert all(session.id in shown for session in sessions)
        for session in sessions:
            assert answer_of(server.http, f"/v1/sessions/{session.id}/arrays")["arrays"]
        ordered(server.http, "/v1/device/hold")
        pending = [(array * 2).future() for array in arrays]
        until(lambda: answer_of(server.http, "/v1/queue")["rows"] == 2)
        assert answer_of(server.http, "/v1/stats")["is_held"]
        ordered(server.http, "/v1/device/release")
        assert [future.result(HANGS_S).tolist() for future in pending] == [[6.0, 8.0]] * 2
        ordered(server.http, f"/v1/sessions/{sessions[1].id}", "DELETE")
        with pytest.raises(fw.SessionClosed, match="an operator"):
            until(lambda: arrays[1].numpy(timeout=HANGS_S) is None)
        assert arrays[0].numpy(timeout=HANGS_S).tolist() == [3.0, 4.0]


def test_a_client_comes_back_to_the_device_that_runs_its_programs() -> None:
    with serve_subprocess("null", arguments=TWO) as server, fw.connect(server.grpc, device=1) as kept:
        x = kept.array(np.ones(7, np.float32))
        for _ in range(40):
            x = x * 0.5 + 3.0
        x.numpy(timeout=HANGS_S)
        assert kept.stats.programs

        def comes_back() -> bool:
            """Whether a session after that one is beside it, although the other device has no session."""
            _connect._connected_last[:] = [kept]
            with fw.connect(server.grpc) as session:
                return devices(server.http)[session.id] == 1

        until(comes_back)  # once front ends have been told


def test_tokens_and_limits_reach_both_engines_and_so_does_a_reload(tmp_path: Path) -> None:
    tokens, settings = tmp_path / "tokens", tmp_path / "fusewire.toml"
    token = mint(tokens, tenant="lab", scope=Scope.USE)
    settings.write_text("[limits]\ntenant_sessions = 1\n")
    arguments = (*TWO, "--token-file", str(tokens), "--config", str(settings))
    with serve_subprocess("null", arguments=arguments) as server, ExitStack() as stack:

        def connect(device: int) -> fw.Session:
            return stack.enter_context(fw.connect(server.grpc, token=token, device=device, local=device == 1))

        with pytest.raises(fw.Unauthenticated):
            fw.connect(server.grpc, token="")
        for device in (0, 1):
            connect(device).array([1.0]).numpy(timeout=HANGS_S)
            with pytest.raises(fw.QuotaExceeded, match="tenant_sessions = 1"):
                connect(device)
        settings.write_text("[limits]\ntenant_sessions = 2\n")
        os.kill(server.pid, signal.SIGHUP)

        def may_connect(device: int) -> bool:
            with suppress(fw.QuotaExceeded):
                connect(device)
                return True
            return False

        for device in (0, 1):
            until(partial(may_connect, device))


# ---- when an engine ends ----


def test_an_engine_that_is_killed_hurts_no_session_of_the_other(server: ServerProcess) -> None:
    before = answer_of(server.http, "/v1/stats")["totals"]["segments"]
    loads = [Connect(server.grpc, "", local=local, may_be_lost=True) for local in (False, True)]
    with fw.connect(server.grpc, device=0, local=False) as kept, fw.connect(server.grpc, device=0) as near:
        values = [each.array([1.0, 2.0]) for each in (kept, near)]
        with mixed_load(*loads, seed=SEED) as seen, fw.connect(server.grpc, device=1, local=False) as lost:
            gone = lost.array([5.0])
            gone.numpy(timeout=HANGS_S)
            killed = engine_of(server.pid, 1)
            killed.kill()
            with pytest.raises(fw.SessionLost):
                until(lambda: (gone + 1).numpy(timeout=HANGS_S) is None)
            for session, value in zip((kept, near), values, strict=True):
                assert (value * 3).numpy(timeout=HANGS_S).tolist() == [3.0, 6.0]
                do_round(session, np.random.default_rng(SEED))
            until_all_work(seen)
            until(lambda: len(engines_of(server.pid)) == 2)  # clients may see the end before the server does
            until(lambda: all(each["is_ready"] for each in answer_of(server.http, "/readyz?verbose")["devices"]))
            with fw.connect(server.grpc, device=1) as again:
                do_round(again, np.random.default_rng(SEED))
        assert seen.failures == []
    assert answer_of(server.http, "/v1/stats")["totals"]["segments"] >= before
    assert len(engines_of(server.pid)) == 2


def test_a_device_whose_engine_has_ended_is_told_of_and_refused(server: ServerProcess) -> None:
    engine_of(server.pid, 1).kill()
    until(lambda: not answer_of(server.http, "/readyz?verbose")["devices"][1]["is_ready"])
    ready = answer_of(server.http, "/readyz?verbose")
    assert ready["is_ready"]
    assert ready["devices"][1]["trouble"] == "its engine has ended, and is started again"
    until(lambda: all(each["is_ready"] for each in answer_of(server.http, "/readyz?verbose")["devices"]))


def test_a_server_ends_when_no_engine_is_left() -> None:
    with started() as process:
        json.loads(process.stdout.readline())
        for each in engines_of(process.pid):
            each.send_signal(signal.SIGSTOP)
        for each in engines_of(process.pid):
            each.kill()
        assert process.wait(HANGS_S) == 1


# ---- how it starts and ends ----


def started(*arguments: str, group: int | None = None, environment: dict[str, str] | None = None) -> Any:
    command = [sys.executable, "-m", "fusewire_server", "serve", "--backend", "null", *TWO]
    command += ["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", *arguments]
    variables = {**os.environ, **(environment or {})}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables, process_group=group)


def test_a_signal_to_all_processes_drains_both_engines_in_order() -> None:
    with started(group=0, environment={"FUSEWIRE_LIMITS__DRAIN_S": "600"}) as process:
        addresses = json.loads(process.stdout.readline())
        children = psutil.Process(process.pid).children(recursive=True)
        ordered(addresses["http"], "/v1/device/hold")
        with ExitStack() as stack:
            sessions = [stack.enter_context(fw.connect(addresses["grpc"], device=device)) for device in (0, 1)]
            values = [(session.array([1.0, 2.0]) + 1).future() for session in sessions]
            until(lambda: answer_of(addresses["http"], "/v1/queue")["rows"] == 2)
            os.killpg(process.pid, signal.SIGTERM)
            for session in sessions:
                is_draining = partial(getattr, session, "is_draining")
                with session._state.lock:
                    assert session._state.changed.wait_for(is_draining, HANGS_S)
            assert answer_of(addresses["http"], "/v1/stats")["is_draining"]
            with pytest.raises(fw.SessionClosed):
                fw.connect(addresses["grpc"])
            ordered(addresses["http"], "/v1/device/release")
            assert [value.result(HANGS_S).shape for value in values] == [(2,), (2,)]
        assert process.wait(HANGS_S) == 0
        assert not any(map(runs, children))


def test_the_second_signal_ends_busy_engines_at_once() -> None:
    with started(environment={"FUSEWIRE_LIMITS__DRAIN_S": "600"}) as process:
        addresses = json.loads(process.stdout.readline())
        ordered(addresses["http"], "/v1/device/hold")
        with fw.connect(addresses["grpc"], device=1) as session:
            (session.array([1.0, 2.0]) + 1).future()
            until(lambda: answer_of(addresses["http"], "/v1/queue")["rows"] == 1)
            process.terminate()
            with session._state.lock:
                assert session._state.changed.wait_for(lambda: session.is_draining, HANGS_S)
            process.terminate()
            assert process.wait(HANGS_S) == 0


def test_all_engines_end_with_a_server_that_is_killed() -> None:
    with started() as process:
        process.stdout.readline()
        children = psutil.Process(process.pid).children(recursive=True)
        assert len(children) >= 4
        process.kill()
        until(lambda: not any(map(runs, children)))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("", "expected all, or numbers of devices from 0 to 63, such as 0,2"),
        ("0,0", "a device is named twice"),
        ("0,-1", "expected all, or numbers"),
        ("0,64", "expected all, or numbers"),
        ("0,2", "there is no device 2; the devices are 0,1"),
    ],
)
def test_wrong_devices_are_refused_in_words(given: str, text: str) -> None:
    command = [sys.executable, "-m", "fusewire_server", "serve", "--backend", "cpu", f"--devices={given}"]
    command += ["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"{text}\n" in ended.stderr or text in ended.stderr


@pytest.mark.parametrize("given", ["0", "all"])
def test_one_device_is_served_in_one_process(given: str) -> None:
    with serve_subprocess("cpu", arguments=("--devices", given, "--front-ends", "0")) as server:
        assert engines_of(server.pid) == front_ends_of(server.pid) == []
        with fw.connect(server.grpc, device=0) as session:
            assert float(session.array([1.0]).sum()) == 1.0
        with pytest.raises(fw.ConfigurationError, match=r"^device 1 is not there; the server's devices are 0$"):
            fw.connect(server.grpc, device=1)
