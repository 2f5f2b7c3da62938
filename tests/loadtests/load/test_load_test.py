"""Whole load tests against real servers, with faults planted in worker processes or in the server."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import psutil
import pytest

from fusewire.testing import serve_subprocess
from loadtests import command_line
from loadtests.load.load_test import LoadResult, LoadTest
from loadtests.load.options import Options
from loadtests.load.target.server import Access, ServerUnderLoad, own_server
from loadtests.load.worker import serve
from loadtests.measuring.errors import LoadFailed, WrongResult
from loadtests.reports.comparing import compare
from loadtests.reports.document import Document, document_of
from loadtests.scenarios.catalogue import find_scenarios
from loadtests.system.service import Service
from tests.loadtests.load import planted

pytestmark = pytest.mark.slow


@pytest.fixture(name="server", scope="module")
def _server() -> Iterator[ServerUnderLoad]:
    with own_server("cpu") as server:
        yield server


def _options(scenario: str = "rnn", seconds: float | None = 1.5, **changes: Any) -> Options:
    return Options(find_scenarios()[scenario], 2, 2, seconds)._replace(**changes)


def _run(
    server: ServerUnderLoad, options: Options, planted_fault: Callable[..., None] = serve
) -> tuple[LoadResult, Document]:
    result = LoadTest(options, server, lambda _what, _done, _total: None, planted_fault).run()
    return result, document_of(options, result, {}, {})


def test_a_healthy_load_is_verified_and_leaves_nothing(server: ServerUnderLoad) -> None:
    _, document = _run(server, _options(verifies=True, peer="numpy"))
    assert document["problems"] == []
    assert document["verified"] is True
    assert document["verified_values"] > 100
    assert document["errors"] == 0
    assert document["steps"] > 50
    assert document["rows_per_launch"] >= 1
    assert document["steps_to_peer"] > 0
    assert document["left_over"]["after"]["sessions"] == 0


def test_a_wrong_bit_in_one_value_is_found(server: ServerUnderLoad) -> None:
    _, document = _run(server, _options(verifies=True), planted.wrong_bit)
    assert document["verified"] is False
    (problem,) = document["problems"]
    assert problem.startswith("session 0, step 50: other bits than alone: float32 [0, 0] is ")
    assert problem.endswith("; 1 of 256 elements differ")


def test_a_bit_that_is_wrong_again_and_again_is_found(server: ServerUnderLoad) -> None:
    _, document = _run(server, _options("rl", verifies=True), planted.wrong_bit_again_and_again)
    assert [problem.partition(",")[0] for problem in document["problems"]] == ["session 0", "session 1"]
    assert all("other bits than alone: float32 [0, 0] is " in problem for problem in document["problems"])


def test_a_bit_that_is_wrong_whenever_a_value_comes_is_found_where_numpy_is_exact(server: ServerUnderLoad) -> None:
    _, document = _run(server, _options("exact", verifies=True), planted.wrong_bit_of_some_values)
    assert all("not what NumPy computes: float32 [0, 0] is " in problem for problem in document["problems"])
    assert len(document["problems"]) == 2


def test_the_value_of_another_session_is_found(server: ServerUnderLoad) -> None:
    _, document = _run(server, _options("rl", verifies=True, processes=1), planted.value_of_another_session)
    assert document["problems"][0].startswith("session 0, step 50: other bits than alone: float32 [0, 0] is ")
    assert "; not what NumPy computes: float32 [0, 0] is " in document["problems"][0]


def test_a_stall_makes_a_load_test_worse_than_one_without(server: ServerUnderLoad) -> None:
    _, healthy = _run(server, _options(seconds=3.0))
    _, stalled = _run(server, _options(seconds=3.0), planted.stall)
    assert stalled["max_s"] > 0.3
    assert compare(healthy, stalled).is_worse


def test_a_load_test_that_is_too_slow_itself_is_void(server: ServerUnderLoad) -> None:
    _, document = _run(server, _options("rl", seconds=0.9, rate_per_s=20), planted.slow_generator)
    assert document["problems"][0].startswith("void, the load test itself was too slow: steps began 0.0")
    assert document["lag_mean_s"] > 0.05
    assert document["record_s"] < 0.05


def test_a_leak_of_a_client_is_shown(server: ServerUnderLoad) -> None:
    _, document = _run(server, _options(seconds=3.0), planted.leak)
    assert document["clients_growth_bytes_per_s"] > 1 << 20


def test_a_wake_up_that_is_lost_fails_the_load_test(server: ServerUnderLoad) -> None:
    _, document = _run(server, _options(), planted.lost_wake_up)
    assert document["errors"] == 1
    assert document["problems"][:2] == [
        "1 of 2 sessions failed",
        "session 0: step 50, reading float32 of shape (1, 256): it did not end in time",
    ]


def test_a_peer_that_does_half_the_work_is_no_peer(server: ServerUnderLoad) -> None:
    with pytest.raises(WrongResult, match=r"in numpy: the first value differs from NumPy's"):
        _run(server, _options(peer="numpy"), planted.half_the_work)


def test_a_worker_process_that_dies_ends_the_load_test(server: ServerUnderLoad) -> None:
    with pytest.raises(LoadFailed, match="a worker process died with exit status 3"):
        _run(server, _options(), planted.death)
    assert not _workers()


def test_a_rate_that_cannot_be_kept_fails_the_load_test(server: ServerUnderLoad) -> None:
    _, document = _run(server, _options(seconds=0.9, rate_per_s=1e6))
    assert "the rate of 1e+06 steps a second was not kept" in document["problems"][-1]
    assert document["p50_s"] > 0.1


def test_a_disturber_is_measured_against_the_load_without_it(server: ServerUnderLoad) -> None:
    _, document = _run(server, _options("aggressor", seconds=0.9))
    assert document["undisturbed"]["p99_s"] > 0
    assert document["p99_to_undisturbed"] > 0


def test_a_disturber_that_stops_its_own_process_is_killed(server: ServerUnderLoad) -> None:
    _run(server, _options("slow-reader", seconds=0.9))
    assert not _workers()


def test_sessions_that_vanish_leave_nothing() -> None:
    with serve_subprocess("cpu", environment={"FUSEWIRE_LIMITS__RESUME_GRACE_S": "0.1"}) as process:
        server = ServerUnderLoad(Access(process.grpc), Service(process.grpc, process.http), process.pid)
        _, document = _run(server, _options("churn", seconds=None))
    assert (document["problems"], document["steps"]) == ([], 2)
    assert (document["seconds"], document["harness_share"]) == (None, None)


def test_a_server_that_dies_ends_the_load_test() -> None:
    with own_server("cpu") as server:
        assert server.pid is not None
        pid = server.pid

        def tell(what: str, _done: int, _total: int) -> None:
            if what == "measuring":
                os.kill(pid, signal.SIGKILL)

        with pytest.raises(LoadFailed, match=r"no answer from the inspection|every session failed"):
            LoadTest(_options(), server, tell).run()
    assert not _workers()


def _workers() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "spawn_main" in " ".join(child.cmdline())]


@pytest.mark.parametrize(("fault", "status"), [(serve, 0), (planted.wrong_bit, 1)])
def test_the_command_fails_if_a_bit_is_wrong_and_not_otherwise(
    server: ServerUnderLoad,
    fault: Callable[..., None],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(command_line, "LoadTest", partial(LoadTest, serve=fault))
    arguments = ["rl", "--sessions", "2", "--processes", "2", "--seconds", "0.9", "--verify", "--seed", "5"]
    assert command_line.main([*arguments, "--target", server.access.target]) == status
    printed = capsys.readouterr().out
    assert "(seed 5)" in printed
    assert ("FAILED      session 0, step 50: other bits than alone: float32 [0, 0] is" in printed) == (status == 1)
