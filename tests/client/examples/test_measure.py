"""The demo from end to end, small: servers of its own, client processes, inspection; and a server that runs already."""

from collections.abc import Iterator

import pytest

from fusewire.examples.figures import Figures
from fusewire.examples.measure import measure_running, measure_started
from fusewire.testing import ServerProcess, serve_subprocess

EPOCHS = 4
CLIENTS = 8  # as many as it takes that some of their segments meet
_ATTEMPTS = 8


@pytest.fixture(scope="module")
def measured() -> Figures:
    return measure_started("cpu", clients=CLIENTS, epochs=EPOCHS)


def test_clients_learn_what_numpy_learns(measured: Figures) -> None:
    assert measured.has_passed
    for client, numpy in zip(measured.together.clients, measured.numpy, strict=True):
        assert client.run.losses == pytest.approx(numpy.losses, rel=1e-3)


def test_clients_send_few_programs_and_share_them(measured: Figures) -> None:
    assert 1 <= len(measured.together.programs) <= 10
    assert measured.together.are_most_programs_shared


def test_the_server_runs_each_batch_of_a_loop_that_the_clients_record_once(measured: Figures) -> None:
    assert measured.together.server is not None
    ops_a_client = measured.together.server.ops / CLIENTS
    assert ops_a_client > EPOCHS * 45 * 30  # batches, and ops a batch
    assert measured.together.ops / CLIENTS < ops_a_client / 10


def test_clients_meet_in_launches(measured: Figures) -> None:
    assert measured.together.server is not None
    assert measured.together.server.rows > measured.together.server.submissions


def test_without_a_compiler_the_clients_learn_op_by_op(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    measured = measure_started("cpu", clients=2, epochs=2)
    assert measured.is_op_by_op
    assert measured.has_passed


@pytest.fixture(scope="module")
def running() -> Iterator[ServerProcess]:
    with serve_subprocess("cpu") as server:
        yield server


def test_a_running_server_serves_without_being_inspected(running: ServerProcess) -> None:
    measured = measure_running(running.grpc, None, clients=1, epochs=1)
    assert measured.has_passed
    assert measured.alone.server is None


def test_a_server_that_has_nothing_left_to_plan_is_not_taken_for_one_without_a_compiler(running: ServerProcess) -> None:
    for _ in range(_ATTEMPTS):
        measured = measure_running(running.grpc, running.http, clients=1, epochs=1)
        if _plans(measured) == 0:
            break
    else:
        pytest.fail("the server had something to plan in every run")
    assert not measured.is_op_by_op


def _plans(measured: Figures) -> int:
    counts = [phase.server for phase in (measured.first, measured.alone, measured.together)]
    return sum(count.plans for count in counts if count is not None)
